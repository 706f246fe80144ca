//! One connection, of the stack or of the inner engine.

use crate::bypass::{BypassLink, FileOf};
use crate::file_bytes::FileBytes;
use crate::mapping::{canonical, mapped, stream_error, transport_info};
use crate::payload_queue::FileMemory;
use crate::slot::{Flags, Slot};
use crate::stack::Stack;
use alloc::rc::Rc;
use core::cell::{RefCell, RefMut};
use core::fmt;
use core::net::{Ipv4Addr, SocketAddr};
use core::ops::RangeInclusive;
use core::task::Poll;
use mill_runtime::address::Address;
use mill_runtime::engine::Engine;
use mill_runtime::payload::Payload;
use mill_runtime::received::Received;
use mill_runtime::stream::{
    Readable, Stream, StreamError, StreamOption, TransportInfo, Unsupported, WRITE_SOME_BYTES,
};
use mill_runtime::tasks::TaskId;
use mill_runtime::time::Instant;
use mill_stack::queue::SendQueue;
use mill_stack::socket::SocketId;

/// A stream of a [`crate::bypass::BypassEngine`]; closes its connection when dropped.
pub struct BypassStream<L: BypassLink, I: Engine>(Which<L, I>)
where
    FileOf<I>: FileBytes;

enum Which<L: BypassLink, I: Engine>
where
    FileOf<I>: FileBytes,
{
    Stack(StackStream<L, FileOf<I>>),
    Inner(I::Stream),
}

impl<L: BypassLink, I: Engine> BypassStream<L, I>
where
    FileOf<I>: FileBytes,
{
    pub(crate) fn of_stack(stream: StackStream<L, FileOf<I>>) -> Self {
        Self(Which::Stack(stream))
    }

    pub(crate) const fn of_inner(stream: I::Stream) -> Self {
        Self(Which::Inner(stream))
    }

    /// Whether the connection goes over the stack.
    pub const fn is_bypassed(&self) -> bool {
        matches!(self.0, Which::Stack(_))
    }
}

impl<L: BypassLink + 'static, I: Engine> Stream for BypassStream<L, I>
where
    FileOf<I>: FileBytes,
{
    type File = FileOf<I>;

    fn poll_readable(&self, least: usize) -> Poll<Result<Readable, StreamError>> {
        match &self.0 {
            Which::Stack(stream) => stream.poll_readable(least),
            Which::Inner(stream) => stream.poll_readable(least),
        }
    }

    /// `take` must not use a stream of any engine: the stack is borrowed while it runs. Doing so panics.
    fn read<R>(&self, take: impl FnOnce(&mut [u8]) -> (usize, R)) -> R {
        match &self.0 {
            Which::Stack(stream) => stream.read(take),
            Which::Inner(stream) => stream.read(take),
        }
    }

    /// The stack's frames go back to the link.
    fn take_received(&self, lengths: RangeInclusive<usize>) -> Option<Received> {
        match &self.0 {
            Which::Stack(_) => None,
            Which::Inner(stream) => stream.take_received(lengths),
        }
    }

    /// The stack's frames are taken from the link at the beginning of the turn.
    fn received_at(&self) -> Option<Instant> {
        match &self.0 {
            Which::Stack(stream) => Some(stream.stack().now()),
            Which::Inner(stream) => stream.received_at(),
        }
    }

    fn is_reset(&self) -> bool {
        match &self.0 {
            Which::Stack(stream) => stream.is_reset(),
            Which::Inner(stream) => stream.is_reset(),
        }
    }

    fn write(&self, payload: Payload<'_, Self::File>) {
        match &self.0 {
            Which::Stack(stream) => stream.write(payload),
            Which::Inner(stream) => stream.write(payload),
        }
    }

    fn write_some(&self, bytes: &[u8]) -> usize {
        match &self.0 {
            Which::Stack(stream) => {
                let some = bytes.get(..WRITE_SOME_BYTES).unwrap_or(bytes);
                stream.write(Payload::Copy(some));
                some.len()
            }
            Which::Inner(stream) => stream.write_some(bytes),
        }
    }

    fn poll_drained(&self, most: u64) -> Poll<Result<(), StreamError>> {
        match &self.0 {
            Which::Stack(stream) => stream.poll_drained(most),
            Which::Inner(stream) => stream.poll_drained(most),
        }
    }

    /// On the stack a byte counts as taken when it is in memory (a copy, a reference, read from its file, or mapped) and
    /// less than the send buffer stands between it and the first unacknowledged byte.
    fn queued(&self) -> u64 {
        match &self.0 {
            Which::Stack(stream) => stream.queued(),
            Which::Inner(stream) => stream.queued(),
        }
    }

    fn sent(&self) -> u64 {
        match &self.0 {
            Which::Stack(stream) => stream.sent(),
            Which::Inner(stream) => stream.sent(),
        }
    }

    fn shutdown(&self) {
        match &self.0 {
            Which::Stack(stream) => stream.shutdown(),
            Which::Inner(stream) => stream.shutdown(),
        }
    }

    fn set_task(&self, task: TaskId) {
        match &self.0 {
            Which::Stack(stream) => stream.set_task(task),
            Which::Inner(stream) => stream.set_task(task),
        }
    }

    fn set(&self, option: StreamOption) -> Result<(), Unsupported> {
        match &self.0 {
            Which::Stack(stream) => {
                stream.set(option);
                Ok(())
            }
            Which::Inner(stream) => stream.set(option),
        }
    }

    fn peer(&self) -> Address {
        match &self.0 {
            Which::Stack(stream) => stream.peer(),
            Which::Inner(stream) => stream.peer(),
        }
    }

    fn local(&self) -> Address {
        match &self.0 {
            Which::Stack(stream) => stream.local(),
            Which::Inner(stream) => stream.local(),
        }
    }

    /// The stack has no packet filter in front of it.
    fn mark(&self) -> Option<u32> {
        match &self.0 {
            Which::Stack(_) => None,
            Which::Inner(stream) => stream.mark(),
        }
    }

    fn info(&self) -> Option<TransportInfo> {
        match &self.0 {
            Which::Stack(stream) => stream.info(),
            Which::Inner(stream) => stream.info(),
        }
    }
}

impl<L: BypassLink, I: Engine> fmt::Debug for BypassStream<L, I>
where
    FileOf<I>: FileBytes,
{
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Which::Stack(stream) => write!(formatter, "BypassStream({})", stream.index),
            Which::Inner(_) => formatter.write_str("BypassStream(inner)"),
        }
    }
}

/// A stream of the stack: its engine, and its slot there.
pub(crate) struct StackStream<L: BypassLink, F: FileBytes> {
    stack: Rc<RefCell<Stack<L, F>>>,
    index: u32,
}

impl<L: BypassLink, F: FileBytes> StackStream<L, F> {
    pub(crate) fn new(
        stack: &Rc<RefCell<Stack<L, F>>>,
        socket: SocketId,
        send_buffer_bytes: u32,
        flags: Flags,
    ) -> Self {
        let slot = Slot {
            socket,
            error: None,
            sent: 0,
            send_buffer_bytes,
            seen_bytes: 0,
            flags,
        };
        let index = stack.borrow_mut().slots.insert(slot);
        Self {
            stack: Rc::clone(stack),
            index,
        }
    }

    fn stack(&self) -> RefMut<'_, Stack<L, F>> {
        let stack = self.stack.try_borrow_mut();
        stack.expect("no stream is used while `Stream::read` lends its bytes")
    }

    fn poll_readable(&self, least: usize) -> Poll<Result<Readable, StreamError>> {
        let mut stack = self.stack();
        let stack = &mut *stack;
        let slot = stack.slots.slot_mut(self.index);
        let found = stack.host.readable(slot.socket);
        slot.seen_bytes = u32::try_from(found.unread).unwrap_or(u32::MAX);
        if found.unread >= least || found.finished {
            return Poll::Ready(Ok(Readable {
                unread: found.unread,
                finished: found.finished,
            }));
        }
        if let Some(error) = slot.error.or_else(|| found.error.map(stream_error)) {
            return Poll::Ready(Err(error));
        }
        // The peer sends no more than its window allows: the window has to hold so much, or the wait would never end.
        if least > 1 {
            stack.host.reserve_receive(slot.socket, least);
        }
        Poll::Pending
    }

    fn is_reset(&self) -> bool {
        let mut stack = self.stack();
        let slot = stack.slots.slot_mut(self.index);
        let (error, socket) = (slot.error, slot.socket);
        error.is_some() || stack.host.readable(socket).error.is_some()
    }

    fn read<R>(&self, take: impl FnOnce(&mut [u8]) -> (usize, R)) -> R {
        let mut stack = self.stack();
        let stack = &mut *stack;
        let socket = stack.slots.slot_mut(self.index).socket;
        stack.host.read(socket, &mut stack.link, take)
    }

    fn write(&self, payload: Payload<'_, F>) {
        let mut stack = self.stack();
        let stack = &mut *stack;
        let slot = stack.slots.slot_mut(self.index);
        if payload.is_empty() || slot.error.is_some() {
            return;
        }
        let Some(queue) = stack.host.queue(slot.socket) else {
            return;
        };
        if slot.flags.shutdown {
            // As a socket's EPIPE. What was written before the FIN is sent all the same.
            slot.error = Some(StreamError::Reset);
            return;
        }
        let files = FileMemory {
            bytes_max: usize::try_from(slot.send_buffer_bytes).unwrap_or(usize::MAX),
            is_mapped: stack.link.properties().sends_external,
        };
        if let Err(error) = queue.push(payload, &stack.pool, files) {
            slot.error = Some(error);
            slot.flags.reset_on_close = true;
        }
        stack.host.wrote(slot.socket);
        note_sent(stack, self.index);
    }

    fn poll_drained(&self, most: u64) -> Poll<Result<(), StreamError>> {
        let mut stack = self.stack();
        let stack = &mut *stack;
        let slot = stack.slots.slot_mut(self.index);
        let failed = || stack.host.readable(slot.socket).error.map(stream_error);
        if let Some(error) = slot.error.or_else(failed) {
            return Poll::Ready(Err(error));
        }
        if slot.flags.connecting && stack.host.is_established(slot.socket) {
            slot.flags.connecting = false;
        }
        if !slot.flags.connecting && queued(stack, self.index) <= most {
            return Poll::Ready(Ok(()));
        }
        Poll::Pending
    }

    fn queued(&self) -> u64 {
        queued(&self.stack(), self.index)
    }

    fn sent(&self) -> u64 {
        note_sent(&mut self.stack(), self.index)
    }

    fn shutdown(&self) {
        let mut stack = self.stack();
        let stack = &mut *stack;
        let slot = stack.slots.slot_mut(self.index);
        if !core::mem::replace(&mut slot.flags.shutdown, true) {
            stack.host.shutdown(slot.socket);
        }
    }

    fn set_task(&self, task: TaskId) {
        let mut stack = self.stack();
        let socket = stack.slots.slot(self.index).socket;
        stack.host.set_token(socket, task.to_bits());
    }

    fn set(&self, option: StreamOption) {
        let mut stack = self.stack();
        let stack = &mut *stack;
        let slot = stack.slots.slot_mut(self.index);
        match option {
            StreamOption::NoDelay(on) => stack.host.set_nodelay(slot.socket, on),
            StreamOption::ResetOnClose => slot.flags.reset_on_close = true,
        }
    }

    fn peer(&self) -> Address {
        self.address(|stack, socket| stack.host.peer(socket))
    }

    fn local(&self) -> Address {
        self.address(|stack, socket| stack.host.local(socket))
    }

    fn address(&self, ask: impl FnOnce(&Stack<L, F>, SocketId) -> Option<SocketAddr>) -> Address {
        let mut stack = self.stack();
        let slot = stack.slots.slot_mut(self.index);
        let (socket, is_mapped) = (slot.socket, slot.flags.is_mapped);
        let address = ask(&stack, socket).unwrap_or(NOWHERE);
        Address::Ip(if is_mapped {
            mapped(address)
        } else {
            canonical(address)
        })
    }

    fn info(&self) -> Option<TransportInfo> {
        let mut stack = self.stack();
        let socket = stack.slots.slot_mut(self.index).socket;
        Some(transport_info(&stack.host.info(socket)?))
    }
}

impl<L: BypassLink, F: FileBytes> Drop for StackStream<L, F> {
    fn drop(&mut self) {
        // Borrowed only during a panic.
        let Ok(mut stack) = self.stack.try_borrow_mut() else {
            return;
        };
        let Some(slot) = stack.slots.remove(self.index) else {
            return;
        };
        if slot.flags.reset_on_close {
            stack.host.abort(slot.socket);
            return;
        }
        let stack = &mut *stack;
        let unread = stack.host.readable(slot.socket).unread;
        if unread > 0 && unread <= slot.seen_bytes as usize {
            // Bytes that the reader saw and left are not lost data (RFC 9293 3.10.4 requires RST then): it wanted no
            // more.
            stack
                .host
                .read(slot.socket, &mut stack.link, |bytes| (bytes.len(), ()));
        }
        stack.host.close(slot.socket);
    }
}

/// Bytes held for a stream, and how many of them count as taken.
fn held<L: BypassLink, F: FileBytes>(stack: &Stack<L, F>, slot: &Slot) -> (u64, u64) {
    let Some(queue) = stack.host.queue_in_use(slot.socket) else {
        return (0, 0);
    };
    if slot.flags.connecting {
        return (queue.len(), 0);
    }
    let taken = queue.loaded().min(u64::from(slot.send_buffer_bytes));
    debug_assert!(taken <= queue.len(), "no more is taken than was written");
    (queue.len(), taken)
}

fn queued<L: BypassLink, F: FileBytes>(stack: &Stack<L, F>, index: u32) -> u64 {
    let (held, taken) = held(stack, stack.slots.slot(index));
    held - taken
}

/// Bytes taken in the stream's life; kept, because a failed connection has no queue any more.
fn note_sent<L: BypassLink, F: FileBytes>(stack: &mut Stack<L, F>, index: u32) -> u64 {
    let slot = stack.slots.slot(index);
    let (_, taken) = held(stack, slot);
    let sent = stack.host.acked(slot.socket).saturating_add(taken);
    let slot = stack.slots.slot_mut(index);
    slot.sent = slot.sent.max(sent);
    slot.sent
}

/// The address of a connection that the host has removed.
const NOWHERE: SocketAddr = SocketAddr::new(core::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
