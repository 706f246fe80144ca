//! The entries of one cache: found by path, ordered by their last use, at most `max`.
//!
//! Every entry is in a slot; the slots form a ring of indices from the most to the least recently used:
//!
//! ```text
//! newest → slot → slot → … → oldest        (`older` points right, `newer` points left)
//! ```
//!
//! Uses without a look-up (of a hot answer) do not change the ring; they are noticed when the entry has become the
//! oldest one, and make it the newest again.

use super::Lookup;
use super::open_file::{Freshness, OpenFile};
use hashbrown::HashMap;
use mill_config::config::settings::OpenFileCache;
use mill_runtime::files::{FileError, FileKind, Metadata, Symlinks};
use mill_runtime::time::{Duration, Instant};
use std::hash::{BuildHasher, DefaultHasher, Hasher};
use std::rc::Rc;

pub(super) struct Entries<F> {
    by_path: HashMap<Rc<[u8]>, usize, Seeded>,
    slots: Vec<Slot<F>>,
    vacant: Vec<usize>,
    newest: Option<usize>,
    oldest: Option<usize>,
    max: usize,
    inactive: Duration,
}

struct Slot<F> {
    entry: Option<Entry<F>>,
    newer: Option<usize>,
    older: Option<usize>,
}

struct Entry<F> {
    path: Rc<[u8]>,
    symlinks: Symlinks,
    found: Rc<OpenFile<F>>,
    freshness: Freshness,
    /// When the entry was moved to the ring's beginning.
    linked: Instant,
}

/// The maximum number of entries that are moved before one is removed.
const SECOND_CHANCES: u32 = 8;

/// At most so many inactive entries are removed with each use of the cache, as in nginx: the work of one request is
/// bounded, and two are removed for each one added.
const EXPIRED_AT_ONCE: usize = 2;

impl<F: Clone> Entries<F> {
    pub(super) fn new(setting: &OpenFileCache, seed: u64) -> Self {
        Self {
            by_path: HashMap::with_hasher(Seeded(seed)),
            slots: Vec::new(),
            vacant: Vec::new(),
            newest: None,
            oldest: None,
            max: usize::try_from(setting.max).unwrap_or(usize::MAX),
            inactive: setting.inactive,
        }
    }

    /// The cached result for a path, if valid; its entry becomes the most recently used one.
    pub(super) fn fresh(&mut self, path: &[u8], lookup: &Lookup) -> Option<Rc<OpenFile<F>>> {
        let index = *self.by_path.get(path)?;
        self.unlink(index);
        self.link_newest(index);
        let entry = self.entry_mut(index)?;
        entry.freshness.count_use(lookup.now);
        entry.linked = lookup.now;
        // A file that was not used often enough to stay open is opened again.
        let known = entry.found.failure().is_some() || entry.found.is_complete();
        let fresh = entry.freshness.is_fresh(lookup.now) && entry.symlinks == lookup.symlinks;
        (known && fresh).then(|| Rc::clone(&entry.found))
    }

    /// The result for a path, of whatever age.
    pub(super) fn found(&self, path: &[u8]) -> Option<Rc<OpenFile<F>>> {
        let index = *self.by_path.get(path)?;
        let entry = self.slots.get(index)?.entry.as_ref()?;
        Some(Rc::clone(&entry.found))
    }

    /// Stores a result. If it equals the previous one, everything made from that stays valid; the file stays open only
    /// if it is used often enough, but the caller gets it in any case.
    pub(super) fn renew(
        &mut self,
        path: &[u8],
        lookup: &Lookup,
        file: Option<F>,
        metadata: Metadata,
    ) -> Rc<OpenFile<F>> {
        let valid_until = lookup.now + lookup.valid;
        let known = self.by_path.get(path).copied();
        let entry = known.and_then(|index| self.entry_mut(index));
        if let Some(entry) = &entry
            && entry.found.failure().is_none()
            && entry.found.is_complete()
            && entry.found.metadata == metadata
            && entry.symlinks == lookup.symlinks
        {
            entry.freshness.set_valid_until(valid_until);
            return Rc::clone(&entry.found);
        }
        let uses = entry.map_or(1, |entry| entry.freshness.uses());
        let freshness = Freshness::new(lookup.now, valid_until, uses);
        let stays_open = uses >= lookup.min_uses || metadata.kind == FileKind::Directory;
        if stays_open {
            let found = Rc::new(OpenFile::found(file, metadata, Some(freshness.clone())));
            self.insert(path, lookup.symlinks, Rc::clone(&found), freshness);
            return found;
        }
        let closed = OpenFile::found(None, metadata, Some(freshness.clone()));
        self.insert(path, lookup.symlinks, Rc::new(closed), freshness);
        Rc::new(OpenFile::found(file, metadata, None))
    }

    /// Stores that a path cannot be used.
    pub(super) fn renew_failure(&mut self, path: &[u8], lookup: &Lookup, error: FileError) {
        let freshness = Freshness::new(lookup.now, lookup.now + lookup.valid, 1);
        let failed = OpenFile::failed(error, Some(freshness.clone()));
        self.insert(path, lookup.symlinks, Rc::new(failed), freshness);
    }

    /// Replaces the entry of the same path, or makes room for a new one.
    fn insert(
        &mut self,
        path: &[u8],
        symlinks: Symlinks,
        found: Rc<OpenFile<F>>,
        freshness: Freshness,
    ) {
        if let Some(index) = self.by_path.get(path).copied() {
            if let Some(entry) = self.entry_mut(index) {
                entry.freshness.replace();
                entry.linked = freshness.accessed();
                entry.freshness = freshness;
                entry.found = found;
                entry.symlinks = symlinks;
            }
            return;
        }
        while self.by_path.len() >= self.max.max(1) {
            let Some((index, _)) = self.least_used() else {
                break;
            };
            self.forget(index);
        }
        let path: Rc<[u8]> = Rc::from(path);
        let slot = Slot {
            entry: Some(Entry {
                path: Rc::clone(&path),
                symlinks,
                found,
                linked: freshness.accessed(),
                freshness,
            }),
            newer: None,
            older: None,
        };
        let index = self.vacant.pop().unwrap_or(self.slots.len());
        match self.slots.get_mut(index) {
            Some(vacant) => *vacant = slot,
            None => self.slots.push(slot),
        }
        self.by_path.insert(path, index);
        self.link_newest(index);
    }

    pub(super) fn remove(&mut self, path: &[u8]) {
        if let Some(index) = self.by_path.get(path).copied() {
            self.forget(index);
        }
    }

    /// Removes up to two entries that were not used for `inactive`.
    pub(super) fn expire(&mut self, now: Instant) {
        for _ in 0..EXPIRED_AT_ONCE {
            let Some((index, accessed)) = self.least_used() else {
                return;
            };
            if now.since(accessed) <= self.inactive {
                return;
            }
            self.forget(index);
        }
    }

    /// The least recently used entry, and the time of its use. Entries that were used by hot answers since they were
    /// last moved are moved to their place first; at most a few, since a wrong order only costs a look-up.
    fn least_used(&mut self) -> Option<(usize, Instant)> {
        let mut chances = SECOND_CHANCES;
        loop {
            let index = self.oldest?;
            let entry = self.entry_mut(index)?;
            let accessed = entry.freshness.accessed();
            if accessed <= entry.linked || chances == 0 {
                return Some((index, accessed));
            }
            chances -= 1;
            entry.linked = accessed;
            self.unlink(index);
            self.link_newest(index);
        }
    }

    fn forget(&mut self, index: usize) {
        self.unlink(index);
        let entry = self.slots.get_mut(index).and_then(|slot| slot.entry.take());
        if let Some(entry) = entry {
            self.by_path.remove(&entry.path);
            self.vacant.push(index);
        }
    }

    fn entry_mut(&mut self, index: usize) -> Option<&mut Entry<F>> {
        self.slots.get_mut(index)?.entry.as_mut()
    }

    fn unlink(&mut self, index: usize) {
        let Some(slot) = self.slots.get(index) else {
            return;
        };
        let (newer, older) = (slot.newer, slot.older);
        match newer.and_then(|newer| self.slots.get_mut(newer)) {
            Some(slot) => slot.older = older,
            None => self.newest = older,
        }
        match older.and_then(|older| self.slots.get_mut(older)) {
            Some(slot) => slot.newer = newer,
            None => self.oldest = newer,
        }
    }

    fn link_newest(&mut self, index: usize) {
        let before = self.newest;
        if let Some(slot) = self.slots.get_mut(index) {
            slot.newer = None;
            slot.older = before;
        }
        match before.and_then(|before| self.slots.get_mut(before)) {
            Some(slot) => slot.newer = Some(index),
            None => self.oldest = Some(index),
        }
        self.newest = Some(index);
    }

    #[cfg(test)]
    pub(super) fn paths(&self) -> Vec<&[u8]> {
        let next = |index: &usize| self.slots.get(*index).and_then(|slot| slot.older);
        std::iter::successors(self.newest, next)
            .filter_map(|index| self.slots.get(index)?.entry.as_ref())
            .map(|entry| &*entry.path)
            .collect()
    }
}

impl<F> Drop for Entry<F> {
    /// Without a cache entry it is not known whether a file is unchanged.
    fn drop(&mut self) {
        self.freshness.replace();
    }
}

/// SipHash, preceded by a number that clients do not know.
struct Seeded(u64);

impl BuildHasher for Seeded {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.0);
        hasher
    }
}
