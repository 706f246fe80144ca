//! Which process has a flow, in memory that all processes of a device have: the process to which a frame comes gives it to the one
//! whose it is, by one way and without asking others.
//!
//! The words are a hash table of buckets of eight entries, a cache line each. A flow's entry is in one of two buckets (Azar, Broder,
//! Karlin, Upfal 1999), so that both are full only when nearly all are:
//!
//! ```text
//! bits  63 … 20        19            18 … 0
//!       of the hash    TIME-WAIT     the process, 0 while the connection is on the way from one to another
//! ```
//!
//! Each process writes its own flows; an entry is changed by one compare-and-swap. Entries of a killed process stay until another
//! flow needs their place, or a frame comes for them.

use mill_stack::flow::Flow;
use mill_stack::flow_directory::FlowDirectory;
use mill_stack::siphash::Key;
use std::sync::atomic::{AtomicU64, Ordering};

/// The directory, as one process sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Directory {
    key: Key,
    own: ProcessTag,
    /// Not 0 once a flow has found no place: what is not in it may be of any process.
    is_incomplete: &'static AtomicU64,
    buckets: &'static [[AtomicU64; BUCKET]],
}

/// A process in an entry: its identity modulo 2^19 - 1, plus 1, so never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ProcessTag(u32);

/// What the directory says of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    Process {
        tag: ProcessTag,
        /// Its connection has ended and waits.
        is_waiting: bool,
    },
    /// On the way from one process to another.
    Moving,
}

impl ProcessTag {
    pub(crate) fn of(identity: u64) -> Self {
        let tag = u32::try_from(identity % (TAG_MASK - 1)).unwrap_or(0);
        Self(tag + 1)
    }

    pub(super) const fn number(self) -> u32 {
        self.0
    }
}

impl Directory {
    /// The directory for a process; `entries` are those of a file that is as long as [`ENTRIES`] says.
    pub(super) fn new(
        key: Key,
        identity: u64,
        is_incomplete: &'static AtomicU64,
        entries: &'static [AtomicU64],
    ) -> Self {
        Self {
            key,
            own: ProcessTag::of(identity),
            is_incomplete,
            buckets: entries.as_chunks().0,
        }
    }

    pub(crate) const fn own(&self) -> ProcessTag {
        self.own
    }

    /// The process that has a flow.
    pub(crate) fn find(&self, flow: &Flow) -> Option<Holder> {
        let hash = flow.table_hash(self.key);
        let mut entries = self.entries(hash);
        let word = entries.find_map(|entry| {
            let word = entry.load(Ordering::Acquire);
            is_of(word, hash).then_some(word)
        })?;
        Some(match u32::try_from(word & TAG_MASK).unwrap_or(0) {
            0 => Holder::Moving,
            tag => Holder::Process {
                tag: ProcessTag(tag),
                is_waiting: word & WAITING != 0,
            },
        })
    }

    /// Whether flows were left out for lack of room.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.is_incomplete.load(Ordering::Relaxed) != 0
    }

    fn entries(&self, hash: u64) -> impl Iterator<Item = &'static AtomicU64> {
        let [first, second] = places(hash);
        self.bucket(first).iter().chain(self.bucket(second))
    }

    fn bucket(&self, place: usize) -> &'static [AtomicU64] {
        let bucket = self.buckets.get(place);
        bucket
            .map(<[AtomicU64; BUCKET]>::as_slice)
            .unwrap_or_default()
    }

    /// Writes the entry of a flow, in the place of one that it has.
    fn put(&self, hash: u64, low: u64) {
        let new = hash & !LOW_MASK | low;
        for _ in 0..ATTEMPTS {
            let Some((entry, before)) = self.place_for(hash) else {
                self.is_incomplete.store(1, Ordering::Relaxed);
                return;
            };
            if swap(entry, before, new) {
                return;
            }
        }
        // Others have taken each place that was found.
        self.is_incomplete.store(1, Ordering::Relaxed);
    }

    /// The entry of a flow, else a vacant place in the emptier one of its buckets, else that of a connection that waits.
    fn place_for(&self, hash: u64) -> Option<(&'static AtomicU64, u64)> {
        let load = |entry: &'static AtomicU64| (entry, entry.load(Ordering::Acquire));
        if let Some(found) = self
            .entries(hash)
            .map(load)
            .find(|(_, word)| is_of(*word, hash))
        {
            return Some(found);
        }
        let vacant = |place: usize| {
            let words = self.bucket(place).iter().map(load);
            let mut vacant = words.filter(|(_, word)| *word == 0);
            let first = vacant.next()?;
            Some((vacant.count(), first))
        };
        let emptier = places(hash).into_iter().filter_map(vacant);
        if let Some((_, found)) = emptier.max_by_key(|(more, _)| *more) {
            return Some(found);
        }
        let mut entries = self.entries(hash).map(load);
        entries.find(|(_, word)| word & WAITING != 0)
    }

    /// Changes the entry of one of this process's flows.
    fn change(&self, flow: &Flow, change: impl Fn(u64) -> u64) {
        let hash = flow.table_hash(self.key);
        for entry in self.entries(hash) {
            let word = entry.load(Ordering::Acquire);
            if is_of(word, hash) && word & TAG_MASK == u64::from(self.own.0) {
                // Otherwise another process has the flow by now.
                swap(entry, word, change(word));
                return;
            }
        }
    }
}

impl FlowDirectory for Directory {
    fn insert(&mut self, flow: &Flow) {
        self.put(flow.table_hash(self.key), u64::from(self.own.0));
    }

    fn note_time_wait(&mut self, flow: &Flow) {
        self.change(flow, |word| word | WAITING);
    }

    fn note_moving(&mut self, flow: &Flow) {
        self.change(flow, |word| word & !LOW_MASK);
    }

    fn remove(&mut self, flow: &Flow) {
        self.change(flow, |_| 0);
    }

    fn is_elsewhere(&self, flow: &Flow) -> bool {
        match self.find(flow) {
            None => false,
            Some(Holder::Moving) => true,
            Some(Holder::Process { tag, is_waiting }) => tag != self.own && !is_waiting,
        }
    }
}

fn swap(entry: &AtomicU64, before: u64, new: u64) -> bool {
    let swapped = entry.compare_exchange(before, new, Ordering::AcqRel, Ordering::Relaxed);
    swapped.is_ok()
}

/// Whether a word is the entry of a flow of this hash.
const fn is_of(word: u64, hash: u64) -> bool {
    word != 0 && (word ^ hash) & !LOW_MASK == 0
}

/// The buckets of a flow. Bits of the hash beyond those of an entry would tell more flows apart, and none is needed.
fn places(hash: u64) -> [usize; 2] {
    [20, 20 + BUCKETS.ilog2()].map(|shift| {
        let bits = hash >> shift;
        usize::try_from(bits % BUCKETS as u64).unwrap_or(0)
    })
}

/// Entries of a cache line.
const BUCKET: usize = 8;

/// A power of two.
const BUCKETS: usize = 1 << 17;

/// Words of all entries: a million flows, 8 MiB whose pages are made when they are used.
pub(super) const ENTRIES: usize = BUCKETS * BUCKET;

/// The bits of an entry that are not the hash's.
const LOW_MASK: u64 = (1 << 20) - 1;
const WAITING: u64 = 1 << 19;
const TAG_MASK: u64 = WAITING - 1;

/// How often a place is looked for that other processes take at the same time.
const ATTEMPTS: u32 = 8;

#[cfg(test)]
mod tests;
