//! Which of what was sent is lost, and how fast to send meanwhile: RACK (RFC 8985 6), tail loss probes (7),
//! proportional rate reduction (RFC 9937, which follows 6937), F-RTO (RFC 5682), undo (RFC 4015). Read RFC 6675 5
//! first.
//!
//! ```text
//!            losses found                 timer expires
//!   Open ------------------> Recovery ------------------> Loss
//!    |  ^ <--- end is acknowledged, or it was a mistake ---|
//!    v  |
//!   Reduced: the network told by ECN
//! ```

use crate::congestion::Signal;
use crate::connection::{Cold, Connection, ConnectionFlags};
use crate::env::Env;
use crate::path_mtu::probe::PathSearch;
use crate::scoreboard::{Delivery, Moment};
use mill_wire::seq::SeqNumber;

/// Losses by the time that segments have been away (RFC 8985 6).
pub mod rack;

/// A probe in place of a timeout (RFC 8985 7).
pub mod loss_probe;

/// Proportional rate reduction (RFC 9937).
pub mod prr;

/// A reduction that proved unneeded is taken back (RFC 4015).
pub mod undo;

/// Spurious timeouts without options (RFC 5682).
pub mod frto;

/// State of loss detection and recovery.
#[derive(Debug, Default)]
pub struct Recovery {
    pub(crate) phase: Phase,
    /// What was sent when the phase began lies before this (RecoveryPoint of RFC 6675 2).
    pub(crate) end: SeqNumber,
    pub(crate) rack: rack::Rack,
    pub(crate) probe: loss_probe::LossProbe,
    pub(crate) prr: prr::Prr,
    pub(crate) undo: undo::Undo,
    pub(crate) frto: frto::Frto,
    /// Duplicate acknowledgements in a row, where the peer has no SACK (RFC 5681 2).
    pub(crate) duplicates: u32,
    /// Without SACK, duplicates below this are the echo of our own retransmissions (RFC 6582 3.2 step 1).
    pub(crate) echoes_before: Option<SeqNumber>,
    /// … as many of them as segments were sent again.
    pub(crate) echoes: u32,
    /// Where the round trip ends in which RTTVAR has fallen already.
    rtt_round_end: Option<SeqNumber>,
    /// The end of the last segment that was sent smaller than a full one (Minshall's variant of Nagle's algorithm).
    pub(crate) small_end: Option<SeqNumber>,
    /// When the first unacknowledged byte was sent for the first time, if it was sent again.
    pub(crate) stalled_since: Option<Moment>,
    pub(crate) path: PathSearch,
}

/// What is going on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    #[default]
    Open,
    /// The congestion window is being reduced because of ECN (RFC 3168 6.1.2).
    Reduced,
    /// Fast recovery (RFC 6675 5).
    Recovery,
    /// After the retransmission timer (RFC 5681 3.1).
    Loss,
}

impl Recovery {
    /// Whether nothing is worth remembering once nothing is in flight. A loss probe that was acknowledged is: the
    /// next acknowledgement tells whether it had been needed.
    pub fn is_idle(&self) -> bool {
        self.phase == Phase::Open && self.probe.end.is_none() && self.path.news.is_none()
    }

    /// Whether RTTVAR may fall: it has not yet in the round trip that `snd_una` ends or goes on with.
    pub(crate) fn begins_rtt_round(&mut self, snd_una: SeqNumber, snd_nxt: SeqNumber) -> bool {
        let is_over = self.rtt_round_end.is_none_or(|end| snd_una.is_after(end));
        if is_over {
            self.rtt_round_end = Some(snd_nxt);
        }
        is_over
    }

    /// Whether the window is governed by proportional rate reduction.
    pub(crate) const fn is_reducing(&self) -> bool {
        matches!(self.phase, Phase::Reduced | Phase::Recovery)
    }
}

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
    /// ECE (RFC 3168 6.1.2).
    pub(crate) is_congested: bool,
}

impl Connection {
    /// What the acknowledgement means for loss recovery and the congestion window.
    pub(crate) fn recover(&mut self, cold: &mut Cold, progress: &Progress, env: &mut Env<'_>) {
        if cold.recovery.path.suspected.is_some() {
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
        if cold.recovery.is_reducing() {
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
        let lost_bytes = if cold.recovery.path.probe_end.is_some() {
            self.judge_path_probe(cold, progress, lost_bytes, env)
        } else {
            lost_bytes
        };
        if lost_bytes > 0 && matches!(cold.recovery.phase, Phase::Open | Phase::Reduced) {
            self.enter_recovery(cold, progress, env);
        }
    }

    /// Bytes found lost by this acknowledgement.
    fn find_losses(&mut self, cold: &mut Cold, progress: &Progress, env: &mut Env<'_>) -> u32 {
        if self.flags.has(ConnectionFlags::SACK) {
            if cold.scoreboard.sacked_bytes() == 0 && cold.recovery.phase == Phase::Open {
                // Nothing arrived ahead of what is missing: nothing left before it.
                cold.recovery.rack.is_pending = false;
                return 0;
            }
            self.detect_losses(cold, progress.now, env)
        } else {
            self.count_duplicates(cold, progress)
        }
    }

    /// Loss detection for a peer without SACK (RFC 5681 3.2, RFC 6582). Limited transmit (RFC 3042) follows from
    /// the pipe, from which each duplicate takes a segment.
    fn count_duplicates(&mut self, cold: &mut Cold, progress: &Progress) -> u32 {
        let mss = u32::from(self.snd_mss);
        let recovery = &mut cold.recovery;
        if progress.acked_bytes > 0 {
            if recovery.phase != Phase::Recovery {
                recovery.duplicates = 0;
                return 0;
            }
            // RFC 6582 3.2 step 3: a partial acknowledgement tells of the next loss. But for the segment that was
            // sent again, what it acknowledges is what the duplicates stood for.
            let explained = (progress.acked_bytes / mss).saturating_sub(1);
            recovery.duplicates = recovery.duplicates.saturating_sub(explained);
            return cold.scoreboard.mark_head_lost(mss);
        }
        if !progress.is_duplicate || cold.scoreboard.is_empty() {
            return 0;
        }
        if recovery.phase == Phase::Loss && !self.snd_nxt.is_after(recovery.end) {
            // RFC 5681 3.1: after a timeout one segment leaves, until it is acknowledged.
            return 0;
        }
        let is_new_loss = matches!(recovery.phase, Phase::Open | Phase::Reduced);
        let may_be_echo = recovery
            .echoes_before
            .is_some_and(|end| self.snd_una.is_at_or_before(end));
        if is_new_loss && may_be_echo && recovery.echoes > 0 {
            recovery.echoes -= 1;
            return 0;
        }
        recovery.duplicates = recovery.duplicates.saturating_add(1);
        let is_loss = is_new_loss && recovery.duplicates == DUPLICATES_OF_LOSS;
        if is_loss {
            cold.scoreboard.mark_head_lost(mss)
        } else {
            0
        }
    }

    /// RFC 6675 5 (4), RFC 9438 4.6.
    fn enter_recovery(&mut self, cold: &mut Cold, progress: &Progress, env: &mut Env<'_>) {
        let was_reduced = cold.recovery.phase == Phase::Reduced;
        cold.recovery.phase = Phase::Recovery;
        cold.recovery.end = self.snd_nxt;
        cold.recovery.echoes_before = Some(self.snd_nxt);
        cold.recovery.echoes = 0;
        env.shared.counters.recoveries += 1;
        self.start_undo(cold);
        // One reduction for a window of data, whether ECN or a loss told of it first (RFC 3168 6.1.2).
        if !was_reduced {
            self.on_congestion(cold, Signal::Loss, env);
            self.start_reduction(cold, progress);
        }
        if self.flags.has(ConnectionFlags::ECN) {
            self.flags.set(ConnectionFlags::CWR_DUE, true);
        }
    }

    /// RFC 3168 6.1.2: ECE is as a loss, once a round trip, and the peer is told by CWR.
    fn on_congestion_echo(&mut self, cold: &mut Cold, progress: &Progress, env: &mut Env<'_>) {
        if cold.recovery.phase != Phase::Open || cold.scoreboard.is_empty() {
            return;
        }
        cold.recovery.phase = Phase::Reduced;
        cold.recovery.end = self.snd_nxt;
        cold.recovery.undo = undo::Undo::default();
        self.flags.set(ConnectionFlags::CWR_DUE, true);
        env.shared.counters.ecn_reductions += 1;
        self.on_congestion(cold, Signal::Echo, env);
        self.start_reduction(cold, progress);
    }

    /// All that was sent when the phase began is acknowledged.
    fn leave_if_over(&mut self, cold: &mut Cold, progress: &Progress) {
        if cold.recovery.phase == Phase::Open || progress.ack.is_before(cold.recovery.end) {
            return;
        }
        if cold.recovery.is_reducing() {
            // RFC 9937 6: whatever the window was in the end.
            self.cwnd = self.ssthresh.max(u32::from(self.snd_mss));
        }
        cold.recovery.frto = frto::Frto::Off;
        cold.recovery.duplicates = 0;
        cold.recovery.rack.on_recovery_end();
        cold.recovery.phase = Phase::Open;
    }

    /// What is assumed to be in the network (RFC 6675 4); without SACK each duplicate acknowledgement stands for a
    /// segment that has left it (RFC 5681 3.2 step 4).
    pub(crate) fn pipe(&self, cold: &Cold) -> u32 {
        let pipe = cold.scoreboard.pipe();
        if cold.recovery.duplicates == 0 {
            return pipe;
        }
        // However many duplicates come, the segment that they ask for has not arrived.
        let mss = u32::from(self.snd_mss);
        let arrived = cold.recovery.duplicates.saturating_mul(mss);
        pipe.saturating_sub(arrived.min(cold.scoreboard.outstanding_bytes().saturating_sub(mss)))
    }
}

/// RFC 5681 3.2, RFC 8985 6.2 step 4 (DupThresh).
pub(crate) const DUPLICATES_OF_LOSS: u32 = 3;
