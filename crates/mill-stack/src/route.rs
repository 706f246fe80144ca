//! Where packets go first, and which of our addresses they come from.

use crate::config::{Neighboring, Prefix, Route};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use mill_wire::ethernet::MacAddress;

/// The addresses and routes of one link. A look goes through all of them, for there are few.
#[derive(Debug)]
pub struct Routes {
    addresses: Vec<Prefix>,
    /// What was given; of these, `gateways` can be used with the addresses there are.
    given: Vec<Route>,
    gateways: Vec<Route>,
    /// Where other interfaces lead.
    elsewhere: Vec<Prefix>,
    neighboring: Neighboring,
}

/// The way to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The target itself, or the gateway.
    pub next_hop: IpAddr,
    /// Our address for packets that do not have one yet.
    pub source: IpAddr,
}

impl Routes {
    /// Each address' prefix is on the link. With IPv6 the link-local address is added. A route whose gateway is not on
    /// the link leads nowhere and is left out; whoever read the configuration has refused it.
    pub fn new(mac: MacAddress, addresses: &[Prefix], routes: &[Route]) -> Self {
        Self::with(Neighboring::Own, mac, addresses, routes)
    }

    /// The kernel's addresses and routes, as it has them: what is on the link only its routes say.
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

    /// Prefixes that other interfaces lead to: what they hold is not reached here, unless by a longer prefix.
    pub fn set_elsewhere(&mut self, prefixes: &[Prefix]) {
        self.elsewhere.clear();
        self.elsewhere.extend_from_slice(prefixes);
    }

    fn choose_gateways(&mut self) {
        let mut gateways = core::mem::take(&mut self.gateways);
        gateways.clear();
        let is_usable = |route: &&Route| {
            // The kernel has looked at its routes itself.
            self.neighboring == Neighboring::Kernel
                || route.is_on_link()
                || self.is_on_link(route.gateway)
        };
        gateways.extend(self.given.iter().filter(is_usable));
        self.gateways = gateways;
    }

    /// The way to `target`: by the longest prefix, and of two as long ones by the one on the link. `None` if there
    /// is no way, or no address of ours that the target could answer to.
    pub fn route(&self, target: IpAddr) -> Option<Hop> {
        let next_hop = self.next_hop(target)?;
        let source = self.source(target, next_hop)?;
        Some(Hop { next_hop, source })
    }

    /// Where a packet to `target` goes first.
    pub fn next_hop(&self, target: IpAddr) -> Option<IpAddr> {
        if is_everybody_or_group(target) {
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
            // Of equal ones the first configured wins, hence the order turned round.
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
                    if is_everybody_or_group(target) {
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

    /// Whether no peer can have this address (RFC 1122 3.2.1.3, RFC 4291 2.5, 2.7): ours, everybody's, nobody's, a
    /// group's, this machine's.
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

fn is_everybody_or_group(address: IpAddr) -> bool {
    address.is_multicast() || address == IpAddr::V4(Ipv4Addr::BROADCAST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);

    fn prefix(text: &str) -> Prefix {
        let (address, len) = text.split_once('/').unwrap();
        Prefix {
            address: address.parse().unwrap(),
            len: len.parse().unwrap(),
        }
    }

    fn routes() -> Routes {
        let gateway = |target: &str, gateway: &str| Route {
            target: prefix(target),
            gateway: gateway.parse().unwrap(),
        };
        Routes::new(
            MAC,
            &[
                prefix("10.77.0.2/24"),
                prefix("192.168.9.1/30"),
                prefix("fd00:7::2/64"),
                prefix("2001:db8:1::2/64"),
            ],
            &[
                gateway("0.0.0.0/0", "10.77.0.1"),
                gateway("172.16.0.0/12", "192.168.9.2"),
                gateway("10.77.0.128/25", "192.168.9.2"),
                gateway("::/0", "fe80::1"),
                gateway("fd00:8::/32", "fd00:7::1"),
                Route::on_link(prefix("10.90.0.0/16")),
            ],
        )
    }

    fn check(target: &str, expected: Option<(&str, &str)>) {
        let found = routes().route(target.parse().unwrap());
        let expected = expected.map(|(next_hop, source)| Hop {
            next_hop: next_hop.parse().unwrap(),
            source: source.parse().unwrap(),
        });
        assert_eq!(found, expected, "{target}");
    }

    #[test]
    fn the_longest_prefix_says_where_a_packet_goes_first() {
        check("10.77.0.9", Some(("10.77.0.9", "10.77.0.2")));
        check("10.77.0.127", Some(("10.77.0.127", "10.77.0.2")));
        check("10.77.0.128", Some(("192.168.9.2", "192.168.9.1")));
        check("10.77.1.0", Some(("10.77.0.1", "10.77.0.2")));
        check("172.31.255.255", Some(("192.168.9.2", "192.168.9.1")));
        check("172.32.0.0", Some(("10.77.0.1", "10.77.0.2")));
        check("fd00:7::9", Some(("fd00:7::9", "fd00:7::2")));
        check("fd00:8::9", Some(("fd00:7::1", "fd00:7::2")));
        check("2001:db8:1::77", Some(("2001:db8:1::77", "2001:db8:1::2")));
        check("2001:db8:2::77", Some(("fe80::1", "2001:db8:1::2")));
        check("10.90.1.2", Some(("10.90.1.2", "10.77.0.2")));
        check("255.255.255.255", Some(("255.255.255.255", "10.77.0.2")));
    }

    #[test]
    fn the_source_reaches_as_far_as_the_target_and_no_farther() {
        let link_local = String::from("fe80::ff:fe00:1");
        check("fe80::9", Some(("fe80::9", &link_local)));
        check("ff02::1", Some(("ff02::1", &link_local)));
        check("ff0e::1", Some(("ff0e::1", "fd00:7::2")));
        check("fd00:7::2", Some(("fd00:7::2", "fd00:7::2")));
        check("10.77.0.2", Some(("10.77.0.2", "10.77.0.2")));
    }

    #[test]
    fn without_a_route_or_an_address_of_the_family_there_is_no_way() {
        let routes = Routes::new(MAC, &[prefix("10.77.0.2/24")], &[]);
        for target in ["10.77.1.1", "8.8.8.8", "fd00::1", "fe80::1", "ff02::1"] {
            assert_eq!(routes.route(target.parse().unwrap()), None, "{target}");
        }
        assert!(routes.route("10.77.0.255".parse().unwrap()).is_some());
    }

    #[test]
    fn of_the_kernel_only_routes_lead_anywhere() {
        let check = |routes: &Routes, target: &str, expected: Option<&str>| {
            let found = routes.next_hop(target.parse().unwrap());
            assert_eq!(found, expected.map(|hop| hop.parse().unwrap()), "{target}");
        };
        let gateway = |target: &str, gateway: &str| Route {
            target: prefix(target),
            gateway: gateway.parse().unwrap(),
        };
        let addresses = [prefix("10.77.0.2/24"), prefix("fd00:7::2/64")];
        let mut routes = Routes::of_kernel(
            &addresses,
            &[
                gateway("0.0.0.0/0", "10.99.0.1"),
                Route::on_link(prefix("10.77.0.0/25")),
                gateway("10.94.0.0/16", "fe80::1"),
            ],
        );
        assert!(!routes.is_own(MAC.link_local().into()), "nothing is added");
        check(&routes, "10.77.0.9", Some("10.77.0.9"));
        check(&routes, "10.77.0.129", Some("10.99.0.1"));
        check(&routes, "10.94.0.1", Some("fe80::1"));
        check(&routes, "fd00:7::9", None);
        assert!(routes.is_broadcast("10.77.0.255".parse().unwrap()));
        routes.set_elsewhere(&[prefix("10.94.7.0/24"), prefix("10.77.0.0/24")]);
        check(&routes, "10.94.6.1", Some("fe80::1"));
        check(&routes, "10.94.7.1", None);
        check(&routes, "10.77.0.9", Some("10.77.0.9"));
        check(&routes, "10.77.0.129", None);
        routes.set_routes(&[Route::on_link(prefix("fd00:7::/64"))]);
        check(&routes, "10.94.6.1", None);
        check(&routes, "fd00:7::9", Some("fd00:7::9"));
        routes.set_addresses(MAC, &[prefix("fd00:7::3/64")]);
        let found = routes.route("fd00:7::9".parse().unwrap()).unwrap();
        assert_eq!(found.source, "fd00:7::3".parse::<IpAddr>().unwrap());
    }

    #[test]
    fn a_gateway_is_used_while_an_address_has_it_on_its_link() {
        let route = Route {
            target: prefix("0.0.0.0/0"),
            gateway: "10.77.0.1".parse().unwrap(),
        };
        let mut routes = Routes::new(MAC, &[prefix("10.77.0.2/24")], &[route]);
        let target = "8.8.8.8".parse().unwrap();
        assert_eq!(routes.next_hop(target), Some(route.gateway));
        routes.set_addresses(MAC, &[prefix("10.78.0.2/24")]);
        assert_eq!(routes.next_hop(target), None);
        routes.set_addresses(MAC, &[prefix("10.77.0.3/24")]);
        assert_eq!(routes.next_hop(target), Some(route.gateway));
    }

    #[test]
    fn broadcast_is_the_first_and_the_last_address_of_a_prefix_with_room_for_them() {
        let check = |own: &str, address: &str, expected: bool| {
            let routes = Routes::new(MAC, &[prefix(own)], &[]);
            assert_eq!(
                routes.is_broadcast(address.parse().unwrap()),
                expected,
                "{address} on {own}"
            );
        };
        for (address, expected) in [
            ("10.77.0.0", true),
            ("10.77.0.1", false),
            ("10.77.0.254", false),
            ("10.77.0.255", true),
            ("10.77.1.255", false),
            ("255.255.255.255", true),
        ] {
            check("10.77.0.2/24", address, expected);
        }
        check("10.0.0.1/30", "10.0.0.3", true);
        check("10.0.0.0/31", "10.0.0.1", false);
        check("10.0.0.0/31", "10.0.0.0", false);
        check("10.0.0.1/32", "10.0.0.1", false);
    }

    #[test]
    fn nobody_sends_from_addresses_of_groups_of_this_machine_or_of_ours() {
        let routes = routes();
        for (address, expected) in [
            ("10.77.0.9", false),
            ("10.77.0.2", true),
            ("10.77.0.255", true),
            ("127.0.0.1", true),
            ("0.0.0.0", true),
            ("0.1.2.3", true),
            ("224.0.0.1", true),
            ("8.8.8.8", false),
            ("::", true),
            ("::1", true),
            ("ff02::1", true),
            ("fd00:7::2", true),
            ("fe80::ff:fe00:1", true),
            ("fe80::1", false),
            ("::ffff:10.0.0.1", true),
        ] {
            assert_eq!(
                routes.is_bad_source(address.parse().unwrap()),
                expected,
                "{address}"
            );
        }
    }

    #[test]
    fn a_prefix_holds_addresses_with_its_bits() {
        for (text, address, expected) in [
            ("10.0.0.1/8", "10.255.0.0", true),
            ("10.0.0.1/8", "11.0.0.0", false),
            ("10.0.0.1/32", "10.0.0.1", true),
            ("10.0.0.1/32", "10.0.0.0", false),
            ("0.0.0.0/0", "255.0.0.0", true),
            ("0.0.0.0/0", "::1", false),
            ("::/0", "1.2.3.4", false),
            ("fd00::1/128", "fd00::1", true),
            ("fd00::/127", "fd00::2", false),
        ] {
            let holds = prefix(text).holds(address.parse().unwrap());
            assert_eq!(holds, expected, "{address} in {text}");
        }
    }
}
