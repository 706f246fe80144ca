//! A probe in place of a timeout, when the last segments of a flight are lost (RFC 8985 7).

use super::{Phase, Progress};
use crate::congestion::Signal;
use crate::connection::{Cold, Connection, ConnectionFlags};
use crate::env::Env;
use crate::scoreboard::Moment;
use crate::send::Draft;
use mill_wire::seq::SeqNumber;
use mill_wire::tcp::Flags;

/// RFC 8985 7.1.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossProbe {
    /// TLP.end_seq, while a probe is out.
    end: Option<SeqNumber>,
    /// TLP.is_retrans: it was a segment sent again, not a new one.
    is_retransmission: bool,
    /// The timer has expired: the probe leaves next.
    is_due: bool,
}

impl LossProbe {
    /// Whether the next acknowledgement tells if it had been needed.
    pub(super) const fn is_out(&self) -> bool {
        self.end.is_some()
    }

    #[inline]
    pub(super) const fn is_due(&self) -> bool {
        self.is_due
    }

    pub(super) const fn on_timer(&mut self) {
        debug_assert!(self.end.is_none(), "one probe at a time");
        self.is_due = true;
    }

    /// It leaves, and ends at `end`.
    const fn on_sent(&mut self, end: SeqNumber, is_retransmission: bool) {
        self.end = Some(end);
        self.is_retransmission = is_retransmission;
    }

    /// A segment that was sent again as a probe may still arrive.
    pub(super) const fn is_out_again(&self) -> bool {
        self.end.is_some() && self.is_retransmission
    }
}

impl Connection {
    /// RFC 8985 7.2: when a probe is allowed, and after how many microseconds.
    #[inline]
    pub(crate) fn loss_probe_after_us(&self, cold: &Cold) -> Option<u64> {
        let recovery = &cold.recovery;
        let is_allowed = self.flags.has(ConnectionFlags::SACK)
            && recovery.phase == Phase::Open
            && cold.scoreboard.sacked_bytes() == 0
            && recovery.probe.end.is_none()
            && !recovery.probe.is_due;
        if !is_allowed {
            return None;
        }
        if !self.rtt.is_measured() {
            return Some(PROBE_US_WITHOUT_RTT);
        }
        // One segment alone may be waiting for a delayed acknowledgement.
        let is_one = cold.scoreboard.outstanding_bytes() <= u32::from(self.snd_mss);
        let slack_us = if is_one {
            DELAYED_ACK_US_MAX
        } else {
            TIMER_SLACK_US
        };
        Some(2 * u64::from(self.rtt.srtt_us()) + slack_us)
    }

    /// RFC 8985 7.3: a new segment if there is one, else the last one again; beyond the congestion window, if need
    /// be.
    pub(crate) fn next_loss_probe(
        &mut self,
        cold: &mut Cold,
        unsent: u32,
        env: &mut Env<'_>,
    ) -> Option<Draft> {
        cold.recovery.probe.is_due = false;
        if cold.recovery.phase != Phase::Open || cold.scoreboard.is_empty() {
            return None;
        }
        let mss = u32::from(self.snd_mss);
        env.shared.counters.loss_probes += 1;
        let window = self.snd.window_room();
        let len = unsent.min(window).min(mss);
        let now = Moment::of(env.now);
        let draft = if len > 0 && !cold.scoreboard.is_full() {
            let seq = self.snd.nxt();
            cold.scoreboard.push(seq, seq + len, len == mss, now);
            self.snd.on_sent(seq + len);
            self.sent_at = env.tick();
            cold.recovery.probe.on_sent(seq + len, false);
            Draft {
                seq,
                len,
                flags: if len == unsent {
                    Flags::PSH
                } else {
                    Flags::default()
                },
                is_retransmission: false,
            }
        } else {
            let front_at = cold.scoreboard.front()?.at;
            let tail = cold.scoreboard.resend_tail(mss, now)?;
            if tail.start == self.snd.una() {
                cold.recovery.on_front_resent(front_at);
            }
            cold.recovery.probe.on_sent(self.snd.nxt(), true);
            self.draft_again(cold, tail.start, tail.len(), unsent, env)
        };
        self.arm_timeout(env);
        Some(draft)
    }

    /// RFC 8985 7.4.2: whether the episode is over, and whether the probe repaired a loss.
    #[inline]
    pub(super) fn end_loss_probe(
        &mut self,
        cold: &mut Cold,
        progress: &Progress,
        env: &mut Env<'_>,
    ) {
        let probe = &mut cold.recovery.probe;
        let Some(end) = probe.end else {
            return;
        };
        if progress.ack.is_before(end) {
            return;
        }
        if !probe.is_retransmission || progress.duplicate_bytes > 0 {
            // There was only one of it, or both arrived: nothing was lost.
            probe.end = None;
        } else if progress.ack.is_after(end) {
            // The original never came: the probe hid a loss, which counts as one.
            probe.end = None;
            env.shared.counters.loss_probe_recoveries += 1;
            if cold.recovery.phase == Phase::Open {
                self.on_congestion(cold, Signal::Loss, env);
                self.congestion.on_reduction_end(self.snd_mss.into());
            }
        } else if progress.is_duplicate && progress.delivery.bytes == 0 {
            // A pure duplicate: the peer got it twice, and has no D-SACK to say so.
            probe.end = None;
        }
    }
}

/// RFC 8985 7.2: PTO before the first measurement, 1 s in microseconds.
const PROBE_US_WITHOUT_RTT: u64 = 1_000_000;

/// TLP.max_ack_delay of RFC 8985 7.1, microseconds: how long other systems delay an acknowledgement (Linux, Windows).
const DELAYED_ACK_US_MAX: u64 = 200_000;

/// Microseconds. Timers tick in milliseconds: on a fast network twice the round trip would be over at once. Linux adds
/// two ticks.
const TIMER_SLACK_US: u64 = 2_000;
