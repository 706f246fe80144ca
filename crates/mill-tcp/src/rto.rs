//! RTO: the retransmission timeout, and the round-trip times that it follows (RFC 6298 2, 3, 5.7).
//!
//! ```text
//! RttEstimator  SRTT, RTTVAR   RTO = SRTT + 4 RTTVAR, within limits      this file
//! timer         backoff        RTO * 2^backoff; which deadline runs      RFC 6298 5.5
//! arm           when data leaves or is acknowledged                      RFC 6298 5.1 - 5.3, RFC 8985 7.2
//! expire        the timer has expired                                    RFC 6298 5.4 - 5.6
//! ```

use crate::config::Config;
use crate::connection::{Connection, ConnectionFlags};
use crate::env::Env;
use crate::time::Duration;

/// The timer as a value: its deadline, what it stands for, and how often it has expired.
pub(crate) mod timer;

/// When the timer is armed, and as what.
mod arm;

/// The timer expires.
mod expire;

#[cfg(test)]
mod tests;

/// SRTT and RTTVAR (RFC 6298 2), and the shortest round trip; microseconds.
#[derive(Debug, Default)]
pub(crate) struct RttEstimator {
    /// 0 until the first measurement, never afterwards.
    srtt_us: u32,
    rttvar_us: u32,
    /// 0 until it is known.
    min_us: u32,
}

impl RttEstimator {
    /// Whether there was a measurement.
    #[inline]
    pub(crate) const fn is_measured(&self) -> bool {
        self.srtt_us != 0
    }

    /// SRTT; 0 before the first measurement.
    #[inline]
    pub(crate) const fn srtt_us(&self) -> u32 {
        self.srtt_us
    }

    pub(crate) const fn rttvar_us(&self) -> u32 {
        self.rttvar_us
    }

    /// The shortest round trip of this connection; 0 while it is unknown.
    #[inline]
    pub(crate) const fn min_us(&self) -> u32 {
        self.min_us
    }

    /// The round trip of the handshake, in milliseconds; 0 is less than one (RFC 6298 2.2).
    pub(crate) fn on_handshake(&mut self, rtt_ms: u32) {
        let rtt_us = rtt_ms.saturating_mul(1_000).max(HANDSHAKE_US_MIN);
        self.min_us = rtt_us;
        self.on_sample(rtt_us, || true);
    }

    /// RFC 6298 2.2, 2.3. RTTVAR falls at most once a round trip, as in Linux: many samples in a row would make it
    /// forget how long the trip before was (RFC 7323 appendix G). `begins_round` is asked only when it would fall.
    #[inline]
    pub(crate) fn on_sample(&mut self, rtt_us: u32, begins_round: impl FnOnce() -> bool) {
        if self.srtt_us == 0 {
            self.srtt_us = rtt_us.max(1);
            self.rttvar_us = rtt_us / 2;
            return;
        }
        let deviation = self.srtt_us.abs_diff(rtt_us);
        if deviation >= self.rttvar_us {
            self.rttvar_us += (deviation - self.rttvar_us) / 4;
        } else if begins_round() {
            self.rttvar_us -= (self.rttvar_us - deviation) / 4;
        }
        self.srtt_us = if rtt_us >= self.srtt_us {
            self.srtt_us + (rtt_us - self.srtt_us) / 8
        } else {
            (self.srtt_us - (self.srtt_us - rtt_us) / 8).max(1)
        };
        debug_assert!(self.is_measured());
    }

    /// Something was acknowledged this long after it left; the shortest round trip is not longer.
    #[inline]
    pub(crate) fn on_shortest(&mut self, rtt_us: u32) {
        debug_assert!(rtt_us > 0);
        if self.min_us == 0 || rtt_us < self.min_us {
            self.min_us = rtt_us;
        }
    }

    /// As [`Self::on_shortest`], by a measurement too coarse to be the first.
    pub(crate) fn on_shorter(&mut self, rtt_us: u32) {
        self.min_us = self.min_us.min(rtt_us);
    }

    /// RTO without backoff, microseconds (RFC 6298 2.1 to 2.5). The minimum is one of the variation, as in Linux, so
    /// that a long round trip that hardly varies has as much time to spare as a short one. `was_syn_lost`: our SYN was
    /// sent more than once.
    #[inline]
    pub(crate) fn rto_us(&self, config: &Config, was_syn_lost: bool) -> u64 {
        if self.srtt_us == 0 {
            // RFC 6298 5.7: a SYN that was lost says that a second is not enough.
            let initial_us = micros(config.rto_initial);
            return if was_syn_lost {
                initial_us.max(RTO_US_AFTER_LOST_SYN)
            } else {
                initial_us
            };
        }
        let variation_us = 4 * u64::from(self.rttvar_us);
        let rto_us = u64::from(self.srtt_us) + variation_us.max(micros(config.rto_min));
        rto_us.min(micros(config.rto_max))
    }
}

impl Connection {
    /// RTO without backoff, microseconds.
    #[inline]
    pub(crate) fn rto_base_us(&self, config: &Config) -> u64 {
        let was_syn_lost = self.flags.has(ConnectionFlags::SYN_RETRANSMITTED);
        self.rtt.rto_us(config, was_syn_lost)
    }

    /// RTO with its backoff (RFC 6298 5.5), microseconds.
    #[inline]
    pub(crate) fn rto_us(&self, env: &Env<'_>) -> u64 {
        let base_us = self.rto_base_us(env.config);
        self.timer.backed_off_us(base_us, env.config)
    }
}

/// What a handshake shorter than a millisecond is taken for, microseconds; the first data measures better.
const HANDSHAKE_US_MIN: u32 = 500;

/// RFC 6298 5.7: 3 s, in microseconds.
const RTO_US_AFTER_LOST_SYN: u64 = 3_000_000;

/// Whole microseconds; timers count in them, because a `Duration` costs divisions.
#[inline]
const fn micros(duration: Duration) -> u64 {
    duration.as_secs() * 1_000_000 + duration.subsec_micros() as u64
}
