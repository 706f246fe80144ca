//! The retransmission timer expires (RFC 6298 5.4 to 5.6, RFC 8985 6.3, 7.3), and how long a peer may be silent.

use super::timer::TimerKind;
use crate::arrived::Events;
use crate::congestion::Signal;
use crate::connection::{Cold, Connection, ConnectionFlags};
use crate::env::Env;
use crate::recovery::{Phase, Progress};
use crate::scoreboard::{Mark, Moment};

#[cfg(test)]
mod tests;

impl Connection {
    /// The timer has expired, as anything but `TimerKind::Syn`.
    pub(crate) fn on_retransmission_timer(&mut self, kind: TimerKind, env: &mut Env<'_>) -> Events {
        self.timer.disarm();
        if kind == TimerKind::Persist {
            return self.on_persist_timer(env);
        }
        let Some(mut cold) = self.cold.take() else {
            return Events::default();
        };
        let events = if cold.scoreboard.is_empty() {
            Events::default()
        } else {
            self.on_timer_in_flight(kind, &mut cold, env)
        };
        self.cold = Some(cold);
        if events.has_any(Events::TIMED_OUT) {
            return self.end(Events::TIMED_OUT, env);
        }
        events
    }

    fn on_timer_in_flight(
        &mut self,
        kind: TimerKind,
        cold: &mut Cold,
        env: &mut Env<'_>,
    ) -> Events {
        let now = Moment::of(env.now);
        match kind {
            TimerKind::LossProbe => {
                cold.recovery.on_loss_probe_timer();
                self.arm_timeout(env);
                Events::default()
            }
            TimerKind::Reordering => {
                // RFC 8985 6.3.
                let lost_bytes = self.detect_losses(cold, now, env);
                let progress = Progress {
                    ack: self.snd.una(),
                    now,
                    ..Progress::default()
                };
                self.on_losses(cold, &progress, lost_bytes, env);
                self.arm_after_ack(cold, false, env);
                Events::default()
            }
            _ => self.on_timeout(cold, now, env),
        }
    }

    /// RFC 6298 5.4 to 5.6.
    fn on_timeout(&mut self, cold: &mut Cold, now: Moment, env: &mut Env<'_>) -> Events {
        if self.has_given_up(env) {
            return Events::TIMED_OUT;
        }
        env.shared.counters.timeouts += 1;
        let events = if self.end_path_probe(cold, env) {
            Events::PATH_MTU
        } else {
            self.suspect_black_hole(cold, env);
            Events::default()
        };
        self.enter_loss(cold, now, env);
        self.timer.on_timeout();
        self.arm_timeout(env);
        events
    }

    /// RFC 9293 3.8.3 R2: so many timeouts in a row that the peer is gone. A peer that closed its window over data
    /// in flight, and still acknowledges, is there (RFC 9293 3.8.6.1).
    fn has_given_up(&self, env: &Env<'_>) -> bool {
        let is_orphan = self.flags.has(ConnectionFlags::ORPHAN);
        let retries_max = if is_orphan {
            env.config.orphan_retries_max
        } else {
            env.config.retries_max
        };
        let silence_ms = u128::try_from(env.tick().since(self.heard_at)).unwrap_or(0);
        let is_only_closed =
            self.snd.wnd() == 0 && !is_orphan && silence_ms < env.config.rto_max.as_millis();
        self.timer.timeouts() >= retries_max && !is_only_closed
    }

    /// RFC 5681 3.1: what is in flight is lost, and slow start begins anew.
    fn enter_loss(&mut self, cold: &mut Cold, now: Moment, env: &mut Env<'_>) {
        let recovery = &cold.recovery;
        let is_new = recovery.is_new_loss(self.snd.una(), self.timer.timeouts());
        // RFC 5682 2.1 step 1, 3.1: not in the midst of another recovery.
        let may_be_spurious = is_new && recovery.phase() != Phase::Recovery && self.snd.wnd() > 0;
        if is_new {
            self.start_undo(cold);
            self.on_congestion(cold, Signal::Timeout, env);
            self.announce_reduction();
        }
        // RFC 2018 8: a peer that has the first byte, and does not acknowledge it, has thrown away what it reported.
        if cold
            .scoreboard
            .front()
            .is_some_and(|front| front.mark == Mark::Sacked)
        {
            cold.scoreboard.forget_sacked();
        }
        let away_us_max = if self.flags.has(ConnectionFlags::SACK) {
            self.rack_patience_us(cold)
        } else {
            0
        };
        cold.scoreboard.mark_lost_on_timeout(away_us_max, now);
        cold.recovery.enter_loss(self.snd.nxt(), may_be_spurious);
        // One segment may leave, beside what is not held for lost because it left a moment ago.
        let pipe = self.pipe(cold);
        self.congestion.on_timeout(pipe, self.snd_mss.into());
    }

    /// Milliseconds since the first unacknowledged byte was sent for the first time, or since something was acknowledged
    /// after that, or since data waits for a closed window; 0 if nothing waits (RFC 5482; as Linux, which begins anew
    /// with each progress).
    pub(crate) fn stalled_ms(&self, env: &Env<'_>) -> u32 {
        let front = self.cold.as_ref().and_then(|cold| {
            let front = cold.scoreboard.front()?;
            Some(cold.recovery.stalled_since().unwrap_or(front.at))
        });
        match front {
            Some(since) => Moment::of(env.now).since(since) / 1_000,
            None => self.persisting_ms(env),
        }
    }
}
