//! All slots of a host, and the lists of those that want something.

use super::{Slot, SlotFlags};
use crate::flow::Flow;
use crate::socket::{Ready, SocketId};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use mill_tcp::connection::Connection;

/// Slots, in chunks that never move: growing costs one chunk, not a copy of all.
#[derive(Debug)]
pub(crate) struct Slots<Q> {
    chunks: Vec<Vec<Slot<Q>>>,
    vacant: Vec<u32>,
    /// Slots that ever were in use.
    len: u32,
    /// Those that may have something to send, each once.
    sending: VecDeque<u32>,
    /// Those whose owners are to be told, each once.
    ready: Vec<u32>,
    /// Those taken or given away since the list was emptied last, where that is wanted.
    young: Option<Vec<u32>>,
}

impl<Q> Slots<Q> {
    pub(crate) const fn new() -> Self {
        Self {
            chunks: Vec::new(),
            vacant: Vec::new(),
            len: 0,
            sending: VecDeque::new(),
            ready: Vec::new(),
            young: None,
        }
    }

    /// Lists those that are taken from now on, or no more.
    pub(crate) fn list_young(&mut self, on: bool) {
        self.young = on.then(Vec::new);
    }

    /// Lists a slot that was taken, or given away.
    #[inline]
    pub(crate) fn note_young(&mut self, index: u32) {
        if let Some(young) = &mut self.young {
            young.push(index);
        }
    }

    /// Those that were listed since the last call; some may be vacant again, or be there twice. The list has to be put back.
    #[inline]
    pub(crate) fn take_young(&mut self) -> Vec<u32> {
        self.young.as_mut().map(core::mem::take).unwrap_or_default()
    }

    /// Gives an empty list its memory back.
    #[inline]
    pub(crate) fn put_young(&mut self, list: Vec<u32>) {
        debug_assert!(list.is_empty());
        if let Some(young) = &mut self.young {
            *young = list;
        }
    }

    /// Slots in use.
    pub(crate) fn count(&self) -> u32 {
        self.len - u32::try_from(self.vacant.len()).unwrap_or(self.len)
    }

    #[inline]
    pub(crate) fn at(&self, index: u32) -> Option<&Slot<Q>> {
        self.chunks
            .get((index >> CHUNK_BITS) as usize)?
            .get((index & CHUNK_MASK) as usize)
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, index: u32) -> Option<&mut Slot<Q>> {
        self.chunks
            .get_mut((index >> CHUNK_BITS) as usize)?
            .get_mut((index & CHUNK_MASK) as usize)
    }

    /// The slot of a live identifier.
    #[inline]
    pub(crate) fn of(&self, socket: SocketId) -> Option<&Slot<Q>> {
        let slot = self.at(socket.index)?;
        (slot.generation == socket.generation && slot.flags.has(SlotFlags::IN_USE)).then_some(slot)
    }

    #[inline]
    pub(crate) fn of_mut(&mut self, socket: SocketId) -> Option<&mut Slot<Q>> {
        let slot = self.at_mut(socket.index)?;
        (slot.generation == socket.generation && slot.flags.has(SlotFlags::IN_USE)).then_some(slot)
    }

    /// Takes a slot for a connection.
    pub(crate) fn insert(&mut self, connection: Connection, flow: Flow) -> u32 {
        let index = self.vacant.pop().unwrap_or_else(|| self.add());
        if let Some(slot) = self.at_mut(index) {
            debug_assert!(!slot.flags.has(SlotFlags::IN_USE));
            slot.connection = connection;
            slot.flow = flow;
            slot.flags = SlotFlags(SlotFlags::IN_USE);
            slot.acked = 0;
            slot.next_hop_version = 0;
            slot.mss_agreed = 0;
            slot.listener = super::NO_LISTENER;
            slot.error = None;
        }
        self.note_young(index);
        index
    }

    /// Gives a slot back; its identifier is stale.
    pub(crate) fn remove(&mut self, index: u32) {
        let Some(slot) = self.at_mut(index) else {
            return;
        };
        debug_assert!(slot.flags.has(SlotFlags::IN_USE));
        debug_assert_eq!(slot.reassembly_bytes, 0);
        debug_assert!(slot.queue.is_none() && slot.unread.is_empty());
        slot.connection = Connection::default();
        slot.flags = SlotFlags::default();
        slot.generation = slot.generation.wrapping_add(1);
        self.vacant.push(index);
    }

    /// Puts a slot into the list of those that may have something to send.
    #[inline]
    pub(crate) fn want_transmit(&mut self, index: u32) {
        if let Some(slot) = self.at_mut(index)
            && !slot.flags.has(SlotFlags::SENDING)
        {
            slot.flags.set(SlotFlags::SENDING);
            self.sending.push_back(index);
        }
    }

    /// Takes the first of them out of the list: afterwards it comes back into it, or stops sending.
    #[inline]
    pub(crate) fn next_to_send(&mut self) -> Option<u32> {
        self.sending.pop_front()
    }

    /// It goes on when all others had their turn.
    #[inline]
    pub(crate) fn send_last(&mut self, index: u32) {
        self.sending.push_back(index);
    }

    /// It is the next again.
    pub(crate) fn send_first(&mut self, index: u32) {
        self.sending.push_front(index);
    }

    /// It has nothing more to send for now.
    #[inline]
    pub(crate) fn stop_sending(&mut self, index: u32) -> Option<&mut Slot<Q>> {
        let slot = self.at_mut(index)?;
        slot.flags.clear(SlotFlags::SENDING);
        Some(slot)
    }

    /// Whether there are any that may have something to send.
    pub(crate) fn has_sending(&self) -> bool {
        !self.sending.is_empty()
    }

    /// Puts a slot into the list of those whose owner is to be told.
    #[inline]
    pub(crate) fn mark_ready(&mut self, index: u32) {
        const QUIET: [u16; 3] = [SlotFlags::READY, SlotFlags::ORPHAN, SlotFlags::UNACCEPTED];
        if let Some(slot) = self.at_mut(index)
            && !QUIET.into_iter().any(|bit| slot.flags.has(bit))
        {
            slot.flags.set(SlotFlags::READY);
            self.ready.push(index);
        }
    }

    /// Appends those, and empties the list.
    pub(crate) fn take_ready(&mut self, into: &mut Vec<Ready>) {
        let mut ready = core::mem::take(&mut self.ready);
        for index in ready.drain(..) {
            if let Some(slot) = self.at_mut(index)
                && slot.flags.has(SlotFlags::READY)
            {
                slot.flags.clear(SlotFlags::READY);
                into.push(Ready {
                    token: slot.token,
                    socket: slot.id(index),
                });
            }
        }
        self.ready = ready;
    }

    /// The slots in use, with their indices.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Slot<Q>)> {
        (0..)
            .zip(self.chunks.iter().flatten())
            .filter(|(_, slot)| slot.flags.has(SlotFlags::IN_USE))
    }

    /// The slots in use, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Slot<Q>> {
        let all = self.chunks.iter_mut().flatten();
        all.filter(|slot| slot.flags.has(SlotFlags::IN_USE))
    }

    /// Slots that ever were in use: all indices are below.
    pub(crate) const fn places(&self) -> u32 {
        self.len
    }

    fn add(&mut self) -> u32 {
        let index = self.len;
        if index & CHUNK_MASK == 0 {
            self.chunks.push(Vec::with_capacity(1 << CHUNK_BITS));
        }
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.push(Slot::vacant());
        }
        self.len += 1;
        index
    }
}

/// 1024 slots, 240 KiB, are allocated at once.
const CHUNK_BITS: u32 = 10;
const CHUNK_MASK: u32 = (1 << CHUNK_BITS) - 1;

#[cfg(test)]
mod tests {
    use super::super::NO_FLOW;
    use super::*;
    use crate::queue::ByteQueue;

    #[test]
    fn an_identifier_is_stale_once_its_slot_was_given_back() {
        let mut slots = Slots::<ByteQueue>::new();
        let index = slots.insert(Connection::default(), NO_FLOW);
        let first = slots.at(index).unwrap().id(index);
        assert!(slots.of(first).is_some());
        slots.remove(index);
        assert!(slots.of(first).is_none() && slots.count() == 0);
        assert_eq!(slots.insert(Connection::default(), NO_FLOW), index);
        let second = slots.at(index).unwrap().id(index);
        assert!(slots.of(first).is_none() && slots.of(second).is_some());
        assert_eq!(slots.iter().count(), 1);
    }

    #[test]
    fn a_slot_that_wants_to_send_is_listed_once_until_it_stops() {
        let mut slots = Slots::<ByteQueue>::new();
        let index = slots.insert(Connection::default(), NO_FLOW);
        slots.want_transmit(index);
        slots.want_transmit(index);
        assert_eq!(slots.next_to_send(), Some(index));
        assert!(!slots.has_sending() && slots.at(index).unwrap().is_sending());
        // Its turn is not over.
        slots.want_transmit(index);
        assert_eq!(slots.next_to_send(), None);
        slots.stop_sending(index);
        slots.want_transmit(index);
        assert!(slots.has_sending());
    }

    #[test]
    fn an_owner_is_told_once_and_never_of_what_it_gave_up() {
        let mut slots = Slots::<ByteQueue>::new();
        let index = slots.insert(Connection::default(), NO_FLOW);
        let told = |slots: &mut Slots<ByteQueue>| {
            let mut into = Vec::new();
            slots.take_ready(&mut into);
            into.len()
        };
        slots.mark_ready(index);
        slots.mark_ready(index);
        assert_eq!((told(&mut slots), told(&mut slots)), (1, 0));
        slots.mark_ready(index);
        slots.at_mut(index).unwrap().abandon();
        slots.mark_ready(index);
        assert_eq!(told(&mut slots), 0);
    }

    #[test]
    fn slots_beyond_a_chunk_are_found() {
        let mut slots = Slots::<ByteQueue>::new();
        for index in 0..3000 {
            assert_eq!(slots.insert(Connection::default(), NO_FLOW), index);
            slots.at_mut(index).unwrap().token = u64::from(index);
        }
        for index in 0..3000 {
            assert_eq!(slots.at(index).unwrap().token, u64::from(index));
        }
        assert!(slots.at(3000).is_none() && slots.at(u32::MAX).is_none());
        assert_eq!(slots.iter().map(|(index, _)| index).max(), Some(2999));
    }
}
