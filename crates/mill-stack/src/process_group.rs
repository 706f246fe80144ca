//! Hosts of several processes that share a device, and what one of them has to know of the others.
//!
//! Those that listen at the same address are a group, as sockets that share a port by `SO_REUSEPORT`: each new connection is that
//! host's on which the hash of its flow falls, or one's that has nothing to do.

use crate::flow::Flow;
use core::fmt;
use core::net::SocketAddr;

/// The other processes. Cost of a question about a connection: a load, and a hash where more hosts listen than the device has queues
/// for.
pub trait ProcessGroup: fmt::Debug + Send {
    /// This host listens at the address, with one listener more.
    fn join(&mut self, address: SocketAddr);

    /// New connections of one of its listeners there are others', if there are others.
    fn leave(&mut self, address: SocketAddr);

    /// Which other hosts listen there that do not neglect it.
    fn others(&mut self, address: SocketAddr) -> Others;

    /// Which host a segment to a listener at `address` is for that no connection is known for, without those that can't be reached. One
    /// that opens a connection may go to a host that has less to do; any other one can be the answer to a cookie of the host on which
    /// the flow's hash falls.
    fn taker(
        &mut self,
        address: SocketAddr,
        flow: &Flow,
        is_opening: bool,
        unreachable: &[u64],
    ) -> Taker;

    /// What this host has of connections to its listeners at `address`.
    fn note_load(&mut self, address: SocketAddr, load: Load);

    /// A new connection to `address` goes to this process, or this host takes it: what that tells of itself comes later. A SYN that is sent
    /// again goes there, too.
    fn note_given(&mut self, address: SocketAddr, flow: &Flow, taker: Taker);

    /// Whether a connection was of a process that has just ended, so that no host has it any more.
    fn has_departed(&self, flow: &Flow) -> bool;

    /// This host begins a connection of the flow.
    fn forget_departed(&mut self, flow: &Flow);
}

/// How busy a host is with its listener's connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Those that the program has accepted and not closed.
    pub accepted: u32,
    /// Those that wait to be accepted.
    pub waiting: u32,
    /// Handshakes under way: some will never be connections.
    pub half_open: u32,
    /// The program does not look whether any wait.
    pub is_neglected: bool,
}

impl Load {
    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            accepted: self.accepted.saturating_add(other.accepted),
            waiting: self.waiting.saturating_add(other.waiting),
            half_open: self.half_open.saturating_add(other.half_open),
            is_neglected: self.is_neglected && other.is_neglected,
        }
    }
}

/// Other hosts that listen at an address, and whose programs look whether connections wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Others {
    pub count: usize,
    /// Those that have no connection.
    pub idle: usize,
    /// Some are known to serve several connections at a time.
    pub are_concurrent: bool,
}

/// Which host takes a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taker {
    This,
    /// That of the process with this number.
    Another(u64),
    /// None listens there, as far as that is known.
    None,
}
