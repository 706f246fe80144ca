//! A timer expires.

use crate::arrived::Events;
use crate::connection::{Connection, ConnectionFlags};
use crate::env::Env;
use crate::rto::timer::TimerKind;
use crate::time::Tick;

impl Connection {
    /// When `on_timer` is to be called next; later than that does no harm, earlier is a waste.
    pub fn next_timer(&self) -> Option<Tick> {
        let timers = [
            (ConnectionFlags::DELAYED_ACK_ARMED, self.delayed_ack_at),
            (ConnectionFlags::IDLE_ARMED, self.idle_at),
        ];
        let mut next = self.timer.at();
        if let Some(paced) = self.pacing_timer()
            && next.is_none_or(|next| paced.since(next) < 0)
        {
            next = Some(paced);
        }
        // By reference: an array that is taken apart by value is copied as a whole first.
        for &(armed, at) in &timers {
            if self.flags.has(armed) && next.is_none_or(|next| at.since(next) < 0) {
                next = Some(at);
            }
        }
        next
    }

    /// Does what is due at `env.now`; nothing if nothing is. Afterwards `next_segment` is to be asked.
    pub fn on_timer(&mut self, env: &mut Env<'_>) -> Events {
        let now = env.tick();
        let mut events = Events::default();
        if self.flags.has(ConnectionFlags::DELAYED_ACK_ARMED) && self.delayed_ack_at.is_due(now) {
            self.flags.set(ConnectionFlags::DELAYED_ACK_ARMED, false);
            self.flags.set(ConnectionFlags::ACK_NOW, true);
            env.shared.counters.delayed_acks += 1;
        }
        if self.pacing_timer().is_some_and(|at| at.is_due(now)) {
            // `next_segment` is asked now; if it is still too early, or nothing is left to be sent, that is found out there.
            self.flags.set(ConnectionFlags::PACED, false);
        }
        if let Some(kind) = self.timer.due(now) {
            events |= match kind {
                TimerKind::Syn => self.on_syn_timer(env),
                _ if self.is_fast_open() => self.on_fast_open_timer(kind, env),
                _ if self.is_user_timeout_over(env) => self.end(Events::TIMED_OUT, env),
                _ => self.on_retransmission_timer(kind, env),
            };
            self.cap_by_user_timeout(env);
        }
        if self.flags.has(ConnectionFlags::IDLE_ARMED) && self.idle_at.is_due(now) {
            events |= self.on_idle_timer(env);
        }
        events
    }

    /// No answer to our SYN (RFC 9293 3.8.3, RFC 6298 5.5).
    fn on_syn_timer(&mut self, env: &mut Env<'_>) -> Events {
        self.timer.disarm();
        env.shared.counters.timeouts += 1;
        let retries_max = if self.is_fast_open() {
            env.config.syn_ack_retries_max
        } else {
            env.config.syn_retries_max
        };
        if self.timer.backoff() >= retries_max {
            return self.end(Events::TIMED_OUT, env);
        }
        self.timer.back_off();
        self.flags.set(ConnectionFlags::SYN_DUE, true);
        Events::default()
    }

    /// No answer to our SYN-ACK, nor to the data behind it (RFC 7413 4.2.2): both again, but not as often as on a
    /// connection whose peer is known.
    fn on_fast_open_timer(&mut self, kind: TimerKind, env: &mut Env<'_>) -> Events {
        if self.timer.backoff() >= env.config.syn_ack_retries_max {
            return self.end(Events::TIMED_OUT, env);
        }
        self.flags.set(ConnectionFlags::SYN_DUE, true);
        self.on_retransmission_timer(kind, env)
    }
}
