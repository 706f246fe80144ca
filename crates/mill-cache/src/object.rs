//! A stored object: immutable, but for what the zone notes about its use and its end.

use std::sync::Arc;
use std::sync::atomic::{
    AtomicU8, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::time::Duration;

use crate::content::{CONTENT_OVERHEAD, Content};
use crate::eviction::INDEX_BYTES;
use crate::key::Key;
use crate::tag::Tag;

/// Memory of metadata beside its own size, which the zone counts.
pub trait Weigh {
    /// Bytes that it has allocated; asked once for each object.
    fn heap_bytes(&self) -> usize;
}

impl Weigh for () {
    fn heap_bytes(&self) -> usize {
        0
    }
}

/// One variant of a key: metadata, content, tags.
#[derive(Debug)]
pub struct Object<M> {
    key: Box<[u8]>,
    hash: u64,
    content: Arc<Content>,
    tags: Option<Box<Tags>>,
    /// The last purge that does not concern it: those before its fill was claimed, and those that it was checked against.
    born: AtomicU64,
    /// Greater for a newer object.
    serial: u64,
    stored_at_s: u32,
    last_used_s: AtomicU32,
    /// Its place in the slab of [`Queues`](crate::eviction::Queues), while it is listed.
    pub(crate) slot: AtomicU32,
    meta_bytes: u32,
    state: AtomicU8,
    pub(crate) queue: AtomicU8,
    uses: AtomicU8,
    meta: M,
}

/// The tags of an object, behind one pointer, because most have none.
#[derive(Debug)]
struct Tags(Box<[Arc<Tag>]>);

/// It is in the table of its shard.
const LISTED: u8 = 1;
/// It is to be validated before it is used again.
const INVALIDATED: u8 = 2;

/// Uses are counted up to this (S3-FIFO: two bits).
const USES_MAX: u8 = 3;

/// Bytes of an object beside key, tags, metadata, and the bytes of content: the object and its content with the counts of
/// their `Arc`s, and its share of the index.
pub const OBJECT_OVERHEAD: u64 =
    (16 + size_of::<Object<()>>() + CONTENT_OVERHEAD) as u64 + INDEX_BYTES;

// With the 16 bytes of counts before the content's bytes: at most 220 for an object of 1 kB.
const _: () = assert!(OBJECT_OVERHEAD + 16 <= 220);

/// What a new object is made of.
#[derive(Debug)]
pub(crate) struct Parts<M> {
    pub(crate) meta: M,
    pub(crate) content: Arc<Content>,
    pub(crate) tags: Vec<Arc<Tag>>,
    pub(crate) born: u64,
    pub(crate) serial: u64,
    pub(crate) now: Duration,
}

impl<M: Weigh> Object<M> {
    pub(crate) fn new(key: Key<'_>, parts: Parts<M>) -> Self {
        let now_s = seconds(parts.now);
        let tags = parts.tags.into_boxed_slice();
        Self {
            key: key.bytes().into(),
            hash: key.hash(),
            content: parts.content,
            tags: (!tags.is_empty()).then(|| Box::new(Tags(tags))),
            born: AtomicU64::new(parts.born),
            serial: parts.serial,
            stored_at_s: now_s,
            last_used_s: AtomicU32::new(now_s),
            slot: AtomicU32::new(0),
            meta_bytes: u32::try_from(parts.meta.heap_bytes()).unwrap_or(u32::MAX),
            state: AtomicU8::new(0),
            queue: AtomicU8::new(0),
            uses: AtomicU8::new(0),
            meta: parts.meta,
        }
    }
}

impl<M> Object<M> {
    /// The bytes of its key.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// What the caller stored beside the content.
    pub fn meta(&self) -> &M {
        &self.meta
    }

    /// Its bytes, which may still arrive.
    pub fn content(&self) -> &Arc<Content> {
        &self.content
    }

    /// Its tags.
    pub fn tags(&self) -> impl Iterator<Item = &[u8]> {
        self.tag_rows().iter().map(|tag| tag.name())
    }

    /// When its fill began, or its metadata was replaced; in whole seconds.
    pub fn stored_at(&self) -> Duration {
        Duration::from_secs(self.stored_at_s.into())
    }

    /// When it was last found by a look-up; in whole seconds.
    pub fn last_used(&self) -> Duration {
        Duration::from_secs(self.last_used_s.load(Relaxed).into())
    }

    /// Whether a look-up could still find it, as it is: not replaced, purged, evicted or invalidated. One load. A purge
    /// by tag or predicate is in effect before it shows here: compare [`Zone::generation`](crate::Zone::generation) too.
    pub fn is_current(&self) -> bool {
        self.state.load(Relaxed) == LISTED
    }

    /// Whether it was purged with [`PurgeMode::Invalidate`](crate::PurgeMode): validate it before it is used again.
    pub fn is_invalidated(&self) -> bool {
        self.state.load(Acquire) & INVALIDATED != 0
    }

    /// The bytes that it counts in the budget: [`OBJECT_OVERHEAD`], key, tags, metadata, and content once it is whole.
    pub fn charge(&self) -> u64 {
        let tags = match self.tag_rows() {
            [] => 0,
            rows => size_of::<Tags>() + size_of_val(rows),
        };
        let own = self.key.len() + size_of::<M>() + tags;
        OBJECT_OVERHEAD + own as u64 + u64::from(self.meta_bytes) + self.content.footprint()
    }

    pub(crate) fn tag_rows(&self) -> &[Arc<Tag>] {
        self.tags.as_ref().map_or(&[], |tags| &tags.0)
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }

    pub(crate) fn born(&self) -> u64 {
        self.born.load(Acquire)
    }

    /// It is not concerned by purges up to this one, or was invalidated by them: what sees this sees that.
    pub(crate) fn outlived(&self, purge: u64) {
        self.born.fetch_max(purge, Release);
    }

    pub(crate) fn is_listed(&self) -> bool {
        self.state.load(Acquire) & LISTED != 0
    }

    pub(crate) fn set_listed(&self, is_listed: bool) {
        if is_listed {
            self.state.fetch_or(LISTED, Release);
        } else {
            self.state.fetch_and(!LISTED, Release);
        }
    }

    pub(crate) fn invalidate(&self) {
        self.state.fetch_or(INVALIDATED, Release);
    }

    /// Counts a use, also one without a look-up, so that what is used much stays. Concurrent uses may count as one, which
    /// changes nothing of note for an eviction.
    pub fn used(&self, now: Duration) {
        let uses = self.uses.load(Relaxed);
        if uses < USES_MAX {
            self.uses.store(uses + 1, Relaxed);
        }
        let now_s = seconds(now);
        if self.last_used_s.load(Relaxed) != now_s {
            self.last_used_s.store(now_s, Relaxed);
        }
    }

    pub(crate) fn uses(&self) -> u8 {
        self.uses.load(Relaxed)
    }

    pub(crate) fn set_uses(&self, uses: u8) {
        self.uses.store(uses, Relaxed);
    }
}

fn seconds(time: Duration) -> u32 {
    u32::try_from(time.as_secs()).unwrap_or(u32::MAX)
}
