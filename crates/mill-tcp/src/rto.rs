//! The round-trip time and the retransmission timer (RFC 6298), and what else runs in the timer's place.

use crate::arrived::Events;
use crate::config::Config;
use crate::congestion::Signal;
use crate::connection::{Cold, Connection, ConnectionFlags, TimerKind};
use crate::env::Env;
use crate::recovery::frto::Frto;
use crate::recovery::loss_probe::LossProbe;
use crate::recovery::{Phase, Progress};
use crate::scoreboard::{Mark, Moment};
use crate::time::Duration;

/// When the timer expires, and as what.
mod arm;

#[cfg(test)]
mod tests;

impl Connection {
    /// The round trip of the handshake, in milliseconds, if it was measured; 0 is less than one (RFC 6298 2.2).
    pub(crate) fn first_rtt(&mut self, rtt_ms: Option<u32>, _env: &mut Env<'_>) {
        if let Some(rtt_ms) = rtt_ms {
            let rtt_us = rtt_ms.saturating_mul(1_000).max(HANDSHAKE_US_MIN);
            self.rtt_min_us = rtt_us;
            self.on_rtt_sample(None, rtt_us);
        }
    }

    /// RFC 6298 2.2, 2.3. RTTVAR falls at most once a round trip, as in Linux: many samples in a row would make it
    /// forget how long the trip before was (RFC 7323 appendix G).
    #[inline]
    pub(crate) fn on_rtt_sample(&mut self, cold: Option<&mut Cold>, rtt_us: u32) {
        if self.srtt_us == 0 {
            self.srtt_us = rtt_us.max(1);
            self.rttvar_us = rtt_us / 2;
            return;
        }
        let deviation = self.srtt_us.abs_diff(rtt_us);
        if deviation >= self.rttvar_us {
            self.rttvar_us += (deviation - self.rttvar_us) / 4;
        } else {
            let may_fall = cold.is_none_or(|cold| {
                let end = &mut cold.recovery.rtt_round_end;
                let is_over = end.is_none_or(|end| self.snd_una.is_after(end));
                if is_over {
                    *end = Some(self.snd_nxt);
                }
                is_over
            });
            if may_fall {
                self.rttvar_us -= (self.rttvar_us - deviation) / 4;
            }
        }
        self.srtt_us = if rtt_us >= self.srtt_us {
            self.srtt_us + (rtt_us - self.srtt_us) / 8
        } else {
            (self.srtt_us - (self.srtt_us - rtt_us) / 8).max(1)
        };
    }

    /// RFC 6298 2.1 to 2.5, without backoff. The minimum is one of the variation, as in Linux, so that a long round
    /// trip that hardly varies has as much time to spare as a short one.
    #[inline]
    pub(crate) fn rto_base_us(&self, config: &Config) -> u64 {
        if self.srtt_us == 0 {
            // RFC 6298 5.7: a SYN that was lost says that a second is not enough.
            let initial_us = micros(config.rto_initial);
            return if self.flags.has(ConnectionFlags::SYN_RETRANSMITTED) {
                initial_us.max(RTO_US_AFTER_LOST_SYN)
            } else {
                initial_us
            };
        }
        let variation_us = 4 * u64::from(self.rttvar_us);
        let rto_us = u64::from(self.srtt_us) + variation_us.max(micros(config.rto_min));
        rto_us.min(micros(config.rto_max))
    }

    /// The timeout without backoff, as it is told to people.
    pub(crate) fn rto_with(&self, config: &Config) -> Duration {
        Duration::from_micros(self.rto_base_us(config))
    }

    /// The timeout with its backoff (RFC 6298 5.5), microseconds.
    #[inline]
    pub(crate) fn rto_us(&self, env: &Env<'_>) -> u64 {
        let base_us = self.rto_base_us(env.config);
        if self.backoff == 0 {
            return base_us;
        }
        let factor = 1_u64 << self.backoff.min(32);
        let rto_us = base_us.saturating_mul(factor);
        rto_us.min(micros(env.config.rto_max))
    }

    /// The timer has expired, as anything but `TimerKind::Syn`.
    pub(crate) fn on_retransmission_timer(&mut self, env: &mut Env<'_>) -> Events {
        self.flags.set(ConnectionFlags::RETRANSMIT_ARMED, false);
        if self.timer == TimerKind::Persist {
            return self.on_persist_timer(env);
        }
        let Some(mut cold) = self.cold.take() else {
            return Events::default();
        };
        let events = if cold.scoreboard.is_empty() {
            Events::default()
        } else {
            self.on_timer_in_flight(&mut cold, env)
        };
        self.cold = Some(cold);
        if events.has_any(Events::TIMED_OUT) {
            return self.end(Events::TIMED_OUT, env);
        }
        events
    }

    fn on_timer_in_flight(&mut self, cold: &mut Cold, env: &mut Env<'_>) -> Events {
        let now = Moment::of(env.now);
        match self.timer {
            TimerKind::LossProbe => {
                // RFC 8985 7.3: the probe leaves with the next `next_segment`.
                cold.recovery.probe.is_due = true;
                self.arm_timeout(env);
                Events::default()
            }
            TimerKind::Reordering => {
                // RFC 8985 6.3.
                let lost_bytes = self.detect_losses(cold, now, env);
                let progress = Progress {
                    ack: self.snd_una,
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
        if self.has_given_up(cold, env) {
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
        self.backoff = self.backoff.saturating_add(1);
        cold.recovery.timeouts = cold.recovery.timeouts.saturating_add(1);
        self.arm_timeout(env);
        events
    }

    /// RFC 9293 3.8.3 R2: so many timeouts in a row that nobody is there. A peer that closed its window over data
    /// in flight, and still acknowledges, is there (RFC 9293 3.8.6.1).
    fn has_given_up(&self, cold: &Cold, env: &Env<'_>) -> bool {
        let is_orphan = self.flags.has(ConnectionFlags::ORPHAN);
        let retries_max = if is_orphan {
            env.config.orphan_retries_max
        } else {
            env.config.retries_max
        };
        let silence_ms = u128::try_from(env.tick().since(self.heard_at)).unwrap_or(0);
        let is_only_closed =
            self.snd_wnd == 0 && !is_orphan && silence_ms < env.config.rto_max.as_millis();
        cold.recovery.timeouts >= retries_max && !is_only_closed
    }

    /// RFC 5681 3.1: what is in flight is lost, and slow start begins anew.
    fn enter_loss(&mut self, cold: &mut Cold, now: Moment, env: &mut Env<'_>) {
        let phase = cold.recovery.phase;
        // The threshold falls once for a window of data, not for each timeout in it.
        let is_new = phase == Phase::Open
            || self.snd_una.is_at_or_after(cold.recovery.end)
            || (phase == Phase::Loss && cold.recovery.timeouts == 0);
        if is_new {
            self.start_undo(cold);
            self.on_congestion(cold, Signal::Timeout, env);
            let has_ecn = self.flags.has(ConnectionFlags::ECN);
            self.flags.set(ConnectionFlags::CWR_DUE, has_ecn);
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
        // RFC 5682 2.1 step 1, 3.1: not in the midst of another recovery.
        cold.recovery.frto = if is_new && phase != Phase::Recovery && self.snd_wnd > 0 {
            Frto::FirstAck
        } else {
            Frto::Off
        };
        cold.recovery.phase = Phase::Loss;
        cold.recovery.end = self.snd_nxt;
        cold.recovery.echoes_before = Some(self.snd_nxt);
        cold.recovery.echoes = 0;
        cold.recovery.duplicates = 0;
        cold.recovery.probe = LossProbe::default();
        cold.recovery.rack.is_pending = false;
        // One segment may leave, beside what is not held for lost because it left a moment ago.
        self.cwnd = self.pipe(cold).saturating_add(self.snd_mss.into());
    }

    /// Milliseconds since the first unacknowledged byte was sent for the first time, or since something was acknowledged
    /// after that, or since data waits for a closed window; 0 if nothing waits (RFC 5482; as Linux, which begins anew
    /// with each progress).
    pub(crate) fn stalled_ms(&self, env: &Env<'_>) -> u32 {
        let front = self.cold.as_ref().and_then(|cold| {
            let front = cold.scoreboard.front()?;
            Some(cold.recovery.stalled_since.unwrap_or(front.at))
        });
        match front {
            Some(since) => Moment::of(env.now).since(since) / 1_000,
            None => self.persisting_ms(env),
        }
    }
}

/// What a handshake shorter than a millisecond is taken for, microseconds; the first data measures better.
const HANDSHAKE_US_MIN: u32 = 500;

/// RFC 6298 5.7: 3 s, in microseconds.
const RTO_US_AFTER_LOST_SYN: u64 = 3_000_000;

/// Whole microseconds; timers count in them, because a `Duration` costs divisions.
#[inline]
pub(crate) const fn micros(duration: Duration) -> u64 {
    duration.as_secs() * 1_000_000 + duration.subsec_micros() as u64
}
