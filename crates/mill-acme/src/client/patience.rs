//! Whether and when something is asked again. All of it is bounded.

use std::time::Duration;

/// What is left of the tries of an order.
#[derive(Debug)]
pub(super) struct Patience {
    nonces_left: u32,
    errors_left: u32,
    next_pause: Duration,
    waited: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            nonces_left: NONCES_MAX,
            errors_left: ERRORS_MAX,
            next_pause: PAUSE_MIN,
            waited: Duration::ZERO,
        }
    }
}

impl Patience {
    /// Another thing is waited for.
    pub(super) const fn begin(&mut self) {
        (self.next_pause, self.waited) = (PAUSE_MIN, Duration::ZERO);
    }

    /// How long to wait until something is looked at again; `None`: it has taken too long.
    pub(super) fn pause(&mut self, retry_after: Option<Duration>) -> Option<Duration> {
        if self.waited >= WAITED_MAX {
            return None;
        }
        let pause = retry_after.unwrap_or(self.next_pause);
        let pause = pause.clamp(PAUSE_MIN, RETRY_AFTER_MAX);
        self.next_pause = (self.next_pause * 2).min(PAUSE_MAX);
        self.waited += pause;
        Some(pause)
    }

    /// How long to wait after an error that may pass; `None`: it is one too many.
    pub(super) fn after_error(&mut self, retry_after: Option<Duration>) -> Option<Duration> {
        let pause = retry_after.unwrap_or(PAUSE_MIN).max(PAUSE_MIN);
        let is_patient = self.errors_left > 0 && pause <= RETRY_AFTER_MAX;
        self.errors_left = self.errors_left.saturating_sub(1);
        is_patient.then_some(pause)
    }

    /// Whether to ask again with another nonce.
    pub(super) fn may_take_another_nonce(&mut self) -> bool {
        let may = self.nonces_left > 0;
        self.nonces_left = self.nonces_left.saturating_sub(1);
        may
    }
}

const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(8);
/// An authority that wants more has its order ended, and is asked again later.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);
/// For one authorization, or for the certificate.
const WAITED_MAX: Duration = Duration::from_secs(60);
/// Of an order.
const ERRORS_MAX: u32 = 3;
/// Of an order. Authorities forget nonces when they restart, and may refuse a share of them on purpose.
const NONCES_MAX: u32 = 32;
