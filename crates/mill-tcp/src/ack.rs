//! What the segment acknowledges (RFC 9293 3.10.7.4, fifth).

use crate::connection::{Cold, Connection, ConnectionFlags};
use crate::env::Env;
use crate::recovery::{Phase, Progress};
use crate::scoreboard::{Delivery, Moment};
use crate::segment::Segment;
use mill_wire::tcp::Flags;

#[cfg(test)]
pub(crate) mod sender;

#[cfg(test)]
mod tests;

/// What of ours the segment acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Acked {
    /// Payload bytes; SYN and FIN are not counted.
    pub(crate) bytes: u32,
    /// Our FIN.
    pub(crate) fin: bool,
    /// Our SYN.
    pub(crate) syn: bool,
}

impl Connection {
    /// Takes the acknowledgement of a segment, which is one of something sent, and not absurdly old
    /// (RFC 5961 5.2).
    #[inline]
    pub(crate) fn on_ack(&mut self, segment: &Segment<'_>, env: &mut Env<'_>) -> Acked {
        debug_assert!(segment.ack.is_at_or_before(self.snd.nxt()));
        let mut acked = Acked::default();
        if !self.state.is_synchronized() && segment.ack.is_after(self.snd.una()) {
            self.snd.on_syn_acknowledged();
            acked.syn = true;
        }
        if segment.ack.is_before(self.snd.una()) {
            return acked;
        }
        let wnd = self.window_of(segment);
        let has_new_window = self.snd.update_window(segment.seq, segment.ack, wnd);
        self.timer.on_answer();
        if let Some(mut cold) = self.cold.take_if(|cold| cold.is_sending()) {
            let acked_bytes = self.on_ack_in_flight(&mut cold, segment, has_new_window, env);
            acked.fin = acked_bytes > 0
                && self.flags.has(ConnectionFlags::FIN_SENT)
                && self.snd.is_all_acknowledged();
            acked.bytes = acked_bytes - u32::from(acked.fin);
            self.cold = Some(cold);
        } else {
            debug_assert_eq!(
                segment.ack,
                self.snd.una(),
                "only what is in flight is acknowledged"
            );
            self.snd.on_ack(segment.ack);
        }
        if has_new_window {
            self.on_window_while_idle(env);
        }
        acked
    }

    /// The window that a segment tells, in bytes (RFC 7323 2.3).
    #[inline]
    pub(crate) fn window_of(&self, segment: &Segment<'_>) -> u32 {
        u32::from(segment.window) << self.shifts.snd()
    }

    /// An acknowledgement while something is in flight; returns the sequence numbers it acknowledged.
    fn on_ack_in_flight(
        &mut self,
        cold: &mut Cold,
        segment: &Segment<'_>,
        has_new_window: bool,
        env: &mut Env<'_>,
    ) -> u32 {
        let now = Moment::of(env.now);
        let ack = segment.ack;
        let acked_bytes = self.snd.on_ack(ack);
        let mut delivery = Delivery::default();
        if acked_bytes > 0 {
            cold.scoreboard.acknowledge(ack, &mut delivery);
        }
        let sack = &segment.options.sack;
        let duplicate_bytes = if self.flags.has(ConnectionFlags::SACK) && !sack.is_empty() {
            self.take_sack_blocks(cold, sack, ack, &mut delivery, env)
        } else {
            0
        };
        let echo = segment
            .options
            .timestamps
            .filter(|_| self.flags.has(ConnectionFlags::TIMESTAMPS))
            .map(|timestamps| timestamps.echo);
        // One that brings nothing may be older than one that came before it (RFC 9768 3.2.2.2).
        let is_marked = (acked_bytes > 0 || delivery.bytes > 0) && self.take_marks(segment);
        let progress = Progress {
            ack,
            now,
            delivery,
            acked_bytes,
            duplicate_bytes,
            // RFC 5681 2. The acknowledgement of a Fast Open's SYN repeats nothing.
            is_duplicate: acked_bytes == 0
                && !self.flags.has(ConnectionFlags::FAST_OPEN)
                && segment.is_empty()
                && !has_new_window
                && !segment.flags.has_any(Flags::SYN | Flags::FIN),
            is_echo_older: self.is_echo_older(echo, &delivery, now, env),
            echo,
            is_congested: is_marked
                || (self.flags.has(ConnectionFlags::ECN)
                    && segment.flags.has(Flags::ECE)
                    && !segment.flags.has(Flags::SYN)),
        };
        self.take_round_trip(cold, &progress, env);
        self.recover(cold, &progress, env);
        if acked_bytes > 0 {
            cold.recovery.on_progress(cold.scoreboard.is_empty(), now);
            self.timer.on_progress();
        }
        self.arm_after_ack(cold, acked_bytes > 0, env);
        acked_bytes
    }

    /// Measures the round trip (RFC 6298 3): by what was sent only once, else by the echoed timestamp (RFC 7323 4.1).
    #[inline]
    fn take_round_trip(&mut self, cold: &mut Cold, progress: &Progress, env: &mut Env<'_>) {
        let delivery = &progress.delivery;
        let echo_us = progress.echo.and_then(|echo| self.echo_age_us(echo, env));
        // The first one may have waited for a delayed acknowledgement, which the timeout has to allow for; but when
        // acknowledgements were lost, it tells how long they were.
        let original_at = if cold.recovery.phase() == Phase::Open && progress.acked_bytes > 0 {
            delivery.first_original_at
        } else {
            delivery.last_original_at
        };
        let sample = match original_at {
            Some(at) if !delivery.has_retransmitted => {
                let by_clock = progress.now.since(at).max(1);
                // The echo is that of the segment which brought the acknowledgement about, a millisecond more or
                // less.
                Some(echo_us.map_or(by_clock, |echo_us| by_clock.min(echo_us + 1_000)))
            }
            _ if progress.acked_bytes > 0 && progress.is_echo_older => {
                self.late_round_trip(progress, echo_us, env)
            }
            _ if progress.acked_bytes > 0 => {
                // The echo is that of the retransmission itself, a millisecond more or less. Without SACK, so without
                // D-SACK, `late_round_trip` depends on how short the path has become.
                let has_sack = self.flags.has(ConnectionFlags::SACK);
                if let Some(echo_us) = echo_us.filter(|_| !has_sack) {
                    self.rtt.on_shorter(echo_us + 1_000);
                }
                echo_us
            }
            _ => None,
        };
        if let Some(last) = delivery.last_original_at {
            // The last one did not wait for a delayed acknowledgement.
            let shortest = progress.now.since(last).max(1);
            self.rtt.on_shortest(shortest);
            self.on_delay(cold, shortest);
        }
        if let Some(rtt_us) = sample {
            let snd = &self.snd;
            let recovery = &mut cold.recovery;
            self.rtt
                .on_sample(rtt_us, || recovery.begins_rtt_round(snd.una(), snd.nxt()));
            self.timer.end_backoff();
        } else if progress.acked_bytes > 0 {
            self.timer.keep_backoff();
        }
    }

    /// The echo is older than the retransmission. Either the original came late, which the timeout has to learn of
    /// (RFC 4015 3.3), or its acknowledgement was lost, and the retransmission brought this one about, which echoes the
    /// original all the same (RFC 7323 4.3: what lies before the window moves TS.Recent no more). In the second case
    /// the echo is as old as the timeout, and each lost acknowledgement would make the timeout nearly twice as long. Only
    /// what comes sooner than any answer to the retransmission could is certain: within half of the shortest round trip, for
    /// a retransmission may be shorter than what that was measured by, or find shorter queues. Else Karn's algorithm holds: no
    /// measurement, and the timeout stays backed off until one of what was sent once, which a longer path yields then.
    fn late_round_trip(
        &self,
        progress: &Progress,
        echo_us: Option<u32>,
        env: &Env<'_>,
    ) -> Option<u32> {
        let newest = progress.delivery.newest?;
        let away_us = progress.now.since(newest.at);
        if progress.duplicate_bytes > 0 || away_us >= self.rtt.min_us() / 2 {
            return None;
        }
        let us_max = u32::try_from(2 * self.rto_base_us(env.config)).unwrap_or(u32::MAX);
        echo_us.map(|echo_us| echo_us.min(us_max))
    }

    /// Microseconds since a segment with this timestamp left; a millisecond at least, as that is how finely
    /// timestamps count.
    fn echo_age_us(&self, echo: u32, env: &Env<'_>) -> Option<u32> {
        let age_ms = self.ts.age_ms(echo, env.tick());
        (age_ms < ECHO_MS_MAX).then(|| age_ms.max(1) * 1_000)
    }

    /// Whether TSecr tells of a segment that left before the newest one that arrived did (RFC 8985 6.2 step 2).
    fn is_echo_older(
        &self,
        echo: Option<u32>,
        delivery: &Delivery,
        now: Moment,
        env: &Env<'_>,
    ) -> bool {
        let Some(newest) = delivery.newest.filter(|newest| newest.is_retransmission) else {
            return false;
        };
        let age_us = echo.and_then(|echo| self.echo_age_us(echo, env));
        // Segments of the same millisecond are not distinguished.
        age_us.is_some_and(|age_us| age_us > now.since(newest.at).saturating_add(1_000))
    }

    /// The window is another one, and nothing is in flight: if data waited for it, `next_segment` decides anew. What is
    /// still too little for it has to wait for one timeout at most (RFC 9293 3.8.6.2.1). The timer goes on and keeps its
    /// count: a window that opens by a byte and closes is no progress, however often that happens.
    fn on_window_while_idle(&mut self, env: &Env<'_>) {
        if self.is_persisting() && self.snd.wnd() > 0 {
            self.hasten_window_probe(env);
        }
    }
}

/// Milliseconds; what seems to have been away for longer than any timeout is no measurement. Keeps microseconds in
/// 32 bits.
const ECHO_MS_MAX: u32 = 1_000_000;
