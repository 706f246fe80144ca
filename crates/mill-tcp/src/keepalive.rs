//! Keep-alive (RFC 9293 3.8.4), and the time limit of FIN-WAIT-2, which shares its timer.

use crate::arrived::Events;
use crate::connection::{Connection, ConnectionFlags};
use crate::env::Env;
use crate::segment::SegmentOut;
use crate::state::State;
use crate::time::{Duration, Tick};
use mill_wire::tcp::Flags;

impl Connection {
    /// Keep-alive runs from now on, if it is on.
    pub(crate) fn arm_keepalive(&mut self, env: &Env<'_>) {
        if let Some(keepalive) = env.config.keepalive {
            self.arm_idle(env.tick().after(keepalive.idle));
        }
    }

    /// Keep-alive was turned on or off, or its times are others. Counts from when the peer was heard last, as in Linux
    /// (`tcp_sock_set_keepidle_locked`).
    pub fn set_keepalive(&mut self, env: &Env<'_>) {
        let is_closed = matches!(self.state, State::Closed | State::SynSent);
        if is_closed || self.flags.has(ConnectionFlags::ORPHAN) {
            // The handshake arms it when it ends, and an orphan's timer is that of FIN-WAIT-2.
            return;
        }
        match env.config.keepalive {
            None => self.flags.set(ConnectionFlags::IDLE_ARMED, false),
            Some(keepalive) => {
                let at = self.heard_at.after(keepalive.idle);
                let is_past = at.since(env.tick()) < 0;
                self.arm_idle(if is_past { env.tick() } else { at });
            }
        }
    }

    /// The application has left and the peer may never finish: FIN-WAIT-2 ends by itself (Linux's
    /// `tcp_fin_timeout`; RFC 9293 has no limit).
    pub(crate) fn arm_fin_wait_2(&mut self, env: &Env<'_>) {
        self.arm_idle(env.tick().after(env.config.fin_wait_2));
    }

    /// The timer of either expires.
    pub(crate) fn on_idle_timer(&mut self, env: &mut Env<'_>) -> Events {
        self.flags.set(ConnectionFlags::IDLE_ARMED, false);
        if self.state == State::FinWait2 && self.flags.has(ConnectionFlags::ORPHAN) {
            return self.end(Events::CLOSED, env);
        }
        let Some(keepalive) = env.config.keepalive else {
            return Events::default();
        };
        // What is in flight is asked for by retransmission, and what waits for a window by its own probes, which find out as
        // well and have limits of their own: keep-alive rests meanwhile, as in Linux.
        let is_asked_for = !self.snd.is_all_acknowledged() || self.is_persisting();
        let silent_ms = env.tick().since(self.heard_at);
        let idle_ms = millis(keepalive.idle);
        if is_asked_for || (self.timer.probes() == 0 && silent_ms < idle_ms) {
            let from = self.heard_at.after(keepalive.idle);
            let soonest = env.tick().after(keepalive.interval);
            let is_ahead = from.since(env.tick()) > 0;
            self.arm_idle(if is_ahead { from } else { soonest });
            return Events::default();
        }
        if self.timer.probes() >= keepalive.count {
            return self.end(Events::TIMED_OUT, env);
        }
        self.timer.on_probe();
        env.shared.counters.keepalive_probes += 1;
        self.flags.set(ConnectionFlags::KEEPALIVE_DUE, true);
        self.arm_idle(env.tick().after(keepalive.interval));
        Events::default()
    }

    /// The probe: a number that the peer has acknowledged already, so that it has to answer (RFC 9293 3.8.4).
    pub(crate) fn next_keepalive(&mut self, env: &mut Env<'_>) -> Option<SegmentOut> {
        if !self.flags.has(ConnectionFlags::KEEPALIVE_DUE) {
            return None;
        }
        self.flags.set(ConnectionFlags::KEEPALIVE_DUE, false);
        let seq = self.snd.nxt() - 1;
        Some(self.make_segment(seq, Flags::ACK, 0, 0, env))
    }

    fn arm_idle(&mut self, at: Tick) {
        self.idle_at = at;
        self.flags.set(ConnectionFlags::IDLE_ARMED, true);
    }
}

fn millis(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis()).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests;
