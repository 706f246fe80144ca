//! Probes: of the peer's window, of the end of a flight.

use super::Draft;
use crate::connection::{Cold, Connection, ConnectionFlags};
use crate::env::Env;
use crate::recovery::Phase;
use crate::scoreboard::Moment;
use mill_wire::tcp::Flags;

impl Connection {
    /// The persist timer has expired: whatever fits into the window, or a question where there is none (RFC 9293
    /// 3.8.6.1).
    pub(super) fn next_window_probe(&mut self, unsent: u32, env: &mut Env<'_>) -> Draft {
        self.flags.set(ConnectionFlags::PROBE_DUE, false);
        let window = u32::try_from(self.window_end().since(self.snd_nxt)).unwrap_or(0);
        let len = unsent.min(window).min(self.snd_mss.into());
        if len > 0 && self.snd_una == self.snd_nxt {
            // The override timeout of RFC 9293 3.8.6.2.1.
            let has_fin = self.fin_waits() && len == unsent && window > len;
            return self.send_new(len, has_fin, unsent - len, env);
        }
        env.shared.counters.window_probes += 1;
        // As Linux asks: a byte that was acknowledged already, which makes the peer tell its window and can't be
        // taken in part.
        Draft {
            seq: self.snd_una - 1,
            len: 0,
            flags: Flags::default(),
            is_retransmission: true,
        }
    }

    /// RFC 8985 7.3: a new segment if there is one, else the last one again; beyond the congestion window, if need
    /// be.
    pub(super) fn next_loss_probe(
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
        let window = u32::try_from(self.window_end().since(self.snd_nxt)).unwrap_or(0);
        let len = unsent.min(window).min(mss);
        let now = Moment::of(env.now);
        let draft = if len > 0 && !cold.scoreboard.is_full() {
            let seq = self.snd_nxt;
            cold.scoreboard.push(seq, seq + len, len == mss, now);
            self.snd_nxt = seq + len;
            self.sent_at = env.tick();
            cold.recovery.probe.is_retransmission = false;
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
            let front_at = cold.scoreboard.front().map(|front| front.at);
            let tail = cold.scoreboard.resend_tail(mss, now)?;
            if tail.start == self.snd_una {
                cold.recovery.stalled_since = cold.recovery.stalled_since.or(front_at);
            }
            cold.recovery.probe.is_retransmission = true;
            self.draft_again(cold, tail.start, tail.len(), unsent, env)
        };
        cold.recovery.probe.end = Some(self.snd_nxt);
        self.arm_timeout(env);
        Some(draft)
    }
}
