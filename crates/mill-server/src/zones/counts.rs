//! What one worker counts of a zone.

use mill_metrics::{Latency, LatencyCounts, StatusCounts};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A worker's counters of one zone. Only a reset comes from another worker; each value stands alone, so all accesses are
/// relaxed.
#[derive(Debug, Default)]
pub struct ZoneCounts {
    processing: AtomicU64,
    requests: AtomicU64,
    responses: StatusCounts,
    discarded: AtomicU64,
    received: AtomicU64,
    sent: AtomicU64,
    latency: Latency,
}

/// A request that is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    pub(crate) status: u16,
    pub(crate) received_bytes: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) took: Duration,
}

/// The sum of what workers have counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZoneFigures {
    /// Requests under way.
    pub processing: u64,
    pub requests: u64,
    /// Answers by status.
    pub responses: BTreeMap<u16, u64>,
    /// Requests that were over without an answer.
    pub discarded: u64,
    pub received_bytes: u64,
    pub sent_bytes: u64,
    /// From the request's first byte to the end of its answer.
    pub latency: LatencyCounts,
}

impl ZoneCounts {
    pub(super) fn begin(&self) {
        self.processing.fetch_add(1, Relaxed);
        self.requests.fetch_add(1, Relaxed);
    }

    pub(super) fn end(&self, done: Option<&Done>) {
        self.processing.fetch_sub(1, Relaxed);
        match done {
            Some(done) => self.count(done),
            None => _ = self.discarded.fetch_add(1, Relaxed),
        }
    }

    /// A request that is counted at its end only.
    pub(super) fn count_whole(&self, done: &Done) {
        self.requests.fetch_add(1, Relaxed);
        self.count(done);
    }

    fn count(&self, done: &Done) {
        self.received.fetch_add(done.received_bytes, Relaxed);
        if done.sent_bytes == 0 {
            self.discarded.fetch_add(1, Relaxed);
            return;
        }
        self.sent.fetch_add(done.sent_bytes, Relaxed);
        self.responses.count(done.status);
        self.latency.count(done.took);
    }

    pub(super) fn add_to(&self, sum: &mut ZoneFigures) {
        sum.processing += self.processing.load(Relaxed);
        sum.requests += self.requests.load(Relaxed);
        for (status, count) in self.responses.iter() {
            *sum.responses.entry(status).or_default() += count;
        }
        sum.discarded += self.discarded.load(Relaxed);
        sum.received_bytes += self.received.load(Relaxed);
        sum.sent_bytes += self.sent.load(Relaxed);
        sum.latency.merge(&self.latency.counts());
    }

    /// Counts from zero again; requests under way stay.
    pub(super) fn reset(&self) {
        let counters = [&self.requests, &self.discarded, &self.received, &self.sent];
        counters
            .iter()
            .for_each(|counter| counter.store(0, Relaxed));
        self.responses.reset();
        self.latency.reset();
    }
}

impl ZoneFigures {
    /// Answers by class: 1xx to 5xx.
    pub fn by_class(&self) -> [u64; 5] {
        let mut classes = [0; 5];
        for (status, count) in &self.responses {
            if let Some(class) = classes.get_mut(usize::from(status / 100).wrapping_sub(1)) {
                *class += count;
            }
        }
        classes
    }
}
