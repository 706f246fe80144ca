//! One socket: a stream or a listener of the host, and what its program has said of it.

use crate::errno::Errno;
use crate::noted::Noted;
use crate::slab::Number;
use core::cell::Cell;
use core::net::SocketAddr;
use mill_stack::socket::{ListenOptions, ListenerId, SocketId};
use mill_tcp::config::Keepalive;
use mill_tcp::time::Duration;

/// A socket of [`crate::sockets::Sockets`].
pub type SocketNumber = Number;

/// What a program sets before and after its socket is connected or listens. The listener's go to its streams.
#[derive(Clone, Debug)]
pub struct Options {
    /// What the host has of its own.
    pub listen: ListenOptions,
    /// Calls wait (no `O_NONBLOCK`).
    pub waits: bool,
    /// The socket is one of IPv6: addresses of IPv4 are told as mapped ones.
    pub is_ipv6: bool,
    pub cork: bool,
    /// What is taken without effect.
    pub noted: Noted,
    /// Probes of an idle connection, once they are on (`TCP_KEEPIDLE` …).
    pub keepalive: Keepalive,
    /// connect(2) leaves the SYN to the first bytes that are written, if they may go with it (`TCP_FASTOPEN_CONNECT`).
    pub is_fast_open: bool,
    /// `SO_LINGER`, in seconds.
    pub linger: Option<u32>,
    /// Bytes that may wait to be acknowledged (`SO_SNDBUF`).
    pub send_buffer_bytes: u32,
    /// Unsent bytes from which on it is not writable (`TCP_NOTSENT_LOWAT`).
    pub not_sent_max: Option<u64>,
    /// Bytes that make it readable (`SO_RCVLOWAT`).
    pub readable_min: u32,
    /// How long a call waits (`SO_RCVTIMEO`, `SO_SNDTIMEO`).
    pub receive_timeout: Option<Duration>,
    pub send_timeout: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: ListenOptions {
                nodelay: false,
                ..ListenOptions::default()
            },
            waits: true,
            is_ipv6: false,
            cork: false,
            noted: Noted::default(),
            keepalive: Keepalive::default(),
            is_fast_open: false,
            linger: None,
            send_buffer_bytes: SEND_BUFFER_BYTES,
            not_sent_max: None,
            readable_min: 1,
            receive_timeout: None,
            send_timeout: None,
        }
    }
}

/// Bytes: Linux's largest automatic send buffer (the last of `tcp_wmem`).
pub const SEND_BUFFER_BYTES: u32 = 4 * 1024 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Listener(ListenerId),
    Stream(SocketId),
    /// Not connected any more, and free to connect anew: its handshake failed, and its program knows it. Or its handshake has not begun.
    Idle,
}

#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) kind: Kind,
    /// By accept(2).
    pub(crate) was_accepted: bool,
    /// Descriptors that refer to it (dup(2)).
    pub(crate) references: u32,
    pub(crate) options: Options,
    pub(crate) reads_no_more: bool,
    pub(crate) writes_no_more: bool,
    /// FIN is sent, or will be.
    pub(crate) has_finished: bool,
    /// An error that the program was not told of yet, beside the connection's own.
    pub(crate) pending: Option<Errno>,
    /// An error is told once.
    pub(crate) was_error_told: bool,
    /// Where connect(2) goes with the first bytes that are written, and from where.
    pub(crate) deferred: Option<Deferred>,
    /// connect(2) has said that the connection is there, or shutdown(2) was called of it.
    pub(crate) was_connected: bool,
    /// shutdown(2) came after the handshake had failed: Linux lets such a socket connect no more (`SS_DISCONNECTING`).
    pub(crate) is_disconnecting: bool,
    /// The port of a connection that is no more: Linux keeps it.
    pub(crate) former_port: u16,
    /// What was known of it when it changed last: unread bytes, and whether it was connected and has ended or failed.
    pub(crate) known_unread: usize,
    pub(crate) known_state: [bool; 3],
    /// There was no room when the program wrote or looked, and it is told when there is some (`SOCK_NOSPACE`).
    pub(crate) lacks_space: Cell<bool>,
    /// What was written last waits for more (`MSG_MORE`).
    pub(crate) is_held: bool,
    /// How often the program has looked whether connections wait.
    pub(crate) looks: Cell<u64>,
    /// The entries of epoll sets that watch it.
    pub(crate) watches: Vec<Watch>,
}

/// A connection of which no SYN has left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deferred {
    pub(crate) target: SocketAddr,
    pub(crate) source: Option<SocketAddr>,
}

/// An entry of an epoll set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Watch {
    pub(crate) set: Number,
    pub(crate) entry: Number,
}

impl Socket {
    pub(crate) const fn new(kind: Kind, options: Options) -> Self {
        Self {
            kind,
            was_accepted: false,
            references: 1,
            options,
            reads_no_more: false,
            writes_no_more: false,
            has_finished: false,
            pending: None,
            was_error_told: false,
            deferred: None,
            was_connected: false,
            is_disconnecting: false,
            former_port: 0,
            is_held: false,
            known_unread: 0,
            known_state: [false; 3],
            lacks_space: Cell::new(false),
            looks: Cell::new(0),
            watches: Vec::new(),
        }
    }

    pub(crate) fn note_look(&self) {
        self.looks.set(self.looks.get() + 1);
    }

    pub(crate) const fn stream(&self) -> Result<SocketId, Errno> {
        match self.kind {
            Kind::Stream(id) => Ok(id),
            Kind::Listener(_) | Kind::Idle => Err(Errno::NOT_CONNECTED),
        }
    }
}
