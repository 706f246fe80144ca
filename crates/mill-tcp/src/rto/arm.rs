//! The one timer of the sending side: when it expires, and as what.

use super::timer::TimerKind;
use crate::connection::{Cold, Connection};
use crate::env::Env;
use crate::scoreboard::Moment;

impl Connection {
    /// The retransmission timer, counted from now (RFC 6298 5.1, 5.3).
    #[inline]
    pub(crate) fn arm_timeout(&mut self, env: &Env<'_>) {
        let rto_us = self.rto_us(env);
        self.timer
            .arm_us(TimerKind::Retransmission, rto_us, env.now);
    }

    /// The persist timer, which has the same intervals.
    pub(crate) fn arm_next_window_probe(&mut self, env: &Env<'_>) {
        let rto_us = self.rto_us(env);
        self.timer.arm_us(TimerKind::Persist, rto_us, env.now);
    }

    /// The persist timer expires after one timeout without backoff, if not sooner.
    pub(crate) fn hasten_window_probe(&mut self, env: &Env<'_>) {
        let before = self.timer.at();
        let rto_us = self.rto_base_us(env.config);
        self.timer.arm_us(TimerKind::Persist, rto_us, env.now);
        if let Some(before) = before {
            self.timer.expire_by(before);
        }
    }

    /// After an acknowledgement (RFC 6298 5.2, 5.3; RFC 8985 6.2 step 5, 7.2).
    #[inline]
    pub(crate) fn arm_after_ack(&mut self, cold: &Cold, has_advanced: bool, env: &Env<'_>) {
        if cold.scoreboard.is_empty() {
            if has_advanced {
                // The backoff outlives it (RFC 6298 5.7): else a path that became longer than the timeout, and carries
                // one segment at a time, would never be measured.
                self.timer.disarm();
            }
            return;
        }
        if let Some(wait_us) = self.reordering_wait_us(cold, Moment::of(env.now)) {
            self.timer
                .arm_us(TimerKind::Reordering, wait_us.into(), env.now);
        } else if !has_advanced {
            let is_right = match self.timer.running() {
                Some(TimerKind::Retransmission) => true,
                Some(TimerKind::LossProbe) => self.loss_probe_after_us(cold).is_some(),
                _ => false,
            };
            if !is_right {
                let left_us = self.rto_left_us(cold, env);
                self.timer
                    .arm_us(TimerKind::Retransmission, left_us, env.now);
            }
        } else if let Some(after_us) = self.loss_probe_after_us(cold) {
            let after_us = after_us.min(self.rto_us(env));
            self.timer.arm_us(TimerKind::LossProbe, after_us, env.now);
        } else {
            self.arm_timeout(env);
        }
    }

    /// After new data left (RFC 6298 5.1, RFC 8985 7.2).
    #[inline]
    pub(crate) fn arm_after_send(&mut self, cold: &Cold, env: &Env<'_>) {
        if let Some(after_us) = self.loss_probe_after_us(cold) {
            let after_us = after_us.min(self.rto_left_us(cold, env));
            self.timer.arm_us(TimerKind::LossProbe, after_us, env.now);
            return;
        }
        if matches!(
            self.timer.running(),
            None | Some(TimerKind::Persist | TimerKind::Syn)
        ) {
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
