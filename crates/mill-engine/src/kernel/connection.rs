//! Receiving, sending and closing of one slot.

use super::Inner;
use super::buffers::{GATHER_BYTES, INBOUND_BYTES};
use super::outbound::{Chunk, Outbound};
use super::slot::{Flags, Slot};
use super::transmit::stream_error;
use crate::files::KernelFile;
use mill_runtime::payload::Payload;
use mill_runtime::stream::{Readable, StreamError};
use mill_sys::epoll::Interest;
use mill_sys::socket;
use std::os::fd::AsFd;
use std::task::Poll;

/// Receiving.
impl Inner {
    pub(super) fn poll_readable(
        &self,
        index: u32,
        least: usize,
    ) -> Poll<Result<Readable, StreamError>> {
        if self.is_silent(index) {
            return Poll::Pending;
        }
        loop {
            let unread = self.unread(index);
            let state = self.with_slot(index, |slot| (slot.error, slot.flags));
            let (error, flags) = state.unwrap_or((Some(StreamError::Reset), Flags::default()));
            if unread >= least || flags.finished {
                return Poll::Ready(Ok(Readable {
                    unread,
                    finished: flags.finished,
                }));
            }
            // After a failed connect only the error counts; the kernel would report an end of stream as well.
            let failed_to_connect = flags.connecting && error.is_some();
            if flags.may_receive && !failed_to_connect {
                self.receive(index);
                continue;
            }
            if let Some(error) = error {
                return Poll::Ready(Err(error));
            }
            self.flush(index);
            // Sending may have failed just now, which no other event would report.
            if self.with_slot(index, |slot| slot.error.is_none()) == Some(true) {
                self.register(index, false);
                return Poll::Pending;
            }
        }
    }

    /// Nothing has arrived, nothing is to be sent, and epoll reports what changes.
    fn is_silent(&self, index: u32) -> bool {
        self.inbound.borrow().owner() != Some(index)
            && self.gather.borrow().owner() != Some(index)
            && self.with_slot(index, |slot| slot.is_silent()) == Some(true)
    }

    pub(super) fn read<R>(&self, index: u32, take: impl FnOnce(&mut [u8]) -> (usize, R)) -> R {
        let mut inbound = self.inbound.borrow_mut();
        if inbound.owner() == Some(index) {
            let (consumed, result) = take(inbound.unread());
            inbound.consume(consumed);
            return result;
        }
        // Taken out of its slot, so that `take` may use other slots.
        let kept = self
            .slots
            .borrow_mut()
            .slot(index)
            .and_then(|slot| slot.unread.take());
        let Some(mut kept) = kept else {
            return take(&mut []).1;
        };
        let (consumed, result) = take(&mut kept);
        if consumed < kept.len() {
            kept.drain(..consumed);
            if let Some(slot) = self.slots.borrow_mut().slot(index) {
                slot.unread = Some(kept);
            }
        }
        result
    }

    /// Moves what a task left unread in the shared buffer to its slot.
    pub(super) fn keep_unread(&self) {
        let mut inbound = self.inbound.borrow_mut();
        let Some(owner) = inbound.owner() else { return };
        if let Some(slot) = self.slots.borrow_mut().slot(owner) {
            slot.unread
                .get_or_insert_default()
                .extend_from_slice(inbound.unread());
        }
        inbound.clear();
    }

    fn unread(&self, index: u32) -> usize {
        let mut inbound = self.inbound.borrow_mut();
        if inbound.owner() == Some(index) {
            return inbound.unread().len();
        }
        let mut slots = self.slots.borrow_mut();
        slots
            .slot(index)
            .and_then(|slot| slot.unread.as_ref())
            .map_or(0, |bytes| bytes.len())
    }

    /// Receives once, into the shared buffer, or behind bytes that the slot still holds.
    fn receive(&self, index: u32) {
        self.keep_unread();
        let mut slots = self.slots.borrow_mut();
        let Some(slot) = slots.slot(index) else {
            return;
        };
        if let Some(kept) = &mut slot.unread {
            let start = kept.len();
            kept.resize(start + RECEIVE_BEHIND_BYTES, 0);
            let space = kept.get_mut(start..).unwrap_or_default();
            let received = socket::receive(slot.descriptor.as_fd(), space);
            let count = slot.on_received(received, RECEIVE_BEHIND_BYTES);
            if let Some(kept) = &mut slot.unread {
                kept.truncate(start + count);
            }
            return;
        }
        let mut inbound = self.inbound.borrow_mut();
        let received = socket::receive(slot.descriptor.as_fd(), inbound.space());
        let count = slot.on_received(received, INBOUND_BYTES);
        inbound.fill(index, count);
    }
}

/// Sending.
impl Inner {
    pub(super) fn write(&self, index: u32, payload: Payload<'_, KernelFile>) {
        let state = self.with_slot(index, |slot| (slot.error.is_some(), slot.queued() > 0));
        let (broken, queued) = state.unwrap_or((true, false));
        if broken || payload.is_empty() {
            return;
        }
        match payload {
            Payload::Copy(bytes) if !queued => self.gather(index, bytes),
            Payload::Shared(bytes, range)
                if !queued
                    && range.len() <= SHARED_COPY_MAX
                    && bytes.get(range.clone()).is_some() =>
            {
                self.gather(index, bytes.get(range).unwrap_or_default());
            }
            Payload::Copy(bytes) => self.queue(index, |outbound| outbound.push_copy(bytes)),
            Payload::Shared(bytes, range) if bytes.get(range.clone()).is_some() => {
                self.queue(index, |outbound| outbound.push(Chunk::Shared(bytes, range)));
            }
            Payload::Shared(..) => {
                // The promised bytes do not exist, as when a file is too short.
                self.with_slot(index, Slot::truncate);
            }
            Payload::File { file, offset, len } => {
                self.queue(index, |outbound| {
                    outbound.push(Chunk::File { file, offset, len })
                });
            }
        }
    }

    pub(super) fn poll_drained(&self, index: u32, most: u64) -> Poll<Result<(), StreamError>> {
        let has_gathered = self.gather.borrow().owner() == Some(index);
        if !has_gathered && self.with_slot(index, |slot| slot.is_drained()) == Some(true) {
            return Poll::Ready(Ok(()));
        }
        self.flush(index);
        let queued = self.queued(index);
        let state = self.with_slot(index, |slot| (slot.error, slot.flags));
        let Some((error, flags)) = state else {
            return Poll::Ready(Err(StreamError::Reset));
        };
        if let Some(error) = error {
            return Poll::Ready(Err(error));
        }
        if !flags.connecting && queued <= most {
            return Poll::Ready(Ok(()));
        }
        if flags.connecting {
            self.register(index, true);
        }
        Poll::Pending
    }

    pub(super) fn queued(&self, index: u32) -> u64 {
        let gathered = self.gather.borrow().len_of(index) as u64;
        gathered + self.with_slot(index, |slot| slot.queued()).unwrap_or(0)
    }

    /// Sends the gathered bytes, whichever slot wrote them.
    pub(super) fn flush_gathered(&self) {
        let owner = self.gather.borrow().owner();
        if let Some(owner) = owner {
            self.flush(owner);
        }
    }

    /// Flushes the slots that queued something in this turn and were not flushed since.
    pub(super) fn flush_unsent(&self) {
        // Flushing queues nothing, so the list is not touched meanwhile.
        let mut unsent = self.unsent.take();
        for index in unsent.drain(..) {
            let due = self.with_slot(index, |slot| std::mem::take(&mut slot.flags.unsent));
            if due == Some(true) {
                self.flush(index);
            }
        }
        self.unsent.replace(unsent);
    }

    /// Sends what `index` has written, as far as its socket accepts it, and arranges that the rest is sent later,
    /// whatever its task waits for.
    pub(super) fn flush(&self, index: u32) {
        self.send(index);
        let rest = self.with_slot(index, |slot| {
            let waits = slot.outbound.is_some() || slot.flags.shutdown_due;
            (waits && slot.error.is_none(), slot.flags.may_send)
        });
        match rest {
            // It has used up its share of this turn and continues in the next.
            Some((true, true)) => {
                self.with_slot(index, |slot| slot.flags.share_used = true);
                self.resume_next_turn(index);
            }
            Some((true, false)) => self.register(index, true),
            _ => {}
        }
    }

    /// Has a slot reported in the next turn without epoll.
    pub(super) fn resume_next_turn(&self, index: u32) {
        let mut slots = self.slots.borrow_mut();
        let token = slots.token(index);
        if let Some(slot) = slots.slot(index)
            && !slot.flags.resumed
        {
            slot.flags.resumed = true;
            self.resumed.borrow_mut().push(token);
        }
    }

    /// Sends what `index` has written, as far as its socket and its share of the turn allow.
    fn send(&self, index: u32) {
        let mut gather = self.gather.borrow_mut();
        let gathered: &[u8] = if gather.owner() == Some(index) {
            &gather.bytes
        } else {
            &[]
        };
        let mut slots = self.slots.borrow_mut();
        let Some(slot) = slots.slot(index) else {
            return;
        };
        slot.check_connected();
        if slot.outbound.is_none() {
            self.flush_memory(slot, gathered);
        } else if !slot.flags.share_used {
            slot.send_queue(gathered);
        } else {
            debug_assert!(gathered.is_empty(), "nothing is gathered behind a queue");
        }
        if gather.owner() == Some(index) {
            gather.clear();
        }
        if let Some(empty) = slot.outbound.take_if(|outbound| outbound.is_empty()) {
            self.keep_queue(empty);
        }
        slot.finish_writing();
    }

    /// The common case: a response in memory, nothing before it.
    fn flush_memory(&self, slot: &mut Slot, mut bytes: &[u8]) {
        while !bytes.is_empty() && slot.flags.may_send && slot.error.is_none() {
            let sent = socket::send(slot.descriptor.as_fd(), bytes, false);
            let count = slot.on_sent(sent, bytes.len() as u64);
            bytes = bytes.get(count..).unwrap_or_default();
        }
        if !bytes.is_empty() && slot.error.is_none() {
            slot.outbound
                .get_or_insert_with(|| self.spare_queue())
                .push_copy(bytes);
        }
    }

    fn gather(&self, index: u32, bytes: &[u8]) {
        let mut gather = self.gather.borrow_mut();
        let fits = gather.owner().is_none_or(|owner| owner == index);
        if fits && gather.has_room(bytes.len()) {
            gather.append(index, bytes);
            return;
        }
        let owner = gather.owner();
        drop(gather);
        if let Some(owner) = owner {
            self.flush(owner);
        }
        if bytes.len() <= GATHER_BYTES && self.with_slot(index, |slot| slot.queued()) == Some(0) {
            self.gather.borrow_mut().append(index, bytes);
        } else {
            self.queue(index, |outbound| outbound.push_copy(bytes));
        }
    }

    /// Appends to the slot's queue; what the slot has gathered goes before it.
    fn queue(&self, index: u32, push: impl FnOnce(&mut Outbound)) {
        let mut slots = self.slots.borrow_mut();
        let Some(slot) = slots.slot(index) else {
            return;
        };
        if slot.outbound.is_none() {
            slot.outbound = Some(self.spare_queue());
        }
        if let Some(outbound) = &mut slot.outbound {
            push(outbound);
        }
        if !slot.flags.unsent {
            slot.flags.unsent = true;
            self.unsent.borrow_mut().push(index);
        }
    }

    fn spare_queue(&self) -> Box<Outbound> {
        self.spare_queues.borrow_mut().pop().unwrap_or_default()
    }

    /// Keeps an emptied queue for the next connection that needs one.
    fn keep_queue(&self, queue: Box<Outbound>) {
        let mut spare = self.spare_queues.borrow_mut();
        if spare.len() < SPARE_QUEUES_MAX && !queue.is_large() {
            spare.push(queue);
        }
    }
}

/// Waiting and closing.
impl Inner {
    /// Has epoll report the slot from now on.
    fn register(&self, index: u32, writable: bool) {
        let mut slots = self.slots.borrow_mut();
        let token = slots.token(index);
        let Some(slot) = slots.slot(index) else {
            return;
        };
        let flags = slot.flags;
        if flags.registered && (flags.registered_writable || !writable) {
            return;
        }
        let interest = Interest {
            readable: true,
            writable,
            edge: true,
            exclusive: false,
        };
        let result = if flags.registered {
            self.epoll.modify(slot.descriptor.as_fd(), interest, token)
        } else {
            self.epoll.add(slot.descriptor.as_fd(), interest, token)
        };
        slot.flags.registered = true;
        slot.flags.registered_writable |= writable;
        if let Err(error) = result {
            // Out of epoll watches or memory: no event would ever be reported, so the connection ends here, with an
            // error for its task.
            slot.error = Some(stream_error(&error));
            drop(slots);
            self.resume_next_turn(index);
        }
    }

    pub(super) fn shutdown(&self, index: u32) {
        self.with_slot(index, |slot| slot.flags.shutdown_due = true);
        self.flush(index);
    }

    pub(super) fn close(&self, index: u32) {
        // There is no next turn for it: what the socket accepts is sent, even beyond this turn's share.
        self.with_slot(index, |slot| slot.flags.share_used = false);
        self.send(index);
        {
            let mut inbound = self.inbound.borrow_mut();
            if inbound.owner() == Some(index) {
                inbound.clear();
            }
        }
        let slot = self.slots.borrow_mut().remove(index);
        if let Some(mut outbound) = slot.and_then(|slot| slot.outbound) {
            outbound.clear();
            self.keep_queue(outbound);
        }
    }

    /// `None` only for a handle whose slot is gone, which cannot happen for a live handle.
    pub(super) fn with_slot<R>(&self, index: u32, f: impl FnOnce(&mut Slot) -> R) -> Option<R> {
        self.slots.borrow_mut().slot(index).map(f)
    }
}

/// Room for one receive behind bytes that are kept already, in bytes: large enough for the rest of a head.
const RECEIVE_BEHIND_BYTES: usize = 16 * 1024;

/// Shared payloads up to this many bytes are copied into the gather buffer, so that they are sent in one call with what
/// precedes them; copying 16 KiB costs about a microsecond, a second piece in sendmsg half of that.
const SHARED_COPY_MAX: usize = 16 * 1024;

/// Emptied queues that are kept: this many connections may wait for slow clients without an allocation each, at about
/// 200 bytes a queue.
const SPARE_QUEUES_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::super::{KernelEngine, KernelOptions};
    use super::*;
    use mill_runtime::engine::{ConnectOptions, Engine, Events, Park};
    use mill_runtime::stream::Stream;
    use mill_runtime::tasks::TaskId;

    /// The slot is in the epoll set already, so epoll_ctl fails as it does without memory.
    #[test]
    fn a_stream_that_cannot_be_registered_fails_with_an_error_for_its_task() {
        let engine = KernelEngine::new(KernelOptions::default()).unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let target = listener.local_addr().unwrap().into();
        let stream = engine
            .connect(&target, &ConnectOptions::default(), TaskId::NONE)
            .unwrap();
        let nothing = Interest {
            readable: false,
            writable: false,
            edge: true,
            exclusive: false,
        };
        let inner = &engine.0;
        let other_token = inner.slots.borrow().token(7);
        inner.with_slot(0, |slot| {
            let descriptor = slot.descriptor.as_fd();
            inner.epoll.add(descriptor, nothing, other_token).unwrap();
        });
        assert!(stream.poll_readable(1).is_pending());
        let mut events = Events::default();
        engine.poll(Park::Forever, &mut events);
        assert_eq!(events.ready, [TaskId::NONE]);
        assert!(matches!(
            stream.poll_readable(1),
            Poll::Ready(Err(StreamError::Other(_)))
        ));
    }

    #[test]
    fn emptied_queues_are_kept_up_to_a_bound() {
        let engine = KernelEngine::new(KernelOptions::default()).unwrap();
        for _ in 0..SPARE_QUEUES_MAX + 10 {
            engine.0.keep_queue(Box::default());
        }
        assert_eq!(engine.0.spare_queues.borrow().len(), SPARE_QUEUES_MAX);
    }
}
