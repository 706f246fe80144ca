//! CUBIC (RFC 9438) in whole numbers: bytes, milliseconds.
//!
//! ```text
//!  window |                             /
//!         |                            /   convex: looks for more
//!   W_max |- - - - - - - - ___________/ - - -
//!         |          _____/
//!         |      ___/  concave: back to where the loss was
//!         |    _/
//!         |___/___________________________________ time since the reduction
//!            cwnd_epoch        K
//! ```

use super::millis_between;
use crate::connection::{Cold, Connection};
use crate::scoreboard::Moment;

/// The curve since the last reduction (RFC 9438 4.1.2).
#[derive(Clone, Copy, Debug, Default)]
pub struct Cubic {
    epoch: Option<Epoch>,
    /// `cwnd_prior`: the window at the last reduction.
    prior_bytes: u32,
}

#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Moment,
    /// Milliseconds until the curve reaches its plateau.
    k_ms: u32,
    /// The plateau, bytes.
    origin_bytes: u32,
    /// `W_est`, what Reno would have, in 1/65536 bytes.
    estimate: u64,
}

impl Cubic {
    /// The next acknowledgement begins a curve from the window as it is then.
    pub(super) const fn begin_epoch_anew(&mut self) {
        self.epoch = None;
    }
}

impl Epoch {
    /// RFC 9438 4.2: congestion avoidance begins.
    fn begin(cwnd: u32, w_max: u32, mss: u32, now: Moment) -> Self {
        let below = w_max.saturating_sub(cwnd);
        // K = cube root of ((W_max - cwnd) / C), in segments and seconds; C = 0.4, hence 1e9 ms^3 / 0.4.
        let cubed = u64::from(below).saturating_mul(2_500_000_000) / u64::from(mss);
        Self {
            start: now,
            k_ms: cube_root(cubed),
            origin_bytes: cwnd.max(w_max),
            estimate: u64::from(cwnd) << 16,
        }
    }

    /// RFC 9438 4.2: W_cubic at `elapsed_ms`, bytes.
    fn window(&self, elapsed_ms: u32, mss: u32) -> u32 {
        let distance_ms = u64::from(elapsed_ms.abs_diff(self.k_ms)).min(DISTANCE_MS_MAX);
        // C * t^3 segments, in 1/1024: 0.4 * 1024 / 1e9 = 4096 / 1e10.
        let segments = distance_ms * distance_ms * distance_ms * 4096 / 10_000_000_000;
        let bytes = u32::try_from((segments * u64::from(mss)) >> 10).unwrap_or(u32::MAX);
        if elapsed_ms < self.k_ms {
            self.origin_bytes.saturating_sub(bytes)
        } else {
            self.origin_bytes.saturating_add(bytes)
        }
    }
}

impl Connection {
    /// RFC 9438 4.3 to 4.5: `acked` bytes of new data in congestion avoidance.
    pub(super) fn grow_as_cubic(&mut self, cold: &mut Cold, acked: u32, now: Moment) {
        let mss = u32::from(self.snd_mss);
        let (cwnd, w_max) = (self.congestion.cwnd, self.congestion.w_max);
        let cubic = &mut cold.congestion.cubic;
        let prior_bytes = cubic.prior_bytes.max(w_max);
        let epoch = cubic
            .epoch
            .get_or_insert_with(|| Epoch::begin(cwnd, w_max, mss, now));
        // RFC 9438 4.3: what Reno would have by now; its own slope below the old window, then Reno's.
        let is_below = (epoch.estimate >> 16) < u64::from(prior_bytes);
        let slope_q16 = if is_below { ALPHA_Q16 } else { 1 << 16 };
        epoch.estimate += slope_q16 * u64::from(mss) * u64::from(acked) / u64::from(cwnd.max(1));
        let estimate = u32::try_from(epoch.estimate >> 16).unwrap_or(u32::MAX);
        let elapsed_ms = millis_between(now, epoch.start);
        if epoch.window(elapsed_ms, mss) < estimate {
            self.congestion.cwnd = cwnd.max(estimate);
            return;
        }
        // RFC 9438 4.4, 4.5: the way to the window of one round trip later, at most half a window.
        let target = epoch.window(elapsed_ms + self.rtt.srtt_us() / 1_000, mss);
        let target = target.min(cwnd.saturating_add(cwnd / 2));
        self.grow_by_share(cold, target.saturating_sub(cwnd), acked);
    }

    /// RFC 9438 4.6, 4.7: remembers the window for the next curve, and returns what it goes down to.
    pub(super) fn reduce_as_cubic(&mut self, cold: &mut Cold) -> u32 {
        cold.congestion.cubic.prior_bytes = self.congestion.cwnd;
        // Fast convergence: a flow that did not come back to its old window leaves more to the others.
        self.congestion.w_max = if self.congestion.cwnd < self.congestion.w_max {
            times(self.congestion.cwnd, 85, 100)
        } else {
            self.congestion.cwnd
        };
        times(self.congestion.cwnd, BETA_PERCENT, 100)
    }
}

/// `value * numerator / denominator`, which is not more than `value`.
fn times(value: u32, numerator: u32, denominator: u32) -> u32 {
    let scaled = u64::from(value) * u64::from(numerator) / u64::from(denominator);
    u32::try_from(scaled).unwrap_or(value)
}

/// The largest number whose cube is not more than `value`.
fn cube_root(value: u64) -> u32 {
    let mut root = 0_u64;
    for bit in (0..=21).rev() {
        let next = root | (1 << bit);
        let cube = (next * next).checked_mul(next);
        if cube.is_some_and(|cube| cube <= value) {
            root = next;
        }
    }
    u32::try_from(root).unwrap_or(u32::MAX)
}

/// RFC 9438 4.6: what is left of the window after a loss.
const BETA_PERCENT: u32 = 70;

/// RFC 9438 4.3: 3 * (1 - beta) / (1 + beta) = 9/17, in 1/65536.
const ALPHA_Q16: u64 = (9 << 16) / 17;

/// Milliseconds from the plateau beyond which the curve is as steep as can be counted; the window is capped long
/// before.
const DISTANCE_MS_MAX: u64 = 100_000;

#[cfg(test)]
mod tests;
