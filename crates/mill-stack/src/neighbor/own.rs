//! Our own addresses: announced at the start, defended, and, if wanted, checked for a second owner first
//! (RFC 4862 5.4, RFC 5227).

use super::outgoing::Outgoing;
use crate::config::Prefix;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use mill_tcp::random::Random;
use mill_tcp::time::{Duration, Instant};
use mill_wire::arp::{ArpOperation, ArpPacket};
use mill_wire::ethernet::MacAddress;
use mill_wire::ndp::{self, Ndp};

/// The addresses of one interface.
#[derive(Debug)]
pub(super) struct Own(Vec<Address>);

#[derive(Debug)]
struct Address {
    address: IpAddr,
    prefix_len: u8,
    state: State,
    /// When the address was defended last (RFC 5227 2.4 (c)).
    defended: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// So many probes for the address were sent.
    Tentative {
        asked: u8,
        at: Instant,
    },
    /// Ours; so many announcements were sent.
    Announcing {
        told: u8,
        at: Instant,
    },
    Ours,
    /// Another host has it too: not used.
    Duplicate,
}

impl Own {
    pub(super) fn new(
        mac: MacAddress,
        addresses: &[Prefix],
        detect: bool,
        random: &mut Random,
        now: Instant,
    ) -> Self {
        let mut own = Self(Vec::with_capacity(addresses.len() + 1));
        let link_local = addresses.iter().any(|prefix| prefix.address.is_ipv6());
        let link_local = link_local.then_some(Prefix {
            address: mac.link_local().into(),
            len: LINK_LOCAL_PREFIX,
        });
        for prefix in addresses.iter().copied().chain(link_local) {
            if own.find(prefix.address).is_some() {
                continue;
            }
            // RFC 5227 2.1.1, RFC 4862 5.4.2: hosts that are switched on together do not probe together.
            let state = if detect {
                let at = now + Duration::from_millis(random.below(START_SPREAD_MS));
                State::Tentative { asked: 0, at }
            } else {
                State::Announcing { told: 0, at: now }
            };
            own.0.push(Address {
                address: prefix.address,
                prefix_len: prefix.len,
                state,
                defended: None,
            });
        }
        own
    }

    /// Addresses that the kernel answers for.
    pub(super) fn of_kernel(addresses: &[Prefix]) -> Self {
        let of = |prefix: &Prefix| Address {
            address: prefix.address,
            prefix_len: prefix.len,
            state: State::Ours,
            defended: None,
        };
        Self(addresses.iter().map(of).collect())
    }

    /// Takes other addresses; those that were there before stay as they are.
    pub(super) fn replace(&mut self, mut with: Self) {
        for new in &mut with.0 {
            if let Some(old) = self.find(new.address) {
                new.state = old.state;
                new.defended = old.defended;
            }
        }
        *self = with;
    }

    pub(super) fn is_usable(&self, address: IpAddr) -> bool {
        self.find(address).is_some_and(Address::is_usable)
    }

    pub(super) fn is_tentative(&self, address: IpAddr) -> bool {
        self.find(address).is_some_and(Address::is_tentative)
    }

    pub(super) fn duplicates(&self) -> impl Iterator<Item = IpAddr> {
        self.0
            .iter()
            .filter(|own| own.state == State::Duplicate)
            .map(|own| own.address)
    }

    /// Whether the address lies in the prefix of one of ours. Link-local ones do, with IPv6.
    pub(super) fn is_on_link(&self, address: IpAddr) -> bool {
        self.0.iter().any(|own| own.prefix().holds(address))
    }

    /// The groups every host belongs to, and one for each address of IPv6 (RFC 4291 2.8); also while it is tentative.
    pub(super) fn accepts_group(&self, group: IpAddr) -> bool {
        match group {
            IpAddr::V4(group) => {
                group == ALL_HOSTS && self.0.iter().any(|own| own.address.is_ipv4())
            }
            IpAddr::V6(group) => self.groups().any(|ours| ours == group),
        }
    }

    pub(super) fn accepts_group_mac(&self, mac: MacAddress) -> bool {
        mac == MacAddress::of_multicast_v4(ALL_HOSTS)
            || self
                .groups()
                .any(|group| MacAddress::of_multicast_v6(group) == mac)
    }

    fn groups(&self) -> impl Iterator<Item = Ipv6Addr> {
        let addresses = self.0.iter().filter_map(|own| match own.address {
            IpAddr::V6(address) => Some(ndp::solicited_node(address)),
            IpAddr::V4(_) => None,
        });
        let all_nodes = self.0.iter().any(|own| own.address.is_ipv6());
        addresses.chain(all_nodes.then_some(ndp::ALL_NODES))
    }

    pub(super) fn next_expiry(&self) -> Option<Instant> {
        self.0.iter().filter_map(Address::due).min()
    }

    /// The next probe or announcement that is due.
    pub(super) fn next_due(
        &mut self,
        mac: MacAddress,
        random: &mut Random,
        now: Instant,
    ) -> Option<Outgoing> {
        // An address that becomes ours by the lapse of time announces itself at once: the search begins anew.
        while let Some(own) = self
            .0
            .iter_mut()
            .find(|own| own.due().is_some_and(|due| due <= now))
        {
            if let Some(outgoing) = own.step(mac, random, now) {
                return Some(outgoing);
            }
        }
        None
    }

    /// Another host uses the address. While it is tentative it is lost (RFC 4862 5.4.3, RFC 5227 2.1.1); later it is
    /// defended, at most every ten seconds (RFC 5227 2.4 (c)).
    pub(super) fn on_conflict(
        &mut self,
        address: IpAddr,
        mac: MacAddress,
        now: Instant,
    ) -> Option<Outgoing> {
        let own = self.0.iter_mut().find(|own| own.address == address)?;
        if own.is_tentative() {
            own.state = State::Duplicate;
            return None;
        }
        let defended = own.defended;
        if !own.is_usable() || defended.is_some_and(|at| now.since(at) < DEFEND_INTERVAL) {
            return None;
        }
        own.defended = Some(now);
        Some(announcement(address, mac))
    }

    /// A request for `address`: to the neighbour that may have it, or by broadcast or multicast. The sender's address
    /// is the one whose prefix the neighbour is in (RFC 4861 7.2.2: one of ours). `None` if there is no such address.
    pub(super) fn question(
        &self,
        mac: MacAddress,
        address: IpAddr,
        neighbor: Option<MacAddress>,
    ) -> Option<Outgoing> {
        let source = self.asker(address)?;
        match (source, address) {
            (IpAddr::V4(sender), IpAddr::V4(target)) => Some(Outgoing::Arp {
                to: neighbor.unwrap_or(MacAddress::BROADCAST),
                packet: ArpPacket {
                    operation: ArpOperation::Request,
                    sender_mac: mac,
                    sender,
                    target_mac: MacAddress::UNSPECIFIED,
                    target,
                },
            }),
            (IpAddr::V6(source), IpAddr::V6(wanted)) => {
                let group = ndp::solicited_node(wanted);
                let (to, target) = match neighbor {
                    Some(neighbor) => (neighbor, wanted),
                    None => (MacAddress::of_multicast_v6(group), group),
                };
                Some(Outgoing::Ndp {
                    to,
                    source,
                    target,
                    message: Ndp::NeighborSolicitation {
                        target: wanted,
                        source_mac: Some(mac),
                    },
                })
            }
            _ => None,
        }
    }

    fn asker(&self, address: IpAddr) -> Option<IpAddr> {
        self.0
            .iter()
            .filter(|own| own.is_usable() && own.address.is_ipv4() == address.is_ipv4())
            .max_by_key(|own| own.prefix().holds(address))
            .map(|own| own.address)
    }

    fn find(&self, address: IpAddr) -> Option<&Address> {
        self.0.iter().find(|own| own.address == address)
    }
}

impl Address {
    const fn is_usable(&self) -> bool {
        matches!(self.state, State::Ours | State::Announcing { .. })
    }

    const fn is_tentative(&self) -> bool {
        matches!(self.state, State::Tentative { .. })
    }

    const fn prefix(&self) -> Prefix {
        Prefix {
            address: self.address,
            len: self.prefix_len,
        }
    }

    const fn due(&self) -> Option<Instant> {
        match self.state {
            State::Tentative { at, .. } | State::Announcing { at, .. } => Some(at),
            State::Ours | State::Duplicate => None,
        }
    }

    /// Probes or announces once more, or goes on to the next state.
    fn step(&mut self, mac: MacAddress, random: &mut Random, now: Instant) -> Option<Outgoing> {
        let times = Times::of(self.address);
        match self.state {
            State::Tentative { asked, .. } if asked < times.questions => {
                let asked = asked + 1;
                // RFC 5227 1.1: 1 to 2 s between probes, 2 s after the last. RFC 4862 5.1: 1 s.
                let wait = match self.address {
                    IpAddr::V4(_) if asked < times.questions => 1000 + random.below(1000),
                    IpAddr::V4(_) => 2000,
                    IpAddr::V6(_) => 1000,
                };
                let at = now + Duration::from_millis(wait);
                self.state = State::Tentative { asked, at };
                Some(claim(self.address, mac))
            }
            State::Tentative { .. } => {
                self.state = State::Announcing { told: 0, at: now };
                None
            }
            State::Announcing { told, .. } if told < times.announcements => {
                let at = now + times.between_announcements;
                self.state = State::Announcing { told: told + 1, at };
                Some(announcement(self.address, mac))
            }
            State::Announcing { .. } => {
                self.state = State::Ours;
                None
            }
            State::Ours | State::Duplicate => None,
        }
    }
}

/// How often and how long.
struct Times {
    questions: u8,
    announcements: u8,
    between_announcements: Duration,
}

impl Times {
    const fn of(address: IpAddr) -> Self {
        match address {
            // RFC 5227 1.1: PROBE_NUM, ANNOUNCE_NUM, ANNOUNCE_INTERVAL.
            IpAddr::V4(_) => Self {
                questions: 3,
                announcements: 2,
                between_announcements: Duration::from_secs(2),
            },
            // RFC 4862 5.1: DupAddrDetectTransmits. RFC 4861 7.2.6: no more than three, a second apart.
            IpAddr::V6(_) => Self {
                questions: 1,
                announcements: 2,
                between_announcements: Duration::from_secs(1),
            },
        }
    }
}

/// Probes an address that is not ours yet (RFC 5227 2.1.1, RFC 4862 5.4.2).
fn claim(address: IpAddr, mac: MacAddress) -> Outgoing {
    match address {
        IpAddr::V4(target) => Outgoing::Arp {
            to: MacAddress::BROADCAST,
            packet: ArpPacket {
                operation: ArpOperation::Request,
                sender_mac: mac,
                sender: Ipv4Addr::UNSPECIFIED,
                target_mac: MacAddress::UNSPECIFIED,
                target,
            },
        },
        IpAddr::V6(wanted) => {
            let group = ndp::solicited_node(wanted);
            Outgoing::Ndp {
                to: MacAddress::of_multicast_v6(group),
                source: Ipv6Addr::UNSPECIFIED,
                target: group,
                message: Ndp::NeighborSolicitation {
                    target: wanted,
                    source_mac: None,
                },
            }
        }
    }
}

/// Announces an address of ours (RFC 5227 2.3, RFC 4861 7.2.6).
fn announcement(address: IpAddr, mac: MacAddress) -> Outgoing {
    match address {
        IpAddr::V4(address) => Outgoing::Arp {
            to: MacAddress::BROADCAST,
            packet: ArpPacket {
                operation: ArpOperation::Request,
                sender_mac: mac,
                sender: address,
                target_mac: MacAddress::UNSPECIFIED,
                target: address,
            },
        },
        IpAddr::V6(address) => Outgoing::Ndp {
            to: MacAddress::of_multicast_v6(ndp::ALL_NODES),
            source: address,
            target: ndp::ALL_NODES,
            message: Ndp::NeighborAdvertisement {
                router: false,
                solicited: false,
                replaces: true,
                target: address,
                target_mac: Some(mac),
            },
        },
    }
}

/// 224.0.0.1, to which every host belongs (RFC 1112 4).
const ALL_HOSTS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);

/// Bits that all link-local addresses have in common, 64 of them on Ethernet (RFC 2464 5).
const LINK_LOCAL_PREFIX: u8 = 64;

/// Milliseconds over which first probes are spread: RFC 5227 1.1 PROBE_WAIT, RFC 4861 10 MAX_RTR_SOLICITATION_DELAY.
const START_SPREAD_MS: u64 = 1000;

/// RFC 5227 1.1: DEFEND_INTERVAL.
const DEFEND_INTERVAL: Duration = Duration::from_secs(10);
