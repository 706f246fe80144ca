//! What is told of a zone.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Why an object left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Departure {
    Capacity,
    Inactive,
    Purged,
    Replaced,
    Unfinished,
}

/// Counters beside those of the shards.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    departures: [AtomicU64; 5],
    pub(crate) stored: AtomicU64,
    pub(crate) waited: AtomicU64,
    pub(crate) passes: AtomicU64,
    pub(crate) purges: AtomicU64,
}

impl Counters {
    pub(crate) fn count(&self, departure: Departure) {
        self.departures[departure as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn departed(&self, departure: Departure) -> u64 {
        self.departures[departure as usize].load(Relaxed)
    }
}

/// A zone at one moment; counts are since it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Objects, also those that are being filled.
    pub objects: u64,
    /// Those of them that are being filled.
    pub growing: u64,
    /// What whole objects and tags count in the budget.
    pub bytes: u64,
    /// What fills under way count in theirs.
    pub filling_bytes: u64,
    /// Claims whose head is not known yet.
    pub claims: u64,
    /// Look-ups that found an object.
    pub hits: u64,
    /// Look-ups that did not.
    pub misses: u64,
    /// Objects that became whole, or had their metadata replaced.
    pub stored: u64,
    /// Requests that waited for another one's fill.
    pub waited: u64,
    /// Requests and fills that went on without being stored, because of a limit.
    pub passes: u64,
    /// Purges, of whatever kind.
    pub purges: u64,
    /// Purges by a predicate that the sweep has not carried out yet.
    pub pending_purges: u64,
    /// Objects that left because there was no room.
    pub evicted: u64,
    /// Objects that were not used for the time of `inactive`.
    pub inactive: u64,
    /// Objects that a purge removed.
    pub purged: u64,
    /// Objects that a newer one replaced.
    pub replaced: u64,
    /// Objects whose content failed, or turned out too large.
    pub unfinished: u64,
}
