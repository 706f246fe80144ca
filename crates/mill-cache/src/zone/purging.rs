//! Purges.

use std::sync::PoisonError;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::Zone;
use crate::figures::Departure;
use crate::key::Key;
use crate::lock::locked;
use crate::object::{Object, Weigh};
use crate::purge::{KeyPredicate, Pending, PurgeMode, TooManyPurges};

impl<M: Weigh> Zone<M> {
    /// Purges all variants of one key, and what a fill under way brings. Returns how many objects there were.
    pub fn purge_key(&self, key: Key<'_>, mode: PurgeMode) -> usize {
        self.counters.purges.fetch_add(1, Relaxed);
        self.purge_related(key, mode)
    }

    /// The same of a key that goes with another one: it does not count as a purge of its own.
    pub fn purge_related(&self, key: Key<'_>, mode: PurgeMode) -> usize {
        // Freed after the locks.
        let variants: Vec<_>;
        let mut queues = locked(&self.queues);
        let table = locked(&self.shard(key.hash()).table);
        variants = table.variants(key).cloned().collect();
        if let Some(filling) = table.filling(key) {
            filling.is_purged.store(true, Release);
        }
        drop(table);
        for object in &variants {
            match mode {
                PurgeMode::Remove => {
                    self.unlist(&mut queues, object, Departure::Purged);
                }
                PurgeMode::Invalidate => object.invalidate(),
            }
        }
        variants.len()
    }

    /// Purges all objects with this tag, in effect when it returns: a note on the tag, whatever the number of objects,
    /// which is returned and counts those that an earlier purge has not removed yet.
    pub fn purge_tag(&self, tag: &[u8], mode: PurgeMode) -> usize {
        self.purge_many(|_, purge| self.tags.purge(tag, mode, purge))
    }

    /// Purges all objects whose key's bytes the predicate names (a prefix, a host), in effect when it returns. It is asked
    /// in look-ups, at most once for each object, and must be short.
    ///
    /// # Errors
    /// If too many such purges are not carried out yet.
    pub fn purge_matching(
        &self,
        concerns: KeyPredicate,
        mode: PurgeMode,
    ) -> Result<(), TooManyPurges> {
        self.purge_many(|pending, purge| pending.purge_matching(concerns, mode, purge))
    }

    /// Purges all objects, in effect when it returns.
    pub fn purge_all(&self, mode: PurgeMode) {
        self.purge_many(|pending, purge| pending.purge_all(mode, purge));
    }

    /// Notes a purge under the next number, which is seen only when the note is there.
    fn purge_many<T>(&self, note: impl FnOnce(&mut Pending, u64) -> T) -> T {
        self.counters.purges.fetch_add(1, Relaxed);
        let mut pending = self.pending.write().unwrap_or_else(PoisonError::into_inner);
        let purge = self.last_purge.load(Relaxed) + 1;
        let noted = note(&mut pending, purge);
        self.last_purge.store(purge, Release);
        noted
    }

    pub(super) fn pending_purges(&self) -> u64 {
        let pending = self.pending.read().unwrap_or_else(PoisonError::into_inner);
        pending.matching() as u64
    }

    /// Whether the object is not removed by the purges that it was not checked against; it is invalidated if they say so.
    pub(super) fn outlives_purges(&self, object: &Object<M>) -> bool {
        if object.born() >= self.last_purge.load(Acquire) {
            return true;
        }
        let pending = self.pending.read().unwrap_or_else(PoisonError::into_inner);
        match pending.verdict(object) {
            Some(PurgeMode::Remove) => return false,
            Some(PurgeMode::Invalidate) => object.invalidate(),
            None => {}
        }
        // No purge is noted while this lock is held.
        object.outlived(self.last_purge.load(Relaxed));
        true
    }

    /// All objects were checked against purges up to this one.
    pub(super) fn settle_purges(&self, purge: u64) {
        let mut pending = self.pending.write().unwrap_or_else(PoisonError::into_inner);
        pending.settle(purge);
        self.tags.settle(purge);
    }
}
