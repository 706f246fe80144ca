//! A socket of datagrams: of the stack, of the inner engine, or of both.

use crate::bypass::{BypassEngine, BypassLink, FileOf};
use crate::file_bytes::FileBytes;
use crate::mapping::{
    EADDRNOTAVAIL, bind_error, datagram_error, to_runtime_ecn, to_stack_ecn, write_error,
};
use crate::stack::Stack;
use crate::stack_half::StackHalf;
use alloc::rc::Rc;
use core::cell::{Cell, RefCell};
use core::fmt;
use core::net::{IpAddr, SocketAddr};
use core::task::Poll;
use mill_runtime::address::Address;
use mill_runtime::datagrams::{
    DatagramCounters, DatagramEngine, DatagramError, DatagramOptions, DatagramSocket,
    OutgoingDatagram, ReceivedDatagram,
};
use mill_runtime::tasks::TaskId;
use mill_stack::link::Service;
use mill_stack::udp::{UdpOptions, UdpWriteError};
use mill_wire::protocol::Protocol;
use mill_wire::udp::HEADER_BYTES;

/// A socket of a [`BypassEngine`], as its listeners are: one at a wildcard address is at both engines, one at an address
/// of the host at the stack, and any other at the inner engine; one with a peer is where the way to the peer leads.
///
/// Beside the kernel on its interface a socket with a peer or a chosen port is at the inner engine alone: datagrams come
/// to the stacks only for ports that all workers serve, and such a socket is one worker's.
pub struct BypassDatagrams<L: BypassLink, I: DatagramEngine>
where
    FileOf<I>: FileBytes,
{
    stack: Option<StackDatagrams<L, FileOf<I>>>,
    inner: Option<I::Datagrams>,
    /// Which half is polled first the next time, so that neither starves.
    stack_first: Cell<bool>,
}

impl<L: BypassLink + 'static, I: DatagramEngine> DatagramEngine for BypassEngine<L, I>
where
    FileOf<I>: FileBytes,
{
    type Datagrams = BypassDatagrams<L, I>;

    fn open_datagrams(
        &self,
        options: &DatagramOptions,
        task: TaskId,
    ) -> Result<BypassDatagrams<L, I>, DatagramError> {
        let (at_stack, at_inner) = self.places(options);
        let inner = match at_inner {
            true => Some(self.inner().open_datagrams(options, task)?),
            false => None,
        };
        let mut options = *options;
        if let Some(inner) = &inner {
            options.local.set_port(inner.local().port());
        }
        let stack = match self.stack_half() {
            Some(half) if at_stack => Some(StackDatagrams::open(&half.stack, &options, task)?),
            _ => None,
        };
        Ok(BypassDatagrams {
            stack,
            inner,
            stack_first: Cell::new(true),
        })
    }
}

impl<L: BypassLink, I: DatagramEngine> BypassEngine<L, I>
where
    FileOf<I>: FileBytes,
{
    /// Whether a socket is at the stack, and whether it is at the inner engine.
    fn places(&self, options: &DatagramOptions) -> (bool, bool) {
        let stack_half = self.stack_half();
        stack_half.map_or((false, true), |half| half.datagram_places(options))
    }
}

impl<L: BypassLink, F: FileBytes> StackHalf<L, F> {
    /// Whether a socket is at the stack, and whether it is at the inner engine.
    fn datagram_places(&self, options: &DatagramOptions) -> (bool, bool) {
        let is_for_one_worker = options.remote.is_some() || options.local.port() == 0;
        if self.shares_addresses && is_for_one_worker {
            return (false, true);
        }
        if let Some(remote) = options.remote {
            let at_stack = self.reaches(remote.ip());
            return (at_stack, !at_stack);
        }
        let local = options.local.ip();
        let at_stack = local.is_unspecified() || self.stack.borrow().host.is_own(local);
        (at_stack, !self.is_alone_at(&Address::Ip(options.local)))
    }
}

impl<L: BypassLink + 'static, I: DatagramEngine> DatagramSocket for BypassDatagrams<L, I>
where
    FileOf<I>: FileBytes,
{
    fn poll_receive(
        &self,
        count_max: usize,
        mut take: impl FnMut(ReceivedDatagram<'_>),
    ) -> Poll<Result<usize, DatagramError>> {
        let stack_first = self.stack_first.replace(!self.stack_first.get());
        for asks_stack in [stack_first, !stack_first] {
            let found = match (asks_stack, &self.stack, &self.inner) {
                (true, Some(stack), _) => stack.poll_receive(count_max, &mut take),
                (false, _, Some(inner)) => inner.poll_receive(count_max, &mut take),
                _ => Poll::Pending,
            };
            if found.is_ready() {
                return found;
            }
        }
        Poll::Pending
    }

    /// Those at the beginning of the batch that take the same way are sent at once.
    fn poll_send(&self, batch: &[OutgoingDatagram<'_>]) -> Poll<Result<usize, DatagramError>> {
        match (&self.stack, &self.inner) {
            (Some(stack), None) => stack.poll_send(batch),
            (None, Some(inner)) => inner.poll_send(batch),
            (Some(stack), Some(inner)) => {
                let Some(first) = batch.first() else {
                    return Poll::Ready(Ok(0));
                };
                let by_stack = stack.reaches(first.remote.ip());
                let mut others = batch.iter();
                let count = others.position(|one| stack.reaches(one.remote.ip()) != by_stack);
                let part = batch.get(..count.unwrap_or(batch.len())).unwrap_or(batch);
                match by_stack {
                    true => stack.poll_send(part),
                    false => inner.poll_send(part),
                }
            }
            (None, None) => Poll::Ready(Err(DatagramError::Unreachable)),
        }
    }

    fn local(&self) -> SocketAddr {
        match (&self.stack, &self.inner) {
            (Some(stack), _) => stack.local,
            (None, Some(inner)) => inner.local(),
            (None, None) => SocketAddr::new(core::net::Ipv4Addr::UNSPECIFIED.into(), 0),
        }
    }

    fn set_task(&self, task: TaskId) {
        if let Some(stack) = &self.stack {
            let mut stack_mut = stack.stack.borrow_mut();
            stack_mut.datagrams.set_task(stack.local, task);
        }
        if let Some(inner) = &self.inner {
            inner.set_task(task);
        }
    }

    fn counters(&self) -> DatagramCounters {
        let of_stack = self.stack.as_ref().map(StackDatagrams::counters);
        let of_inner = self.inner.as_ref().map(DatagramSocket::counters);
        let both = [of_stack, of_inner].into_iter().flatten();
        both.fold(DatagramCounters::default(), |sum, one| DatagramCounters {
            received: sum.received + one.received,
            sent: sum.sent + one.sent,
            dropped: sum.dropped + one.dropped,
        })
    }
}

impl<L: BypassLink, I: DatagramEngine> fmt::Debug for BypassDatagrams<L, I>
where
    FileOf<I>: FileBytes,
{
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stack = self.stack.as_ref().map(|stack| stack.local);
        write!(
            formatter,
            "BypassDatagrams(stack: {stack:?}, inner: {})",
            self.inner.is_some()
        )
    }
}

/// The half of a socket that the stack has; its address names it there.
struct StackDatagrams<L: BypassLink, F: FileBytes> {
    stack: Rc<RefCell<Stack<L, F>>>,
    local: SocketAddr,
    remote: Option<SocketAddr>,
}

impl<L: BypassLink, F: FileBytes> StackDatagrams<L, F> {
    fn open(
        shared: &Rc<RefCell<Stack<L, F>>>,
        options: &DatagramOptions,
        task: TaskId,
    ) -> Result<Self, DatagramError> {
        let mut stack = shared.borrow_mut();
        let mut own = UdpOptions {
            remote: options.remote,
            ..UdpOptions::default()
        };
        if let Some(bytes) = options.receive_buffer_bytes {
            own.receive_bytes_max = bytes;
        }
        let local = stack
            .host
            .bind_udp(options.local, own)
            .map_err(bind_error)?;
        stack.datagrams.open(local, task);
        stack.link.serve(service(local), true);
        drop(stack);
        Ok(Self {
            stack: Rc::clone(shared),
            local,
            remote: options.remote,
        })
    }

    fn reaches(&self, target: IpAddr) -> bool {
        self.stack.borrow().host.reaches(target)
    }

    fn poll_receive(
        &self,
        count_max: usize,
        take: &mut impl FnMut(ReceivedDatagram<'_>),
    ) -> Poll<Result<usize, DatagramError>> {
        let mut stack = self.stack.borrow_mut();
        if let Some(error) = stack.host.take_udp_error(self.local) {
            return Poll::Ready(Err(datagram_error(error)));
        }
        let mut count = 0;
        while count < count_max
            && let Some(datagram) = stack.host.read_udp(self.local)
        {
            take(ReceivedDatagram {
                bytes: &datagram.payload,
                remote: datagram.source,
                local: datagram.target,
                ecn: to_runtime_ecn(datagram.ecn),
                segment_bytes: None,
            });
            stack.host.recycle_udp(datagram);
            count += 1;
        }
        match count {
            0 if count_max > 0 => Poll::Pending,
            _ => Poll::Ready(Ok(count)),
        }
    }

    fn poll_send(&self, batch: &[OutgoingDatagram<'_>]) -> Poll<Result<usize, DatagramError>> {
        let mut stack = self.stack.borrow_mut();
        if let Some(error) = stack.host.take_udp_error(self.local) {
            return Poll::Ready(Err(datagram_error(error)));
        }
        for (index, outgoing) in batch.iter().enumerate() {
            match self.send(&mut stack, outgoing) {
                Ok(()) => {}
                Err(_) if index > 0 => return Poll::Ready(Ok(index)),
                Err(Some(error)) => return Poll::Ready(Err(error)),
                Err(None) => {
                    stack.datagrams.wait_for_room(self.local);
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(Ok(batch.len()))
    }

    /// Sends all segments of a datagram, or none; `Err(None)` where there is no room. Packets that are cut may take more
    /// room than was expected: once a segment was sent, the rest is lost, as the network loses datagrams.
    fn send(
        &self,
        stack: &mut Stack<L, F>,
        outgoing: &OutgoingDatagram<'_>,
    ) -> Result<(), Option<DatagramError>> {
        if outgoing.is_too_large() {
            return Err(Some(DatagramError::TooLarge));
        }
        let local = outgoing.local.unwrap_or(self.local.ip());
        if !local.is_unspecified() && !stack.host.is_own(local) {
            return Err(Some(DatagramError::Other(EADDRNOTAVAIL)));
        }
        let (count, bytes) = outgoing.segments().fold((0, 0), |(count, bytes), segment| {
            (count + 1, bytes + HEADER_BYTES + segment.len())
        });
        if !stack.host.has_room_for_udp(count, bytes) {
            return Err(None);
        }
        let (remote, ecn) = (
            self.remote.unwrap_or(outgoing.remote),
            to_stack_ecn(outgoing.ecn),
        );
        for (index, segment) in outgoing.segments().enumerate() {
            let written = stack
                .host
                .write_udp(self.local, local, remote, ecn, segment);
            match written {
                Err(UdpWriteError::Full) if index > 0 => break,
                written => written.map_err(write_error)?,
            }
        }
        Ok(())
    }

    fn counters(&self) -> DatagramCounters {
        let counters = self.stack.borrow().host.udp_counters(self.local);
        DatagramCounters {
            received: counters.received,
            sent: counters.sent,
            dropped: counters.dropped,
        }
    }
}

impl<L: BypassLink, F: FileBytes> Drop for StackDatagrams<L, F> {
    fn drop(&mut self) {
        // Borrowed only while a test panics.
        if let Ok(mut stack) = self.stack.try_borrow_mut() {
            stack.host.close_udp(self.local);
            stack.datagrams.close(self.local);
            stack.link.serve(service(self.local), false);
            stack.link.forget(service(self.local));
        }
    }
}

const fn service(address: SocketAddr) -> Service {
    Service {
        address,
        protocol: Protocol::UDP,
    }
}

#[cfg(test)]
mod tests;
