//! Routes: the next hop of a packet, and its source address.

use crate::config::{Neighboring, Prefix, Route};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use mill_wire::ethernet::MacAddress;

/// The addresses and routes of one link. A look-up scans all of them, because there are few.
#[derive(Debug)]
pub struct Routes {
    addresses: Vec<Prefix>,
    /// The configured routes; of these, `gateways` can be used with the present addresses.
    given: Vec<Route>,
    gateways: Vec<Route>,
    /// Prefixes that other interfaces reach.
    elsewhere: Vec<Prefix>,
    neighboring: Neighboring,
}

/// The route to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The target itself, or the gateway.
    pub next_hop: IpAddr,
    /// Our address for packets that do not have one yet.
    pub source: IpAddr,
}

/// A route, for status reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteStatus {
    pub target: Prefix,
    /// `None`: the targets are on the link.
    pub gateway: Option<IpAddr>,
    /// It is reached through another interface.
    pub is_elsewhere: bool,
}

impl Routes {
    /// All of it: addresses, usable routes, and prefixes of other interfaces.
    pub fn iter(&self) -> impl Iterator<Item = RouteStatus> {
        let is_own = self.neighboring == Neighboring::Own;
        let addresses = self.addresses.iter().filter(move |_| is_own);
        let on_link = addresses.map(|prefix| RouteStatus {
            target: *prefix,
            gateway: None,
            is_elsewhere: false,
        });
        let given = self.gateways.iter().map(|route| RouteStatus {
            target: route.target,
            gateway: (!route.is_on_link()).then_some(route.gateway),
            is_elsewhere: false,
        });
        let elsewhere = self.elsewhere.iter().map(|prefix| RouteStatus {
            target: *prefix,
            gateway: None,
            is_elsewhere: true,
        });
        on_link.chain(given).chain(elsewhere)
    }

    /// Our addresses.
    pub fn addresses(&self) -> &[Prefix] {
        &self.addresses
    }

    /// Each address' prefix is on the link. With IPv6 the link-local address is added. A route whose gateway is not
    /// on the link cannot be used and is left out; the configuration parser has refused it.
    pub fn new(mac: MacAddress, addresses: &[Prefix], routes: &[Route]) -> Self {
        Self::with(Neighboring::Own, mac, addresses, routes)
    }

    /// The kernel's addresses and routes: only its routes name targets on the link.
    pub fn of_kernel(addresses: &[Prefix], routes: &[Route]) -> Self {
        Self::with(
            Neighboring::Kernel,
            MacAddress::UNSPECIFIED,
            addresses,
            routes,
        )
    }

    fn with(
        neighboring: Neighboring,
        mac: MacAddress,
        addresses: &[Prefix],
        routes: &[Route],
    ) -> Self {
        let mut new = Self {
            addresses: Vec::new(),
            given: routes.to_vec(),
            gateways: Vec::new(),
            elsewhere: Vec::new(),
            neighboring,
        };
        new.set_addresses(mac, addresses);
        debug_assert_eq!(
            new.given.len(),
            new.gateways.len(),
            "gateways that are not on the link: {routes:?}"
        );
        new
    }

    /// Other addresses, for the interface with this Ethernet address.
    pub fn set_addresses(&mut self, mac: MacAddress, addresses: &[Prefix]) {
        self.addresses.clear();
        self.addresses.extend_from_slice(addresses);
        let link_local = IpAddr::V6(mac.link_local());
        if self.neighboring == Neighboring::Own
            && addresses.iter().any(|prefix| prefix.address.is_ipv6())
            && addresses.iter().all(|prefix| prefix.address != link_local)
        {
            self.addresses.push(Prefix {
                address: link_local,
                len: 64,
            });
        }
        self.choose_gateways();
    }

    /// Other routes.
    pub fn set_routes(&mut self, routes: &[Route]) {
        self.given.clear();
        self.given.extend_from_slice(routes);
        self.choose_gateways();
    }

    /// Prefixes that other interfaces reach: their addresses are not reached here, except by a longer prefix.
    pub fn set_elsewhere(&mut self, prefixes: &[Prefix]) {
        self.elsewhere.clear();
        self.elsewhere.extend_from_slice(prefixes);
    }

    fn choose_gateways(&mut self) {
        let mut gateways = core::mem::take(&mut self.gateways);
        gateways.clear();
        let is_usable = |route: &&Route| {
            // The kernel has checked its routes itself.
            self.neighboring == Neighboring::Kernel
                || route.is_on_link()
                || self.is_on_link(route.gateway)
        };
        gateways.extend(self.given.iter().filter(is_usable));
        self.gateways = gateways;
    }

    /// The route to `target`: by the longest prefix, and of two of equal length by the one on the link. `None` if
    /// there is no route, or no address of ours that the target could reply to.
    pub fn route(&self, target: IpAddr) -> Option<Hop> {
        let next_hop = self.next_hop(target)?;
        let source = self.source(target, next_hop)?;
        Some(Hop { next_hop, source })
    }

    /// The next hop of a packet to `target`.
    pub fn next_hop(&self, target: IpAddr) -> Option<IpAddr> {
        if is_broadcast_or_group(target) {
            return Some(target);
        }
        let on_link = self.on_link(target).map(|prefix| prefix.len);
        let gateway = self
            .gateways
            .iter()
            .filter(|route| route.target.holds(target))
            .max_by_key(|route| route.target.len);
        let len = on_link.max(gateway.map(|route| route.target.len))?;
        if self.is_elsewhere(target, len) {
            return None;
        }
        match (on_link, gateway) {
            (Some(len), Some(route)) if route.target.len <= len => Some(target),
            (_, Some(route)) if route.is_on_link() => Some(target),
            (_, Some(route)) => Some(route.gateway),
            (Some(_), None) => Some(target),
            (None, None) => None,
        }
    }

    /// RFC 6724 5: which of our addresses suits `target` best. Its rules 3, 4 and 7 are about addresses that are not
    /// configured here.
    fn source(&self, target: IpAddr, next_hop: IpAddr) -> Option<IpAddr> {
        let is_gateway = next_hop != target;
        self.addresses
            .iter()
            .filter(|own| own.address.is_ipv4() == target.is_ipv4())
            // Of equal ones the first configured wins, so the order is reversed.
            .rev()
            .max_by_key(|own| {
                (
                    // Rule 1: the same address.
                    own.address == target,
                    // Rule 2: a scope that reaches the target, and no wider than it needs.
                    scope_rank(own.address, target),
                    // Rule 5.5: in the prefix of the gateway.
                    is_gateway && own.holds(next_hop),
                    // Rule 8: the longest matching prefix, which says nothing of groups.
                    if is_broadcast_or_group(target) {
                        0
                    } else {
                        matching_bits(own.address, target).min(u32::from(own.len))
                    },
                )
            })
            .map(|own| own.address)
    }

    /// Whether this is one of our addresses.
    pub fn is_own(&self, address: IpAddr) -> bool {
        self.addresses.iter().any(|own| own.address == address)
    }

    /// Whether packets to this address go to the neighbour that has it.
    pub fn is_on_link(&self, address: IpAddr) -> bool {
        self.on_link(address).is_some()
    }

    /// Whether this reaches all hosts of the link (RFC 922 7, RFC 1122 3.2.1.3).
    pub fn is_broadcast(&self, address: Ipv4Addr) -> bool {
        address.is_broadcast()
            || self.addresses.iter().any(|own| match own.address {
                // RFC 3021 2.1: a prefix of 31 bits has no room for such.
                IpAddr::V4(ours) if own.len <= 30 => {
                    let host = u32::MAX >> own.len;
                    let differs = ours.to_bits() ^ address.to_bits();
                    differs & !host == 0
                        && matches!(address.to_bits() & host, bits if bits == host || bits == 0)
                }
                _ => false,
            })
    }

    /// Whether no peer can have this address (RFC 1122 3.2.1.3, RFC 4291 2.5, 2.7): ours, broadcast, unspecified,
    /// multicast, loopback.
    pub fn is_bad_source(&self, address: IpAddr) -> bool {
        let never = match address {
            IpAddr::V4(address) => {
                address.octets()[0] == 0 || address.is_loopback() || self.is_broadcast(address)
            }
            IpAddr::V6(address) => {
                address.is_unspecified()
                    || address.is_loopback()
                    || address.to_ipv4_mapped().is_some()
            }
        };
        never || address.is_multicast() || self.is_own(address)
    }

    /// Whether another interface's route has a longer prefix than `len` bits.
    fn is_elsewhere(&self, target: IpAddr, len: u8) -> bool {
        let mut elsewhere = self.elsewhere.iter();
        elsewhere.any(|prefix| prefix.len > len && prefix.holds(target))
    }

    fn on_link(&self, address: IpAddr) -> Option<&Prefix> {
        if self.neighboring == Neighboring::Kernel {
            return None;
        }
        self.addresses
            .iter()
            .filter(|own| own.holds(address))
            .max_by_key(|own| own.len)
    }
}

impl Prefix {
    /// Whether `address` has the same first bits. One of the other family has not.
    pub const fn holds(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(_), IpAddr::V4(_)) | (IpAddr::V6(_), IpAddr::V6(_)) => {
                matching_bits(self.address, address) >= self.len as u32
            }
            _ => false,
        }
    }
}

/// How many of the first bits two addresses have in common; none across families.
const fn matching_bits(one: IpAddr, other: IpAddr) -> u32 {
    match (one, other) {
        (IpAddr::V4(one), IpAddr::V4(other)) => (one.to_bits() ^ other.to_bits()).leading_zeros(),
        (IpAddr::V6(one), IpAddr::V6(other)) => (one.to_bits() ^ other.to_bits()).leading_zeros(),
        _ => 0,
    }
}

/// RFC 6724 5, rule 2, as a number that is greater for the better address: the smallest of the scopes that are
/// wide enough, else the widest.
const fn scope_rank(own: IpAddr, target: IpAddr) -> i8 {
    let (own, target) = (scope(own), scope(target));
    if own >= target { 100 - own } else { own }
}

/// How far an address reaches (RFC 6724 3.1, 3.2), as in the scope field of groups.
const fn scope(address: IpAddr) -> i8 {
    match address {
        IpAddr::V4(address) if address.is_link_local() || address.is_loopback() => LINK,
        IpAddr::V4(_) => GLOBAL,
        IpAddr::V6(address) => scope_v6(address),
    }
}

const fn scope_v6(address: Ipv6Addr) -> i8 {
    match address.segments() {
        [first, ..] if first & 0xff00 == 0xff00 => match first & 15 {
            0..=2 => LINK,
            3..=5 => SITE,
            _ => GLOBAL,
        },
        [first, ..] if first & 0xffc0 == 0xfe80 => LINK,
        [0, 0, 0, 0, 0, 0, 0, 1] => LINK,
        _ => GLOBAL,
    }
}

const LINK: i8 = 2;
const SITE: i8 = 5;
const GLOBAL: i8 = 14;

fn is_broadcast_or_group(address: IpAddr) -> bool {
    address.is_multicast() || address == IpAddr::V4(Ipv4Addr::BROADCAST)
}

#[cfg(test)]
mod tests;
