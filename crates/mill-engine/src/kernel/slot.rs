//! One connection's state, and the slab of them.

use super::outbound::Outbound;
use super::{DATAGRAM_BIT, LISTENER_BIT};
use mill_runtime::address::Address;
use mill_runtime::stream::StreamError;
use mill_runtime::tasks::TaskId;
use mill_sys::address::Peer;
use mill_sys::epoll::Event;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

/// A connection. While idle it owns nothing but its descriptor.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) descriptor: OwnedFd,
    pub(super) task: TaskId,
    /// Bytes received and not consumed, when they are not in the turn's shared buffer.
    #[expect(
        clippy::box_collection,
        reason = "8 bytes in a slot that is mostly idle, not 24"
    )]
    pub(super) unread: Option<Box<Vec<u8>>>,
    pub(super) outbound: Option<Box<Outbound>>,
    pub(super) sent: u64,
    pub(super) error: Option<StreamError>,
    pub(super) flags: Flags,
    remote: SocketAddr,
    /// The listener's path, for a Unix socket.
    pub(super) unix: Option<Box<Address>>,
}

/// The state of the socket.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flags {
    /// The next receive may find something.
    pub(super) may_receive: bool,
    /// The next send may be taken.
    pub(super) may_send: bool,
    /// epoll has reported the peer's FIN: receive until it is seen, as no further report will come.
    pub(super) fin_announced: bool,
    /// epoll has reported that the connection is no more.
    pub(super) hung_up: bool,
    /// The FIN was seen.
    pub(super) finished: bool,
    /// An outgoing connection that is not established yet.
    pub(super) connecting: bool,
    /// In the epoll set, and registered for writability as well.
    pub(super) registered: bool,
    pub(super) registered_writable: bool,
    /// Send FIN when the queue is empty.
    pub(super) shutdown_due: bool,
    /// Packets that are not full wait for more.
    pub(super) corked: bool,
    /// Something was queued since the list of such slots was flushed.
    pub(super) unsent: bool,
    /// It has used up its share of this turn, and its queue is not empty.
    pub(super) share_used: bool,
    /// It is reported in the next turn without epoll.
    pub(super) resumed: bool,
}

impl Slot {
    /// A connection that is read at once: its first bytes have probably arrived.
    pub(super) fn accepted(
        descriptor: OwnedFd,
        task: TaskId,
        peer: Peer,
        local: Option<Address>,
    ) -> Self {
        let flags = Flags {
            may_receive: true,
            may_send: true,
            ..Flags::default()
        };
        let (remote, unix) = match peer {
            Peer::Ip(remote) => (remote, None),
            Peer::Unix => (UNNAMED, local.map(Box::new)),
        };
        Self::new(descriptor, task, flags, remote, unix)
    }

    pub(super) fn connecting(descriptor: OwnedFd, task: TaskId, target: Address) -> Self {
        let flags = Flags {
            connecting: true,
            ..Flags::default()
        };
        let (remote, unix) = match target {
            Address::Ip(remote) => (remote, None),
            Address::Unix(_) => (UNNAMED, Some(Box::new(target))),
        };
        Self::new(descriptor, task, flags, remote, unix)
    }

    fn new(
        descriptor: OwnedFd,
        task: TaskId,
        flags: Flags,
        remote: SocketAddr,
        unix: Option<Box<Address>>,
    ) -> Self {
        let (unread, outbound, error) = (None, None, None);
        Self {
            descriptor,
            task,
            unread,
            outbound,
            sent: 0,
            error,
            flags,
            remote,
            unix,
        }
    }

    /// There is nothing to receive and nothing to send, and epoll reports when that changes.
    pub(super) fn is_silent(&self) -> bool {
        let flags = &self.flags;
        let may_change = flags.may_receive || flags.finished || !flags.registered;
        !may_change && self.unread.is_none() && self.is_drained()
    }

    /// Everything was sent that the slot has queued, and nothing has failed.
    pub(super) fn is_drained(&self) -> bool {
        let flags = &self.flags;
        let is_busy = flags.connecting || flags.shutdown_due;
        !is_busy && self.outbound.is_none() && self.error.is_none()
    }

    /// Notes a report; returns whether there is something to send that could not be sent before.
    pub(super) fn on_report(&mut self, report: Event) -> bool {
        self.flags.may_receive |= report.readable();
        self.flags.may_send |= report.writable();
        self.flags.fin_announced |= report.finished();
        self.flags.hung_up |= report.hung_up();
        self.flags.connecting &= !report.is_established();
        let waits = self.outbound.is_some() || self.flags.shutdown_due;
        waits && report.writable() && !std::mem::replace(&mut self.flags.unsent, true)
    }

    pub(super) fn peer(&self) -> Address {
        match &self.unix {
            None => Address::Ip(self.remote),
            Some(_) => Address::Unix([].into()),
        }
    }

    /// The path of the Unix socket that the connection was accepted at or connected to.
    pub(super) fn unix_path(&self) -> Option<&Address> {
        self.unix.as_deref()
    }

    /// Bytes in the queue, without those in the gather buffer.
    pub(super) fn queued(&self) -> u64 {
        self.outbound.as_ref().map_or(0, |outbound| outbound.len())
    }
}

/// All connections of an engine. A slot's token changes when it is reused, so that a report for the former connection
/// is recognised.
#[derive(Debug, Default)]
pub(super) struct Slots {
    entries: Vec<Entry>,
    vacant: Vec<u32>,
}

#[derive(Debug)]
struct Entry {
    generation: u32,
    slot: Option<Slot>,
}

impl Slots {
    pub(super) fn insert(&mut self, slot: Slot) -> u32 {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.entries.push(Entry {
                generation: 0,
                slot: None,
            });
            u32::try_from(self.entries.len() - 1).expect("fewer than 2^32 connections")
        });
        if let Some(entry) = self.entries.get_mut(index as usize) {
            entry.slot = Some(slot);
        }
        index
    }

    pub(super) fn remove(&mut self, index: u32) -> Option<Slot> {
        let entry = self.entries.get_mut(index as usize)?;
        let slot = entry.slot.take()?;
        entry.generation = entry.generation.wrapping_add(1) & GENERATION_MASK;
        self.vacant.push(index);
        Some(slot)
    }

    pub(super) fn slot(&mut self, index: u32) -> Option<&mut Slot> {
        self.entries.get_mut(index as usize)?.slot.as_mut()
    }

    pub(super) fn count(&self) -> usize {
        self.entries.len() - self.vacant.len()
    }

    /// Slots that were ever in use: all indices are lower.
    pub(super) fn places(&self) -> u32 {
        u32::try_from(self.entries.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn token(&self, index: u32) -> u64 {
        let generation = self
            .entries
            .get(index as usize)
            .map_or(0, |entry| entry.generation);
        u64::from(generation) << 32 | u64::from(index)
    }

    /// The index in a token.
    pub(super) fn index(token: u64) -> u32 {
        u32::try_from(token & u64::from(u32::MAX)).unwrap_or(u32::MAX)
    }

    pub(super) fn by_token(&mut self, token: u64) -> Option<&mut Slot> {
        let entry = self.entries.get_mut(Self::index(token) as usize)?;
        if u64::from(entry.generation) != token >> 32 {
            return None;
        }
        entry.slot.as_mut()
    }
}

/// Leaves the token's highest bits to listeners and datagrams.
const GENERATION_MASK: u32 = u32::MAX >> 2;
const _: () = assert!(((GENERATION_MASK as u64) << 32) & (LISTENER_BIT | DATAGRAM_BIT) == 0);

/// The address of a peer without one.
const UNNAMED: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), 0);

#[cfg(test)]
mod tests {
    use super::*;

    /// The engine's part of an idle connection; the server asserts its own.
    #[test]
    fn a_slot_is_at_most_128_bytes() {
        assert!(size_of::<Entry>() <= 128, "{}", size_of::<Entry>());
    }
}
