//! Sending of one slot: gathered, queued, or at once.

use super::Inner;
use super::buffers::GATHER_BYTES;
use super::outbound::{Chunk, Outbound};
use super::slot::Slot;
use crate::files::KernelFile;
use mill_runtime::payload::Payload;
use mill_runtime::stream::{StreamError, WRITE_SOME_BYTES};
use mill_sys::socket;
use std::io::IoSlice;
use std::os::fd::AsFd;
use std::task::Poll;

impl Inner {
    pub(super) fn write(&self, index: u32, payload: Payload<'_, KernelFile>) {
        let state = self.with_slot(index, |slot| (slot.error.is_some(), slot.queued() > 0));
        let (broken, queued) = state.unwrap_or((true, false));
        if broken || payload.is_empty() {
            return;
        }
        match payload {
            Payload::Copy(bytes) if !queued && bytes.len() >= SENT_AT_ONCE_MIN => {
                self.send_at_once(index, bytes, usize::MAX);
            }
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

    pub(super) fn write_some(&self, index: u32, bytes: &[u8]) -> usize {
        let state = self.with_slot(index, |slot| (slot.error.is_some(), slot.queued() > 0));
        match state {
            Some((false, false)) if bytes.len() >= SENT_AT_ONCE_MIN => {
                self.send_at_once(index, bytes, WRITE_SOME_BYTES)
            }
            _ => {
                let some = bytes.get(..WRITE_SOME_BYTES).unwrap_or(bytes);
                self.write(index, Payload::Copy(some));
                some.len()
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
    pub(super) fn send(&self, index: u32) {
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

    /// Sends what the slot has gathered and `bytes` from where they stand, in one call. Of what the socket does not take,
    /// at most `queue_max` bytes are copied. Returns how many of `bytes` are sent or copied.
    fn send_at_once(&self, index: u32, bytes: &[u8], queue_max: usize) -> usize {
        let mut gather = self.gather.borrow_mut();
        let is_gathered = gather.owner() == Some(index);
        let gathered: &[u8] = if is_gathered { &gather.bytes } else { &[] };
        let sent = self.with_slot(index, |slot| {
            slot.check_connected();
            let may_send = slot.flags.may_send && !slot.flags.connecting;
            let pieces = [IoSlice::new(gathered), IoSlice::new(bytes)];
            let sent = if may_send {
                slot.send_pieces(&pieces, false)
            } else {
                0
            };
            slot.error.is_none().then_some(sent)
        });
        // After an error of the stream the payload is dropped.
        let mut taken = bytes.len();
        if let Some(sent) = sent.flatten() {
            taken = sent.saturating_sub(gathered.len());
            let queued = bytes.len().min(taken.saturating_add(queue_max));
            for rest in [gathered.get(sent..), bytes.get(taken..queued)] {
                if let Some(rest @ [_, ..]) = rest {
                    self.queue(index, |outbound| outbound.push_copy(rest));
                }
            }
            taken = queued;
        }
        if is_gathered {
            gather.clear();
        }
        taken
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
    pub(super) fn keep_queue(&self, queue: Box<Outbound>) {
        let mut spare = self.spare_queues.borrow_mut();
        if spare.len() < SPARE_QUEUES_MAX && !queue.is_large() {
            spare.push(queue);
        }
    }
}

/// Payloads from this many bytes on are sent from where they stand. Smaller ones are copied, which costs less than the
/// second call for what follows them.
const SENT_AT_ONCE_MIN: usize = 32 * 1024;

/// Shared payloads up to this many bytes are copied into the gather buffer, so that they are sent in one call with what
/// precedes them; copying 16 KiB costs about a microsecond, a second piece in sendmsg half of that.
const SHARED_COPY_MAX: usize = 16 * 1024;

/// Emptied queues that are kept: this many connections may wait for slow clients without an allocation each, at about
/// 200 bytes a queue, and 1 KiB at most for the head of a response.
const SPARE_QUEUES_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::super::{KernelEngine, KernelOptions};
    use super::*;

    #[test]
    fn emptied_queues_are_kept_up_to_a_bound() {
        let engine = KernelEngine::new(KernelOptions::default()).unwrap();
        for _ in 0..SPARE_QUEUES_MAX + 10 {
            engine.0.keep_queue(Box::default());
        }
        assert_eq!(engine.0.spare_queues.borrow().len(), SPARE_QUEUES_MAX);
    }
}
