//! Data that waits for a window (RFC 9293 3.8.6.1): probes are sent, so that the two ends do not wait for each other for ever.

use crate::arrived::Events;
use crate::connection::{Connection, ConnectionFlags};
use crate::env::Env;
use crate::rto::timer::TimerKind;
use crate::send::Draft;
use mill_wire::tcp::Flags;

impl Connection {
    /// Nothing is in flight that would be acknowledged, and what waits can't leave: the timer asks. It is also the
    /// override timeout of RFC 9293 3.8.6.2.1, and ends what a forgotten cork holds.
    pub(crate) fn arm_persist(&mut self, env: &Env<'_>) {
        if self.timer.is_running() {
            return;
        }
        self.timer.end_backoff();
        // Wanting to send is no idleness, and the user timeout counts from here.
        self.sent_at = env.tick();
        self.arm_next_window_probe(env);
    }

    /// A probe is due. As long as the peer answers probes, its window may stay closed (RFC 9293 3.8.6.1), but not for
    /// a connection that the application has closed.
    pub(crate) fn on_persist_timer(&mut self, env: &mut Env<'_>) -> Events {
        let is_orphan = self.flags.has(ConnectionFlags::ORPHAN);
        let is_given_up = if is_orphan {
            self.timer.backoff() >= env.config.orphan_retries_max
        } else {
            self.timer.probes() >= env.config.retries_max
        };
        if is_given_up {
            return self.end(Events::TIMED_OUT, env);
        }
        self.timer.on_probe();
        self.timer.back_off();
        self.flags.set(ConnectionFlags::PROBE_DUE, true);
        self.arm_next_window_probe(env);
        Events::default()
    }

    /// The persist timer has expired: whatever fits into the window, or a question where there is none (RFC 9293
    /// 3.8.6.1).
    pub(crate) fn next_window_probe(&mut self, unsent: u32, env: &mut Env<'_>) -> Draft {
        self.flags.set(ConnectionFlags::PROBE_DUE, false);
        let window = self.snd.window_room();
        let len = unsent.min(window).min(self.snd_mss.into());
        if len > 0 && self.snd.is_all_acknowledged() {
            // The override timeout of RFC 9293 3.8.6.2.1.
            let has_fin = self.fin_waits() && len == unsent && window > len;
            return self.send_new(len, has_fin, unsent - len, env);
        }
        env.shared.counters.window_probes += 1;
        // As Linux asks: a byte that was acknowledged already, which makes the peer tell its window and can't be
        // taken in part.
        Draft {
            seq: self.snd.una() - 1,
            len: 0,
            flags: Flags::default(),
            is_retransmission: true,
        }
    }

    /// Whether data waits for a window.
    pub(crate) fn is_persisting(&self) -> bool {
        self.timer.runs_as(TimerKind::Persist)
    }

    /// Milliseconds since what waits could not leave (RFC 5482).
    pub(crate) fn persisting_ms(&self, env: &Env<'_>) -> u32 {
        if self.is_persisting() {
            u32::try_from(env.tick().since(self.sent_at)).unwrap_or(0)
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests;
