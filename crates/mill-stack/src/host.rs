//! The host.

use crate::config::HostConfig;
use crate::link::{Link, LinkProperties};
use crate::queue::SendQueue;
use crate::socket::{
    ConnectError, ListenError, ListenOptions, ListenerId, Readable, Ready, SocketError, SocketId,
};
use alloc::vec::Vec;
use core::marker::PhantomData;
use core::net::SocketAddr;
use mill_tcp::info::Info;
use mill_tcp::time::Instant;

/// One core's host: its connections, listeners, neighbours and routes. `Q` holds what connections have to send.
#[derive(Debug)]
pub struct Host<Q> {
    now: Instant,
    queue: PhantomData<Q>,
}

/// Packets.
impl<Q: SendQueue> Host<Q> {
    pub fn new(config: HostConfig, link: &LinkProperties, now: Instant) -> Self {
        let _ = (config, link);
        Self {
            now,
            queue: PhantomData,
        }
    }

    /// Receives one burst from the link; says how many frames it was. Frames with bytes for a reader are held until
    /// `settle`, the others are released.
    pub fn receive<L: Link>(&mut self, link: &mut L, now: Instant) -> usize {
        let _ = link;
        self.now = now;
        0
    }

    /// Does what is due at `now`.
    pub fn expire(&mut self, now: Instant) {
        self.now = now;
    }

    /// Transmits whatever there is, until the link is full; says whether something is left that waits for the link
    /// only. Does not flush.
    pub fn transmit<L: Link>(&mut self, link: &mut L, now: Instant) -> bool {
        let _ = link;
        self.now = now;
        false
    }

    /// Ends a turn: what readers left is copied out, and all frames go back to the link.
    pub fn settle<L: Link>(&mut self, link: &mut L) {
        let _ = link;
    }

    /// When `expire` is to be called next; earlier than needed at times, never later.
    pub fn next_expiry(&self) -> Option<Instant> {
        None
    }
}

/// Sockets. Commands act at the time of the last packet call of the turn; what they cause to be sent leaves with
/// the next `transmit`.
impl<Q: SendQueue> Host<Q> {
    /// Port 0 lets the host choose one. Errors leave nothing behind.
    pub fn listen(
        &mut self,
        address: SocketAddr,
        options: &ListenOptions,
    ) -> Result<ListenerId, ListenError> {
        let _ = (address, options);
        Err(ListenError::NotOurs)
    }

    /// What waits to be accepted is reset; half-open connections go to a listener that shares the address, if any.
    pub fn close_listener(&mut self, listener: ListenerId) {
        let _ = listener;
    }

    /// The address a listener has, with the port that was chosen.
    pub fn listener_address(&self, listener: ListenerId) -> Option<SocketAddr> {
        let _ = listener;
        None
    }

    /// Takes one waiting connection; its changes will be reported with `token`.
    pub fn accept(&mut self, listener: ListenerId, token: u64) -> Option<SocketId> {
        let _ = (listener, token);
        None
    }

    /// Opens a connection. `source` may have port 0, and the unspecified address.
    pub fn connect(
        &mut self,
        target: SocketAddr,
        source: Option<SocketAddr>,
        nodelay: bool,
        token: u64,
    ) -> Result<SocketId, ConnectError> {
        let _ = (target, source, nodelay, token);
        Err(ConnectError::NoRoute)
    }

    /// Whether a route leads to this address by the link, and it is not one of the host's own.
    pub fn reaches(&self, target: core::net::IpAddr) -> bool {
        let _ = target;
        false
    }

    /// Whether this is one of the host's addresses.
    pub fn is_own(&self, address: core::net::IpAddr) -> bool {
        let _ = address;
        false
    }

    /// Whether the handshake is complete; an error is given by `readable`.
    pub fn is_established(&self, socket: SocketId) -> bool {
        let _ = socket;
        false
    }

    pub fn readable(&self, socket: SocketId) -> Readable {
        let _ = socket;
        Readable {
            error: Some(SocketError::Stale),
            ..Readable::default()
        }
    }

    /// Lends all unread bytes, contiguous, to `take`, which returns how many of them it consumed: where they lie if
    /// they are in one frame, else gathered.
    pub fn read<L: Link, R>(
        &mut self,
        socket: SocketId,
        link: &mut L,
        take: impl FnOnce(&mut [u8]) -> (usize, R),
    ) -> R {
        let _ = (socket, link);
        take(&mut []).1
    }

    /// The reader waits for so many unread bytes: the receive window becomes able to hold them.
    pub fn reserve_receive(&mut self, socket: SocketId, bytes: usize) {
        let _ = (socket, bytes);
    }

    /// The queue of what is to be sent; `None` once the connection has failed. After adding to it, call `wrote`.
    pub fn queue(&mut self, socket: SocketId) -> Option<&mut Q> {
        let _ = socket;
        None
    }

    /// Something was added to the queue.
    pub fn wrote(&mut self, socket: SocketId) {
        let _ = socket;
    }

    /// Bytes at the front of the queue that were sent at least once.
    pub fn in_flight(&self, socket: SocketId) -> u64 {
        let _ = socket;
        0
    }

    /// Bytes that the peer has acknowledged in the connection's life.
    pub fn acked(&self, socket: SocketId) -> u64 {
        let _ = socket;
        0
    }

    /// FIN after what is queued; reading goes on.
    pub fn shutdown(&mut self, socket: SocketId) {
        let _ = socket;
    }

    /// The application leaves: what is queued is still sent, then FIN; RST instead if bytes are unread. The identifier
    /// is stale afterwards.
    pub fn close(&mut self, socket: SocketId) {
        let _ = socket;
    }

    /// RST, and forgotten.
    pub fn abort(&mut self, socket: SocketId) {
        let _ = socket;
    }

    pub fn set_nodelay(&mut self, socket: SocketId, on: bool) {
        let _ = (socket, on);
    }

    pub fn set_cork(&mut self, socket: SocketId, on: bool) {
        let _ = (socket, on);
    }

    pub fn peer(&self, socket: SocketId) -> Option<SocketAddr> {
        let _ = socket;
        None
    }

    pub fn local(&self, socket: SocketId) -> Option<SocketAddr> {
        let _ = socket;
        None
    }

    pub fn info(&self, socket: SocketId) -> Option<Info> {
        let _ = socket;
        None
    }

    /// Appends the connections that changed since the last call, each once: bytes or an end to read, bytes
    /// acknowledged, established, failed.
    pub fn take_ready(&mut self, into: &mut Vec<Ready>) {
        let _ = into;
    }

    /// Appends the listeners that have connections to accept and were not reported since the last `accept` found
    /// none.
    pub fn take_acceptable(&mut self, into: &mut Vec<ListenerId>) {
        let _ = into;
    }
}

const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Host<crate::queue::ByteQueue>>();
};
