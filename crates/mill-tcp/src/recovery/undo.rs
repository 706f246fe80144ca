//! A reduction that proved unneeded is taken back (RFC 4015): by D-SACK (RFC 3708), timestamps (RFC 3522) or F-RTO.

use super::{Phase, Progress};
use crate::congestion::CongestionWindow;
use crate::connection::{Cold, Connection};
use crate::env::Env;

/// What a reduction has to remember.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// The window before the reduction.
    before: Option<CongestionWindow>,
    /// Bytes sent again since, and how many of them the peer says it got twice.
    resent_bytes: u32,
    duplicate_bytes: u32,
    /// Our timestamp in the first retransmission.
    first_resent: Option<u32>,
}

impl Connection {
    /// Called before the window is reduced.
    pub(crate) fn start_undo(&self, cold: &mut Cold) {
        cold.recovery.undo = Undo {
            before: Some(self.congestion),
            // A loss probe that is on its way may come twice, too.
            resent_bytes: if cold.recovery.probe.is_out_again() {
                self.snd_mss.into()
            } else {
                0
            },
            ..Undo::default()
        };
    }

    /// Bytes leave again.
    pub(crate) fn note_resent(&self, cold: &mut Cold, bytes: u32, env: &Env<'_>) {
        let segments = bytes.div_ceil(self.snd_mss.into());
        cold.recovery.duplicates.on_resent(segments);
        let undo = &mut cold.recovery.undo;
        undo.resent_bytes = undo.resent_bytes.saturating_add(bytes);
        undo.first_resent
            .get_or_insert(self.ts.value_at(env.tick()));
    }

    /// The peer got everything twice that was sent again: nothing had been lost (RFC 3708 3).
    pub(super) fn undo_by_dsack(
        &mut self,
        cold: &mut Cold,
        progress: &Progress,
        env: &mut Env<'_>,
    ) {
        let undo = &mut cold.recovery.undo;
        undo.duplicate_bytes = undo
            .duplicate_bytes
            .saturating_add(progress.duplicate_bytes);
        if undo.resent_bytes > 0 && undo.duplicate_bytes >= undo.resent_bytes {
            self.undo(cold, env);
        }
    }

    /// RFC 3522 3.2: the acknowledgement of what was sent again echoes a timestamp from before that: the original
    /// had arrived.
    pub(super) fn undo_by_timestamp(
        &mut self,
        cold: &mut Cold,
        progress: &Progress,
        env: &mut Env<'_>,
    ) {
        let undo = &cold.recovery.undo;
        let (Some(first), Some(echo)) = (undo.first_resent, progress.echo) else {
            return;
        };
        let is_original = first.wrapping_sub(echo).cast_signed() > 0;
        if progress.acked_bytes == 0 || !progress.delivery.has_retransmitted || !is_original {
            return;
        }
        // In fast recovery other retransmissions may still prove needed; after a timeout everything was
        // held for lost at once, and one original that arrived is enough (RFC 4015 3.2).
        if cold.recovery.phase == Phase::Loss || !cold.scoreboard.has_resent_in_flight() {
            self.undo(cold, env);
        }
    }

    /// RFC 4015 3.2, RFC 9438 4.9: everything as before.
    pub(super) fn undo(&mut self, cold: &mut Cold, env: &mut Env<'_>) {
        let Some(before) = cold.recovery.undo.before else {
            return;
        };
        self.congestion.restore(&before);
        cold.congestion.begin_epoch_anew();
        cold.scoreboard.forget_lost();
        cold.recovery.leave_undone();
        env.shared.counters.undone += 1;
    }
}
