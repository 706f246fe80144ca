//! Datagram sockets: a batch is one system call.

use super::{DATAGRAM_BIT, Inner, KernelEngine};
use mill_runtime::datagrams::{
    DatagramCounters, DatagramEngine, DatagramError, DatagramOptions, DatagramSocket, Ecn,
    OutgoingDatagram, ReceivedDatagram,
};
use mill_runtime::tasks::TaskId;
use mill_sys::address::Peer;
use mill_sys::datagram::{self, BATCH_MAX, Outgoing, ReceiveBuffers};
use mill_sys::epoll::{Epoll, Event, Interest};
use mill_sys::socket;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::task::Poll;

/// A datagram socket of a [`KernelEngine`]; closes it when dropped.
pub struct KernelDatagrams {
    engine: Rc<Inner>,
    index: usize,
    local: SocketAddr,
}

/// The sockets of an engine. There are few: a server has one a port.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    entries: Vec<Option<Socket>>,
    /// Changes with each socket that is opened, so that a report for a former one is recognised.
    generation: u32,
    /// Tasks to be reported without epoll.
    due: Vec<TaskId>,
    /// Made for the first datagram.
    buffers: Option<Box<ReceiveBuffers>>,
}

#[derive(Debug)]
struct Socket {
    descriptor: OwnedFd,
    token: u64,
    task: TaskId,
    remote: Option<SocketAddr>,
    /// The next receive may find a datagram, the next send room.
    may_receive: bool,
    may_send: bool,
    /// In the epoll set for writability as well, which is reported after each batch that was sent.
    waits_to_send: bool,
    received: u64,
    sent: u64,
}

impl DatagramEngine for KernelEngine {
    type Datagrams = KernelDatagrams;

    fn open_datagrams(
        &self,
        options: &DatagramOptions,
        task: TaskId,
    ) -> Result<KernelDatagrams, DatagramError> {
        let DatagramOptions {
            local,
            remote,
            receive_buffer_bytes,
        } = *options;
        let opened = datagram::open(local, remote, receive_buffer_bytes);
        let descriptor = opened.map_err(|error| datagram_error(&error))?;
        let local = match socket::local_address(descriptor.as_fd()) {
            Ok(Peer::Ip(local)) => local,
            Ok(Peer::Unix) => local,
            Err(error) => return Err(datagram_error(&error)),
        };
        let mut sockets = self.0.datagrams.borrow_mut();
        let index = sockets
            .insert(&self.0.epoll, descriptor, remote, task)
            .map_err(|error| datagram_error(&error))?;
        Ok(KernelDatagrams {
            engine: Rc::clone(&self.0),
            index,
            local,
        })
    }
}

impl DatagramSocket for KernelDatagrams {
    fn poll_receive(
        &self,
        count_max: usize,
        mut take: impl FnMut(ReceivedDatagram<'_>),
    ) -> Poll<Result<usize, DatagramError>> {
        let mut sockets = self.engine.datagrams.borrow_mut();
        let mut buffers = sockets.buffers.take().unwrap_or_default();
        let socket = sockets.socket(self.index);
        if !socket.may_receive {
            sockets.buffers = Some(buffers);
            return Poll::Pending;
        }
        let port = self.local.port();
        let wildcard = self.local.ip();
        let received = buffers.receive(socket.descriptor.as_fd(), count_max, |incoming| {
            take(ReceivedDatagram {
                bytes: incoming.bytes,
                remote: incoming.remote,
                local: SocketAddr::new(incoming.local.unwrap_or(wildcard), port),
                ecn: Ecn::from_bits(incoming.class),
                segment_bytes: None,
            });
        });
        let found = match received {
            Ok(count) => {
                socket.received += count as u64;
                Poll::Ready(Ok(count))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                socket.may_receive = false;
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(datagram_error(&error))),
        };
        sockets.buffers = Some(buffers);
        found
    }

    fn poll_send(&self, batch: &[OutgoingDatagram<'_>]) -> Poll<Result<usize, DatagramError>> {
        let mut sockets = self.engine.datagrams.borrow_mut();
        let socket = sockets.socket(self.index);
        let mut sent = 0;
        for part in batch.chunks(BATCH_MAX) {
            // The kernel does not report this error by itself.
            let sendable = part.iter().position(OutgoingDatagram::is_too_large);
            let part = part.get(..sendable.unwrap_or(part.len())).unwrap_or(part);
            let result = match part {
                [] => Err(DatagramError::TooLarge),
                _ => match socket.send(&self.engine.epoll, part) {
                    Poll::Pending if sent == 0 => return Poll::Pending,
                    Poll::Pending => return Poll::Ready(Ok(sent)),
                    Poll::Ready(result) => result,
                },
            };
            match result {
                Ok(count) => sent += count,
                Err(error) if sent == 0 => return Poll::Ready(Err(error)),
                Err(_) => return Poll::Ready(Ok(sent)),
            }
            if sent % BATCH_MAX != 0 {
                break;
            }
        }
        Poll::Ready(Ok(sent))
    }

    fn local(&self) -> SocketAddr {
        self.local
    }

    fn set_task(&self, task: TaskId) {
        let mut sockets = self.engine.datagrams.borrow_mut();
        sockets.socket(self.index).task = task;
        sockets.due.push(task);
    }

    fn counters(&self) -> DatagramCounters {
        let mut sockets = self.engine.datagrams.borrow_mut();
        let socket = sockets.socket(self.index);
        // An old kernel has no counter for each socket.
        let dropped = datagram::dropped(socket.descriptor.as_fd()).unwrap_or(0);
        DatagramCounters {
            received: socket.received,
            sent: socket.sent,
            dropped: dropped.into(),
        }
    }
}

impl Drop for KernelDatagrams {
    fn drop(&mut self) {
        if let Ok(mut sockets) = self.engine.datagrams.try_borrow_mut()
            && let Some(entry) = sockets.entries.get_mut(self.index)
        {
            // Closing the descriptor takes it out of the epoll set.
            *entry = None;
        }
    }
}

impl fmt::Debug for KernelDatagrams {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "KernelDatagrams({})", self.local)
    }
}

impl Sockets {
    fn insert(
        &mut self,
        epoll: &Epoll,
        descriptor: OwnedFd,
        remote: Option<SocketAddr>,
        task: TaskId,
    ) -> io::Result<usize> {
        let index = match self.entries.iter().position(Option::is_none) {
            Some(index) => index,
            None => {
                self.entries.push(None);
                self.entries.len() - 1
            }
        };
        self.generation = self.generation.wrapping_add(1) & GENERATION_MASK;
        let token = DATAGRAM_BIT | u64::from(self.generation) << 32 | index as u64;
        epoll.add(descriptor.as_fd(), interest(false), token)?;
        if let Some(entry) = self.entries.get_mut(index) {
            *entry = Some(Socket {
                descriptor,
                token,
                task,
                remote,
                may_receive: true,
                may_send: true,
                waits_to_send: false,
                received: 0,
                sent: 0,
            });
        }
        Ok(index)
    }

    fn socket(&mut self, index: usize) -> &mut Socket {
        let entry = self.entries.get_mut(index).and_then(Option::as_mut);
        entry.expect("a handle's socket lives as long as the handle")
    }

    /// Updates the state after epoll's report; returns the task to be polled.
    pub(super) fn on_report(&mut self, report: Event) -> Option<TaskId> {
        let index = usize::try_from(report.token() & u64::from(u32::MAX)).ok()?;
        let socket = self.entries.get_mut(index)?.as_mut()?;
        if socket.token != report.token() {
            return None;
        }
        socket.may_receive |= report.readable();
        socket.may_send |= report.writable();
        Some(socket.task)
    }

    /// Appends the tasks to be polled without a report.
    pub(super) fn take_due(&mut self, into: &mut Vec<TaskId>) {
        into.append(&mut self.due);
    }
}

impl Socket {
    /// Sends at most [`BATCH_MAX`] datagrams.
    fn send(
        &mut self,
        epoll: &Epoll,
        batch: &[OutgoingDatagram<'_>],
    ) -> Poll<Result<usize, DatagramError>> {
        if !self.may_send {
            return Poll::Pending;
        }
        let mut outgoing = [NOTHING; BATCH_MAX];
        for (place, datagram) in outgoing.iter_mut().zip(batch) {
            *place = Outgoing {
                bytes: datagram.bytes,
                remote: datagram.remote,
                local: datagram.local,
                class: datagram.ecn.bits(),
                segment_bytes: segment_bytes(datagram),
            };
        }
        let outgoing = outgoing.get(..batch.len()).unwrap_or_default();
        match self.transmit(outgoing) {
            Ok(count) => {
                let sent = batch.iter().take(count);
                self.sent += sent.map(|one| one.segments().count() as u64).sum::<u64>();
                Poll::Ready(Ok(count))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.may_send = false;
                self.wait_to_send(epoll)
            }
            Err(error) => Poll::Ready(Err(datagram_error(&error))),
        }
    }

    /// Where segments exceed the path's MTU, or without checksum offload, the kernel refuses to segment (EINVAL, on
    /// newer kernels EMSGSIZE; EIO): then the first datagram's segments are sent one by one. A segment for which there
    /// is no room is dropped, as on the network.
    fn transmit(&self, batch: &[Outgoing<'_>]) -> io::Result<usize> {
        let (socket, is_connected) = (self.descriptor.as_fd(), self.remote.is_some());
        let error = match datagram::send(socket, batch, is_connected) {
            Ok(count) => return Ok(count),
            Err(error) => error,
        };
        let Some((first, len)) = batch
            .first()
            .and_then(|first| Some((first, first.segment_bytes?)))
        else {
            return Err(error);
        };
        if !matches!(error.raw_os_error(), Some(EINVAL | EIO | EMSGSIZE)) {
            return Err(error);
        }
        for (index, bytes) in first.bytes.chunks(len.into()).enumerate() {
            let segment = Outgoing {
                bytes,
                segment_bytes: None,
                ..*first
            };
            match datagram::send(socket, &[segment], is_connected) {
                Err(error) if index == 0 => return Err(error),
                _ => {}
            }
        }
        Ok(1)
    }

    fn wait_to_send(&mut self, epoll: &Epoll) -> Poll<Result<usize, DatagramError>> {
        if !self.waits_to_send {
            let modified = epoll.modify(self.descriptor.as_fd(), interest(true), self.token);
            if let Err(error) = modified {
                return Poll::Ready(Err(datagram_error(&error)));
            }
            self.waits_to_send = true;
        }
        Poll::Pending
    }
}

/// The segment length for the kernel, if there is anything to segment.
fn segment_bytes(datagram: &OutgoingDatagram<'_>) -> Option<u16> {
    let len = datagram.segment_bytes?.get();
    (datagram.bytes.len() > usize::from(len)).then_some(len)
}

const fn interest(writable: bool) -> Interest {
    Interest {
        readable: true,
        writable,
        edge: true,
        exclusive: false,
    }
}

fn datagram_error(error: &io::Error) -> DatagramError {
    match error.raw_os_error().unwrap_or(0) {
        EMSGSIZE => DatagramError::TooLarge,
        ECONNREFUSED => DatagramError::Refused,
        ENETUNREACH | EHOSTUNREACH => DatagramError::Unreachable,
        code => DatagramError::Other(code),
    }
}

const NOTHING: Outgoing<'_> = Outgoing {
    bytes: &[],
    remote: SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), 0),
    local: None,
    class: 0,
    segment_bytes: None,
};

/// Leaves the two highest bits of the token to listeners and datagrams.
const GENERATION_MASK: u32 = u32::MAX >> 2;

/// Linux's error numbers (asm-generic/errno-base.h and errno.h).
const EIO: i32 = 5;
const EINVAL: i32 = 22;
const EMSGSIZE: i32 = 90;
const ENETUNREACH: i32 = 101;
const ECONNREFUSED: i32 = 111;
const EHOSTUNREACH: i32 = 113;
