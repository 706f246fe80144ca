//! Packets from neighbours: ARP (RFC 826) and neighbour discovery (RFC 4861 7).

use super::entry::{Entry, State};
use super::outgoing::Outgoing;
use super::{LOCK_TIME, Neighbors};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use mill_tcp::time::Instant;
use mill_wire::arp::{ArpOperation, ArpPacket};
use mill_wire::ethernet::MacAddress;
use mill_wire::ndp::{self, Ndp};

/// The addresses and the hop limit around a message of neighbour discovery.
#[derive(Clone, Copy, Debug)]
pub struct Envelope {
    /// The sender of the frame.
    pub mac: MacAddress,
    pub source: Ipv6Addr,
    pub target: Ipv6Addr,
    pub hop_limit: u8,
}

impl Neighbors {
    /// An ARP packet arrived, unicast or broadcast. Returns whether it was valid.
    pub fn on_arp(&mut self, packet: &ArpPacket, now: Instant) -> bool {
        if self.is_of_kernel() {
            // The kernel has it too, and answers.
            return true;
        }
        if packet.sender_mac == self.mac {
            // Our own, come back.
            return false;
        }
        let sender = IpAddr::V4(packet.sender);
        let target = IpAddr::V4(packet.target);
        if !packet.sender_mac.is_unicast() || !is_host(packet.sender) {
            // RFC 5227 2.1.1: a request without sender address is a probe whether an address is in use. Two hosts
            // that probe the same one both lose it.
            let asks = packet.sender_mac.is_unicast()
                && packet.sender.is_unspecified()
                && packet.operation == ArpOperation::Request;
            if asks && self.own.is_tentative(target) {
                self.own.on_conflict(target, self.mac, now);
            } else if asks && self.own.is_usable(target) {
                self.answer_arp(packet);
            }
            return asks;
        }
        if self.own.is_tentative(sender) || self.own.is_usable(sender) {
            // RFC 5227 2.4: another host claims our address.
            if let Some(defence) = self.own.on_conflict(sender, self.mac, now) {
                self.send(defence);
            }
            return true;
        }
        self.learn_from_arp(packet, now);
        if packet.operation == ArpOperation::Request && self.own.is_usable(target) {
            self.answer_arp(packet);
        }
        true
    }

    /// RFC 826: known entries are updated; new ones are learnt only from requests for an address of ours, and only of
    /// this link. So unsolicited packets neither fill the cache nor take an address over.
    fn learn_from_arp(&mut self, packet: &ArpPacket, now: Instant) {
        let sender = IpAddr::V4(packet.sender);
        let to_us = self.own.is_usable(packet.target.into());
        let reply_to_us =
            to_us && packet.operation == ArpOperation::Reply && packet.target_mac == self.mac;
        let mac = packet.sender_mac;
        match self.entries.get(&sender) {
            Some(entry) => match entry.state {
                State::Incomplete { .. } | State::Failed { .. } if reply_to_us => {
                    self.set_reachable(sender, mac, now);
                }
                // A request proves the address as well as an answer does, but not that our frames arrive.
                State::Incomplete { .. } | State::Failed { .. } => {
                    self.set_stale(sender, mac, now);
                }
                _ if reply_to_us && entry.mac == mac => self.set_reachable(sender, mac, now),
                _ if entry.mac == mac => {}
                // Of several answers to one request the first one counts.
                _ if now.since(entry.changed) < LOCK_TIME => {}
                _ => self.set_stale(sender, mac, now),
            },
            None if to_us
                && packet.operation == ArpOperation::Request
                && self.own.is_on_link(sender) =>
            {
                self.insert(sender, Entry::learnt(mac, now));
                self.epoch = self.epoch.wrapping_add(1);
            }
            None => {}
        }
    }

    fn answer_arp(&mut self, request: &ArpPacket) {
        self.send(Outgoing::Arp {
            to: request.sender_mac,
            packet: ArpPacket {
                operation: ArpOperation::Reply,
                sender_mac: self.mac,
                sender: request.target,
                target_mac: request.sender_mac,
                target: request.sender,
            },
        });
    }

    /// A message of neighbour discovery arrived. Says whether it was valid; those of routers are valid and have no
    /// effect, for addresses and routes are given by the configuration.
    pub fn on_ndp(&mut self, envelope: &Envelope, message: &Ndp, now: Instant) -> bool {
        if self.is_of_kernel() {
            return true;
        }
        if envelope.mac == self.mac || envelope.hop_limit != ndp::HOP_LIMIT {
            // RFC 4861 7.1: it came through a router, and is no neighbour's. Or it is our own, come back (RFC 7527).
            return false;
        }
        match *message {
            Ndp::NeighborSolicitation { target, source_mac } => {
                self.on_solicitation(envelope, target, source_mac, now)
            }
            Ndp::NeighborAdvertisement {
                solicited,
                replaces,
                target,
                target_mac,
                ..
            } => {
                let advertisement = Advertisement {
                    solicited,
                    replaces,
                    mac: target_mac.filter(|mac| mac.is_unicast()),
                };
                self.on_advertisement(envelope, target, advertisement, now)
            }
            Ndp::RouterSolicitation { .. } => true,
            Ndp::RouterAdvertisement(_) => is_link_local(envelope.source),
        }
    }

    fn on_solicitation(
        &mut self,
        envelope: &Envelope,
        target: Ipv6Addr,
        source_mac: Option<MacAddress>,
        now: Instant,
    ) -> bool {
        let source = envelope.source;
        let detects = source.is_unspecified();
        // RFC 4861 7.1.1.
        let valid = !target.is_multicast()
            && !source.is_multicast()
            && source_mac.is_none_or(MacAddress::is_unicast)
            && (!detects || (source_mac.is_none() && is_solicited_node(envelope.target)));
        if !valid {
            return false;
        }
        let address = IpAddr::V6(target);
        if self.own.is_tentative(address) {
            // RFC 4862 5.4.3: another host is about to take the same address. Requests of others get no answer yet.
            if detects {
                self.own.on_conflict(address, self.mac, now);
            }
            return true;
        }
        if !self.own.is_usable(address) {
            return true;
        }
        if !detects && let Some(mac) = source_mac {
            self.learn_from_ndp(source.into(), mac, now);
        }
        // RFC 4861 7.2.4: a solicitation from the unspecified address is answered to all nodes. Without an option the
        // sender is where the frame came from, which saves a request.
        let (to, answer_target) = if detects {
            (MacAddress::of_multicast_v6(ndp::ALL_NODES), ndp::ALL_NODES)
        } else {
            (source_mac.unwrap_or(envelope.mac), source)
        };
        self.send(Outgoing::Ndp {
            to,
            source: target,
            target: answer_target,
            message: Ndp::NeighborAdvertisement {
                router: false,
                solicited: !detects,
                replaces: true,
                target,
                target_mac: Some(self.mac),
            },
        });
        true
    }

    /// RFC 4861 7.2.3: a neighbour that solicits us will be sent to; its address is learnt, unconfirmed.
    fn learn_from_ndp(&mut self, source: IpAddr, mac: MacAddress, now: Instant) {
        match self.entries.get(&source) {
            Some(entry) if entry.is_known() && entry.mac == mac => {}
            Some(_) => self.set_stale(source, mac, now),
            None if self.own.is_on_link(source) => {
                self.insert(source, Entry::learnt(mac, now));
                self.epoch = self.epoch.wrapping_add(1);
            }
            None => {}
        }
    }

    fn on_advertisement(
        &mut self,
        envelope: &Envelope,
        target: Ipv6Addr,
        advertisement: Advertisement,
        now: Instant,
    ) -> bool {
        // RFC 4861 7.1.2.
        if target.is_multicast() || (envelope.target.is_multicast() && advertisement.solicited) {
            return false;
        }
        let address = IpAddr::V6(target);
        if self.own.is_tentative(address) || self.own.is_usable(address) {
            // RFC 4862 5.4.4.
            if let Some(defence) = self.own.on_conflict(address, self.mac, now) {
                self.send(defence);
            }
            return true;
        }
        // RFC 4861 7.2.5: an advertisement that is not waited for creates no entry.
        let Some(entry) = self.entries.get_mut(&address) else {
            return true;
        };
        let Advertisement {
            solicited,
            replaces,
            mac,
        } = advertisement;
        if !entry.is_known() {
            match mac {
                Some(mac) if solicited => self.set_reachable(address, mac, now),
                Some(mac) => self.set_stale(address, mac, now),
                None => {}
            }
            return true;
        }
        let differs = mac.is_some_and(|mac| mac != entry.mac);
        match mac.filter(|_| differs) {
            Some(_) if !replaces => {
                // Contradictory: the known address stays in use, and is probed.
                if matches!(entry.state, State::Reachable { .. }) {
                    entry.state = State::Stale;
                    self.epoch = self.epoch.wrapping_add(1);
                }
            }
            Some(mac) if solicited => self.set_reachable(address, mac, now),
            Some(mac) => self.set_stale(address, mac, now),
            None if solicited => {
                let mac = entry.mac;
                self.set_reachable(address, mac, now);
            }
            None => {}
        }
        true
    }

    fn set_reachable(&mut self, address: IpAddr, mac: MacAddress, now: Instant) {
        let until = now + self.reachable_time();
        self.set(address, mac, State::Reachable { until }, now);
        self.arm(until);
    }

    fn set_stale(&mut self, address: IpAddr, mac: MacAddress, now: Instant) {
        self.set(address, mac, State::Stale, now);
    }

    fn set(&mut self, address: IpAddr, mac: MacAddress, state: State, now: Instant) {
        debug_assert!(mac.is_unicast(), "{mac} is no neighbour's address");
        let Some(entry) = self.entries.get_mut(&address) else {
            return;
        };
        if !entry.is_known() {
            self.resolved.push(address);
        }
        if !entry.is_known() || entry.mac != mac {
            entry.mac = mac;
            entry.changed = now;
            self.epoch = self.epoch.wrapping_add(1);
        }
        entry.state = state;
    }
}

/// The fields of an advertisement beside its target.
#[derive(Clone, Copy)]
struct Advertisement {
    solicited: bool,
    replaces: bool,
    mac: Option<MacAddress>,
}

/// Whether a neighbour can have this address.
const fn is_host(address: Ipv4Addr) -> bool {
    !address.is_unspecified()
        && !address.is_multicast()
        && !address.is_broadcast()
        && !address.is_loopback()
}

const fn is_link_local(address: Ipv6Addr) -> bool {
    address.segments()[0] & 0xffc0 == 0xfe80
}

fn is_solicited_node(group: Ipv6Addr) -> bool {
    ndp::solicited_node(group) == group
}
