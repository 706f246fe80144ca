//! What the kernel knows of an interface: its addresses, routes and neighbours. A stack that serves beside the kernel
//! takes them from here and needs no configuration of its own.
//!
//! Reading takes no privileges, and nothing here changes the kernel's state.

use crate::card::AttachedProgram;
use ask::question;
use mill_stack::config::{Prefix, Route};
use mill_sys::interface;
use mill_sys::netlink::Netlink;
use mill_wire::ethernet::MacAddress;
use read::{Routing, Target};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::IpAddr;

/// The same, updated as it changes.
pub mod monitor;

/// Has the kernel resolve a neighbour.
mod probe;

/// Requests, and their answers as messages.
mod ask;

/// Parses the kernel's messages.
mod read;

#[cfg(test)]
mod tests;

/// An interface with its surroundings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    pub link: LinkState,
    /// In the kernel's order, which prefers the first ones.
    pub addresses: Vec<Prefix>,
    /// Routes of the main table through this interface. An unspecified gateway means that the targets are on the link,
    /// as those in an address's own prefix nearly always are.
    pub routes: Vec<Route>,
    /// Prefixes that the main table routes through other interfaces, or nowhere, and that are more specific or have a
    /// better metric than the routes above.
    pub elsewhere: Vec<Prefix>,
    /// Neighbours whose Ethernet address the kernel knows.
    pub neighbors: BTreeMap<IpAddr, MacAddress>,
    /// The number of routes that were left out because there are more than [`ROUTES_MAX`].
    pub routes_left_out: usize,
}

/// The interface itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkState {
    pub name: String,
    pub index: u32,
    pub mac: MacAddress,
    /// Bytes of IP packet in a frame.
    pub mtu: u16,
    /// It is administratively up.
    pub is_up: bool,
    /// It has a carrier as well.
    pub is_running: bool,
    /// The driver's name of a virtual interface's kind: "veth", "macvlan", …; `None` for a card.
    pub kind: Option<String>,
    /// Queues in use.
    pub receive_queues: u32,
    pub transmit_queues: u32,
    /// What it is a virtual network on, if it is one (802.1Q).
    pub vlan: Option<VlanOf>,
}

/// The interface below a virtual network, and the network's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanOf {
    /// Number of the interface.
    pub parent: u32,
    /// 12 bits, as in tags.
    pub id: u16,
}

/// A query that failed, or whose answer could not be parsed.
#[derive(Debug)]
pub struct NetworkError {
    pub(crate) interface: String,
    pub(crate) about: &'static str,
    pub(crate) cause: io::Error,
}

impl Network {
    /// Queries the kernel about the interface of this name, in the caller's network namespace.
    pub fn of(name: &str) -> Result<Self, NetworkError> {
        let query = LinkQuery::begin(name)?;
        query.all()
    }
}

impl LinkState {
    /// Whether frames may come from this machine itself, with checksums that are not completed: unless the driver is
    /// known to be a card's.
    pub const fn peer_may_be_local(&self) -> bool {
        self.kind.is_some()
    }
}

/// A netlink socket, and the interface to query about.
#[derive(Debug)]
pub(crate) struct LinkQuery {
    socket: Netlink,
    name: String,
    index: u32,
}

impl LinkQuery {
    pub(crate) fn begin(name: &str) -> Result<Self, NetworkError> {
        let index = interface::index(name).map_err(|cause| NetworkError {
            interface: name.to_owned(),
            about: "number",
            cause,
        })?;
        let socket = Netlink::open().map_err(|cause| NetworkError {
            interface: name.to_owned(),
            about: "settings",
            cause,
        })?;
        Ok(Self {
            socket,
            name: name.to_owned(),
            index,
        })
    }

    pub(crate) const fn index(&self) -> u32 {
        self.index
    }

    pub(crate) fn failed(&self, about: &'static str, cause: io::Error) -> NetworkError {
        NetworkError {
            interface: self.name.clone(),
            about,
            cause,
        }
    }

    pub(crate) fn all(&self) -> Result<Network, NetworkError> {
        let mut network = Network {
            link: self.link()?,
            addresses: self.addresses()?,
            routes: Vec::new(),
            elsewhere: Vec::new(),
            neighbors: self.neighbors()?,
            routes_left_out: 0,
        };
        self.read_routes(&mut network)?;
        Ok(network)
    }

    pub(crate) fn link(&self) -> Result<LinkState, NetworkError> {
        let failed = |cause| self.failed("settings", cause);
        let answers = ask::ask(&self.socket, question::link(self.index)).map_err(failed)?;
        let link = answers
            .iter()
            .find_map(|message| read::link(message, self.index));
        let mut link = link.ok_or_else(|| failed(io::ErrorKind::InvalidData.into()))?;
        // The link message has the number of possible queues, not of those in use.
        if let Ok(channels) = interface::channels(&link.name) {
            link.receive_queues = channels.receive;
            link.transmit_queues = channels.transmit;
        }
        Ok(link)
    }

    /// The XDP program of the interface.
    pub(crate) fn program(&self) -> Result<Option<AttachedProgram>, NetworkError> {
        let answers = ask::ask(&self.socket, question::link(self.index));
        let answers = answers.map_err(|cause| self.failed("settings", cause))?;
        Ok(answers
            .iter()
            .find_map(|message| read::program(message, self.index)))
    }

    pub(crate) fn addresses(&self) -> Result<Vec<Prefix>, NetworkError> {
        let answers = ask::dump(&self.socket, question::addresses(self.index))
            .map_err(|cause| self.failed("addresses", cause))?;
        let of_ours = |message| read::address(message, self.index);
        Ok(answers.iter().filter_map(of_ours).collect())
    }

    pub(crate) fn neighbors(&self) -> Result<BTreeMap<IpAddr, MacAddress>, NetworkError> {
        let answers = ask::dump(&self.socket, question::neighbors(self.index))
            .map_err(|cause| self.failed("neighbours", cause))?;
        let known = |message| {
            let (address, mac) = read::neighbor(message, self.index)?;
            Some((address, mac?))
        };
        Ok(answers.iter().filter_map(known).collect())
    }

    /// Of several routes to a prefix the one with the lowest metric counts, of equal ones the first.
    pub(crate) fn read_routes(&self, network: &mut Network) -> Result<(), NetworkError> {
        let mut best: BTreeMap<(IpAddr, u8), Routing> = BTreeMap::new();
        for of_ipv6 in [false, true] {
            let answers = match ask::dump(&self.socket, question::routes(of_ipv6)) {
                // No route was ever added in this namespace: there is no table.
                Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
                answers => answers.map_err(|cause| self.failed("routes", cause))?,
            };
            for routing in answers
                .iter()
                .filter_map(|message| read::route(message, self.index))
            {
                let prefix = (routing.prefix.address, routing.prefix.len);
                let known = best.entry(prefix).or_insert(routing);
                if routing.metric < known.metric {
                    *known = routing;
                }
            }
        }
        network.take_routes(best.into_values());
        Ok(())
    }
}

impl Network {
    fn take_routes(&mut self, routings: impl Iterator<Item = Routing>) {
        self.routes.clear();
        self.elsewhere.clear();
        self.routes_left_out = 0;
        for Routing { prefix, target, .. } in routings {
            if self.routes.len() + self.elsewhere.len() >= ROUTES_MAX {
                self.routes_left_out += 1;
                continue;
            }
            match target {
                Target::Gateway(gateway) => self.routes.push(Route {
                    target: prefix,
                    gateway,
                }),
                Target::Link => self.routes.push(Route::on_link(prefix)),
                Target::Elsewhere => self.elsewhere.push(prefix),
            }
        }
        // Prefixes that no route through this interface covers are not reached anyway.
        let routes = &self.routes;
        self.elsewhere.retain(|prefix| {
            routes
                .iter()
                .any(|route| route.target.len <= prefix.len && route.target.holds(prefix.address))
        });
    }
}

impl NetworkError {
    /// Whether the error says that there is no such interface.
    pub(crate) fn is_gone(&self) -> bool {
        let errno = self.cause.raw_os_error();
        matches!(errno, Some(ENODEV | ENXIO))
    }
}

impl fmt::Display for NetworkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (about, interface, cause) = (self.about, &self.interface, &self.cause);
        write!(
            f,
            "the {about} of the interface \"{interface}\" could not be read: {cause}"
        )
    }
}

impl std::error::Error for NetworkError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

/// Routes that are read, those through other interfaces included; looking one up is a linear search. A router of the
/// whole Internet has a million routes, and those beyond this limit are ignored.
pub const ROUTES_MAX: usize = 4096;

/// "No such device" and "No such device or address" (errno-base.h): which one is returned depends on the subsystem.
pub(crate) const ENODEV: i32 = 19;
pub(crate) const ENXIO: i32 = 6;
