//! Receiving, sending and closing of one slot.

use super::Inner;
use super::buffers::{GATHER_BYTES, INBOUND_BYTES};
use super::outbound::{Chunk, Outbound, PIECES};
use super::slot::{Flags, Slot};
use crate::files::KernelFile;
use mill_runtime::payload::Payload;
use mill_runtime::stream::{Readable, StreamError};
use mill_sys::epoll::Interest;
use mill_sys::socket;
use std::io::{self, IoSlice};
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
            let unread = self.unread(index);
            let state = self.with_slot(index, |slot| (slot.error, slot.flags));
            let (error, flags) = state.unwrap_or((Some(StreamError::Reset), Flags::default()));
            if unread >= least || flags.finished {
                return Poll::Ready(Ok(Readable {
                    unread,
                    finished: flags.finished,
                }));
            }
            if let Some(error) = error {
                return Poll::Ready(Err(error));
            }
            if flags.may_receive {
                self.receive(index);
            } else {
                self.flush(index);
                self.register(index, false);
                return Poll::Pending;
            }
        }
    }

    pub(super) fn read<R>(&self, index: u32, take: impl FnOnce(&mut [u8]) -> (usize, R)) -> R {
        let mut inbound = self.inbound.borrow_mut();
        if inbound.owner() == Some(index) {
            let (consumed, result) = take(inbound.unread());
            inbound.consume(consumed);
            return result;
        }
        // Taken out of its slot, so that `take` may look at other slots' addresses.
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

    /// Receives once, into the shared buffer, or behind what the slot still holds.
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
            Payload::Shared(bytes, range) if !queued && range.len() <= SHARED_COPY_MAX => {
                self.gather(index, bytes.get(range).unwrap_or_default());
            }
            Payload::Copy(bytes) => self.queue(index, |outbound| outbound.push_copy(bytes)),
            Payload::Shared(bytes, range) => {
                self.queue(index, |outbound| outbound.push(Chunk::Shared(bytes, range)));
            }
            Payload::File { file, offset, len } => {
                self.queue(index, |outbound| {
                    outbound.push(Chunk::File { file, offset, len })
                });
            }
        }
    }

    pub(super) fn poll_drained(&self, index: u32, most: u64) -> Poll<Result<(), StreamError>> {
        self.flush(index);
        let queued = self.queued(index);
        let state = self.with_slot(index, |slot| (slot.error, slot.flags, slot.task));
        let Some((error, flags, task)) = state else {
            return Poll::Ready(Err(StreamError::Reset));
        };
        if let Some(error) = error {
            return Poll::Ready(Err(error));
        }
        if !flags.connecting && queued <= most {
            return Poll::Ready(Ok(()));
        }
        if flags.may_send {
            // It has sent its share of this turn and goes on in the next.
            self.unfinished.borrow_mut().push(task);
        } else {
            self.register(index, true);
        }
        Poll::Pending
    }

    pub(super) fn queued(&self, index: u32) -> u64 {
        let gathered = self.gather.borrow().len_of(index) as u64;
        gathered + self.with_slot(index, |slot| slot.queued()).unwrap_or(0)
    }

    /// Sends what was gathered, whoever wrote it.
    pub(super) fn flush_gathered(&self) {
        let owner = self.gather.borrow().owner();
        if let Some(owner) = owner {
            self.flush(owner);
        }
    }

    /// Sends what `index` has written, as far as its socket takes it.
    pub(super) fn flush(&self, index: u32) {
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
        } else {
            slot.send_queue(gathered);
        }
        if gather.owner() == Some(index) {
            gather.clear();
        }
        if let Some(empty) = slot.outbound.take_if(|outbound| outbound.is_empty()) {
            self.spare_queues.borrow_mut().push(empty);
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
    }

    fn spare_queue(&self) -> Box<Outbound> {
        self.spare_queues.borrow_mut().pop().unwrap_or_default()
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
            // Out of watches or memory: nobody would ever report it, so it ends here and its task is told.
            slot.error = Some(stream_error(&error));
            self.unfinished.borrow_mut().push(slot.task);
        }
    }

    pub(super) fn shutdown(&self, index: u32) {
        self.with_slot(index, |slot| slot.flags.shutdown_due = true);
        self.flush(index);
    }

    pub(super) fn close(&self, index: u32) {
        self.flush(index);
        {
            let mut inbound = self.inbound.borrow_mut();
            if inbound.owner() == Some(index) {
                inbound.clear();
            }
        }
        let slot = self.slots.borrow_mut().remove(index);
        if let Some(mut outbound) = slot.and_then(|slot| slot.outbound) {
            outbound.clear();
            self.spare_queues.borrow_mut().push(outbound);
        }
    }

    /// `None` only for a handle whose slot is gone, which a live handle's never is.
    pub(super) fn with_slot<R>(&self, index: u32, f: impl FnOnce(&mut Slot) -> R) -> Option<R> {
        self.slots.borrow_mut().slot(index).map(f)
    }
}

/// One slot's socket.
impl Slot {
    /// Notes what a receive into `space` bytes found; returns how many bytes came.
    fn on_received(&mut self, received: io::Result<usize>, space: usize) -> usize {
        match received {
            Ok(0) => {
                self.flags.finished = true;
                self.flags.may_receive = false;
                0
            }
            Ok(count) => {
                // Less than there was room for: the socket is empty, and epoll will report what comes.
                self.flags.may_receive = count == space || self.flags.fin_announced;
                count
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.flags.may_receive = false;
                0
            }
            Err(error) => {
                self.error = Some(stream_error(&error));
                0
            }
        }
    }

    /// Notes what a send of `offered` bytes did; returns how many bytes went.
    fn on_sent(&mut self, sent: io::Result<usize>, offered: u64) -> usize {
        match sent {
            Ok(count) => {
                self.sent += count as u64;
                self.flags.may_send = count as u64 == offered;
                count
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.flags.may_send = false;
                0
            }
            Err(error) => {
                self.error = Some(stream_error(&error));
                0
            }
        }
    }

    /// Sends `gathered` and then the queue, until the socket is full or this turn's share is done. What is left
    /// of `gathered` goes to the front of the queue.
    fn send_queue(&mut self, gathered: &[u8]) {
        let Some(mut outbound) = self.outbound.take() else {
            return;
        };
        outbound.push_front_copy(gathered);
        let mut share = SHARE_PER_TURN;
        while share > 0 && self.flags.may_send && self.error.is_none() && !outbound.is_empty() {
            let sent = self.send_front(&outbound);
            outbound.advance(sent);
            share = share.saturating_sub(sent);
        }
        if self.error.is_some() {
            outbound.clear();
        }
        self.outbound = Some(outbound);
    }

    /// One call: a range of a file, or the memory at the front of the queue.
    fn send_front(&mut self, outbound: &Outbound) -> u64 {
        if let Some(Chunk::File { file, offset, len }) = outbound.front() {
            let count = usize::try_from((*len).min(SHARE_PER_TURN)).unwrap_or(usize::MAX);
            let sent = socket::send_file(self.descriptor.as_fd(), file.as_fd(), *offset, count);
            if matches!(sent, Ok(0)) {
                self.error = Some(StreamError::Truncated);
                return 0;
            }
            return self.on_sent(sent, count as u64) as u64;
        }
        let mut pieces = [IoSlice::new(&[]); PIECES];
        let (count, more) = outbound.memory(&mut pieces);
        let pieces = pieces.get(..count).unwrap_or_default();
        let offered: usize = pieces.iter().map(|piece| piece.len()).sum();
        let sent = socket::send_vectored(self.descriptor.as_fd(), pieces, more);
        self.on_sent(sent, offered as u64) as u64
    }

    /// A connect in progress that became writable has succeeded or failed.
    fn check_connected(&mut self) {
        if self.flags.connecting && self.flags.may_send {
            match socket::take_error(self.descriptor.as_fd()) {
                Ok(None) => self.flags.connecting = false,
                Ok(Some(code)) => {
                    self.error = Some(stream_error(&io::Error::from_raw_os_error(code)));
                }
                Err(error) => self.error = Some(stream_error(&error)),
            }
        }
    }

    /// Sends the FIN that is due once nothing waits before it.
    fn finish_writing(&mut self) {
        if self.flags.shutdown_due && self.queued() == 0 && self.error.is_none() {
            self.flags.shutdown_due = false;
            // Fails only when the peer has reset, which the next receive reports.
            let _ = socket::shutdown_write(self.descriptor.as_fd());
        }
    }
}

/// What an error of a system call means for the connection.
pub(super) fn stream_error(error: &io::Error) -> StreamError {
    match error.kind() {
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::NotConnected
        | io::ErrorKind::ConnectionAborted => StreamError::Reset,
        io::ErrorKind::ConnectionRefused => StreamError::Refused,
        io::ErrorKind::TimedOut
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable => StreamError::Unreachable,
        _ => StreamError::Other(error.raw_os_error().unwrap_or(0)),
    }
}

/// Room for one receive behind bytes that are kept already, in bytes: large enough for the rest of a head.
const RECEIVE_BEHIND_BYTES: usize = 16 * 1024;

/// Shared payloads up to this many bytes are copied into the gather buffer, so that they leave in one call with
/// what stands before them; a copy of 16 KiB costs about a microsecond, a second piece in sendmsg half of that.
const SHARED_COPY_MAX: usize = 16 * 1024;

/// What one connection sends in a turn before the others have theirs, in bytes. nginx's `sendfile_max_chunk` is
/// as large.
const SHARE_PER_TURN: u64 = 2 * 1024 * 1024;
