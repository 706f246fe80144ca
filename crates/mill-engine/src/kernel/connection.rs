//! Receiving, waiting and closing of one slot.

use super::Inner;
use super::buffers::INBOUND_BYTES;
use super::slot::Slot;
use super::transmit::stream_error;
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
        loop {
            let lent = {
                let mut inbound = self.inbound.borrow_mut();
                let is_owner = inbound.owner() == Some(index);
                is_owner.then(|| inbound.unread().len())
            };
            let mut slots = self.slots.borrow_mut();
            let Some(slot) = slots.slot(index) else {
                return Poll::Ready(Err(StreamError::Reset));
            };
            let kept = || slot.unread.as_ref().map_or(0, |bytes| bytes.len());
            let unread = lent.unwrap_or_else(kept);
            let (error, flags) = (slot.error, slot.flags);
            if unread >= least || flags.finished {
                return Poll::Ready(Ok(Readable {
                    unread,
                    finished: flags.finished,
                }));
            }
            // Nothing has arrived, nothing is to be sent, and epoll reports what changes.
            if lent.is_none() && slot.is_silent() && self.gather.borrow().owner() != Some(index) {
                return Poll::Pending;
            }
            drop(slots);
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

    /// Whether nothing but what has arrived can be read, and nothing sent.
    pub(super) fn is_reset(&self, index: u32) -> bool {
        self.register(index, false);
        self.with_slot(index, |slot| slot.flags.hung_up || slot.error.is_some()) != Some(false)
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

/// Waiting and closing.
impl Inner {
    /// Has epoll report the slot from now on.
    pub(super) fn register(&self, index: u32, writable: bool) {
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
}
