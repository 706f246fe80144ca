//! What caches were to requests: each worker counts by itself, and what is told is the sum.

use super::note::CacheOutcome;
use crate::request::Request;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What one worker counts of one cache. Only a reset comes from another worker; each value stands alone, so all accesses are
/// relaxed.
#[derive(Debug, Default)]
pub(crate) struct CacheCounts([OutcomeCounts; CacheOutcome::ALL.len()]);

#[derive(Debug, Default)]
struct OutcomeCounts {
    responses: AtomicU64,
    bytes: AtomicU64,
    stored_responses: AtomicU64,
    stored_bytes: AtomicU64,
}

/// Answers to requests for which a look-up had one outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutcomeFigures {
    pub responses: u64,
    /// Bytes of heads and content that clients were sent.
    pub bytes: u64,
    /// Those answers of them that the rules let be kept.
    pub stored_responses: u64,
    /// Their bytes.
    pub stored_bytes: u64,
}

impl CacheCounts {
    fn count(&self, outcome: CacheOutcome, is_stored: bool, bytes: u64) {
        let counts = &self.0[outcome as usize];
        counts.responses.fetch_add(1, Relaxed);
        counts.bytes.fetch_add(bytes, Relaxed);
        if is_stored {
            counts.stored_responses.fetch_add(1, Relaxed);
            counts.stored_bytes.fetch_add(bytes, Relaxed);
        }
    }

    pub(super) fn add_to(&self, sums: &mut [OutcomeFigures; CacheOutcome::ALL.len()]) {
        for (counts, sum) in self.0.iter().zip(sums) {
            sum.responses += counts.responses.load(Relaxed);
            sum.bytes += counts.bytes.load(Relaxed);
            sum.stored_responses += counts.stored_responses.load(Relaxed);
            sum.stored_bytes += counts.stored_bytes.load(Relaxed);
        }
    }

    pub(super) fn reset(&self) {
        for counts in &self.0 {
            counts.responses.store(0, Relaxed);
            counts.bytes.store(0, Relaxed);
            counts.stored_responses.store(0, Relaxed);
            counts.stored_bytes.store(0, Relaxed);
        }
    }
}

/// Where a request counts that had to do with a cache.
#[derive(Clone, Debug)]
pub(crate) struct CountedInCache {
    counts: Arc<CacheCounts>,
    outcome: CacheOutcome,
    is_stored: bool,
}

impl CountedInCache {
    /// `None` for a request whose location has no cache for it.
    pub(crate) fn of(request: &Request, worker: u32) -> Option<Self> {
        let note = request.cached.as_ref()?;
        Some(Self {
            counts: Arc::clone(note.zone.part(worker)),
            outcome: note.outcome,
            is_stored: note.storing == Some(Ok(())),
        })
    }

    /// The client was sent so many bytes; without any it had no answer.
    #[inline]
    pub(crate) fn count(&self, sent_bytes: u64) {
        if sent_bytes > 0 {
            self.counts.count(self.outcome, self.is_stored, sent_bytes);
        }
    }
}
