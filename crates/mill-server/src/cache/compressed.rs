//! Compressed contents of answers that are kept: made once for all workers, and kept beside the answers, in the same zone.
//!
//! Each is an object of its own, under a key that goes with the answer's: it counts in the zone's limits, has the answer's tags, and
//! is purged with it. It is used only for the very content that it was made of; when that is gone, it is replaced or evicted.

use super::{CompressedOf, Kept, StoredAnswer, now};
use crate::local::Local;
use crate::request::Request;
use mill_cache::{Arrival, Claim, Zone};
use mill_runtime::engine::Engine;
use std::sync::Arc;

/// Under what the compressed contents of a key's answers are kept. No text of a request has this byte.
pub(crate) fn key_of(key: &[u8]) -> Vec<u8> {
    [key, b"\0gzip"].concat()
}

/// An answer whose content is these bytes, and that its zone has, if the request got one.
pub(crate) struct Original<'a> {
    kept: &'a Arc<Kept>,
    store: &'a Arc<Zone<StoredAnswer>>,
    key: Vec<u8>,
    level: u8,
}

impl<'a> Original<'a> {
    /// Of the answer that the request was found, if these are all the bytes that it has.
    pub(crate) fn of(request: &'a Request, bytes: &Arc<[u8]>, level: u8) -> Option<Self> {
        let note = request.cached.as_ref()?;
        let kept = note.found.as_ref()?;
        let is_its = kept
            .content()
            .in_one()
            .is_some_and(|all| Arc::ptr_eq(all, bytes));
        (is_its && kept.is_current()).then_some(())?;
        Some(Self {
            kept,
            store: note.zone.known()?,
            key: key_of(kept.key()),
            level,
        })
    }

    /// Its compressed content, if a worker has made that.
    pub(crate) fn find<E: Engine>(&self, local: &Local<E>) -> Option<Arc<[u8]>> {
        let key = self.store.key(&self.key).ok()?;
        let found = self.store.find(key, |stored| self.is_made_of(stored))?;
        found.used(now(local));
        found.content().in_one().cloned()
    }

    /// Keeps it, in the zone's memory from now on; `None` where that does not take it, or another worker is about to.
    pub(crate) fn keep<E: Engine>(&self, bytes: &[u8], local: &Local<E>) -> Option<Arc<[u8]>> {
        let key = self.store.key(&self.key).ok()?;
        let Claim::Fill(ticket) = self.store.claim(key, now(local)) else {
            return None;
        };
        let tags: Vec<&[u8]> = self.kept.tags().collect();
        let made_of = CompressedOf {
            content: Arc::downgrade(self.kept.content()),
            level: self.level,
        };
        let arrival = Arrival {
            meta: self.kept.meta().of_compressed(made_of),
            tags: &tags,
            length: Some(bytes.len() as u64),
            length_max: u64::MAX,
            now: now(local),
        };
        let is_replaced = |old: &StoredAnswer| self.is_made_of(old) || is_useless(old);
        let (mut fill, reader) = ticket.start(arrival, is_replaced);
        drop(reader);
        fill.append(bytes);
        let kept = fill.finish().ok()??;
        kept.content().in_one().cloned()
    }

    fn is_made_of(&self, stored: &StoredAnswer) -> bool {
        stored.compressed.as_ref().is_some_and(|compressed| {
            let own = Arc::as_ptr(self.kept.content());
            compressed.level == self.level && compressed.content.as_ptr() == own
        })
    }
}

/// Nothing has the content any more that it was made of.
fn is_useless(stored: &StoredAnswer) -> bool {
    let compressed = stored.compressed.as_ref();
    compressed.is_none_or(|compressed| compressed.content.strong_count() == 0)
}
