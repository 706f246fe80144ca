//! The variants of a key: all of them, and one more with the content of another.

use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::Zone;
use crate::eviction::Queues;
use crate::figures::Departure;
use crate::fill::Arrival;
use crate::filling::Filling;
use crate::key::Key;
use crate::lock::locked;
use crate::object::{Object, Weigh};

impl<M: Weigh> Zone<M> {
    /// All objects of a key, the newest first, which may be invalidated, and whose content may still arrive. Counts no use.
    /// Takes one lock of 64.
    pub fn variants(&self, key: Key<'_>) -> Vec<Arc<Object<M>>> {
        let mut all: Vec<_> = {
            let table = locked(&self.shard(key.hash()).table);
            table.variants(key).cloned().collect()
        };
        all.retain(|object| self.outlives_purges(object));
        all.sort_unstable_by_key(|object| Reverse(object.serial()));
        all
    }

    /// A stored object was validated for other requests than its own.
    pub(crate) fn share(
        &self,
        filling: &Arc<Filling<M>>,
        old: &Arc<Object<M>>,
        arrival: Arrival<'_, M>,
        replaces: impl Fn(&M) -> bool,
    ) -> Arc<Object<M>> {
        let object = self.make(filling, arrival, old.content().clone());
        let mut gone = Vec::new();
        let mut queues = locked(&self.queues);
        if self.list_shared(&mut queues, filling, old, &object, &mut gone) {
            self.counters.stored.fetch_add(1, Relaxed);
            self.make_place(&mut queues, &object, old, replaces, &mut gone);
        } else {
            self.tags.give_back(object.tag_rows());
        }
        drop(queues);
        self.end_validation(filling, old, &object);
        object
    }

    /// Lists the object, as one that is whole, beside the old one; false if that is gone, or a purge or a limit forbids it.
    fn list_shared(
        &self,
        queues: &mut Queues<M>,
        filling: &Arc<Filling<M>>,
        old: &Arc<Object<M>>,
        object: &Arc<Object<M>>,
        gone: &mut Vec<Arc<Object<M>>>,
    ) -> bool {
        let is_right = old.key() == object.key() && old.content().is_whole();
        is_right
            && self.list_whole(queues, filling, object, gone, || {
                old.is_listed() && self.outlives_purges(old)
            })
    }

    /// Removes the variants that the new one replaces, and the oldest ones beyond the limit.
    fn make_place(
        &self,
        queues: &mut Queues<M>,
        new: &Arc<Object<M>>,
        old: &Arc<Object<M>>,
        replaces: impl Fn(&M) -> bool,
        gone: &mut Vec<Arc<Object<M>>>,
    ) {
        let mut others: Vec<_> = {
            let table = locked(&self.shard(new.hash()).table);
            let all = table.variants(Key::known(new.hash(), new.key())).cloned();
            all.filter(|object| !Arc::ptr_eq(object, new) && !Arc::ptr_eq(object, old))
                .collect()
        };
        others.sort_unstable_by_key(|object| object.serial());
        let beyond = (others.len() + 2).saturating_sub(self.limits.variants);
        for (index, object) in others.into_iter().enumerate() {
            if index < beyond || replaces(object.meta()) {
                self.unlist(queues, &object, Departure::Replaced);
                gone.push(object);
            }
        }
    }
}
