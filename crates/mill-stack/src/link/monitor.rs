//! What changes around a link.

use super::ExclusiveLink;
use crate::config::{Prefix, Route};
use crate::flow_directory::FlowDirectory;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::IpAddr;

/// Reports what changes around a link.
pub trait LinkMonitor {
    /// Asks for a neighbour's Ethernet address, for a host whose neighbours are the kernel's (`Neighboring::Kernel`) and
    /// which does not resolve them itself. The answer is a change.
    fn resolve(&mut self, address: IpAddr);

    /// Appends what has changed around the device since the last call. Called each turn: cheap while nothing has.
    fn take_changes(&mut self, into: &mut Vec<LinkChange>);

    /// Where the host is to list its flows, if other processes have a part in the device by now or are about to. Asked until it is
    /// given.
    fn flow_directory(&mut self) -> Option<Box<dyn FlowDirectory>>;

    /// Gives the device to another process, or takes it, if that is due. All flows are listed.
    fn change_places(&mut self);

    /// Whether the device brings frames for other workers of this process, to which the link forwards them.
    fn carries_for_others(&self) -> bool {
        false
    }
}

/// Nothing changes.
impl<L: ExclusiveLink> LinkMonitor for L {
    fn resolve(&mut self, _address: IpAddr) {}

    fn take_changes(&mut self, _into: &mut Vec<LinkChange>) {}

    fn flow_directory(&mut self) -> Option<Box<dyn FlowDirectory>> {
        None
    }

    fn change_places(&mut self) {}
}

/// What can change around a device while a host uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkChange {
    /// All addresses that there are now.
    Addresses(Vec<Prefix>),
    /// All routes that there are now.
    Routes(Vec<Route>),
    /// All prefixes that other links lead to, so that shorter ones do not reach them over this link.
    Elsewhere(Vec<Prefix>),
    /// Bytes of IP packet in a frame on the wire.
    Mtu(u16),
    /// The Ethernet address of our own end.
    OwnMac([u8; 6]),
    /// A neighbour, and its Ethernet address if it has one.
    Neighbor {
        address: IpAddr,
        mac: Option<[u8; 6]>,
    },
    /// The peer of a link of two is gone, with all that it knew of connections.
    PeerGone,
    /// There is a peer at the other end.
    PeerThere,
}
