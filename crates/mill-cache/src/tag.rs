//! Tags by which objects are purged together.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use hashbrown::HashTable;

use crate::key::Seed;
use crate::limits::{NOTED_TAGS_MAX, TAG_BYTES_MAX, TAGS_MAX};
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

/// Bytes of a tag in the object that has it.
const ROW_BYTES: u64 = size_of::<Arc<Tag>>() as u64;

impl Tag {
    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// The last purge of this mode.
    pub(crate) fn purged(&self, mode: PurgeMode) -> u64 {
        self.stamp(mode).load(Relaxed)
    }

    /// The last purge of any mode; 0 for none.
    fn last_purge(&self) -> u64 {
        let invalidated = self.purged(PurgeMode::Invalidate);
        self.purged(PurgeMode::Remove).max(invalidated)
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
    rows: Mutex<Rows>,
    bytes: AtomicU64,
    /// The last purge by a tag for which there was no row any more.
    unnoted: AtomicU64,
}

#[derive(Debug, Default)]
struct Rows {
    table: HashTable<Arc<Tag>>,
    /// Tags without objects, kept because they were purged.
    noted: usize,
}

impl TagTable {
    pub(crate) fn new(seed: Seed) -> Self {
        Self {
            seed,
            rows: Mutex::new(Rows::default()),
            bytes: AtomicU64::new(0),
            unnoted: AtomicU64::new(0),
        }
    }

    /// Memory of all tags.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Memory that these tags take at most, with the rows of the object that has them.
    pub(crate) fn bytes_of(names: &[&[u8]]) -> u64 {
        let kept = kept(names).take(TAGS_MAX);
        kept.map(|name| TAG_OVERHEAD + ROW_BYTES + name.len() as u64)
            .sum()
    }

    /// The tags of these names, each once; what exceeds a limit is ignored. Each counts one object more.
    pub(crate) fn take(&self, names: &[&[u8]]) -> Vec<Arc<Tag>> {
        let mut taken: Vec<Arc<Tag>> = Vec::new();
        if names.is_empty() {
            return taken;
        }
        let mut rows = locked(&self.rows);
        for name in kept(names) {
            let is_known = taken.iter().any(|tag| *tag.name == *name);
            if !is_known && taken.len() < TAGS_MAX {
                taken.push(self.take_one(&mut rows, name));
            }
        }
        taken
    }

    fn take_one(&self, rows: &mut Rows, name: &[u8]) -> Arc<Tag> {
        let hash = self.seed.hash(name);
        let Some(tag) = find(&rows.table, hash, name) else {
            return self.insert(rows, hash, name, 1);
        };
        if tag.objects.fetch_add(1, Relaxed) == 0 {
            rows.noted -= 1;
        }
        tag.clone()
    }

    /// An object with these tags is gone.
    pub(crate) fn give_back(&self, tags: &[Arc<Tag>]) {
        if tags.is_empty() {
            return;
        }
        let mut rows = locked(&self.rows);
        for tag in tags {
            let was = tag.objects.fetch_sub(1, Relaxed);
            debug_assert!(was > 0, "a tag counts each of its objects");
            if was == 1 {
                self.retire(&mut rows, tag);
            }
        }
    }

    /// No object has the tag any more. One that was purged stays until the sweep, for fills that began before.
    fn retire(&self, rows: &mut Rows, tag: &Arc<Tag>) {
        let purge = tag.last_purge();
        if purge > 0 && rows.noted < NOTED_TAGS_MAX {
            rows.noted += 1;
            return;
        }
        self.unnoted.fetch_max(purge, Relaxed);
        let found = rows
            .table
            .find_entry(tag.hash, |other| Arc::ptr_eq(other, tag));
        debug_assert!(found.is_ok(), "a tag with objects is in the table");
        if let Ok(entry) = found {
            self.bytes.fetch_sub(tag.charge(), Relaxed);
            entry.remove();
        }
    }

    /// Notes a purge, and returns how many objects it concerns. A tag without objects is noted for fills that are under way.
    pub(crate) fn purge(&self, name: &[u8], mode: PurgeMode, purge: u64) -> usize {
        if name.len() > TAG_BYTES_MAX {
            return 0;
        }
        let hash = self.seed.hash(name);
        let mut rows = locked(&self.rows);
        if let Some(tag) = find(&rows.table, hash, name) {
            tag.stamp(mode).fetch_max(purge, Relaxed);
            return tag.objects.load(Relaxed);
        }
        if rows.noted < NOTED_TAGS_MAX {
            let tag = self.insert(&mut rows, hash, name, 0);
            tag.stamp(mode).store(purge, Relaxed);
            rows.noted += 1;
        } else {
            self.unnoted.fetch_max(purge, Relaxed);
        }
        0
    }

    /// Whether a purge after this one may have named any of these tags without being noted on it. To be asked after
    /// they were taken.
    pub(crate) fn missed_purge(&self, tags: &[Arc<Tag>], purge: u64) -> bool {
        !tags.is_empty() && self.unnoted.load(Relaxed) > purge
    }

    /// Purges up to this one are carried out: forgets them, and the tags that no object has.
    pub(crate) fn settle(&self, purge: u64) {
        let mut rows = locked(&self.rows);
        let mut noted = 0;
        rows.table.retain(|tag| {
            for mode in [PurgeMode::Remove, PurgeMode::Invalidate] {
                if tag.purged(mode) <= purge {
                    tag.stamp(mode).store(0, Relaxed);
                }
            }
            let is_used = tag.objects.load(Relaxed) > 0;
            let stays = is_used || tag.last_purge() > 0;
            if !stays {
                self.bytes.fetch_sub(tag.charge(), Relaxed);
            }
            noted += usize::from(stays && !is_used);
            stays
        });
        rows.noted = noted;
    }

    fn insert(&self, rows: &mut Rows, hash: u64, name: &[u8], objects: usize) -> Arc<Tag> {
        let tag = Arc::new(Tag {
            name: name.into(),
            hash,
            objects: AtomicUsize::new(objects),
            removed: AtomicU64::new(0),
            invalidated: AtomicU64::new(0),
        });
        self.bytes.fetch_add(tag.charge(), Relaxed);
        rows.table.insert_unique(hash, tag.clone(), |tag| tag.hash);
        tag
    }
}

/// Names that are not too long.
fn kept<'a>(names: &'a [&'a [u8]]) -> impl Iterator<Item = &'a [u8]> {
    let names = names.iter().copied();
    names.filter(|name| name.len() <= TAG_BYTES_MAX)
}

fn find<'a>(table: &'a HashTable<Arc<Tag>>, hash: u64, name: &[u8]) -> Option<&'a Arc<Tag>> {
    table.find(hash, |tag| *tag.name == *name)
}
