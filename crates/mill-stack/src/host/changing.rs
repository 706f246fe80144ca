//! Changes around the host: neighbours, addresses, routes and the link.

use crate::config::{Prefix, Route};
use crate::host::Host;
use crate::link::{Link, LinkChange, LinkMonitor};
use crate::queue::SendQueue;
use crate::slot::SlotFlags;
use crate::transmit::segment_bytes_max;
use alloc::vec::Vec;
use core::net::IpAddr;
use mill_tcp::time::Instant;
use mill_wire::ethernet::MacAddress;

/// The network around the host, where the kernel manages it (`Neighboring::Kernel`), or where it changes otherwise.
impl<Q: SendQueue> Host<Q> {
    /// Appends what has changed around the link, and lets it go to another process, or come from one. The host's flows are listed
    /// before that: whichever process gets their frames then finds them.
    pub fn follow<L: Link + LinkMonitor>(&mut self, link: &mut L, changes: &mut Vec<LinkChange>) {
        link.take_changes(changes);
        if !self.flows.is_listed()
            && let Some(directory) = link.flow_directory()
        {
            self.flows.list(&self.slots, directory);
        }
        link.change_places();
    }

    /// The properties that a link has reported.
    pub fn on_change(&mut self, change: &LinkChange, now: Instant) {
        self.advance(now);
        match change {
            LinkChange::Addresses(addresses) => self.set_addresses(addresses),
            LinkChange::Routes(routes) => self.set_routes(routes),
            LinkChange::Elsewhere(prefixes) => self.set_elsewhere(prefixes),
            LinkChange::Mtu(mtu) => self.set_mtu(*mtu),
            LinkChange::OwnMac(mac) => self.set_hardware_address(MacAddress(*mac)),
            LinkChange::Neighbor { address, mac } => {
                self.set_neighbor(*address, mac.map(MacAddress));
            }
            LinkChange::PeerGone => self.forget_orphans(),
            LinkChange::PeerThere => {}
        }
    }

    /// Appends the neighbours whose Ethernet addresses are wanted. Each is to be answered by `set_neighbor`, also if
    /// that was called before; without an answer it is wanted again, three times a second apart, and then taken for
    /// absent.
    pub fn take_wanted(&mut self, into: &mut Vec<IpAddr>) {
        self.next_hops.neighbors.take_wanted(into);
    }

    /// Sets the Ethernet address of a neighbour, wanted or not, or that there is none.
    pub fn set_neighbor(&mut self, address: IpAddr, mac: Option<MacAddress>) {
        let neighbors = &mut self.next_hops.neighbors;
        if let Some(before) = neighbors.tell(address, mac, self.now)
            && let Some(mac) = neighbors.known(address)
        {
            self.redirect_replies(before, mac);
        }
        self.wake_parked();
    }

    /// Replaces the addresses. Connections of a removed one stay until it comes back or they time out, as in Linux,
    /// and send nothing; new ones to it are not accepted.
    pub fn set_addresses(&mut self, addresses: &[Prefix]) {
        let next_hops = &mut self.next_hops;
        next_hops.neighbors.set_addresses(addresses, self.now);
        next_hops.routes.set_addresses(next_hops.mac, addresses);
        self.look_for_ways_anew();
    }

    /// Replaces the routes.
    pub fn set_routes(&mut self, routes: &[Route]) {
        self.next_hops.routes.set_routes(routes);
        self.look_for_ways_anew();
    }

    /// Prefixes that other interfaces reach, so that shorter prefixes here do not cover them.
    pub fn set_elsewhere(&mut self, prefixes: &[Prefix]) {
        self.next_hops.routes.set_elsewhere(prefixes);
        self.look_for_ways_anew();
    }

    /// The link carries packets of so many bytes now, at least 256; the caller has made sure that the device has room
    /// for them. Connections with longer segments make shorter ones; those with shorter segments keep them.
    pub fn set_mtu(&mut self, mtu: u16) {
        let mtu = mtu.max(MTU_MIN);
        if mtu == self.link.mtu {
            return;
        }
        let device_cuts = self.link.segment_bytes_max > u32::from(self.link.mtu);
        if !device_cuts {
            self.link.segment_bytes_max = u32::from(mtu);
        }
        self.link.mtu = mtu;
        self.next_hops.paths.set_link_mtu(mtu);
        let longest = segment_bytes_max(&self.link);
        self.tcp_context.set_segment_bytes_max(longest);
        self.shorten_segments(mtu);
    }

    /// The interface has another Ethernet address now.
    pub fn set_hardware_address(&mut self, mac: MacAddress) {
        self.link.address = mac.0;
        self.next_hops.mac = mac;
        self.next_hops.neighbors.set_mac(mac);
    }

    /// Cached routes are outdated, and connections that wait may have a route now.
    fn look_for_ways_anew(&mut self) {
        self.next_hops.outdate();
        self.wake_all_parked();
    }

    /// A neighbour has another Ethernet address: replies through it go there. Scans all connections, which is
    /// expensive and rare.
    fn redirect_replies(&mut self, from: MacAddress, to: MacAddress) {
        for slot in self.slots.iter_mut() {
            if slot.flags.has(SlotFlags::REPLIES) && slot.next_hop == from.0 {
                slot.next_hop = to.0;
            }
        }
    }

    fn shorten_segments(&mut self, mtu: u16) {
        for index in 0..self.slots.places() {
            let Some(slot) = self.slots.at_mut(index) else {
                continue;
            };
            if !slot.flags.has(SlotFlags::IN_USE) || slot.flags.has(SlotFlags::ENDED) {
                continue;
            }
            let headers = if slot.flow.remote.is_ipv4() { 40 } else { 60 };
            let env = &mut self.tcp_context.env(slot.config, self.now);
            if slot.connection.on_smaller_link(mtu - headers, env) {
                self.slots.want_transmit(index);
                self.arm(index);
            }
        }
    }
}

/// Bytes; with less there is no room for headers with all options. No Ethernet is set so low in earnest: IPv4 asks for
/// 576, IPv6 for 1280.
const MTU_MIN: u16 = 256;
