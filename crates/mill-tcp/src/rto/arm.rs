//! The one timer of the sending side: when it expires, and as what.

use crate::connection::{Cold, Connection, ConnectionFlags, TimerKind};
use crate::env::Env;
use crate::scoreboard::Moment;
use crate::time::Tick;

impl Connection {
    /// The timer expires as `kind` when `after_us` have gone by, and not before the next tick.
    #[inline]
    fn arm_us(&mut self, kind: TimerKind, after_us: u64, env: &Env<'_>) {
        self.timer = kind;
        self.flags.set(ConnectionFlags::RETRANSMIT_ARMED, true);
        let after_ns = after_us.saturating_mul(1_000).max(1);
        let at_ns = env.now.as_nanos().saturating_add(after_ns);
        #[expect(clippy::cast_possible_truncation, reason = "ticks wrap")]
        let at = Tick(at_ns.div_ceil(1_000_000) as u32);
        self.retransmit_at = at;
    }

    /// The retransmission timer, counted from now (RFC 6298 5.1, 5.3).
    #[inline]
    pub(crate) fn arm_timeout(&mut self, env: &Env<'_>) {
        let rto_us = self.rto_us(env);
        self.arm_us(TimerKind::Retransmission, rto_us, env);
    }

    /// The persist timer, which has the same intervals.
    pub(crate) fn arm_next_window_probe(&mut self, env: &Env<'_>) {
        let rto_us = self.rto_us(env);
        self.arm_us(TimerKind::Persist, rto_us, env);
    }

    /// The persist timer expires after one timeout without backoff, if not sooner.
    pub(crate) fn hasten_window_probe(&mut self, env: &Env<'_>) {
        let before = self.retransmit_at;
        let rto_us = self.rto_base_us(env.config);
        self.arm_us(TimerKind::Persist, rto_us, env);
        if before.since(self.retransmit_at) < 0 {
            self.retransmit_at = before;
        }
    }

    pub(crate) fn disarm_retransmission(&mut self) {
        self.timer = TimerKind::Retransmission;
        self.flags.set(ConnectionFlags::RETRANSMIT_ARMED, false);
    }

    /// After an acknowledgement (RFC 6298 5.2, 5.3; RFC 8985 6.2 step 5, 7.2).
    #[inline]
    pub(crate) fn arm_after_ack(&mut self, cold: &Cold, has_advanced: bool, env: &Env<'_>) {
        if cold.scoreboard.is_empty() {
            if has_advanced {
                // The backoff outlives it (RFC 6298 5.7): else a path that became longer than the timeout, and carries
                // one segment at a time, would never be measured.
                self.disarm_retransmission();
            }
            return;
        }
        if let Some(wait_us) = self.reordering_wait_us(cold, Moment::of(env.now)) {
            self.arm_us(TimerKind::Reordering, wait_us.into(), env);
        } else if !has_advanced {
            let is_right = match self.timer {
                TimerKind::Retransmission => true,
                TimerKind::LossProbe => self.loss_probe_after_us(cold).is_some(),
                _ => false,
            };
            if !is_right || !self.flags.has(ConnectionFlags::RETRANSMIT_ARMED) {
                let left_us = self.rto_left_us(cold, env);
                self.arm_us(TimerKind::Retransmission, left_us, env);
            }
        } else if let Some(after_us) = self.loss_probe_after_us(cold) {
            let after_us = after_us.min(self.rto_us(env));
            self.arm_us(TimerKind::LossProbe, after_us, env);
        } else {
            self.arm_timeout(env);
        }
    }

    /// After new data left (RFC 6298 5.1, RFC 8985 7.2).
    #[inline]
    pub(crate) fn arm_after_send(&mut self, cold: &Cold, env: &Env<'_>) {
        if let Some(after_us) = self.loss_probe_after_us(cold) {
            let after_us = after_us.min(self.rto_left_us(cold, env));
            self.arm_us(TimerKind::LossProbe, after_us, env);
            return;
        }
        let is_armed = self.flags.has(ConnectionFlags::RETRANSMIT_ARMED);
        if !is_armed || matches!(self.timer, TimerKind::Persist | TimerKind::Syn) {
            self.arm_timeout(env);
        }
    }

    /// What is left of the timeout of the first unacknowledged segment, counted from when it left last.
    #[inline]
    fn rto_left_us(&self, cold: &Cold, env: &Env<'_>) -> u64 {
        let now = Moment::of(env.now);
        let front = cold.scoreboard.front();
        let away_us = front.map_or(0, |front| now.since(front.at));
        self.rto_us(env).saturating_sub(away_us.into())
    }
}
