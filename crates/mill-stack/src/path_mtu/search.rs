//! The sizes to probe on a path whose routers send no errors (RFC 4821 7.3).

use mill_tcp::time::{Duration, Instant};

/// The search between the size that passes, which its owner has, and the largest that may pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search {
    /// Bytes of the largest packet that may pass.
    highest: u16,
    /// Nothing was tried yet in this search: first comes all that may pass, because a path that was changed or suspected
    /// wrongly carries that.
    is_new: bool,
    /// When the next probe may leave.
    at: Instant,
}

impl Search {
    pub(super) const fn between(highest: u16, now: Instant) -> Self {
        Self {
            highest,
            is_new: true,
            at: now,
        }
    }

    /// Bytes of the next packet to try, where those of `passes` pass.
    pub(super) fn next(&self, passes: u16, now: Instant) -> Option<u16> {
        if now < self.at || self.highest <= passes {
            return None;
        }
        if self.is_new {
            return Some(self.highest);
        }
        Some(passes + (self.highest - passes).div_ceil(2))
    }

    pub(super) fn note_probe(&mut self, now: Instant) {
        self.at = now + TIMEOUT;
    }

    /// Says whether the search is over; the next one begins after a while, up to what the link carries.
    pub(super) fn on_probe(
        &mut self,
        passes: u16,
        tried: u16,
        has_arrived: bool,
        link_mtu: u16,
        now: Instant,
    ) -> bool {
        self.is_new = false;
        self.at = now;
        if !has_arrived {
            self.highest = self.highest.min(tried.saturating_sub(1));
        }
        if self.highest.saturating_sub(passes) >= STEP_MIN {
            return false;
        }
        *self = Self::between(link_mtu, now + INTERVAL);
        true
    }
}

/// A search ends when it could gain less than this, bytes; as `tcp_probe_threshold` of Linux.
const STEP_MIN: u16 = 8;

/// From the end of a search to the next one: RFC 4821 7.3, and `tcp_probe_interval` of Linux.
const INTERVAL: Duration = Duration::from_secs(600);

/// How long a probe's result is waited for. A connection that ends with a probe on its way reports none.
const TIMEOUT: Duration = Duration::from_secs(1);
