//! The sweep: carries out purges, and removes what was not used for long.

use std::sync::atomic::Ordering::Acquire;
use std::sync::{Arc, TryLockError};
use std::time::Duration;

use super::Zone;
use crate::eviction::Queues;
use crate::figures::Departure;
use crate::lock::locked;
use crate::object::{Object, Weigh};

/// Objects that are looked at between two takings of the lock.
const SLICE: usize = 64;

/// Places that [`Zone::largest`] looks at between two takings of the lock.
const LARGEST_SLICE: usize = 1024;

/// How far the sweep has come.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    place: usize,
    /// The last purge when it was at the first place.
    began_at: u64,
}

impl<M: Weigh> Zone<M> {
    /// Looks at the next `share` objects: removes those that a purge concerns, or that were not used for
    /// [`Limits::inactive`](crate::Limits). Returns how many it removed. To be called regularly, by any thread; one that
    /// finds another one at it returns at once. The lock of the queues is held for 64 objects at a time.
    pub fn expire(&self, now: Duration, share: usize) -> usize {
        let mut sweep = match self.sweep.try_lock() {
            Ok(sweep) => sweep,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return 0,
        };
        let mut removed = 0;
        let mut left = share;
        while left > 0 {
            let slice = left.min(SLICE);
            left -= slice;
            removed += self.sweep_slice(&mut sweep, slice, now);
            if sweep.place == 0 {
                break;
            }
        }
        removed
    }

    fn sweep_slice(&self, sweep: &mut Sweep, slice: usize, now: Duration) -> usize {
        let queues = locked(&self.queues);
        if sweep.place == 0 {
            sweep.began_at = self.last_purge.load(Acquire);
        }
        let end = (sweep.place + slice).min(queues.places());
        let objects: Vec<_> = (sweep.place..end)
            .filter_map(|at| queues.at(at).cloned())
            .collect();
        let is_last = end == queues.places();
        drop(queues);
        let removed = self.remove_concerned(&objects, now);
        sweep.place = if is_last { 0 } else { end };
        if is_last {
            self.settle_purges(self.oldest_claim().min(sweep.began_at));
        }
        removed
    }

    fn remove_concerned(&self, objects: &[Arc<Object<M>>], now: Duration) -> usize {
        let departures = objects.iter().filter_map(|object| {
            let departure = self.departure(object, now)?;
            Some((object, departure))
        });
        let departures: Vec<_> = departures.collect();
        if departures.is_empty() {
            return 0;
        }
        let mut queues = locked(&self.queues);
        departures
            .iter()
            .filter(|(object, departure)| self.unlist(&mut queues, object, *departure))
            .count()
    }

    fn departure(&self, object: &Object<M>, now: Duration) -> Option<Departure> {
        if !self.outlives_purges(object) {
            return Some(Departure::Purged);
        }
        let is_unused = object.last_used() + self.limits.inactive <= now;
        (is_unused && Queues::is_counted(object)).then_some(Departure::Inactive)
    }

    /// The number of the last purge before the oldest claim that is not listed yet. One that is listed later is checked
    /// when it is.
    fn oldest_claim(&self) -> u64 {
        // With this lock, no claim is between its shard and the queues.
        let _queues = locked(&self.queues);
        let oldest = self
            .shards
            .iter()
            .filter_map(|shard| locked(&shard.table).oldest_claim());
        oldest.min().unwrap_or(u64::MAX)
    }

    /// The `count` objects that count most, largest first. Walks over all, a thousand at a time under the lock.
    pub fn largest(&self, count: usize) -> Vec<Arc<Object<M>>> {
        let mut largest: Vec<Arc<Object<M>>> = Vec::new();
        let mut place = 0;
        loop {
            let queues = locked(&self.queues);
            if place >= queues.places() {
                return largest;
            }
            let end = (place + LARGEST_SLICE).min(queues.places());
            let objects = (place..end).filter_map(|at| queues.at(at).cloned());
            largest.extend(objects);
            drop(queues);
            // Once for each: what becomes whole meanwhile changes its charge.
            largest.sort_by_cached_key(|object| std::cmp::Reverse(object.charge()));
            largest.truncate(count);
            place = end;
        }
    }
}
