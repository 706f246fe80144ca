//! What programs hold: descriptors of sockets.

use mill_sockets::errno::Errno;
use mill_stack::socket::{ListenOptions, ListenerId, SocketId};
use std::collections::BTreeMap;
use std::net::SocketAddr;

#[derive(Debug, Default)]
pub(crate) struct Descriptors {
    open: BTreeMap<i32, Descriptor>,
    made: i32,
}

/// Numbers begin here, so that none is one of the process's own.
const FIRST: i32 = 1000;

/// Bytes that may wait to be sent, before `SO_SNDBUF` says otherwise: Linux's `tcp_wmem`, the middle one of what
/// packetdrill's scripts set.
const SEND_BUFFER_BYTES: u64 = 256 * 1024;

/// A socket as its program sees it.
#[derive(Debug)]
pub(crate) struct Descriptor {
    pub(crate) kind: Kind,
    pub(crate) options: ListenOptions,
    pub(crate) bound: Option<SocketAddr>,
    pub(crate) is_ipv6: bool,
    pub(crate) waits: bool,
    pub(crate) cork: bool,
    /// `TCP_FASTOPEN_CONNECT`.
    pub(crate) connects_fast: bool,
    /// `SO_LINGER` with no time.
    pub(crate) aborts: bool,
    pub(crate) reads_no_more: bool,
    pub(crate) writes_no_more: bool,
    pub(crate) send_buffer_bytes: u64,
    /// Unsent bytes from which on it is not writable (`TCP_NOTSENT_LOWAT`).
    pub(crate) not_sent_max: Option<u64>,
    /// An error is told once.
    pub(crate) was_error_told: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Fresh,
    /// Connected as far as its program knows: the first write opens the connection (`TCP_FASTOPEN_CONNECT`).
    Deferred(SocketAddr),
    Listener(ListenerId),
    Stream(SocketId),
}

impl Descriptor {
    pub(crate) fn new(kind: Kind, is_ipv6: bool) -> Self {
        Self {
            kind,
            options: ListenOptions {
                nodelay: false,
                dual_stack: is_ipv6,
                ..ListenOptions::default()
            },
            bound: None,
            is_ipv6,
            waits: true,
            cork: false,
            connects_fast: false,
            aborts: false,
            reads_no_more: false,
            writes_no_more: false,
            send_buffer_bytes: SEND_BUFFER_BYTES,
            not_sent_max: None,
            was_error_told: false,
        }
    }

    pub(crate) const fn stream(&self) -> Result<SocketId, Errno> {
        match self.kind {
            Kind::Stream(id) => Ok(id),
            Kind::Fresh | Kind::Deferred(_) | Kind::Listener(_) => Err(Errno::NOT_CONNECTED),
        }
    }
}

impl Descriptors {
    pub(crate) fn add(&mut self, descriptor: Descriptor) -> i32 {
        let number = FIRST + self.made;
        self.made += 1;
        self.open.insert(number, descriptor);
        number
    }

    pub(crate) fn find(&mut self, number: i32) -> Result<&mut Descriptor, Errno> {
        self.open.get_mut(&number).ok_or(Errno::BAD_DESCRIPTOR)
    }

    pub(crate) fn remove(&mut self, number: i32) -> Result<Descriptor, Errno> {
        self.open.remove(&number).ok_or(Errno::BAD_DESCRIPTOR)
    }
}
