//! A part of the table: the objects and fills whose hashes fall into it.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use hashbrown::HashTable;

use crate::filling::Filling;
use crate::key::Key;
use crate::object::Object;

/// Parts of the table. Sixty-four locks, each held for some tens of nanoseconds, are enough for as many threads.
pub(crate) const SHARDS: usize = 64;

/// One part, on cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Shard<M> {
    pub(crate) table: Mutex<Table<M>>,
    pub(crate) hits: AtomicU64,
    pub(crate) misses: AtomicU64,
}

#[derive(Debug)]
pub(crate) struct Table<M> {
    objects: HashTable<Arc<Object<M>>>,
    fillings: HashTable<Arc<Filling<M>>>,
}

impl<M> Shard<M> {
    pub(crate) fn new() -> Self {
        let objects = HashTable::new();
        let fillings = HashTable::new();
        Self {
            table: Mutex::new(Table { objects, fillings }),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }
}

impl<M> Table<M> {
    /// All variants of a key, in no order.
    pub(crate) fn variants(&self, key: Key<'_>) -> impl Iterator<Item = &Arc<Object<M>>> {
        let same_hash = self.objects.iter_hash(key.hash());
        same_hash.filter(move |object| key.is(object.hash(), object.key()))
    }

    /// All objects whose keys have this hash.
    pub(crate) fn of_hash(&self, hash: u64) -> impl Iterator<Item = &Arc<Object<M>>> {
        let same = self.objects.iter_hash(hash);
        same.filter(move |object| object.hash() == hash)
    }

    pub(crate) fn insert(&mut self, object: Arc<Object<M>>) {
        self.objects
            .insert_unique(object.hash(), object, |object| object.hash());
    }

    pub(crate) fn remove(&mut self, object: &Arc<Object<M>>) {
        let found = self
            .objects
            .find_entry(object.hash(), |other| Arc::ptr_eq(other, object));
        debug_assert!(found.is_ok(), "a listed object is in the table");
        if let Ok(entry) = found {
            entry.remove();
        }
    }

    pub(crate) fn filling(&self, key: Key<'_>) -> Option<&Arc<Filling<M>>> {
        self.fillings
            .find(key.hash(), |filling| key.is(filling.hash, &filling.key))
    }

    pub(crate) fn claims(&self) -> usize {
        self.fillings.len()
    }

    /// The oldest purge number of what is claimed.
    pub(crate) fn oldest_claim(&self) -> Option<u64> {
        self.fillings.iter().map(|filling| filling.born).min()
    }

    pub(crate) fn begin(&mut self, filling: Arc<Filling<M>>) {
        self.fillings
            .insert_unique(filling.hash, filling, |filling| filling.hash);
    }

    pub(crate) fn end(&mut self, filling: &Arc<Filling<M>>) {
        let found = self
            .fillings
            .find_entry(filling.hash, |other| Arc::ptr_eq(other, filling));
        if let Ok(entry) = found {
            entry.remove();
        }
    }
}
