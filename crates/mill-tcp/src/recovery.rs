//! Which of what was sent is lost, and how fast to send meanwhile: RACK (RFC 8985 6), tail loss probes (7),
//! proportional rate reduction (RFC 9937, which follows 6937), F-RTO (RFC 5682), undo (RFC 4015). Read RFC 6675 5
//! first.
//!
//! ```text
//!            losses found                 timer expires
//!   Open ------------------> Recovery ------------------> Loss
//!    |  ^ <--- end is acknowledged, or it was a mistake ---|
//!    v  |
//!   Reduced: ECN signalled congestion
//! ```

use crate::scoreboard::Moment;
use duplicates::Duplicates;
use frto::Frto;
use loss_probe::LossProbe;
use mill_wire::seq::SeqNumber;
use prr::Prr;
use rack::Rack;
use undo::Undo;

pub(crate) use progress::Progress;

/// What an acknowledgement brings, and the way of recovery through it.
mod progress;

/// Losses by the time that segments have been away (RFC 8985 6).
mod rack;

/// … and by duplicate acknowledgements, where the peer has no SACK (RFC 5681 3.2).
mod duplicates;

/// A probe in place of a timeout (RFC 8985 7).
mod loss_probe;

/// Proportional rate reduction (RFC 9937).
mod prr;

/// A reduction that proved unneeded is taken back (RFC 4015).
mod undo;

/// Spurious timeouts without options (RFC 5682).
mod frto;

/// State of loss detection and recovery. Its fields are this folder's; what others tell it are the transitions of the
/// picture above, and what was sent.
#[derive(Debug, Default)]
pub struct Recovery {
    phase: Phase,
    /// What was sent when the phase began lies before this (RecoveryPoint of RFC 6675 2).
    end: SeqNumber,
    rack: Rack,
    probe: LossProbe,
    prr: Prr,
    undo: Undo,
    frto: Frto,
    duplicates: Duplicates,
    /// Where the round trip ends in which RTTVAR has fallen already.
    rtt_round_end: Option<SeqNumber>,
    /// When the first unacknowledged byte was sent for the first time, if it was sent again.
    stalled_since: Option<Moment>,
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
    pub(crate) const fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Open) && !self.probe.is_out()
    }

    /// Neither a loss probe is due nor is F-RTO at work.
    #[inline]
    pub(crate) fn is_calm(&self) -> bool {
        !self.probe.is_due() && self.frto == Frto::Off
    }

    pub(crate) const fn phase(&self) -> Phase {
        self.phase
    }

    /// All that was sent when the phase began is acknowledged.
    fn is_over(&self, ack: SeqNumber) -> bool {
        ack.is_at_or_after(self.end)
    }

    /// Whether a timeout at `snd_una` is the first for this window of data, for which the threshold falls once.
    pub(crate) fn is_new_loss(&self, snd_una: SeqNumber, timeouts: u8) -> bool {
        self.phase == Phase::Open
            || self.is_over(snd_una)
            || (self.phase == Phase::Loss && timeouts == 0)
    }

    /// Losses were found (RFC 6675 5).
    fn enter_recovery(&mut self, snd_nxt: SeqNumber) {
        debug_assert!(matches!(self.phase, Phase::Open | Phase::Reduced));
        self.phase = Phase::Recovery;
        self.end = snd_nxt;
        self.duplicates.expect_echoes(snd_nxt);
    }

    /// ECN signalled congestion (RFC 3168 6.1.2).
    fn enter_reduced(&mut self, snd_nxt: SeqNumber) {
        debug_assert_eq!(self.phase, Phase::Open);
        self.phase = Phase::Reduced;
        self.end = snd_nxt;
        self.undo = Undo::default();
    }

    /// The retransmission timer expired (RFC 5681 3.1). `may_be_spurious`: F-RTO finds out (RFC 5682 2.1 step 1).
    pub(crate) fn enter_loss(&mut self, snd_nxt: SeqNumber, may_be_spurious: bool) {
        self.frto = if may_be_spurious {
            Frto::FirstAck
        } else {
            Frto::Off
        };
        self.phase = Phase::Loss;
        self.end = snd_nxt;
        self.duplicates.expect_echoes(snd_nxt);
        self.duplicates.forget();
        self.probe = LossProbe::default();
        self.rack.end_wait();
    }

    /// Something is sent again because of its size. Until that is acknowledged nothing else is concluded from what is
    /// missing.
    pub(crate) fn enter_loss_by_size(&mut self, snd_nxt: SeqNumber) {
        debug_assert_eq!(self.phase, Phase::Open);
        self.phase = Phase::Loss;
        self.end = snd_nxt;
        self.undo = Undo::default();
        self.frto = Frto::Off;
    }

    /// All that was sent when the phase began is acknowledged.
    fn leave(&mut self) {
        self.frto = Frto::Off;
        self.duplicates.forget();
        self.rack.on_recovery_end();
        self.phase = Phase::Open;
    }

    /// It was a mistake.
    fn leave_undone(&mut self) {
        self.undo = Undo::default();
        self.frto = Frto::Off;
        self.duplicates.forget();
        self.phase = Phase::Open;
    }

    /// New data leaves, or lost data again.
    #[inline]
    pub(crate) fn on_sent(&mut self, bytes: u32) {
        self.prr.on_sent(bytes);
    }

    /// The first unacknowledged byte, which left at `at`, leaves again.
    pub(crate) fn on_front_resent(&mut self, at: Moment) {
        self.stalled_since.get_or_insert(at);
    }

    /// Something was acknowledged. What is left was sent a while ago, perhaps, and repairing losses takes time: that goes
    /// on.
    #[inline]
    pub(crate) fn on_progress(&mut self, is_all: bool, now: Moment) {
        self.stalled_since = (!is_all).then_some(now);
    }

    /// Since when nothing was acknowledged, if the first unacknowledged byte was sent again.
    pub(crate) const fn stalled_since(&self) -> Option<Moment> {
        self.stalled_since
    }

    /// Whether the timer's time has come to send a probe (RFC 8985 7.3).
    #[inline]
    pub(crate) const fn is_loss_probe_due(&self) -> bool {
        self.probe.is_due()
    }

    /// RFC 8985 7.3: the probe leaves with the next `next_segment`.
    pub(crate) const fn on_loss_probe_timer(&mut self) {
        self.probe.on_timer();
    }

    /// What was lost is larger than the path takes: a probe that is out says nothing.
    pub(crate) fn forget_loss_probe(&mut self) {
        self.probe = LossProbe::default();
    }

    /// F-RTO sends new data in place of what is lost (RFC 5682 2.1 step 2 (b)).
    #[inline]
    pub(crate) fn is_frto_sending(&self) -> bool {
        self.frto == Frto::SecondAck
    }

    /// RFC 5682 2.1 step 2 (b): new data has left since the timer expired.
    pub(crate) fn has_sent_since(&self, snd_nxt: SeqNumber) -> bool {
        snd_nxt.is_after(self.end)
    }

    /// No new data may leave by which F-RTO could decide.
    pub(crate) const fn end_frto(&mut self) {
        self.frto = Frto::Off;
    }

    /// How far a segment arrived at most behind one that was sent later, bytes.
    pub(crate) const fn reordered_bytes(&self) -> u32 {
        self.rack.reordered_bytes()
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

#[cfg(test)]
mod tests;
