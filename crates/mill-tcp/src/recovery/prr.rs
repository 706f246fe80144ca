//! Proportional rate reduction (RFC 9937, which follows 6937): the window goes down to its target while data keeps
//! flowing, one segment out for so many delivered.

use super::{Phase, Progress};
use crate::connection::{Cold, Connection};

/// RFC 9937 6.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prr {
    /// Bytes delivered and sent since the reduction began.
    delivered_bytes: u32,
    sent_bytes: u32,
    /// RecoverFS: what was in flight when it began.
    flight_bytes: u32,
}

impl Prr {
    /// prr_out of RFC 9937 6.
    #[inline]
    pub(super) const fn on_sent(&mut self, bytes: u32) {
        self.sent_bytes = self.sent_bytes.saturating_add(bytes);
    }

    /// Bytes that may leave at this acknowledgement: sndcnt of RFC 9937 6.
    fn allowance(&self, delivered: u32, pipe: u32, ssthresh: u32, mss: u32, is_safe: bool) -> u32 {
        let backlog = self.delivered_bytes.saturating_sub(self.sent_bytes);
        if pipe > ssthresh {
            let share = u64::from(self.delivered_bytes) * u64::from(ssthresh);
            let share = share.div_ceil(u64::from(self.flight_bytes.max(1)));
            u32::try_from(share)
                .unwrap_or(u32::MAX)
                .saturating_sub(self.sent_bytes)
        } else {
            // Below the target: as much as was delivered (CRB), a segment more while all goes well (SSRB).
            let bound = backlog.max(delivered) + if is_safe { mss } else { 0 };
            bound.min(ssthresh - pipe)
        }
    }
}

impl Connection {
    /// A reduction to `ssthresh` begins.
    pub(super) fn start_reduction(&self, cold: &mut Cold, progress: &Progress) {
        let scoreboard = &cold.scoreboard;
        // What this acknowledgement brought belongs to the reduction, what had arrived before does not.
        let left = scoreboard.outstanding_bytes() - scoreboard.sacked_bytes();
        cold.recovery.prr = Prr {
            delivered_bytes: 0,
            sent_bytes: 0,
            flight_bytes: left.saturating_add(progress.delivery.bytes),
        };
    }

    /// An acknowledgement during the reduction.
    pub(super) fn reduce_window(&mut self, cold: &mut Cold, progress: &Progress, has_losses: bool) {
        let mss = u32::from(self.snd_mss);
        let mut delivered = progress.delivery.bytes;
        if progress.is_duplicate && cold.recovery.duplicates.count() > 0 {
            // RFC 9937 6: without SACK a duplicate stands for one segment.
            delivered = delivered.max(mss);
        }
        if delivered == 0 {
            return;
        }
        let is_safe = progress.acked_bytes > 0 && !has_losses;
        let pipe = self.pipe(cold);
        let prr = &mut cold.recovery.prr;
        prr.delivered_bytes = prr.delivered_bytes.saturating_add(delivered);
        let mut allowance =
            prr.allowance(delivered, pipe, self.congestion.ssthresh(), mss, is_safe);
        if prr.sent_bytes == 0 && cold.recovery.phase == Phase::Recovery {
            // The first retransmission leaves at once.
            allowance = allowance.max(mss);
        }
        self.congestion.on_reduction_step(pipe, allowance, mss);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn above_the_target_the_share_of_what_was_delivered_leaves() {
        let check = |delivered_bytes, sent_bytes, expected| {
            let prr = Prr {
                delivered_bytes,
                sent_bytes,
                flight_bytes: 10_000,
            };
            let allowance = prr.allowance(1_000, 8_000, 7_000, 1_000, true);
            assert_eq!(allowance, expected, "{delivered_bytes} {sent_bytes}");
        };
        check(1_000, 0, 700);
        check(1_000, 700, 0);
        check(2_000, 1_000, 400);
        check(2_001, 1_000, 401);
        check(10_000, 7_000, 0);
    }

    #[test]
    fn below_the_target_as_much_leaves_as_was_delivered_and_a_segment_more_while_safe() {
        let check = |pipe, is_safe, expected| {
            let prr = Prr {
                delivered_bytes: 3_000,
                sent_bytes: 1_500,
                flight_bytes: 10_000,
            };
            let allowance = prr.allowance(1_000, pipe, 7_000, 1_000, is_safe);
            assert_eq!(allowance, expected, "{pipe} in flight");
        };
        check(2_000, false, 1_500);
        check(2_000, true, 2_500);
        check(6_500, true, 500);
        check(7_000, true, 0);
    }
}
