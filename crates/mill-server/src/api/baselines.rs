//! What had been counted of connections and requests when their statistics were last told to begin anew. The counters
//! themselves go on, for `stub_status` and Prometheus.

use mill_metrics::ServerCounters;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Those of the process, which reloads keep.
#[derive(Debug, Default)]
pub(crate) struct Baselines(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    all: Totals,
    /// By the workers' numbers.
    workers: BTreeMap<u32, Totals>,
}

/// What only grows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) accepted: u64,
    pub(super) dropped: u64,
    pub(super) requests: u64,
}

impl Baselines {
    /// What has been counted since the last reset: by all workers, or by the one of this number.
    pub(super) fn since(&self, worker: Option<u32>, counters: &ServerCounters) -> Totals {
        let mut known = self.lock();
        let (base, now) = (known.of(worker), Totals::of(counters));
        Totals {
            accepted: now.accepted.saturating_sub(base.accepted),
            dropped: now.dropped.saturating_sub(base.dropped),
            requests: now.requests.saturating_sub(base.requests),
        }
    }

    pub(super) fn reset_connections(&self, worker: Option<u32>, counters: &ServerCounters) {
        let mut known = self.lock();
        let (base, now) = (known.of(worker), Totals::of(counters));
        *base = Totals {
            requests: base.requests,
            ..now
        };
    }

    pub(super) fn reset_requests(&self, worker: Option<u32>, counters: &ServerCounters) {
        self.lock().of(worker).requests = counters.requests;
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn of(&mut self, worker: Option<u32>) -> &mut Totals {
        match worker {
            None => &mut self.all,
            Some(number) => self.workers.entry(number).or_default(),
        }
    }
}

impl Totals {
    const fn of(counters: &ServerCounters) -> Self {
        let accepted = counters.connections_accepted;
        Self {
            accepted,
            dropped: accepted.saturating_sub(counters.connections_handled),
            requests: counters.requests,
        }
    }
}
