//! What probes of a peer have found since the peer exists.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

/// Counted by the worker that probes; read by any.
#[derive(Debug, Default)]
pub(super) struct HealthChecks {
    checks: AtomicU64,
    fails: AtomicU64,
    unhealthy: AtomicU64,
    last: AtomicU8,
}

/// A copy of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HealthCheckCounts {
    pub checks: u64,
    pub fails: u64,
    /// How many times the peer became unhealthy.
    pub unhealthy: u64,
    /// Whether the last probe has passed; `None` before the first one has ended.
    pub last_passed: Option<bool>,
}

impl HealthChecks {
    pub(super) fn count(&self, has_passed: bool) {
        self.checks.fetch_add(1, Relaxed);
        if !has_passed {
            self.fails.fetch_add(1, Relaxed);
        }
        let last = if has_passed { PASSED } else { FAILED };
        self.last.store(last, Relaxed);
    }

    pub(super) fn count_unhealthy(&self) {
        self.unhealthy.fetch_add(1, Relaxed);
    }

    pub(super) fn reset(&self) {
        for counter in [&self.checks, &self.fails, &self.unhealthy] {
            counter.store(0, Relaxed);
        }
    }

    pub(super) fn counts(&self) -> HealthCheckCounts {
        HealthCheckCounts {
            checks: self.checks.load(Relaxed),
            fails: self.fails.load(Relaxed),
            unhealthy: self.unhealthy.load(Relaxed),
            last_passed: match self.last.load(Relaxed) {
                PASSED => Some(true),
                FAILED => Some(false),
                _ => None,
            },
        }
    }
}

const PASSED: u8 = 1;
const FAILED: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::{Health, load::Load};
    use mill_runtime::time::Instant;

    #[test]
    fn probes_are_counted_and_the_last_one_is_known() {
        let load = Load::default();
        assert_eq!(load.counts(AT).health_checks.last_passed, None);
        load.count_health_check(true);
        load.count_health_check(false);
        let expected = HealthCheckCounts {
            checks: 2,
            fails: 1,
            unhealthy: 0,
            last_passed: Some(false),
        };
        assert_eq!(load.counts(AT).health_checks, expected);
    }

    #[test]
    fn only_a_change_to_unhealthy_counts_as_one() {
        let load = Load::default();
        for health in [
            Health::Checking,
            Health::Unhealthy,
            Health::Unhealthy,
            Health::Healthy,
            Health::Unhealthy,
        ] {
            load.set_health(health, AT);
        }
        assert_eq!(load.counts(AT).health_checks.unhealthy, 2);
    }

    const AT: Instant = Instant::from_nanos(1);
}
