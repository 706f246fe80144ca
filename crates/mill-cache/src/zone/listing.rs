//! How objects come into the table and the queues, and how they leave.

use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::{Arc, Weak};

use super::Zone;
use crate::content::{Content, ContentReader, ContentWriter};
use crate::eviction::Queues;
use crate::figures::Departure;
use crate::fill::{Arrival, Fill};
use crate::filling::{Filling, Head};
use crate::ledger::Reservation;
use crate::lock::locked;
use crate::object::{Object, Parts, Weigh};
use crate::tag::TagTable;

impl<M: Weigh> Zone<M> {
    /// The head of an answer has come.
    pub(crate) fn start(
        self: Arc<Self>,
        filling: &Arc<Filling<M>>,
        arrival: Arrival<'_, M>,
        replaces: impl Fn(&M) -> bool,
    ) -> (Fill<M>, ContentReader) {
        let length = arrival.length;
        let mut reservation = Reservation::new(self.ledger.clone());
        let most = self.limits.object_bytes.min(self.limits.bytes);
        let limit = most.min(arrival.length_max);
        // What the object counts beside its content counts among the fills until it is whole.
        let meta = arrival.meta.heap_bytes() + size_of::<M>() + filling.key.len();
        let own = crate::OBJECT_OVERHEAD + meta as u64 + TagTable::bytes_of(arrival.tags);
        let fits = length.is_none_or(|length| length <= limit) && reservation.extend(own);
        let (writer, reader) = ContentWriter::new(length, limit, reservation);
        let tags = if fits { arrival.tags } else { &[] };
        let arrival = Arrival { tags, ..arrival };
        let object = self.make(filling, arrival, writer.content().clone());
        let listed = if fits {
            self.list_growing(filling, &object, replaces)
        } else {
            None
        };
        let head = match &listed {
            Some(_) => Head::Stored(object.clone()),
            None => {
                let head = self.head_of_unlisted(filling, &object);
                self.count_pass();
                self.tags.give_back(object.tag_rows());
                writer.pass();
                head
            }
        };
        self.end_claim(filling, head);
        (Fill::new(self, object, writer, listed), reader)
    }

    pub(super) fn make(
        &self,
        filling: &Filling<M>,
        arrival: Arrival<'_, M>,
        content: Arc<Content>,
    ) -> Arc<Object<M>> {
        let parts = Parts {
            meta: arrival.meta,
            content,
            tags: self.tags.take(arrival.tags),
            born: filling.born,
            serial: self.next_serial.fetch_add(1, Relaxed),
            now: arrival.now,
        };
        Arc::new(Object::new(filling.key(), parts))
    }

    /// Lists an object that grows, and returns the variants that it will replace; none if a purge concerns it.
    fn list_growing(
        &self,
        filling: &Arc<Filling<M>>,
        object: &Arc<Object<M>>,
        replaces: impl Fn(&M) -> bool,
    ) -> Option<Vec<Weak<Object<M>>>> {
        let mut gone = Vec::new();
        let mut queues = locked(&self.queues);
        self.make_room(&mut queues, 0, 1, &mut gone);
        if queues.count() >= self.limits.keys {
            // All of them grow.
            return None;
        }
        let mut table = locked(&self.shard(filling.hash).table);
        if !self.may_list(filling, object) {
            return None;
        }
        let mut variants: Vec<_> = table.variants(filling.key()).cloned().collect();
        queues.enter_growing(object.clone());
        table.insert(object.clone());
        table.end(filling);
        drop(table);
        object.set_listed(true);
        variants.sort_unstable_by_key(|variant| variant.serial());
        while variants.len() >= self.limits.variants {
            let oldest = variants.remove(0);
            self.unlist(&mut queues, &oldest, Departure::Replaced);
            gone.push(oldest);
        }
        variants.retain(|variant| replaces(variant.meta()));
        let replaced = variants.iter().map(Arc::downgrade).collect();
        gone.append(&mut variants);
        Some(replaced)
    }

    /// What those that wait are told of what is not listed: where a purge forbids it, one of them is to ask again for all, for
    /// only this answer is from before the purge.
    pub(super) fn head_of_unlisted(&self, filling: &Filling<M>, object: &Object<M>) -> Head<M> {
        match self.may_list(filling, object) {
            true => Head::NotStored,
            false => Head::Failed,
        }
    }

    /// Whether no purge concerns what the claim has brought. Asked under the lock of its shard, under which the claim ends
    /// too: a request that comes after a purge finds either no claim to join, or one that sees the purge here.
    pub(super) fn may_list(&self, filling: &Filling<M>, object: &Object<M>) -> bool {
        !filling.is_purged.load(Acquire)
            && !self.tags.missed_purge(object.tag_rows(), filling.born)
            && self.outlives_purges(object)
    }

    /// The content is whole: counts it, and removes what it replaces. False if it was purged, or is too large in all.
    pub(crate) fn complete(&self, object: &Arc<Object<M>>, replaced: &[Weak<Object<M>>]) -> bool {
        let mut gone = Vec::new();
        let mut queues = locked(&self.queues);
        if !object.is_listed() {
            return false;
        }
        if !self.outlives_purges(object) {
            // Not left to the sweep: what is told to be stored may be sent without a look-up.
            self.unlist(&mut queues, object, Departure::Purged);
            return false;
        }
        if object.charge() + self.tags.bytes() > self.limits.bytes {
            self.unlist(&mut queues, object, Departure::Unfinished);
            return false;
        }
        for old in replaced.iter().filter_map(Weak::upgrade) {
            self.unlist(&mut queues, &old, Departure::Replaced);
            gone.push(old);
        }
        self.make_room(&mut queues, object.charge(), 0, &mut gone);
        queues.leave(object);
        queues.enter_whole(object.clone());
        self.counters.stored.fetch_add(1, Relaxed);
        true
    }

    /// A stored object was validated.
    pub(crate) fn refresh(
        &self,
        filling: &Arc<Filling<M>>,
        old: &Arc<Object<M>>,
        arrival: Arrival<'_, M>,
    ) -> Arc<Object<M>> {
        let object = self.make(filling, arrival, old.content().clone());
        let mut gone = Vec::new();
        let mut queues = locked(&self.queues);
        let is_right = old.key() == object.key() && old.content().is_whole();
        let fits = object.charge() + self.tags.bytes() <= self.limits.bytes;
        if is_right && fits && self.list_refreshed(&mut queues, filling, old, &object) {
            self.tags.give_back(old.tag_rows());
            self.counters.count(Departure::Replaced);
            self.counters.stored.fetch_add(1, Relaxed);
            // The new metadata may be larger.
            self.make_room(&mut queues, 0, 0, &mut gone);
        } else {
            self.tags.give_back(object.tag_rows());
        }
        drop(queues);
        self.end_validation(filling, old, &object);
        object
    }

    /// The claim has come to an object with the content of an old one.
    pub(super) fn end_validation(
        &self,
        filling: &Arc<Filling<M>>,
        old: &Object<M>,
        object: &Arc<Object<M>>,
    ) {
        let head = if object.is_listed() {
            Head::Stored(object.clone())
        } else if self.outlives_purges(old) {
            self.head_of_unlisted(filling, object)
        } else {
            Head::Failed
        };
        self.end_claim(filling, head);
    }

    /// Lists an object that is whole; false if it has no room, or a purge forbids it, or `may_be` does, which is asked under
    /// the lock of its shard.
    pub(super) fn list_whole(
        &self,
        queues: &mut Queues<M>,
        filling: &Arc<Filling<M>>,
        object: &Arc<Object<M>>,
        gone: &mut Vec<Arc<Object<M>>>,
        may_be: impl FnOnce() -> bool,
    ) -> bool {
        if object.charge() + self.tags.bytes() > self.limits.bytes {
            return false;
        }
        self.make_room(queues, object.charge(), 1, gone);
        if queues.count() >= self.limits.keys {
            return false;
        }
        let mut table = locked(&self.shard(filling.hash).table);
        if !may_be() || !self.may_list(filling, object) {
            return false;
        }
        queues.enter_whole(object.clone());
        table.insert(object.clone());
        table.end(filling);
        drop(table);
        object.set_listed(true);
        true
    }

    /// Puts the object where the old one is; false if a purge concerns either of them, or the old one is gone, also by a
    /// purge of which nothing is known any more, or its own fill is about to count it.
    fn list_refreshed(
        &self,
        queues: &mut Queues<M>,
        filling: &Arc<Filling<M>>,
        old: &Arc<Object<M>>,
        object: &Arc<Object<M>>,
    ) -> bool {
        let mut table = locked(&self.shard(filling.hash).table);
        let is_there = table
            .variants(filling.key())
            .any(|variant| Arc::ptr_eq(variant, old))
            && Queues::is_counted(old);
        if !is_there || !self.outlives_purges(old) || !self.may_list(filling, object) {
            return false;
        }
        table.remove(old);
        table.insert(object.clone());
        table.end(filling);
        drop(table);
        queues.replace(old, object.clone());
        old.set_listed(false);
        object.set_listed(true);
        true
    }

    /// Evicts until there is room for so many bytes and objects more.
    pub(super) fn make_room(
        &self,
        queues: &mut Queues<M>,
        bytes: u64,
        objects: u64,
        gone: &mut Vec<Arc<Object<M>>>,
    ) {
        while queues.bytes() + self.tags.bytes() + bytes > self.limits.bytes
            || queues.count() + objects > self.limits.keys
        {
            let Some(victim) = queues.victim() else {
                return;
            };
            self.unlist(queues, &victim, Departure::Capacity);
            // Freed by the caller after the lock.
            gone.push(victim);
        }
    }

    /// Takes the object out, and returns true, if it is in.
    pub(super) fn unlist(
        &self,
        queues: &mut Queues<M>,
        object: &Arc<Object<M>>,
        departure: Departure,
    ) -> bool {
        if !object.is_listed() {
            return false;
        }
        object.set_listed(false);
        queues.leave(object);
        locked(&self.shard(object.hash()).table).remove(object);
        self.tags.give_back(object.tag_rows());
        self.counters.count(departure);
        true
    }

    pub(super) fn remove_one(&self, object: &Arc<Object<M>>, departure: Departure) {
        self.unlist(&mut locked(&self.queues), object, departure);
    }

    /// The content of a listed object failed, or is not to be stored.
    pub(crate) fn abandon(&self, object: &Arc<Object<M>>) {
        self.remove_one(object, Departure::Unfinished);
    }

    /// The claim has come to this; only its first end counts.
    pub(crate) fn end_claim(&self, filling: &Arc<Filling<M>>, head: Head<M>) {
        locked(&self.shard(filling.hash).table).end(filling);
        filling.settle(head);
    }
}
