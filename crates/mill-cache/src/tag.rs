//! Tags by which objects are purged together.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use hashbrown::HashTable;

use crate::key::Seed;
use crate::limits::{TAG_BYTES_MAX, TAGS_MAX};
use crate::lock::locked;
use crate::purge::PurgeMode;

/// A tag, once for all objects that have it.
#[derive(Debug)]
pub(crate) struct Tag {
    name: Box<[u8]>,
    hash: u64,
    /// Listed objects that have it.
    objects: AtomicUsize,
    /// The last purge that removes its objects, and that invalidates them; 0 for none.
    removed: AtomicU64,
    invalidated: AtomicU64,
}

/// Bytes of a tag beside its name: the counts of its `Arc`, itself, and its place in the table.
const TAG_OVERHEAD: u64 = 16 + size_of::<Tag>() as u64 + 14;

impl Tag {
    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// The last purge of this mode.
    pub(crate) fn purged(&self, mode: PurgeMode) -> u64 {
        self.stamp(mode).load(Relaxed)
    }

    fn stamp(&self, mode: PurgeMode) -> &AtomicU64 {
        match mode {
            PurgeMode::Remove => &self.removed,
            PurgeMode::Invalidate => &self.invalidated,
        }
    }

    fn charge(&self) -> u64 {
        TAG_OVERHEAD + self.name.len() as u64
    }
}

/// All tags of a zone.
#[derive(Debug)]
pub(crate) struct TagTable {
    seed: Seed,
    tags: Mutex<HashTable<Arc<Tag>>>,
    bytes: AtomicU64,
}

impl TagTable {
    pub(crate) fn new(seed: Seed) -> Self {
        let tags = Mutex::new(HashTable::new());
        let bytes = AtomicU64::new(0);
        Self { seed, tags, bytes }
    }

    /// Memory of all tags.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// The tags of these names, each once; what exceeds a limit is ignored. Each counts one object more.
    pub(crate) fn take(&self, names: &[&[u8]]) -> Vec<Arc<Tag>> {
        let mut taken: Vec<Arc<Tag>> = Vec::new();
        if names.is_empty() {
            return taken;
        }
        let mut tags = locked(&self.tags);
        for name in names.iter().filter(|name| name.len() <= TAG_BYTES_MAX) {
            let is_known = taken.iter().any(|tag| *tag.name == **name);
            if !is_known && taken.len() < TAGS_MAX {
                let tag = self.entry(&mut tags, name);
                tag.objects.fetch_add(1, Relaxed);
                taken.push(tag);
            }
        }
        taken
    }

    /// An object with these tags is gone.
    pub(crate) fn give_back(&self, rows: &[Arc<Tag>]) {
        if rows.is_empty() {
            return;
        }
        let mut tags = locked(&self.tags);
        for tag in rows {
            let was = tag.objects.fetch_sub(1, Relaxed);
            debug_assert!(was > 0, "a tag counts each of its objects");
            // A tag that was purged stays until the sweep, for fills that began before.
            let is_needed = tag.removed.load(Relaxed).max(tag.invalidated.load(Relaxed)) > 0;
            if was == 1 && !is_needed {
                self.drop_tag(&mut tags, tag);
            }
        }
    }

    /// Notes a purge, and returns how many objects it concerns. A tag without objects is noted for fills that are under way.
    pub(crate) fn purge(&self, name: &[u8], mode: PurgeMode, purge: u64) -> usize {
        if name.len() > TAG_BYTES_MAX {
            return 0;
        }
        let tag = self.entry(&mut locked(&self.tags), name);
        tag.stamp(mode).fetch_max(purge, Relaxed);
        tag.objects.load(Relaxed)
    }

    /// Purges up to this one are carried out: forgets them, and the tags that no object has.
    pub(crate) fn settle(&self, purge: u64) {
        locked(&self.tags).retain(|tag| {
            for mode in [PurgeMode::Remove, PurgeMode::Invalidate] {
                if tag.purged(mode) <= purge {
                    tag.stamp(mode).store(0, Relaxed);
                }
            }
            let is_needed = tag.removed.load(Relaxed).max(tag.invalidated.load(Relaxed)) > 0;
            let stays = is_needed || tag.objects.load(Relaxed) > 0;
            if !stays {
                self.bytes.fetch_sub(tag.charge(), Relaxed);
            }
            stays
        });
    }

    fn entry(&self, tags: &mut HashTable<Arc<Tag>>, name: &[u8]) -> Arc<Tag> {
        let hash = self.seed.hash(name);
        if let Some(tag) = tags.find(hash, |tag| *tag.name == *name) {
            return tag.clone();
        }
        let tag = Arc::new(Tag {
            name: name.into(),
            hash,
            objects: AtomicUsize::new(0),
            removed: AtomicU64::new(0),
            invalidated: AtomicU64::new(0),
        });
        self.bytes.fetch_add(tag.charge(), Relaxed);
        tags.insert_unique(hash, tag.clone(), |tag| tag.hash);
        tag
    }

    fn drop_tag(&self, tags: &mut HashTable<Arc<Tag>>, tag: &Arc<Tag>) {
        if let Ok(entry) = tags.find_entry(tag.hash, |other| Arc::ptr_eq(other, tag)) {
            self.bytes.fetch_sub(tag.charge(), Relaxed);
            entry.remove();
        }
    }
}
