//! A wire for frames of others: what a `Wire` does to them, without a world around it.
//!
//! Which time it is, the caller says: the clock of a machine, between whose interfaces it passes real frames, or any other.

use super::carrier::{Carrier, Effect, Outcome};
use super::flying::Flying;
use super::wire::Wire;
use mill_runtime::time::{Duration, Instant};
use mill_stack::link::Offload;
use std::collections::VecDeque;

/// One direction of a path, and what is on it. Times are since an origin of the caller's, and never go back.
#[derive(Debug)]
pub struct Lane {
    carrier: Carrier,
    /// By the time of arrival.
    flying: VecDeque<(Instant, Vec<u8>)>,
    counts: LaneCounts,
}

/// What became of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneCounts {
    pub entered: u64,
    pub arrived: u64,
    /// Dropped, because the queue before the wire was full …
    pub queue_full: u64,
    /// … or because the wire loses some.
    pub lost: u64,
    /// Bits were flipped; these arrive.
    pub corrupted: u64,
}

impl Lane {
    /// The same seed and the same frames at the same times have the same fate.
    pub const fn new(wire: Wire, seed: u64) -> Self {
        Self {
            carrier: Carrier::new(wire, seed),
            flying: VecDeque::new(),
            counts: LaneCounts {
                entered: 0,
                arrived: 0,
                queue_full: 0,
                lost: 0,
                corrupted: 0,
            },
        }
    }

    /// A frame enters: Ethernet, complete with its checksums.
    pub fn enter(&mut self, now: Duration, frame: Vec<u8>) {
        self.counts.entered += 1;
        let mut frame = Flying::new(frame, Offload::default(), 0);
        let counts = &mut self.counts;
        let outcome = self.carrier.carry(instant(now), &mut frame, |effect| {
            counts.corrupted += u64::from(effect == Effect::Corrupted);
        });
        match outcome {
            Outcome::Arrives { at, again } => {
                let copy = again.map(|again| (again, frame.bytes.clone()));
                self.fly(at, frame.bytes);
                if let Some((at, bytes)) = copy {
                    self.fly(at, bytes);
                }
            }
            Outcome::Dropped(Effect::QueueFull) => self.counts.queue_full += 1,
            Outcome::Dropped(_) => self.counts.lost += 1,
        }
    }

    /// When the next frame arrives.
    pub fn next_arrival(&self) -> Option<Duration> {
        let (at, _) = self.flying.front()?;
        Some(Duration::from_nanos(at.as_nanos()))
    }

    /// A frame that has arrived by now, and when it did.
    pub fn arrived(&mut self, now: Duration) -> Option<(Duration, Vec<u8>)> {
        let at = self.next_arrival().filter(|at| *at <= now)?;
        let (_, frame) = self.flying.pop_front()?;
        self.counts.arrived += 1;
        Some((at, frame))
    }

    /// Bytes that wait for the wire, with what is left of the frame that it takes. Of any time since the last frame entered.
    pub fn backlog_bytes(&self, at: Duration) -> u64 {
        self.carrier.backlog(instant(at))
    }

    pub const fn counts(&self) -> LaneCounts {
        self.counts
    }

    /// Behind those that arrive no later.
    fn fly(&mut self, at: Instant, frame: Vec<u8>) {
        let place = self.flying.partition_point(|(other, _)| *other <= at);
        self.flying.insert(place, (at, frame));
    }
}

fn instant(since_origin: Duration) -> Instant {
    Instant::from_nanos(u64::try_from(since_origin.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::super::wire::Loss;
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// 8 Mbit/s: a frame of 1000 bytes takes a millisecond; room for four of them.
    const WIRE: Wire = Wire {
        bits_per_second: Some(8_000_000),
        queue_bytes: 4_000,
        ..Wire::delayed(Duration::from_millis(10))
    };

    /// Of frames of 1000 bytes, each marked by its first byte, that enter at these milliseconds: when which arrive.
    fn arrivals(lane: &mut Lane, entries: &[u32]) -> Vec<(Duration, u8)> {
        for (number, at) in (0..).zip(entries) {
            let mut frame = vec![0; 1000];
            frame[0] = number;
            lane.enter(MS * *at, frame);
        }
        let end = Duration::from_secs(10);
        let next = || lane.arrived(end).map(|(at, frame)| (at, frame[0]));
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn frames_take_the_wire_in_turn_and_arrive_after_its_delay() {
        let mut lane = Lane::new(WIRE, 1);
        let expected = [(11, 0), (12, 1), (13, 2), (21, 3)].map(|(at, number)| (MS * at, number));
        assert_eq!(arrivals(&mut lane, &[0, 0, 1, 10]), expected);
    }

    #[test]
    fn a_frame_arrives_when_its_time_has_come_and_not_before() {
        let mut lane = Lane::new(WIRE, 1);
        lane.enter(Duration::ZERO, vec![7; 1000]);
        assert_eq!(lane.next_arrival(), Some(MS * 11));
        let early = MS * 11 - Duration::from_nanos(1);
        assert_eq!(lane.arrived(early), None);
        assert_eq!(lane.arrived(MS * 12), Some((MS * 11, vec![7; 1000])));
        assert_eq!((lane.next_arrival(), lane.arrived(MS * 99)), (None, None));
    }

    #[test]
    fn a_frame_that_finds_the_queue_full_is_dropped_and_one_that_just_fits_is_not() {
        let mut lane = Lane::new(WIRE, 1);
        let arrived = arrivals(&mut lane, &[0, 0, 0, 0, 0, 1]);
        let numbers: Vec<u8> = arrived.iter().map(|(_, number)| *number).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 5]);
        let counts = lane.counts();
        assert_eq!(
            (counts.entered, counts.arrived, counts.queue_full),
            (6, 5, 1)
        );
    }

    #[test]
    fn the_backlog_is_what_the_wire_has_not_taken_yet() {
        let mut lane = Lane::new(WIRE, 1);
        lane.enter(Duration::ZERO, vec![0; 1000]);
        lane.enter(Duration::ZERO, vec![0; 1000]);
        for (at_us, expected) in [
            (0, 2000),
            (500, 1500),
            (1_000, 1000),
            (2_000, 0),
            (9_000, 0),
        ] {
            let at = Duration::from_micros(at_us);
            assert_eq!(lane.backlog_bytes(at), expected, "{at_us}");
        }
    }

    #[test]
    fn jitter_delays_and_does_not_reorder() {
        let wire = Wire {
            jitter: MS * 5,
            queue_bytes: 1 << 20,
            ..WIRE
        };
        let arrived = arrivals(&mut Lane::new(wire, 3), &(0..100).collect::<Vec<_>>());
        assert!(arrived.is_sorted());
        let delays = arrived
            .iter()
            .map(|(at, number)| *at - MS * u32::from(*number));
        let (least, most) = (delays.clone().min().unwrap(), delays.max().unwrap());
        assert!(least >= MS * 11 && most <= MS * 16, "{least:?} {most:?}");
        assert!(most - least > MS * 3, "{least:?} {most:?}");
    }

    #[test]
    fn a_seed_decides_which_frames_are_lost() {
        let fate = |seed| {
            let wire = Wire {
                loss: Loss::Random {
                    per_million: 100_000,
                },
                queue_bytes: 1 << 20,
                ..WIRE
            };
            let mut lane = Lane::new(wire, seed);
            let numbers = arrivals(&mut lane, &(0..200).collect::<Vec<_>>());
            assert_eq!(lane.counts().lost + numbers.len() as u64, 200);
            numbers
        };
        assert_eq!(fate(1), fate(1));
        assert_ne!(fate(1), fate(2));
        assert!((160..=195).contains(&fate(1).len()), "{}", fate(1).len());
    }

    #[test]
    fn corruption_changes_a_packet_and_it_arrives() {
        let wire = Wire {
            corrupt_per_million: 1_000_000,
            ..WIRE
        };
        let mut lane = Lane::new(wire, 1);
        let packet = udp_packet();
        lane.enter(Duration::ZERO, packet.clone());
        let (_, arrived) = lane.arrived(MS * 20).unwrap();
        assert_eq!(arrived.len(), packet.len());
        assert_ne!(arrived, packet);
        assert_eq!(lane.counts().corrupted, 1);
    }

    /// An empty datagram of UDP over IPv4, from RFC 791 and RFC 768.
    fn udp_packet() -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
        frame.extend([0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0]);
        frame.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0, 7, 0, 7, 0, 8, 0, 0]);
        frame
    }
}
