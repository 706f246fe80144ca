//! Pacing: what leaves is spread over the round trip, so that no burst of a whole window meets a queue.
//!
//! BBR says its own rate. CUBIC and Reno are paced if that is configured (`pacing=on`), as by Linux: twice the window in a round
//! trip while it doubles, which is no slower than the doubling, and 1.2 times the window otherwise, so that the window and not the
//! pace says how much is in flight.

use crate::config::Algorithm;
use crate::connection::{Cold, Connection, ConnectionFlags};
use crate::env::Env;
use crate::time::{Duration, Instant, Tick};

/// When the next segment may leave.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pacer {
    next_at: Instant,
}

impl Pacer {
    /// The first segment may leave now.
    pub(super) const fn starting_at(now: Instant) -> Self {
        Self { next_at: now }
    }

    fn is_early(self, now: Instant) -> bool {
        self.next_at > now
    }

    /// Something of so many bytes leaves, at so many bytes a second: when the next may. What was late by some milliseconds is
    /// made up for, as timers are.
    pub(super) fn spend(&mut self, now: Instant, len: u32, rate: u64) {
        let nanos = u128::from(len) * 1_000_000_000 / u128::from(rate.max(1));
        let cost = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        self.next_at = self.next_at.max(now - LATE_MAX) + cost;
    }

    /// The first tick at which the next segment may leave.
    fn due(self) -> Tick {
        let millis = self.next_at.as_nanos().div_ceil(1_000_000);
        Instant::from_nanos(millis.saturating_mul(1_000_000)).tick()
    }

    #[cfg(test)]
    pub(super) const fn next_at(self) -> Instant {
        self.next_at
    }
}

/// Bytes that leave at once: as much as the pace gives in a millisecond, 64 KiB at most, but two segments of any size.
pub(super) fn quantum(rate: u64, mss: u32) -> u32 {
    let bytes = u32::try_from(rate / 1_000).unwrap_or(u32::MAX);
    bytes.min(QUANTUM_MAX).max(2 * mss)
}

impl Connection {
    /// Whether what this connection sends has a pace, at times.
    #[inline]
    pub(crate) const fn is_paced(env: &Env<'_>) -> bool {
        env.config.pacing || matches!(env.config.congestion, Algorithm::Bbr)
    }

    /// Whether it is too early to send; then a timer says when it is not.
    pub(crate) fn is_paced_out(&mut self, env: &Env<'_>) -> bool {
        let pacer = self.cold.as_ref().map(|cold| cold.congestion.pacer);
        let is_early = pacer.is_some_and(|pacer| pacer.is_early(env.now));
        self.flags.set(ConnectionFlags::PACED, is_early);
        is_early
    }

    /// When that timer is due, if data waits for its time.
    pub(crate) fn pacing_timer(&self) -> Option<Tick> {
        if !self.flags.has(ConnectionFlags::PACED) {
            return None;
        }
        Some(self.cold.as_ref()?.congestion.pacer.due())
    }

    /// Bytes that may leave at once, of a connection that has a pace now.
    pub(crate) fn pacing_quantum(&self, env: &Env<'_>) -> Option<u32> {
        let cold = self.cold.as_ref()?;
        let rate = self.pacing_rate(cold, self.pipe(cold), env)?;
        Some(quantum(rate, self.snd_mss.into()))
    }

    /// So many bytes leave while `in_flight` are on their way.
    pub(crate) fn pace(&self, cold: &mut Cold, len: u32, in_flight: u32, env: &Env<'_>) {
        if let Some(rate) = self.pacing_rate(cold, in_flight, env) {
            cold.congestion.pacer.spend(env.now, len, rate);
        }
    }

    /// Bytes a second; none if there is no pace, or none yet.
    fn pacing_rate(&self, cold: &Cold, in_flight: u32, env: &Env<'_>) -> Option<u64> {
        if let Some(bbr) = &cold.congestion.bbr {
            return Some(bbr.pacing_rate());
        }
        if !env.config.pacing || self.is_first_window(env) {
            return None;
        }
        let window = self.congestion.cwnd().max(in_flight);
        let gain = if self.congestion.is_doubling() {
            GAIN_SLOW_START
        } else {
            GAIN_AVOIDANCE
        };
        // Bytes, times per cent, in microseconds.
        let product = u64::from(window) * gain * (1_000_000 / 100);
        product.checked_div(self.rtt.srtt_us().into())
    }

    /// Nothing is known of the path but the handshake's round trip. The first window leaves at once, as it does from Linux
    /// (`tcp_update_skb_after_send`): an answer that fits into it does not wait.
    fn is_first_window(&self, env: &Env<'_>) -> bool {
        self.congestion.is_first_slow_start() && self.congestion.cwnd() <= self.initial_window(env)
    }
}

/// Per cent of the window in a round trip in slow start; Linux's `tcp_pacing_ss_ratio`.
const GAIN_SLOW_START: u64 = 200;

/// … and in congestion avoidance; `tcp_pacing_ca_ratio`.
const GAIN_AVOIDANCE: u64 = 120;

/// Bytes that leave at once at most.
const QUANTUM_MAX: u32 = 64 * 1024;

/// Timers are some milliseconds late; what could not leave meanwhile leaves with the next.
const LATE_MAX: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests;
