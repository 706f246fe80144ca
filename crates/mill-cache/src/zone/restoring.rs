//! Objects that come back from a disk.

use std::sync::Arc;
use std::time::Duration;

use super::Zone;
use crate::content::Content;
use crate::filling::{Filling, Head};
use crate::key::Key;
use crate::ledger::Reservation;
use crate::lock::locked;
use crate::object::{Object, Parts, Weigh};

/// What was read of an object.
#[derive(Debug)]
pub struct Restored<'a, M> {
    /// What is stored beside the content.
    pub meta: M,
    /// Its tags.
    pub tags: &'a [&'a [u8]],
    /// All of its content.
    pub content: Arc<[u8]>,
    /// The time of the caller.
    pub now: Duration,
}

impl<M: Weigh> Zone<M> {
    /// Lists the object, as one that is whole; false if a purge since the claim or a limit forbids it. Those that have waited
    /// look again.
    pub(crate) fn restore(&self, filling: &Arc<Filling<M>>, restored: Restored<'_, M>) -> bool {
        let parts = Parts {
            meta: restored.meta,
            content: Arc::new(Content::whole(restored.content)),
            tags: self.tags.take(restored.tags),
            born: filling.born,
            serial: self
                .next_serial
                .fetch_add(1, std::sync::atomic::Ordering::Relaxed),
            now: restored.now,
        };
        let object = Arc::new(Object::new(filling.key(), parts));
        let mut gone = Vec::new();
        let is_listed = {
            let queues = &mut locked(&self.queues);
            self.list_whole(queues, filling, &object, &mut gone, || true)
        };
        if !is_listed {
            self.tags.give_back(object.tag_rows());
        }
        self.end_claim(filling, Head::Failed);
        is_listed
    }

    pub(crate) fn reservation(&self) -> Reservation {
        Reservation::new(self.ledger.clone())
    }

    /// Whether a look-up would find this object: purges that are done have not concerned it.
    pub fn is_stored(&self, object: &Object<M>) -> bool {
        object.is_listed() && self.outlives_purges(object) && !object.is_invalidated()
    }

    /// When an object with this hash of its key was last used, if there is one.
    pub fn last_used(&self, hash: u64) -> Option<Duration> {
        let table = locked(&self.shard(hash).table);
        let used = table.of_hash(hash).map(|object| object.last_used());
        used.max()
    }
}

impl Key<'_> {
    /// Its place in the zone, for [`Zone::last_used`].
    pub fn place(self) -> u64 {
        self.hash()
    }
}
