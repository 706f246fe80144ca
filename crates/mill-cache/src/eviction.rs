//! Which object goes when there is no room: S3-FIFO (Yang et al., SOSP 2023), over the whole zone, in bytes.
//!
//! A new object enters the small queue, a tenth of the budget. At its end, what was used twice moves to the main queue,
//! the rest goes and leaves its hash in the ghost; what comes back while its hash is there enters the main queue at once.
//! At the end of the main queue, what was used goes round again with one use less. A hit only counts.
//!
//! One lock for the zone: it is taken for each stored or removed object, never for a hit, and with it the budget is exact
//! and any object may take the room of any other. Nodes lie in a slab, linked by index.

mod ghost;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::object::Object;
use ghost::Ghost;

/// An object's share of the index: a node (16 bytes, the slab grows by an eighth), a place in the table of its shard (8
/// bytes and one of control, at two thirds of its load), and a row of the ghost for nine of ten.
pub(crate) const INDEX_BYTES: u64 = 18 + 14 + 18;

/// Uses at the end of the small queue that lead to the main queue.
const USES_TO_MAIN: u8 = 2;

/// Objects that one eviction looks at; the last of them goes. Without a bound, the first eviction after a time without any
/// would go three times through all objects, with the lock.
const LOOKS_MAX: usize = 256;

/// The small queue's part of the budget is one of so many.
const SMALL_PART: u64 = 10;

/// The end of a list.
const NONE: u32 = u32::MAX;

/// The queue of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueKind {
    /// Being filled; not evicted, and not counted yet.
    Growing,
    Small,
    Main,
}

impl QueueKind {
    const ALL: [Self; 3] = [Self::Growing, Self::Small, Self::Main];

    fn of<M>(object: &Object<M>) -> Self {
        let number = usize::from(object.queue.load(Relaxed));
        Self::ALL.get(number).copied().unwrap_or(Self::Growing)
    }
}

/// A place for an object; a free one leads to the next free one by `next`.
#[derive(Debug)]
struct Node<M> {
    object: Option<Arc<Object<M>>>,
    previous: u32,
    next: u32,
}

const _: () = assert!(size_of::<Node<()>>() == 16);

/// A list from its head, where objects enter, to its tail.
#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
    count: u64,
    bytes: u64,
}

/// All objects of a zone, and the order in which they go.
#[derive(Debug)]
pub(crate) struct Queues<M> {
    nodes: Vec<Node<M>>,
    free: u32,
    lists: [List; 3],
    ghost: Ghost,
    limit_bytes: u64,
}

impl<M> Queues<M> {
    pub(crate) fn new(limit_bytes: u64) -> Self {
        let empty = List {
            head: NONE,
            tail: NONE,
            count: 0,
            bytes: 0,
        };
        Self {
            nodes: Vec::new(),
            free: NONE,
            lists: [empty; 3],
            ghost: Ghost::default(),
            limit_bytes,
        }
    }

    /// Objects, also those that grow.
    pub(crate) fn count(&self) -> u64 {
        self.lists.iter().map(|list| list.count).sum()
    }

    /// Objects that grow.
    pub(crate) fn growing(&self) -> u64 {
        self.lists[QueueKind::Growing as usize].count
    }

    /// The charges of all whole objects.
    pub(crate) fn bytes(&self) -> u64 {
        self.lists.iter().map(|list| list.bytes).sum()
    }

    /// Places of the slab, each of which [`at`](Self::at) shows.
    pub(crate) fn places(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn at(&self, place: usize) -> Option<&Arc<Object<M>>> {
        self.nodes.get(place)?.object.as_ref()
    }

    /// Whether the object, which is listed, is whole and counted.
    pub(crate) fn is_counted(object: &Object<M>) -> bool {
        QueueKind::of(object) != QueueKind::Growing
    }

    /// Puts a new object among those that grow.
    pub(crate) fn enter_growing(&mut self, object: Arc<Object<M>>) {
        self.enter(QueueKind::Growing, object);
    }

    /// Puts a whole object into the queue of its past. The caller has made room.
    pub(crate) fn enter_whole(&mut self, object: Arc<Object<M>>) {
        let is_known = self.ghost.take(object.hash());
        let kind = if is_known {
            QueueKind::Main
        } else {
            QueueKind::Small
        };
        self.enter(kind, object);
    }

    /// Puts `new` where `old` is: same queue, same place, same uses.
    pub(crate) fn replace(&mut self, old: &Object<M>, new: Arc<Object<M>>) {
        let kind = QueueKind::of(old);
        let slot = old.slot.load(Relaxed);
        new.slot.store(slot, Relaxed);
        new.queue.store(kind as u8, Relaxed);
        new.set_uses(old.uses());
        let list = &mut self.lists[kind as usize];
        list.bytes = list.bytes + new.charge() - old.charge();
        self.node(slot).object = Some(new);
    }

    /// Takes a listed object out.
    pub(crate) fn leave(&mut self, object: &Object<M>) {
        let kind = QueueKind::of(object);
        let slot = object.slot.load(Relaxed);
        let (previous, next) = (self.node(slot).previous, self.node(slot).next);
        match previous {
            NONE => self.lists[kind as usize].head = next,
            previous => self.node(previous).next = next,
        }
        match next {
            NONE => self.lists[kind as usize].tail = previous,
            next => self.node(next).previous = previous,
        }
        let list = &mut self.lists[kind as usize];
        list.count -= 1;
        list.bytes -= if kind == QueueKind::Growing {
            0
        } else {
            object.charge()
        };
        let free = self.free;
        let node = self.node(slot);
        node.object = None;
        node.next = free;
        self.free = slot;
    }

    /// The object that goes next, which is still in its queue; the hash of one that was used little is kept. None if there
    /// is no whole object.
    pub(crate) fn victim(&mut self) -> Option<Arc<Object<M>>> {
        let mut looks = 0;
        loop {
            looks += 1;
            let small = self.lists[QueueKind::Small as usize];
            let main_count = self.lists[QueueKind::Main as usize].count;
            let small_is_due = small.bytes >= self.limit_bytes / SMALL_PART;
            let from_small = small.count > 0 && (small_is_due || main_count == 0);
            let kind = if from_small {
                QueueKind::Small
            } else {
                QueueKind::Main
            };
            let object = self.last(kind)?;
            let uses = object.uses();
            if kind == QueueKind::Small && uses < USES_TO_MAIN {
                let room = self.lists[1..].iter().map(|list| list.count).sum::<u64>();
                self.ghost.put(object.hash(), room - room / SMALL_PART);
                return Some(object);
            }
            if kind == QueueKind::Main && uses == 0 || looks == LOOKS_MAX {
                return Some(object);
            }
            if kind == QueueKind::Main {
                object.set_uses(uses - 1);
            }
            self.leave(&object);
            self.enter(QueueKind::Main, object);
        }
    }

    fn last(&self, kind: QueueKind) -> Option<Arc<Object<M>>> {
        let tail = self.lists[kind as usize].tail;
        self.nodes.get(tail as usize)?.object.clone()
    }

    /// The place is the one that was freed last: an object that changes its queue stays where the sweep will find it.
    fn enter(&mut self, kind: QueueKind, object: Arc<Object<M>>) {
        let charge = if kind == QueueKind::Growing {
            0
        } else {
            object.charge()
        };
        let slot = self.free_slot();
        object.slot.store(slot, Relaxed);
        object.queue.store(kind as u8, Relaxed);
        let head = self.lists[kind as usize].head;
        *self.node(slot) = Node {
            object: Some(object),
            previous: NONE,
            next: head,
        };
        match head {
            NONE => self.lists[kind as usize].tail = slot,
            head => self.node(head).previous = slot,
        }
        let list = &mut self.lists[kind as usize];
        list.head = slot;
        list.count += 1;
        list.bytes += charge;
    }

    fn free_slot(&mut self) -> u32 {
        if self.free != NONE {
            let slot = self.free;
            self.free = self.node(slot).next;
            return slot;
        }
        if self.nodes.len() == self.nodes.capacity() {
            self.nodes.reserve_exact(self.nodes.len() / 8 + 64);
        }
        self.nodes.push(Node {
            object: None,
            previous: NONE,
            next: NONE,
        });
        // `Zone::new` bounds the number of objects below this.
        u32::try_from(self.nodes.len() - 1).unwrap_or(NONE)
    }

    fn node(&mut self, slot: u32) -> &mut Node<M> {
        &mut self.nodes[slot as usize]
    }
}
