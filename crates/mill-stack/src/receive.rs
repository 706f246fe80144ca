//! A frame arrives: Ethernet, IP, which flow.
//!
//! Read this first: RFC 1122 3.2.1 (what a host drops without a word), RFC 9293 3.10.7.

use crate::drop_reason::DropReason;
use crate::host::Host;
use crate::link::{FrameId, Link, Received, ReceivedChecksum};
use crate::neighbor::receive::Envelope;
use crate::queue::SendQueue;
use core::net::IpAddr;
use core::ops::Range;
use mill_tcp::segment::Ecn;
use mill_wire::Malformed;
use mill_wire::arp::ArpPacket;
use mill_wire::checksum::{Sum, verify};
use mill_wire::ethernet::{EtherType, EthernetHeader, MacAddress};
use mill_wire::ipv4::{self, Ipv4Header};
use mill_wire::ipv6::Ipv6Header;
use mill_wire::ndp::Ndp;
use mill_wire::protocol::Protocol;

/// What TCP is: which connection, listener, handshake or wait a segment is for.
mod segment;

/// SYNs, and the acknowledgements that end handshakes.
mod handshake;

/// What routers and peers say of connections.
mod icmp_error;

/// An IP packet whose header is right and that is for us: what it carries and where that lies.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) frame: FrameId,
    pub(crate) checksum: ReceivedChecksum,
    pub(crate) merged: u16,
    pub(crate) source: IpAddr,
    pub(crate) target: IpAddr,
    pub(crate) protocol: Protocol,
    /// Or time to live.
    pub(crate) hop_limit: u8,
    pub(crate) ecn: Ecn,
    /// Behind the IP headers, in the frame.
    pub(crate) body: Range<usize>,
}

impl<Q: SendQueue> Host<Q> {
    /// Takes one frame; says whether it is held for a reader.
    pub(crate) fn on_frame<L: Link>(&mut self, link: &mut L, received: &Received) -> bool {
        let frame = link.frame(received.id);
        let Ok((header, len)) = EthernetHeader::parse(frame) else {
            self.drop_frame(DropReason::Malformed);
            return false;
        };
        let is_unicast = header.target == self.next_hops.mac;
        if !is_unicast && !self.next_hops.neighbors.accepts_mac(header.target) {
            self.drop_frame(DropReason::NotForUs);
            return false;
        }
        let packet = match header.ether_type {
            EtherType::IPV4 => self.ipv4(frame, len, received),
            EtherType::IPV6 => self.ipv6(frame, len, received),
            EtherType::ARP => {
                self.on_arp(frame.get(len..).unwrap_or_default());
                return false;
            }
            _ => Err(DropReason::UnknownProtocol),
        };
        match packet {
            Ok(packet)
                if packet.protocol == Protocol::TCP
                    && is_unicast
                    && !packet.target.is_multicast() =>
            {
                self.on_tcp(link, &packet)
            }
            Ok(packet) if packet.protocol == Protocol::ICMPV6 => {
                if let Err(reason) = self.check_addresses(packet.source, packet.target) {
                    self.drop_frame(reason);
                    return false;
                }
                let body = frame.get(packet.body.clone()).unwrap_or_default();
                let reason = self.on_icmpv6(&packet, header.source, body).err();
                if let Some(reason) = reason {
                    self.drop_frame(reason);
                }
                false
            }
            Ok(_) => {
                self.drop_frame(DropReason::UnknownProtocol);
                false
            }
            Err(reason) => {
                self.drop_frame(reason);
                false
            }
        }
    }

    fn on_arp(&mut self, packet: &[u8]) {
        match ArpPacket::parse(packet) {
            Ok((packet, _)) => {
                if self.next_hops.neighbors.on_arp(&packet, self.now) {
                    self.wake_parked();
                } else {
                    self.drop_frame(DropReason::NotForUs);
                }
            }
            Err(_) => self.drop_frame(DropReason::Malformed),
        }
    }

    fn on_icmpv6(
        &mut self,
        packet: &Packet,
        mac: MacAddress,
        body: &[u8],
    ) -> Result<(), DropReason> {
        let (IpAddr::V6(source), IpAddr::V6(target)) = (packet.source, packet.target) else {
            return Err(DropReason::UnknownProtocol);
        };
        let pseudo_header =
            Sum::of_pseudo_header_v6(source, target, Protocol::ICMPV6.0, body.len());
        if !verify(pseudo_header, body) {
            return Err(DropReason::Checksum);
        }
        let (message, _) = Ndp::parse(body).map_err(reason_of)?;
        let envelope = Envelope {
            mac,
            source,
            target,
            hop_limit: packet.hop_limit,
        };
        if !self
            .next_hops
            .neighbors
            .on_ndp(&envelope, &message, self.now)
        {
            return Err(DropReason::Malformed);
        }
        self.wake_parked();
        Ok(())
    }

    fn ipv4(&self, frame: &[u8], at: usize, received: &Received) -> Result<Packet, DropReason> {
        let packet = frame.get(at..).unwrap_or_default();
        let (header, len) = Ipv4Header::parse(packet).map_err(reason_of)?;
        let (source, target) = (IpAddr::V4(header.source), IpAddr::V4(header.target));
        if header.is_fragment() {
            return Err(DropReason::Fragment);
        }
        Ok(Packet {
            frame: received.id,
            checksum: received.checksum,
            merged: received.merged,
            source,
            target,
            protocol: header.protocol,
            hop_limit: header.ttl,
            ecn: ecn_of(header.ecn),
            body: at + len..at + usize::from(header.total_len),
        })
    }

    fn ipv6(&self, frame: &[u8], at: usize, received: &Received) -> Result<Packet, DropReason> {
        let packet = frame.get(at..).unwrap_or_default();
        let (header, len) = Ipv6Header::parse(packet).map_err(reason_of)?;
        let (source, target) = (IpAddr::V6(header.source), IpAddr::V6(header.target));
        let body = at + len;
        Ok(Packet {
            frame: received.id,
            checksum: received.checksum,
            merged: received.merged,
            source,
            target,
            protocol: header.next_header,
            hop_limit: header.hop_limit,
            ecn: ecn_of(header.ecn),
            body: body..body + usize::from(header.payload_len),
        })
    }

    /// Whether a packet is for us and from somebody. Segments of connections need no such look: their flows were
    /// looked at when they began.
    pub(crate) fn check_addresses(&self, source: IpAddr, target: IpAddr) -> Result<(), DropReason> {
        let neighbors = &self.next_hops.neighbors;
        if !neighbors.is_own(target) && !neighbors.accepts_group(target) {
            return Err(DropReason::NotForUs);
        }
        if self.next_hops.routes.is_bad_source(source) {
            return Err(DropReason::BadSource);
        }
        Ok(())
    }
}

const fn reason_of(malformed: Malformed) -> DropReason {
    match malformed {
        Malformed::Checksum => DropReason::Checksum,
        _ => DropReason::Malformed,
    }
}

const fn ecn_of(ecn: ipv4::Ecn) -> Ecn {
    match ecn {
        ipv4::Ecn::NotCapable => Ecn::NotCapable,
        ipv4::Ecn::Capable1 => Ecn::Capable1,
        ipv4::Ecn::Capable0 => Ecn::Capable0,
        ipv4::Ecn::CongestionExperienced => Ecn::Congested,
    }
}
