//! What an acknowledgement brings, and the way of recovery through it: RFC 6675 5, step by step.

use super::Phase;
use crate::config::Algorithm;
use crate::congestion::Signal;
use crate::connection::{Cold, Connection, ConnectionFlags};
use crate::env::Env;
use crate::scoreboard::{Delivery, Moment};
use mill_wire::seq::SeqNumber;

/// What one acknowledgement brought.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    pub(crate) ack: SeqNumber,
    pub(crate) now: Moment,
    pub(crate) delivery: Delivery,
    /// Sequence numbers newly acknowledged, FIN included.
    pub(crate) acked_bytes: u32,
    /// Bytes of D-SACK blocks in it.
    pub(crate) duplicate_bytes: u32,
    /// RFC 5681 2: it only repeats the one before.
    pub(crate) is_duplicate: bool,
    /// TSecr, if the segment has one.
    pub(crate) echo: Option<u32>,
    /// TSecr tells of a segment that left before the newest one that arrived.
    pub(crate) is_echo_older: bool,
    /// ECE (RFC 3168 6.1.2), or a larger count of marks (RFC 9768 3.2.2.2).
    pub(crate) is_congested: bool,
}

impl Connection {
    /// What the acknowledgement means for loss recovery and the congestion window.
    pub(crate) fn recover(&mut self, cold: &mut Cold, progress: &Progress, env: &mut Env<'_>) {
        if env.config.congestion != Algorithm::Bbr && cold.congestion.bbr.take().is_some() {
            self.congestion.leave_slow_start();
        }
        if cold.path.is_suspicious() {
            self.confirm_black_hole(cold, progress);
        }
        self.update_rack(cold, progress);
        self.end_loss_probe(cold, progress, env);
        if progress.duplicate_bytes > 0 {
            self.undo_by_dsack(cold, progress, env);
        }
        match cold.recovery.phase {
            Phase::Open => {}
            Phase::Reduced => self.leave_if_over(cold, progress),
            Phase::Recovery => {
                self.undo_by_timestamp(cold, progress, env);
                self.leave_if_over(cold, progress);
            }
            Phase::Loss => {
                self.undo_by_timestamp(cold, progress, env);
                self.on_ack_in_frto(cold, progress, env);
                self.leave_if_over(cold, progress);
            }
        }
        let lost_bytes = self.find_losses(cold, progress, env);
        self.on_losses(cold, progress, lost_bytes, env);
        if progress.is_congested {
            self.on_congestion_echo(cold, progress, env);
        }
        if cold.congestion.bbr.is_some() {
            self.follow_bbr(cold, progress, env);
        } else if cold.recovery.is_reducing() {
            self.reduce_window(cold, progress, lost_bytes > 0);
        } else if progress.acked_bytes > 0 {
            self.grow_window(cold, progress, env);
        }
    }

    /// Losses begin fast recovery, unless one is under way.
    #[inline]
    pub(crate) fn on_losses(
        &mut self,
        cold: &mut Cold,
        progress: &Progress,
        lost_bytes: u32,
        env: &mut Env<'_>,
    ) {
        let lost_bytes = if cold.path.is_probe_out() {
            self.judge_path_probe(cold, progress, lost_bytes, env)
        } else {
            lost_bytes
        };
        if let Some(bbr) = &mut cold.congestion.bbr {
            bbr.note_lost(lost_bytes);
        }
        if lost_bytes > 0 && matches!(cold.recovery.phase, Phase::Open | Phase::Reduced) {
            self.enter_recovery(cold, progress, env);
        }
    }

    /// Bytes found lost by this acknowledgement.
    fn find_losses(&mut self, cold: &mut Cold, progress: &Progress, env: &mut Env<'_>) -> u32 {
        if self.flags.has(ConnectionFlags::SACK) {
            if cold.scoreboard.sacked_bytes() == 0 && cold.recovery.phase == Phase::Open {
                // Nothing arrived ahead of what is missing: nothing left before it.
                cold.recovery.rack.end_wait();
                return 0;
            }
            self.detect_losses(cold, progress.now, env)
        } else {
            self.count_duplicates(cold, progress)
        }
    }

    /// RFC 6675 5 (4), RFC 9438 4.6.
    fn enter_recovery(&mut self, cold: &mut Cold, progress: &Progress, env: &mut Env<'_>) {
        let was_reduced = cold.recovery.phase == Phase::Reduced;
        cold.recovery.enter_recovery(self.snd.nxt());
        env.shared.counters.recoveries += 1;
        self.start_undo(cold);
        // One reduction for a window of data, whether ECN or a loss told of it first (RFC 3168 6.1.2).
        if !was_reduced && cold.congestion.bbr.is_none() {
            self.on_congestion(cold, Signal::Loss, env);
            self.start_reduction(cold, progress);
        }
        self.announce_reduction();
    }

    /// RFC 3168 6.1.2: ECE is as a loss, once a round trip, and the peer is told by CWR. A count (RFC 9768) is not repeated as ECE
    /// is: where nothing is in flight any more, the window is smaller at once.
    fn on_congestion_echo(&mut self, cold: &mut Cold, progress: &Progress, env: &mut Env<'_>) {
        if cold.recovery.phase != Phase::Open {
            return;
        }
        if cold.scoreboard.is_empty() {
            if self.flags.has(ConnectionFlags::ACCURATE) && cold.congestion.bbr.is_none() {
                env.shared.counters.ecn_reductions += 1;
                self.on_congestion(cold, Signal::Echo, env);
                self.congestion.on_reduction_end(self.snd_mss.into());
            }
            return;
        }
        cold.recovery.enter_reduced(self.snd.nxt());
        self.announce_reduction();
        env.shared.counters.ecn_reductions += 1;
        if cold.congestion.bbr.is_none() {
            self.on_congestion(cold, Signal::Echo, env);
            self.start_reduction(cold, progress);
        }
    }

    /// All that was sent when the phase began is acknowledged.
    fn leave_if_over(&mut self, cold: &mut Cold, progress: &Progress) {
        if cold.recovery.phase == Phase::Open || !cold.recovery.is_over(progress.ack) {
            return;
        }
        if cold.congestion.bbr.is_some() {
            Self::end_bbr_recovery(cold);
        } else if cold.recovery.is_reducing() {
            self.congestion.on_reduction_end(self.snd_mss.into());
        }
        cold.recovery.leave();
    }

    /// What is assumed to be in the network (RFC 6675 4); without SACK each duplicate acknowledgement stands for a
    /// segment that has left it (RFC 5681 3.2 step 4).
    pub(crate) fn pipe(&self, cold: &Cold) -> u32 {
        let pipe = cold.scoreboard.pipe();
        let duplicates = cold.recovery.duplicates.count();
        if duplicates == 0 {
            return pipe;
        }
        // However many duplicates come, the segment that they ask for has not arrived.
        let mss = u32::from(self.snd_mss);
        let arrived = duplicates.saturating_mul(mss);
        pipe.saturating_sub(arrived.min(cold.scoreboard.outstanding_bytes().saturating_sub(mss)))
    }
}
