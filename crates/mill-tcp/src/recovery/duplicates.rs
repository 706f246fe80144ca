//! Duplicate acknowledgements of a peer without SACK (RFC 5681 3.2, RFC 6582).

use super::{Phase, Progress};
use crate::connection::{Cold, Connection};
use mill_wire::seq::SeqNumber;

/// Those that came in a row, and those that mean nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Duplicates {
    /// Each stands for a segment that has left the network.
    count: u32,
    /// Below this they may be the echo of our own retransmissions (RFC 6582 3.2 step 1), …
    echoes_before: Option<SeqNumber>,
    /// … as many of them as segments were sent again.
    echoes: u32,
}

impl Duplicates {
    pub(super) const fn count(&self) -> u32 {
        self.count
    }

    pub(super) const fn forget(&mut self) {
        self.count = 0;
    }

    /// What lies before `snd_nxt` may be sent again from now on.
    pub(super) const fn expect_echoes(&mut self, snd_nxt: SeqNumber) {
        self.echoes_before = Some(snd_nxt);
        self.echoes = 0;
    }

    pub(super) const fn on_resent(&mut self, segments: u32) {
        self.echoes = self.echoes.saturating_add(segments);
    }

    /// RFC 6582 3.2 step 3: a partial acknowledgement. But for the segment that was sent again, what it acknowledges is
    /// what the duplicates stood for.
    const fn on_partial_ack(&mut self, segments: u32) {
        self.count = self.count.saturating_sub(segments.saturating_sub(1));
    }

    /// One more, unless it is an echo. Says whether it is the one that tells of a loss.
    fn on_duplicate(&mut self, snd_una: SeqNumber, may_be_new: bool) -> bool {
        let may_be_echo = self
            .echoes_before
            .is_some_and(|end| snd_una.is_at_or_before(end));
        if may_be_new && may_be_echo && self.echoes > 0 {
            self.echoes -= 1;
            return false;
        }
        self.count = self.count.saturating_add(1);
        may_be_new && self.count == DUPLICATES_OF_LOSS
    }
}

impl Connection {
    /// Loss detection for a peer without SACK; the bytes found lost. Limited transmit (RFC 3042) follows from the pipe,
    /// from which each duplicate takes a segment.
    pub(super) fn count_duplicates(&self, cold: &mut Cold, progress: &Progress) -> u32 {
        let mss = u32::from(self.snd_mss);
        let recovery = &mut cold.recovery;
        if progress.acked_bytes > 0 {
            if recovery.phase != Phase::Recovery {
                recovery.duplicates.forget();
                return 0;
            }
            // RFC 6582 3.2 step 3: a partial acknowledgement tells of the next loss.
            recovery
                .duplicates
                .on_partial_ack(progress.acked_bytes / mss);
            return cold.scoreboard.mark_head_lost(mss);
        }
        if !progress.is_duplicate || cold.scoreboard.is_empty() {
            return 0;
        }
        if recovery.phase == Phase::Loss && !self.snd.nxt().is_after(recovery.end) {
            // RFC 5681 3.1: after a timeout one segment leaves, until it is acknowledged.
            return 0;
        }
        let may_be_new = matches!(recovery.phase, Phase::Open | Phase::Reduced);
        if recovery.duplicates.on_duplicate(self.snd.una(), may_be_new) {
            cold.scoreboard.mark_head_lost(mss)
        } else {
            0
        }
    }
}

/// RFC 5681 3.2, RFC 8985 6.2 step 4 (DupThresh).
pub(super) const DUPLICATES_OF_LOSS: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    const UNA: SeqNumber = SeqNumber(1_000);

    #[test]
    fn the_third_duplicate_in_a_row_tells_of_a_loss() {
        let mut duplicates = Duplicates::default();
        let third: [bool; 4] = core::array::from_fn(|_| duplicates.on_duplicate(UNA, true));
        assert_eq!(third, [false, false, true, false]);
        duplicates.forget();
        assert!(!duplicates.on_duplicate(UNA, true));
    }

    #[test]
    fn as_many_duplicates_as_segments_were_sent_again_are_echoes_up_to_where_recovery_began() {
        let check = |una: u32, echoes: u32, expected: u32| {
            let mut duplicates = Duplicates::default();
            duplicates.expect_echoes(UNA);
            duplicates.on_resent(echoes);
            for _ in 0..5 {
                duplicates.on_duplicate(SeqNumber(una), true);
            }
            assert_eq!(duplicates.count(), expected, "{una} {echoes}");
        };
        check(1_000, 0, 5);
        check(1_000, 3, 2);
        check(1_001, 3, 5);
    }

    #[test]
    fn a_partial_acknowledgement_takes_away_what_it_explains() {
        let check = |segments: u32, expected: u32| {
            let mut duplicates = Duplicates::default();
            for _ in 0..5 {
                duplicates.on_duplicate(UNA, false);
            }
            duplicates.on_partial_ack(segments);
            assert_eq!(duplicates.count(), expected, "{segments}");
        };
        check(0, 5);
        check(1, 5);
        check(3, 3);
        check(9, 0);
    }
}
