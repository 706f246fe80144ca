//! Follows what the kernel knows of an interface.
//!
//! A message about addresses, routes or the interface only triggers reading all of them again: the kernel does not
//! announce what follows from another change (routes are removed with their interface), and messages may be lost.
//! Neighbours, of which there may be many, are followed message by message.

use super::ask::{self, BUFFER_BYTES, KernelMessage};
use super::probe::NeighborProbe;
use super::read::{self, Touched};
use super::{LinkQuery, LinkState, Network, NetworkError};
use mill_stack::config::{Prefix, Route};
use mill_sys::netlink::{Group, Netlink, Received};
use mill_wire::ethernet::MacAddress;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};

/// An interface that is followed. The descriptor becomes readable when something may have changed.
#[derive(Debug)]
pub struct NetlinkMonitor {
    query: LinkQuery,
    notifications: Netlink,
    probe: NeighborProbe,
    network: Network,
    /// Changes to be reported by the next call.
    pending: Vec<Change>,
    is_gone: bool,
    overruns: u64,
    buffer: Vec<u8>,
}

/// A change, with the new state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Link(LinkState),
    Addresses(Vec<Prefix>),
    /// As in [`Network`].
    Routes {
        routes: Vec<Route>,
        elsewhere: Vec<Prefix>,
    },
    /// A neighbour's Ethernet address; `None` if it has none any more, or could not be resolved.
    Neighbor {
        address: IpAddr,
        mac: Option<MacAddress>,
    },
    /// The interface was deleted or moved; one that gets its name later is another interface.
    Gone,
}

/// What has to be read again.
#[derive(Clone, Copy, Debug, Default)]
struct Dirty {
    link: bool,
    addresses: bool,
    routes: bool,
    neighbors: bool,
}

impl NetlinkMonitor {
    /// Reads everything about the interface of this name in the caller's network namespace, and follows changes from
    /// then on. It may be used from any thread.
    pub fn of(name: &str) -> Result<Self, NetworkError> {
        let query = LinkQuery::begin(name)?;
        let failed = |cause| query.failed("changes", cause);
        // Subscribe first, so that no change is missed while everything is read.
        let notifications = Netlink::subscribe(&GROUPS).map_err(failed)?;
        notifications
            .set_receive_buffer(RECEIVE_BYTES)
            .map_err(failed)?;
        let probe = NeighborProbe::new(name, query.index()).map_err(failed)?;
        Ok(Self {
            network: query.all()?,
            query,
            notifications,
            probe,
            pending: Vec::new(),
            is_gone: false,
            overruns: 0,
            buffer: vec![0; BUFFER_BYTES],
        })
    }

    /// The state at the last call of `changes`.
    pub const fn network(&self) -> &Network {
        &self.network
    }

    /// How often messages were lost because the receive buffer was full; everything was read again then.
    pub const fn overruns(&self) -> u64 {
        self.overruns
    }

    /// Has the kernel resolve a neighbour, or verify that it is still reachable. `changes` reports the answer; one that
    /// is known already is reported by the next call.
    pub fn ask(&mut self, neighbor: IpAddr) -> io::Result<()> {
        if let Some(mac) = self.network.neighbors.get(&neighbor) {
            self.pending.push(Change::Neighbor {
                address: neighbor,
                mac: Some(*mac),
            });
        }
        self.probe.probe(neighbor)
    }

    /// Appends what has changed since the last call; does not wait.
    pub fn changes(&mut self, into: &mut Vec<Change>) -> Result<(), NetworkError> {
        into.append(&mut self.pending);
        let dirty = self.read_notifications(into)?;
        if self.is_gone {
            return Ok(());
        }
        match self.read_again(dirty, into) {
            // It may have been deleted since the message was sent.
            Err(error) if error.is_gone() => {
                self.mark_gone(into);
                Ok(())
            }
            result => result,
        }
    }

    fn read_notifications(&mut self, into: &mut Vec<Change>) -> Result<Dirty, NetworkError> {
        let mut dirty = Dirty::default();
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut result = Ok(());
        for _ in 0..DATAGRAMS_MAX {
            match self.notifications.receive(&mut buffer) {
                Ok(Received::Messages(len)) => {
                    let bytes = buffer.get(..len).unwrap_or_default();
                    ask::for_each(bytes, |message, _| {
                        self.on_message(&message, &mut dirty, into)
                    });
                }
                Ok(Received::Overrun) => {
                    self.overruns += 1;
                    dirty = Dirty::ALL;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => {
                    result = Err(self.query.failed("changes", error));
                    break;
                }
            }
        }
        self.buffer = buffer;
        result.map(|()| dirty)
    }

    fn on_message(&mut self, message: &KernelMessage, dirty: &mut Dirty, into: &mut Vec<Change>) {
        let touched = match message {
            KernelMessage::Route(message) => read::touched(message, self.query.index()),
            KernelMessage::Unknown(kind) => read::touched_by_unknown(*kind),
            KernelMessage::End(_) => Touched::Nothing,
        };
        match touched {
            Touched::Gone => self.mark_gone(into),
            Touched::Link => {
                dirty.link = true;
                dirty.addresses = true;
                dirty.routes = true;
            }
            Touched::Addresses => {
                dirty.addresses = true;
                dirty.routes = true;
            }
            Touched::Routes => dirty.routes = true,
            Touched::Neighbors => dirty.neighbors = true,
            Touched::Neighbor(address, mac) => self.on_neighbor(address, mac, into),
            Touched::Nothing => {}
        }
    }

    fn on_neighbor(&mut self, address: IpAddr, mac: Option<MacAddress>, into: &mut Vec<Change>) {
        let neighbors = &mut self.network.neighbors;
        let before = match mac {
            Some(mac) => neighbors.insert(address, mac),
            None => neighbors.remove(&address),
        };
        // A failed resolution is reported even for an unknown neighbour, as a packet may wait for it.
        if mac.is_none() || before != mac {
            into.push(Change::Neighbor { address, mac });
        }
    }

    fn mark_gone(&mut self, into: &mut Vec<Change>) {
        if !self.is_gone {
            self.is_gone = true;
            into.push(Change::Gone);
        }
    }

    fn read_again(&mut self, dirty: Dirty, into: &mut Vec<Change>) -> Result<(), NetworkError> {
        if dirty.link {
            let link = self.query.link()?;
            if link != self.network.link {
                into.push(Change::Link(link.clone()));
                self.network.link = link;
            }
        }
        if dirty.addresses {
            let addresses = self.query.addresses()?;
            if addresses != self.network.addresses {
                into.push(Change::Addresses(addresses.clone()));
                self.network.addresses = addresses;
            }
        }
        if dirty.routes {
            self.read_routes_again(into)?;
        }
        if dirty.neighbors {
            self.read_neighbors_again(into)?;
        }
        Ok(())
    }

    fn read_routes_again(&mut self, into: &mut Vec<Change>) -> Result<(), NetworkError> {
        let routes = std::mem::take(&mut self.network.routes);
        let elsewhere = std::mem::take(&mut self.network.elsewhere);
        self.query.read_routes(&mut self.network)?;
        if routes != self.network.routes || elsewhere != self.network.elsewhere {
            into.push(Change::Routes {
                routes: self.network.routes.clone(),
                elsewhere: self.network.elsewhere.clone(),
            });
        }
        Ok(())
    }

    fn read_neighbors_again(&mut self, into: &mut Vec<Change>) -> Result<(), NetworkError> {
        let now = self.query.neighbors()?;
        let before = std::mem::take(&mut self.network.neighbors);
        for address in before.keys().filter(|address| !now.contains_key(address)) {
            into.push(Change::Neighbor {
                address: *address,
                mac: None,
            });
        }
        for (address, mac) in &now {
            if before.get(address) != Some(mac) {
                into.push(Change::Neighbor {
                    address: *address,
                    mac: Some(*mac),
                });
            }
        }
        self.network.neighbors = now;
        Ok(())
    }
}

impl AsFd for NetlinkMonitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.notifications.as_fd()
    }
}

impl Dirty {
    const ALL: Self = Self {
        link: true,
        addresses: true,
        routes: true,
        neighbors: true,
    };
}

const GROUPS: [Group; 7] = [
    Group::Links,
    Group::Neighbors,
    Group::AddressesV4,
    Group::AddressesV6,
    Group::RoutesV4,
    Group::RoutesV6,
    Group::NextHops,
];

/// Bytes of the receive buffer, as far as `net.core.rmem_max` allows: some thousand messages.
const RECEIVE_BYTES: u32 = 1 << 20;

/// Datagrams that one call reads; the descriptor stays readable if there are more.
const DATAGRAMS_MAX: u32 = 1024;

#[cfg(test)]
mod tests;
