//! A frame arrives: Ethernet, IP, flow look-up.
//!
//! Read this first: RFC 1122 3.2.1 (what a host drops silently), RFC 9293 3.10.7.

use crate::drop_reason::DropReason;
use crate::flow::Flow;
use crate::host::Host;
use crate::link::{FrameId, Link, Received, ReceivedChecksum, Stray};
use crate::queue::SendQueue;
use core::net::IpAddr;
use core::ops::Range;
use mill_wire::Malformed;
use mill_wire::arp::ArpPacket;
use mill_wire::ethernet::{EtherType, EthernetHeader, MacAddress};
use mill_wire::ipv4::Ecn;
use mill_wire::ipv6;
use mill_wire::protocol::Protocol;
use mill_wire::vlan::LinkHeader;

/// TCP: the connection, listener, handshake or TIME-WAIT entry that a segment is for.
mod segment;

/// Segments that nothing stands for.
mod refusing;
pub(crate) use refusing::Refused;

/// SYNs, and the acknowledgements that end handshakes.
mod handshake;

/// SYNs that open connections by themselves.
mod fast_open;

/// The IP header and its payload.
mod ip;

/// ICMP and neighbour discovery.
mod icmp;

/// ICMP errors of routers and peers about connections.
mod icmp_error;

/// UDP, and fragments.
mod datagram;

/// The sender of a frame, and whether it was sent to a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) mac: MacAddress,
    /// To a group or broadcast.
    pub(crate) to_group: bool,
}

/// What remains to be done about a packet.
enum Taken {
    Done,
    /// It holds a TCP segment.
    Segment(Packet),
    /// It is a piece of a datagram.
    Fragment,
    /// It is an error about a packet that nothing here has sent.
    StrangeError,
}

/// An IP packet whose header is right: what it carries and where that lies.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) frame: FrameId,
    pub(crate) checksum: ReceivedChecksum,
    pub(crate) merged: u16,
    pub(crate) source: IpAddr,
    pub(crate) target: IpAddr,
    pub(crate) protocol: Protocol,
    /// Where in the packet the protocol is named.
    pub(crate) named_at: u32,
    /// Or time to live.
    pub(crate) hop_limit: u8,
    pub(crate) ecn: Ecn,
    /// Behind the IP headers, in the frame.
    pub(crate) body: Range<usize>,
}

impl Packet {
    /// The addresses of the flow that it belongs to.
    pub(crate) const fn ends(&self) -> Flow {
        Flow {
            local: self.target,
            remote: self.source,
            local_port: 0,
            remote_port: 0,
        }
    }
}

impl<Q: SendQueue> Host<Q> {
    /// Takes one frame; returns whether it is held for a reader.
    pub(crate) fn on_frame<L: Link>(&mut self, link: &mut L, received: &Received) -> bool {
        let frame = link.frame(received.id);
        if let Some((packet, mut ends)) = ip::plain_tcp(frame, self.next_hops.mac, received) {
            let news = self.on_tcp(frame, &packet, &mut ends);
            return self.after_tcp(link, &packet, news);
        }
        let Ok((header, len)) = EthernetHeader::parse(frame) else {
            self.drop_frame(DropReason::Malformed);
            return false;
        };
        let is_unicast = header.target == self.next_hops.mac;
        if !is_unicast && !self.next_hops.neighbors.accepts_mac(header.target) {
            self.drop_frame(DropReason::NotForUs);
            return false;
        }
        let origin = Origin {
            mac: header.source,
            to_group: !is_unicast,
        };
        let (ether_type, len) = match header.ether_type {
            EtherType::VLAN => behind_priority(frame, len),
            ether_type => (ether_type, len),
        };
        let taken = match ether_type {
            EtherType::IPV4 | EtherType::IPV6 => self.on_ip(frame, len, received, origin),
            EtherType::ARP => self.on_arp(frame.get(len..).unwrap_or_default()),
            _ => Err(DropReason::UnknownProtocol),
        };
        match taken {
            Ok(Taken::Segment(packet)) => {
                let news = self.on_tcp(frame, &packet, &mut packet.ends());
                return self.after_tcp(link, &packet, news);
            }
            Ok(Taken::Fragment) => self.on_fragment(link, received, len, origin),
            Ok(Taken::Done) => share_neighbors(link, received, ether_type, len),
            // Routers do not know which queue or process a flow belongs to.
            Ok(Taken::StrangeError) if link.hand_over(received, &Stray::Shared) => {
                self.counters.handed_over += 1;
            }
            Ok(Taken::StrangeError) => self.drop_frame(DropReason::NotForUs),
            Err(reason) => self.drop_frame(reason),
        }
        false
    }

    fn on_arp(&mut self, packet: &[u8]) -> Result<Taken, DropReason> {
        let (packet, _) = ArpPacket::parse(packet).map_err(reason_of)?;
        if !self.next_hops.neighbors.on_arp(&packet, self.now) {
            return Err(DropReason::NotForUs);
        }
        self.wake_parked();
        Ok(Taken::Done)
    }
}

/// IEEE 802.1Q 9.6: a tag of network 0 says no more than a priority, and the frame is one without a tag. Of another network it
/// stays what it is, of no protocol here.
#[cold]
fn behind_priority(frame: &[u8], ethernet_len: usize) -> (EtherType, usize) {
    match LinkHeader::parse(frame) {
        Ok((header, len)) if header.tag.is_some_and(|tag| tag.id == 0) => (header.ether_type, len),
        _ => (EtherType::VLAN, ethernet_len),
    }
}

/// Processes that share the device have resolved neighbours under the same Ethernet address: neighbours' answers are for all of them.
fn share_neighbors<L: Link>(
    link: &mut L,
    received: &Received,
    ether_type: EtherType,
    ethernet_len: usize,
) {
    let packet = link.frame(received.id).get(ethernet_len..);
    let packet = packet.unwrap_or_default();
    let is_advertisement = ether_type == EtherType::IPV6
        && packet.get(ip::NEXT_HEADER_AT_IPV6) == Some(&Protocol::ICMPV6.0)
        && packet.get(ipv6::HEADER_BYTES) == Some(&NEIGHBOR_ADVERTISEMENT);
    if ether_type == EtherType::ARP || is_advertisement {
        // Without such processes it is not handed over.
        let _ = link.hand_over(received, &Stray::Shared);
    }
}

/// The type of ICMPv6 (RFC 4861 4.4).
const NEIGHBOR_ADVERTISEMENT: u8 = 136;

const fn reason_of(malformed: Malformed) -> DropReason {
    match malformed {
        Malformed::Checksum => DropReason::Checksum,
        _ => DropReason::Malformed,
    }
}
