//! From a flow to its connection, handshake or TIME-WAIT: open addressing with linear probing over eight bytes an
//! entry.
//!
//! ```text
//! | hash: u32 | target: u32 |  hash: u32 | target: u32 | …     a power of two of them, at most 3/4 in use
//! ```
//!
//! The flows themselves lie where the targets point. An entry's place is its hash modulo the size; entries behind a
//! removed one move up, so that there are no tombstones and a search ends at the first vacant place.

use alloc::vec;
use alloc::vec::Vec;

/// The target of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A slot.
    Connection(u32),
    /// An entry of the SYN cache.
    HalfOpen(u32),
    /// An entry of the TIME-WAIT table, by its number modulo 2^30.
    TimeWait(u32),
}

/// The table. Hashes are given by the caller, keyed, so that peers cannot construct long runs.
#[derive(Debug)]
pub struct FlowTable {
    entries: Vec<Entry>,
    count: usize,
}

impl FlowTable {
    pub fn new() -> Self {
        Self {
            entries: vec![Entry::VACANT; Self::SIZE_MIN],
            count: 0,
        }
    }

    pub const fn len(&self) -> usize {
        self.count
    }

    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of memory that the entries take.
    pub const fn size_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
    }

    /// The entry with this hash that `is_it` recognises.
    #[inline]
    pub fn find(&self, hash: u64, mut is_it: impl FnMut(Target) -> bool) -> Option<Target> {
        let hash = Entry::hash(hash);
        let mut at = self.home(hash);
        loop {
            let entry = self.entry(at);
            if entry.is_vacant() {
                return None;
            }
            if entry.hash == hash && is_it(entry.target()) {
                return Some(entry.target());
            }
            at = self.after(at);
        }
    }

    /// Adds an entry; the caller knows that there is none for its flow.
    pub fn insert(&mut self, hash: u64, target: Target) {
        if (self.count + 1) * 4 > self.entries.len() * 3 {
            self.grow();
        }
        self.place(Entry::new(Entry::hash(hash), target));
        self.count += 1;
    }

    /// Removes the entry that leads to `target`; says whether there was one.
    pub fn remove(&mut self, hash: u64, target: Target) -> bool {
        let Some(mut hole) = self.position(hash, target) else {
            return false;
        };
        self.count -= 1;
        // Entries that were displaced beyond the hole move back; those at their own position, or that would move
        // before it, stay.
        let mut at = hole;
        loop {
            at = self.after(at);
            let entry = self.entry(at);
            if entry.is_vacant() {
                break;
            }
            let distance = self.distance(self.home(entry.hash), at);
            if distance >= self.distance(hole, at) {
                self.set(hole, entry);
                hole = at;
            }
        }
        self.set(hole, Entry::VACANT);
        true
    }

    /// Changes the target of a flow's entry; returns whether there was one.
    pub fn replace(&mut self, hash: u64, target: Target, new: Target) -> bool {
        match self.position(hash, target) {
            Some(at) => {
                self.set(at, Entry::new(Entry::hash(hash), new));
                true
            }
            None => false,
        }
    }

    fn position(&self, hash: u64, target: Target) -> Option<usize> {
        let wanted = Entry::new(Entry::hash(hash), target);
        let mut at = self.home(wanted.hash);
        loop {
            let entry = self.entry(at);
            if entry.is_vacant() {
                return None;
            }
            if entry == wanted {
                return Some(at);
            }
            at = self.after(at);
        }
    }

    fn grow(&mut self) {
        let size = self.entries.len() * 2;
        let old = core::mem::replace(&mut self.entries, vec![Entry::VACANT; size]);
        for entry in old {
            if !entry.is_vacant() {
                self.place(entry);
            }
        }
    }

    fn place(&mut self, entry: Entry) {
        let mut at = self.home(entry.hash);
        while !self.entry(at).is_vacant() {
            at = self.after(at);
        }
        self.set(at, entry);
    }

    #[inline]
    fn home(&self, hash: u32) -> usize {
        hash as usize & (self.entries.len() - 1)
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.entries.len() - 1)
    }

    fn distance(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & (self.entries.len() - 1)
    }

    #[inline]
    fn entry(&self, at: usize) -> Entry {
        self.entries.get(at).copied().unwrap_or(Entry::VACANT)
    }

    fn set(&mut self, at: usize, entry: Entry) {
        if let Some(place) = self.entries.get_mut(at) {
            *place = entry;
        }
    }

    /// Entries of an empty table, a power of two; 512 bytes.
    const SIZE_MIN: usize = 64;
}

impl Default for FlowTable {
    fn default() -> Self {
        Self::new()
    }
}

/// Indices of slots, of the SYN cache and of the TIME-WAIT table lie below this.
pub(crate) const INDEX_END: u32 = 1 << 30;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    hash: u32,
    /// The kind in the upper two bits, 0 if vacant; the index in the others.
    target: u32,
}

const _: () = assert!(size_of::<Entry>() == 8);

impl Entry {
    const VACANT: Self = Self { hash: 0, target: 0 };

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the lower half is a hash too"
    )]
    const fn hash(hash: u64) -> u32 {
        hash as u32
    }

    const fn new(hash: u32, target: Target) -> Self {
        let (kind, index) = match target {
            Target::Connection(index) => (1, index),
            Target::HalfOpen(index) => (2, index),
            Target::TimeWait(index) => (3, index),
        };
        debug_assert!(index < INDEX_END);
        Self {
            hash,
            target: (kind << 30) | index,
        }
    }

    const fn is_vacant(self) -> bool {
        self.target >> 30 == 0
    }

    #[inline]
    const fn target(self) -> Target {
        let index = self.target & (INDEX_END - 1);
        match self.target >> 30 {
            1 => Target::Connection(index),
            2 => Target::HalfOpen(index),
            _ => Target::TimeWait(index),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use mill_tcp::random::Random;

    #[test]
    fn the_table_behaves_as_a_map_does_also_with_colliding_hashes() {
        for seed in 1..20 {
            let mut random = Random::new(seed);
            let mut table = FlowTable::new();
            let mut model = BTreeMap::new();
            // Few different hashes: long runs, which wrap round the end of the table.
            let spread = 1 << (seed % 12);
            for step in 0..4000u32 {
                let key = u32::try_from(random.below(400)).unwrap();
                let hash = u64::from(key) % spread + u64::from(u32::MAX) - 3;
                match model.get(&key).copied() {
                    None => {
                        assert_eq!(table.find(hash, |found| found == target(key, 0)), None);
                        table.insert(hash, target(key, step));
                        model.insert(key, step);
                    }
                    Some(at) if step % 3 == 0 => {
                        assert!(table.replace(hash, target(key, at), target(key, at + 1)));
                        model.insert(key, at + 1);
                    }
                    Some(at) => {
                        assert!(table.remove(hash, target(key, at)));
                        assert!(!table.remove(hash, target(key, at)));
                        model.remove(&key);
                    }
                }
                assert_eq!(table.len(), model.len());
            }
            for (key, at) in model {
                let hash = u64::from(key) % spread + u64::from(u32::MAX) - 3;
                let expected = target(key, at);
                assert_eq!(table.find(hash, |found| found == expected), Some(expected));
            }
        }
    }

    fn target(key: u32, version: u32) -> Target {
        let index = key * 65536 + version % 65536;
        match key % 3 {
            0 => Target::Connection(index),
            1 => Target::HalfOpen(index),
            _ => Target::TimeWait(index),
        }
    }
}
