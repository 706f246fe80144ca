//! The interface of applications: identifiers, options, readiness, errors.

use mill_tcp::config::{Algorithm, Dscp, Keepalive};
use mill_tcp::time::Duration;

/// A connection of a host, until it is closed. The generation makes a stale one harmless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SocketId {
    pub index: u32,
    pub generation: u32,
}

/// A listener of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListenerId(pub u32);

/// How to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenOptions {
    /// Established connections that may wait to be accepted.
    pub backlog: u32,
    /// Several listeners with equal address share its connections by a hash of the flow (`SO_REUSEPORT`).
    pub share: bool,
    /// Report a connection only when its first bytes are here (`TCP_DEFER_ACCEPT`).
    pub deferred: bool,
    /// Fast Open requests that may wait to be acknowledged (RFC 7413 5.1); `None` is off.
    pub fast_open: Option<u32>,
    /// Fast Open takes data in a SYN also without a cookie, so that a forged address can cause work; for networks
    /// without forged addresses (RFC 7413 5, `TCP_FASTOPEN_NO_COOKIE`).
    pub fast_open_without_cookie: bool,
    pub nodelay: bool,
    /// `::` listens for IPv4 too.
    pub dual_stack: bool,
    /// The initial options of its connections.
    pub each: SocketOptions,
}

/// What a socket may have of its own; `None` is as the host's configuration says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketOptions {
    /// Bytes of the largest segment to announce and to send, if the path takes it (`TCP_MAXSEG`). A change after the
    /// SYN has left has no effect.
    pub mss_max: Option<u16>,
    /// How long data may stay unacknowledged (`TCP_USER_TIMEOUT`).
    pub user_timeout: Option<Duration>,
    /// Probes of an idle connection (`SO_KEEPALIVE`).
    pub keepalive: Option<Keepalive>,
    /// Bytes received and not read, at most (`SO_RCVBUF`).
    pub receive_buffer_bytes: Option<u32>,
    /// How the congestion window grows (`TCP_CONGESTION`).
    pub congestion: Option<Algorithm>,
    /// How often a SYN is repeated (`TCP_SYNCNT`).
    pub syn_retries_max: Option<u8>,
    /// How its packets are to be treated on their way (`IP_TOS`, `IPV6_TCLASS`).
    pub dscp: Dscp,
    /// As a client: the SYN asks the server for a Fast Open cookie, or, where one is known, carries it and what was
    /// queued before the next `transmit` (RFC 7413 4.1, `MSG_FASTOPEN`, `TCP_FASTOPEN_CONNECT`). The server may see
    /// these bytes twice, on two connections: for requests that may be repeated.
    pub fast_open: bool,
    /// Data leaves with the SYN also without a cookie (`TCP_FASTOPEN_NO_COOKIE`), for networks without forged
    /// addresses.
    pub fast_open_without_cookie: bool,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self {
            backlog: 511,
            share: false,
            deferred: false,
            fast_open: None,
            fast_open_without_cookie: false,
            nodelay: true,
            dual_stack: false,
            each: SocketOptions::default(),
        }
    }
}

/// Why a host does not listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenError {
    /// Another listener has the address, and not both share.
    InUse,
    /// Not an address of this host.
    NotOurs,
    /// All 2^32 numbers of listeners are used up.
    TooMany,
}

/// Why a connection can't be opened; nothing stays open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectError {
    /// No route leads to the target.
    NoRoute,
    /// The source is not an address of this host, or no port is left for this target.
    NoPort,
    /// The port that was asked for is used for this target already.
    InUse,
    /// [`crate::limits::Limits::connections_max`].
    TooMany,
}

/// Why a connection carries nothing any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketError {
    /// The peer reset it.
    Reset,
    /// The peer refused our SYN.
    Refused,
    /// No answer, or no router has a route.
    Unreachable,
    /// [`crate::queue::Vanished`].
    Vanished,
    /// The identifier is of a connection that was closed.
    Stale,
}

/// What can be read of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readable {
    /// Bytes that have arrived in order and were not consumed.
    pub unread: usize,
    /// The peer has finished: after these bytes nothing follows.
    pub finished: bool,
    /// After these bytes there is this.
    pub error: Option<SocketError>,
}

/// A connection that changed, and the number that its owner gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    pub token: u64,
    pub socket: SocketId,
}
