//! A zone: the objects of one `keys_zone`, for all worker threads.
//!
//! The order of locks: queues, then a shard, then pending purges. A hit takes the shard's alone.

mod expiry;
mod listing;
mod purging;
mod restoring;
mod variants;

use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed},
};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use crate::eviction::Queues;
use crate::figures::{Counters, Departure, Figures};
use crate::fill::FillTicket;
use crate::filling::{FILLING_OVERHEAD, Filling, Waiting};
use crate::key::{Key, KeyTooLong, Seed};
use crate::ledger::{Ledger, Reservation};
use crate::limits::Limits;
use crate::lock::locked;
use crate::object::{Object, Weigh};
use crate::purge::Pending;
use crate::shard::{SHARDS, Shard};
use crate::tag::TagTable;
use expiry::Sweep;
pub use restoring::Restored;

/// The store of one zone, in an [`Arc`] that all workers have. Times are durations since one moment of the caller's choice.
#[derive(Debug)]
pub struct Zone<M> {
    limits: Limits,
    seed: Seed,
    shards: Box<[Shard<M>]>,
    queues: Mutex<Queues<M>>,
    sweep: Mutex<Sweep>,
    tags: TagTable,
    pending: RwLock<Pending>,
    /// The number of the last purge by tag or predicate, or of all.
    last_purge: AtomicU64,
    ledger: Arc<Ledger>,
    counters: Counters,
    next_serial: AtomicU64,
}

/// What a miss is to do.
#[derive(Debug)]
pub enum Claim<M: Weigh> {
    /// Ask the origin, for all.
    Fill(FillTicket<M>),
    /// Another request is asking.
    Wait(Waiting<M>),
    /// Ask the origin, and store nothing: too much is being filled, or too many requests wait.
    Pass,
}

impl<M: Weigh> Zone<M> {
    /// An empty zone; `seed` is drawn at random by the caller.
    pub fn new(limits: Limits, seed: Seed) -> Arc<Self> {
        let mut limits = limits;
        // Nodes are linked by 32 bits, of which the ghost needs one for itself.
        limits.keys = limits.keys.clamp(1, 1 << 30);
        limits.variants = limits.variants.max(1);
        Arc::new(Self {
            seed,
            shards: (0..SHARDS).map(|_| Shard::new()).collect(),
            queues: Mutex::new(Queues::new(limits.bytes)),
            sweep: Mutex::new(Sweep::default()),
            tags: TagTable::new(seed),
            pending: RwLock::new(Pending::default()),
            last_purge: AtomicU64::new(1),
            ledger: Arc::new(Ledger::new(limits.filling_bytes)),
            counters: Counters::default(),
            next_serial: AtomicU64::new(0),
            limits,
        })
    }

    /// The key of these bytes; costs their hash, and no allocation.
    pub fn key<'a>(&self, bytes: &'a [u8]) -> Result<Key<'a>, KeyTooLong> {
        Key::new(self.seed, bytes)
    }

    /// Its limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Advances with each purge that concerns more than one key. A kept answer is right while this is the same and its
    /// object [`is_current`](Object::is_current); after a change, look up again.
    pub fn generation(&self) -> u64 {
        self.last_purge.load(Acquire)
    }

    /// The newest object of the key whose metadata `fits`, which may be invalidated, and whose content may still arrive.
    /// Counts a use. Takes one lock of 64, allocates nothing. `fits` runs under that lock: it must be short.
    pub fn look_up(
        &self,
        key: Key<'_>,
        now: Duration,
        fits: impl Fn(&M) -> bool,
    ) -> Option<Arc<Object<M>>> {
        let shard = self.shard(key.hash());
        let found = self.find(key, fits);
        match &found {
            Some(object) => {
                object.used(now);
                shard.hits.fetch_add(1, Relaxed);
            }
            None => {
                shard.misses.fetch_add(1, Relaxed);
            }
        }
        found
    }

    /// The same without counting anything.
    pub fn find(&self, key: Key<'_>, fits: impl Fn(&M) -> bool) -> Option<Arc<Object<M>>> {
        while let Some(object) = self.newest(key, &fits) {
            if object.born() >= self.last_purge.load(Acquire) || self.outlives_purges(&object) {
                return Some(object);
            }
            self.remove_one(&object, Departure::Purged);
        }
        None
    }

    fn newest(&self, key: Key<'_>, fits: impl Fn(&M) -> bool) -> Option<Arc<Object<M>>> {
        let table = locked(&self.shard(key.hash()).table);
        let fitting = table.variants(key).filter(|object| fits(object.meta()));
        fitting.max_by_key(|object| object.serial()).cloned()
    }

    /// Claims the fill of a key after a miss, or joins the one under way.
    pub fn claim(self: &Arc<Self>, key: Key<'_>, now: Duration) -> Claim<M> {
        let claim = self.try_claim(key, now);
        match &claim {
            Claim::Fill(_) => {}
            Claim::Wait(_) => {
                self.counters.waited.fetch_add(1, Relaxed);
            }
            Claim::Pass => self.count_pass(),
        }
        claim
    }

    fn try_claim(self: &Arc<Self>, key: Key<'_>, now: Duration) -> Claim<M> {
        let mut table = locked(&self.shard(key.hash()).table);
        if let Some(filling) = table.filling(key) {
            let waiting = filling.join(self.limits.waiters);
            return waiting.map_or(Claim::Pass, Claim::Wait);
        }
        let mut reservation = Reservation::new(self.ledger.clone());
        if !reservation.extend(FILLING_OVERHEAD + key.bytes().len() as u64) {
            return Claim::Pass;
        }
        // Read under the shard's lock, under which the sweep looks at what is claimed.
        let born = self.last_purge.load(Acquire);
        let filling = Arc::new(Filling::new(key, born, now, reservation));
        table.begin(filling.clone());
        drop(table);
        Claim::Fill(FillTicket::new(self.clone(), filling))
    }

    pub(crate) fn count_pass(&self) {
        self.counters.passes.fetch_add(1, Relaxed);
    }

    /// The counts of this moment; takes each lock once.
    pub fn figures(&self) -> Figures {
        let departed = |departure| self.counters.departed(departure);
        let sum = |count: fn(&Shard<M>) -> u64| self.shards.iter().map(count).sum();
        let (objects, growing, bytes) = {
            let queues = locked(&self.queues);
            let bytes = queues.bytes() + self.tags.bytes();
            (queues.count(), queues.growing(), bytes)
        };
        Figures {
            objects,
            growing,
            bytes,
            filling_bytes: self.ledger.reserved(),
            claims: sum(|shard| locked(&shard.table).claims() as u64),
            hits: sum(|shard| shard.hits.load(Relaxed)),
            misses: sum(|shard| shard.misses.load(Relaxed)),
            stored: self.counters.stored.load(Relaxed),
            waited: self.counters.waited.load(Relaxed),
            passes: self.counters.passes.load(Relaxed),
            purges: self.counters.purges.load(Relaxed),
            pending_purges: self.pending_purges(),
            evicted: departed(Departure::Capacity),
            inactive: departed(Departure::Inactive),
            purged: departed(Departure::Purged),
            replaced: departed(Departure::Replaced),
            unfinished: departed(Departure::Unfinished),
        }
    }

    fn shard(&self, hash: u64) -> &Shard<M> {
        // The table within the shard uses the lowest bits for the place, and the uppermost ones to tell apart.
        let index = usize::try_from(hash >> 32).unwrap_or_default();
        &self.shards[index % SHARDS]
    }
}
