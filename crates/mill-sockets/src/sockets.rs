//! All sockets of a stack.

use crate::epoll_set::{EpollSet, SetNumber};
use crate::errno::Errno;
use crate::slab::Slab;
use crate::socket::{Kind, Socket, SocketNumber};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use leaving::Succession;
use mill_stack::config::{HostConfig, Neighboring};
use mill_stack::host::Host;
use mill_stack::link::{FlowSteering, Link, LinkChange, LinkMonitor, LinkSuccession, Service};
use mill_stack::queue::ByteQueue;
use mill_stack::socket::{ListenerId, Ready};
use mill_tcp::time::Instant;
use neglecting::Unseen;
use unanswered::Unanswered;

/// A turn of the stack.
mod turn;

/// Acknowledgements that wait for what the program says.
mod unanswered;

/// Listening, accepting, connecting.
mod opening;

/// Opening with the first bytes that are written.
mod deferring;

/// Reading and writing.
mod transfer;

/// Shutting down and closing.
pub mod closing;

/// Listeners that other processes have as well, and what waits there.
mod leaving;

/// Listeners that their program does not look at.
pub mod neglecting;

/// What is ready.
mod readiness;

/// Epoll sets.
mod watching;

/// Options.
mod options;

#[cfg(test)]
mod tests;

/// All that the sockets need of their link.
pub trait SocketLink: Link + FlowSteering + LinkMonitor + LinkSuccession {}

impl<L: Link + FlowSteering + LinkMonitor + LinkSuccession> SocketLink for L {}

/// One host, its link, and the sockets and epoll sets that programs have on it.
///
/// [`Self::turn`] comes first whenever a caller may have waited; calls on sockets work on what the last turn brought, and
/// what they write leaves with the next one.
#[derive(Debug)]
pub struct Sockets<L> {
    host: Host<ByteQueue>,
    link: L,
    sockets: Slab<Socket>,
    sets: Slab<EpollSet>,
    /// How many were accepted and are not closed.
    accepted: u32,
    /// Sets that got something to tell since [`Self::take_woken`].
    woken: Vec<SetNumber>,
    /// Which socket is which listener of the host.
    listeners: Vec<(ListenerId, SocketNumber)>,
    /// Where they listen, and where none does any more though connections may be left.
    served: Vec<(ListenerId, Service)>,
    closing: Vec<Service>,
    succession: Succession,
    /// Listeners at which connections wait, and when they were looked for.
    unseen: Vec<Unseen>,
    unseen_at: Instant,
    looked_at: Instant,
    /// The kernel has the stack's addresses too.
    shares_addresses: bool,
    /// The link brings what is sent to the ports of outgoing connections.
    has_opened: bool,
    burst_max: usize,
    /// The last turn may have left frames, or its own do not fit into the link.
    has_more: bool,
    /// What came with the last turn may have to be answered.
    has_answers: bool,
    unanswered: Unanswered,
    is_full: bool,
    now: Instant,
    ready: Vec<Ready>,
    acceptable: Vec<ListenerId>,
    changes: Vec<LinkChange>,
    wanted: Vec<IpAddr>,
}

impl<L: SocketLink> Sockets<L> {
    pub fn new(config: HostConfig, link: L, now: Instant) -> Self {
        Self::numbered(0, config, link, now)
    }

    /// The stack of a process that has several: the numbers of its sockets and sets tell this one ([`crate::slab::Number::slab`]).
    pub fn numbered(number: u8, mut config: HostConfig, link: L, now: Instant) -> Self {
        config.tcp.lazy_acks = true;
        let burst_max = (config.limits.burst_max as usize).max(1);
        let shares_addresses = config.neighbors == Neighboring::Kernel;
        let host = Host::new(config, link.properties(), now);
        Self {
            host,
            link,
            sockets: Slab::new(number),
            sets: Slab::new(number),
            accepted: 0,
            woken: Vec::new(),
            listeners: Vec::new(),
            served: Vec::new(),
            closing: Vec::new(),
            succession: Succession::default(),
            unseen: Vec::new(),
            unseen_at: now,
            looked_at: now,
            shares_addresses,
            has_opened: false,
            burst_max,
            has_more: false,
            has_answers: false,
            unanswered: Unanswered::default(),
            is_full: false,
            now,
            ready: Vec::new(),
            acceptable: Vec::new(),
            changes: Vec::new(),
            wanted: Vec::new(),
        }
    }

    /// The host, for its counters and connections.
    pub const fn host(&self) -> &Host<ByteQueue> {
        &self.host
    }

    pub const fn link(&self) -> &L {
        &self.link
    }

    pub const fn link_mut(&mut self) -> &mut L {
        &mut self.link
    }

    /// Whether connections to an address go through this stack.
    pub fn reaches(&self, target: IpAddr) -> bool {
        self.host.reaches(target.to_canonical())
    }

    /// Whether a listener at an address listens here.
    pub fn has(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_unspecified() || self.host.is_own(address)
    }

    /// Whether the kernel listens at the same addresses.
    pub const fn shares_addresses(&self) -> bool {
        self.shares_addresses
    }

    /// Sockets that programs have.
    pub fn count(&self) -> usize {
        self.sockets.len()
    }

    fn socket(&self, number: SocketNumber) -> Result<&Socket, Errno> {
        self.sockets.get(number).ok_or(Errno::BAD_DESCRIPTOR)
    }

    fn socket_mut(&mut self, number: SocketNumber) -> Result<&mut Socket, Errno> {
        self.sockets.get_mut(number).ok_or(Errno::BAD_DESCRIPTOR)
    }

    /// The peer of a stream, as its program sees it.
    pub fn peer(&self, number: SocketNumber) -> Result<SocketAddr, Errno> {
        let socket = self.socket(number)?;
        let id = socket.stream()?;
        if !self.host.is_established(id) || self.is_closed(id) {
            return Err(Errno::NOT_CONNECTED);
        }
        let peer = self.host.peer(id).ok_or(Errno::NOT_CONNECTED)?;
        Ok(as_seen(peer, socket.options.is_ipv6))
    }

    /// The peer of a stream whose connection may be over.
    pub fn former_peer(&self, number: SocketNumber) -> Result<SocketAddr, Errno> {
        let socket = self.socket(number)?;
        let peer = self.host.peer(socket.stream()?);
        Ok(as_seen(
            peer.ok_or(Errno::NOT_CONNECTED)?,
            socket.options.is_ipv6,
        ))
    }

    /// The address of a socket's own end.
    pub fn local(&self, number: SocketNumber) -> Result<SocketAddr, Errno> {
        let socket = self.socket(number)?;
        let local = match socket.kind {
            Kind::Stream(id) => self.host.local(id),
            Kind::Listener(id) => self.host.listener_address(id),
            Kind::Idle => return Ok(unspecified(socket)),
        };
        let local = local.ok_or(Errno::INVALID)?;
        Ok(as_seen(local, socket.options.is_ipv6))
    }
}

/// The address of a socket that is not connected any more.
const fn unspecified(socket: &Socket) -> SocketAddr {
    let ip = match socket.options.is_ipv6 {
        true => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        false => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    };
    SocketAddr::new(ip, socket.former_port)
}

/// An address as sockets of IPv6 tell it (RFC 4291 2.5.5.2).
fn as_seen(address: SocketAddr, is_ipv6: bool) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if is_ipv6 => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        _ => address,
    }
}
