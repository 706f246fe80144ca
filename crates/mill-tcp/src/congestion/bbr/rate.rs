//! How fast what was sent arrives (draft-ietf-ccwg-bbr 4.1): each send remembers what had been delivered by then, and when it is
//! acknowledged itself, the difference over the time between is a sample of the path's rate.

use crate::scoreboard::{Delivery, Moment};
use alloc::collections::VecDeque;
use mill_wire::seq::SeqNumber;

/// Bytes and microseconds.
#[derive(Debug, Default)]
pub(super) struct Rates {
    /// C.delivered, and when that changed last.
    delivered: u64,
    delivered_at: u64,
    /// When what was acknowledged last had left.
    first_sent_at: u64,
    /// C.lost.
    lost: u64,
    /// The application had no more to send until so much is delivered; 0 if it always had.
    limited_until: u64,
    /// What is in flight, in the order of time.
    sent: VecDeque<SentState>,
}

/// The state when something was sent.
#[derive(Clone, Copy, Debug)]
struct SentState {
    start: SeqNumber,
    end: SeqNumber,
    moment: Moment,
    at: u64,
    delivered: u64,
    delivered_at: u64,
    first_sent_at: u64,
    lost: u64,
    in_flight: u32,
    is_limited: bool,
}

/// What an acknowledgement tells of the path (RS of the draft).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RateSample {
    /// Bytes a second; none if nothing new has arrived, or within less than a round trip.
    pub(super) rate: Option<u64>,
    /// Bytes that arrived between the send and its acknowledgement, and by the time of the send.
    pub(super) delivered: u64,
    pub(super) prior_delivered: u64,
    /// Bytes found lost between them.
    pub(super) lost: u64,
    /// Bytes in flight, itself included, when it was sent.
    pub(super) in_flight: u32,
    pub(super) is_limited: bool,
    /// Bytes that this acknowledgement alone brought, and lost.
    pub(super) newly_delivered: u32,
    pub(super) newly_lost: u32,
}

impl Rates {
    pub(super) const fn delivered(&self) -> u64 {
        self.delivered
    }

    pub(super) const fn lost(&self) -> u64 {
        self.lost
    }

    pub(super) const fn is_limited(&self) -> bool {
        self.limited_until != 0
    }

    /// The application has no more to send while so much is in flight.
    pub(super) fn limit(&mut self, in_flight: u32) {
        self.limited_until = (self.delivered + u64::from(in_flight)).max(1);
    }

    /// Something leaves, while `in_flight` are on their way.
    pub(super) fn on_sent(
        &mut self,
        (start, end): (SeqNumber, SeqNumber),
        now: u64,
        in_flight: u32,
    ) {
        // Also where measuring begins in the midst of a flight.
        if in_flight == 0 || self.delivered_at == 0 {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        let len = end - start;
        if let Some(last) = self.sent.back_mut()
            && last.at == now
            && last.end == start
            && last.delivered == self.delivered
        {
            last.end = end;
            last.in_flight = in_flight.saturating_add(len);
            return;
        }
        self.sent.push_back(SentState {
            start,
            end,
            moment: moment_of(now),
            at: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            lost: self.lost,
            in_flight: in_flight.saturating_add(len),
            is_limited: self.is_limited(),
        });
    }

    /// An acknowledgement. A round trip of less than `min_rtt` would mean a rate that the path never had.
    pub(super) fn on_ack(
        &mut self,
        delivery: &Delivery,
        lost: u32,
        (now, min_rtt): (u64, u64),
    ) -> RateSample {
        self.lost += u64::from(lost);
        let mut sample = RateSample {
            newly_delivered: delivery.bytes,
            newly_lost: lost,
            ..RateSample::default()
        };
        if delivery.bytes > 0 {
            self.delivered += u64::from(delivery.bytes);
            self.delivered_at = now;
        }
        if self.delivered > self.limited_until {
            self.limited_until = 0;
        }
        let Some(state) = delivery
            .newest
            .and_then(|newest| self.take(newest.at, newest.end))
        else {
            return sample;
        };
        sample.delivered = self.delivered - state.delivered;
        sample.prior_delivered = state.delivered;
        sample.lost = self.lost - state.lost;
        sample.in_flight = state.in_flight;
        sample.is_limited = state.is_limited;
        let sending = state.at.saturating_sub(state.first_sent_at);
        let arriving = self.delivered_at.saturating_sub(state.delivered_at);
        self.first_sent_at = state.at;
        // The clock may not have moved, as a round trip is a microsecond at least: without this the first, slow sample of a path that
        // is faster than the clock would be the only one.
        let interval = sending.max(arriving).max(1);
        if interval >= min_rtt {
            sample.rate = Some(sample.delivered * 1_000_000 / interval);
        }
        sample
    }

    /// The state of what ends there and left then; all that left before is forgotten.
    fn take(&mut self, moment: Moment, end: SeqNumber) -> Option<SentState> {
        let behind = self
            .sent
            .partition_point(|state| !state.moment.is_after(moment));
        let covers = |state: &SentState| end.is_after(state.start) && !end.is_after(state.end);
        let earlier = self.sent.range(..behind);
        let place = earlier
            .enumerate()
            .rev()
            .take_while(|(_, state)| state.moment == moment)
            .find(|(_, state)| covers(state))
            .map(|(place, _)| place);
        let place = place.or_else(|| behind.checked_sub(1))?;
        self.sent.drain(..place);
        self.sent.front().copied()
    }
}

#[expect(clippy::cast_possible_truncation, reason = "moments wrap")]
const fn moment_of(micros: u64) -> Moment {
    Moment(micros as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scoreboard::delivery::Newest;

    fn sequence(from: u32, to: u32) -> (SeqNumber, SeqNumber) {
        (SeqNumber(from), SeqNumber(to))
    }

    fn arrived(bytes: u32, left_at: u32, end: u32) -> Delivery {
        Delivery {
            bytes,
            newest: Some(Newest {
                at: Moment(left_at),
                end: SeqNumber(end),
                is_retransmission: false,
            }),
            ..Delivery::default()
        }
    }

    #[test]
    fn what_arrives_within_a_round_trip_over_its_time_is_the_rate() {
        let mut rates = Rates::default();
        // Ten segments of 1000 bytes in flight; one arrives each millisecond, 10 ms after it left, and one follows.
        for number in 0..10 {
            rates.on_sent(
                sequence(number * 1000, (number + 1) * 1000),
                0,
                number * 1000,
            );
        }
        for number in 0..30_u32 {
            let now = 10_000 + 1_000 * u64::from(number);
            let left_at = if number < 10 { 0 } else { number * 1_000 };
            let end = (number + 1) * 1000;
            let sample = rates.on_ack(&arrived(1000, left_at, end), 0, (now, 5_000));
            rates.on_sent(sequence(end + 9_000, end + 10_000), now, 9_000);
            // The first ones left together, and are as slow as that makes them.
            if number >= 20 {
                assert_eq!(sample.rate, Some(1_000_000), "{number}: {sample:?}");
                assert_eq!((sample.delivered, sample.in_flight), (10_000, 10_000));
            }
        }
    }

    /// Its peer's first acknowledgement was delayed (a proxied world of seed 1021 was paced by that for half an hour).
    #[test]
    fn a_path_that_is_faster_than_the_clock_has_a_rate() {
        let mut rates = Rates::default();
        rates.on_sent(sequence(0, 40), 1_000_000, 0);
        let slow = rates.on_ack(&arrived(40, 1_000_000, 40), 0, (1_200_000, 200_000));
        assert_eq!(slow.rate, Some(200));
        rates.on_sent(sequence(40, 3_040), 2_000_000, 0);
        let fast = rates.on_ack(&arrived(3_000, 2_000_000, 3_040), 0, (2_000_000, 1));
        assert_eq!(fast.rate, Some(3_000_000_000));
    }

    #[test]
    fn measuring_may_begin_in_the_midst_of_a_flight() {
        let mut rates = Rates::default();
        rates.on_sent(sequence(90_000, 91_000), 50_000_000, 90_000);
        let sample = rates.on_ack(&arrived(91_000, 50_000_000, 91_000), 0, (50_010_000, 1));
        assert_eq!(sample.rate, Some(9_100_000));
    }

    #[test]
    fn a_sample_tells_what_was_lost_meanwhile_and_whether_there_was_enough_to_send() {
        let mut rates = Rates::default();
        rates.on_sent(sequence(0, 4000), 1, 0);
        rates.limit(4000);
        rates.on_sent(sequence(4000, 5000), 2, 4000);
        let first = rates.on_ack(&arrived(2000, 1, 4000), 2000, (10_001, 1));
        assert_eq!((first.lost, first.is_limited), (2000, false));
        let second = rates.on_ack(&arrived(1000, 2, 5000), 0, (10_002, 1));
        assert_eq!((second.lost, second.is_limited), (2000, true));
        assert!(rates.is_limited());
        rates.on_ack(&arrived(2000, 2, 5000), 0, (10_003, 1));
        assert!(!rates.is_limited());
    }
}
