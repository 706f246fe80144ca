//! The IP header and its payload (RFC 1122 3.2.1, RFC 8200 3, 4).

use crate::drop_reason::DropReason;
use crate::flow::Flow;
use crate::host::Host;
use crate::icmp::Problem;
use crate::link::Received;
use crate::queue::SendQueue;
use crate::receive::{Origin, Packet, Taken, reason_of};
use core::net::IpAddr;
use mill_wire::ethernet::{EtherType, EthernetHeader, MacAddress};
use mill_wire::ipv4::{Ipv4Header, PlainIpv4};
use mill_wire::ipv6::Ipv6Header;
use mill_wire::ipv6_extension::{Refused, Start, Upper, walk};
use mill_wire::protocol::Protocol;

impl<Q: SendQueue> Host<Q> {
    /// Takes the packet that begins at `at`, unless it is for TCP.
    #[inline]
    pub(super) fn on_ip(
        &mut self,
        frame: &[u8],
        at: usize,
        received: &Received,
        origin: Origin,
    ) -> Result<Taken, DropReason> {
        let packet = match frame.get(at).map(|first| first >> 4) {
            Some(4) => ipv4(frame, at, received)?,
            _ => self.ipv6(frame, at, received, origin)?,
        };
        match packet {
            Some(packet) if packet.protocol == Protocol::TCP => {
                if origin.to_group || packet.target.is_multicast() {
                    return Err(DropReason::NotForUs);
                }
                Ok(Taken::Segment(packet))
            }
            Some(packet) => self.on_datagram(frame, at, &packet, origin),
            None => Ok(Taken::Fragment),
        }
    }

    /// `None` is a fragment.
    #[inline]
    fn ipv6(
        &mut self,
        frame: &[u8],
        at: usize,
        received: &Received,
        origin: Origin,
    ) -> Result<Option<Packet>, DropReason> {
        let bytes = frame.get(at..).unwrap_or_default();
        let (header, len) = Ipv6Header::parse(bytes).map_err(reason_of)?;
        let end = len + usize::from(header.payload_len);
        let behind = bytes.get(len..end).unwrap_or_default();
        let upper = match walk(header.next_header, behind, Start::Packet) {
            Ok(Upper {
                fragment: Some(_), ..
            }) => return Ok(None),
            Ok(upper) => upper,
            Err(refused) => {
                let whole = bytes.get(..end).unwrap_or_default();
                if !origin.to_group {
                    self.next_hops.hear(origin.mac);
                    self.next_hops.note(header.source.into());
                }
                self.complain_of_headers(refused, whole, origin);
                return Err(DropReason::Malformed);
            }
        };
        Ok(Some(Packet {
            frame: received.id,
            checksum: received.checksum,
            merged: received.merged,
            source: header.source.into(),
            target: header.target.into(),
            protocol: upper.protocol,
            named_at: upper.named_at,
            hop_limit: header.hop_limit,
            ecn: header.ecn,
            body: at + len + upper.offset..at + end,
        }))
    }

    /// ICMP, UDP and other protocols than TCP.
    fn on_datagram(
        &mut self,
        frame: &[u8],
        at: usize,
        packet: &Packet,
        origin: Origin,
    ) -> Result<Taken, DropReason> {
        let body = frame.get(packet.body.clone()).unwrap_or_default();
        let whole = frame.get(at..packet.body.end).unwrap_or_default();
        self.check_ends(packet)?;
        if !origin.to_group {
            self.next_hops.hear(origin.mac);
            self.next_hops.note(packet.source);
        }
        match packet.protocol {
            Protocol::ICMPV4 if packet.source.is_ipv4() => {
                return self.on_icmp(packet, origin, body);
            }
            Protocol::ICMPV6 if packet.source.is_ipv6() => {
                return self.on_icmp(packet, origin, body);
            }
            Protocol::UDP => self.on_udp(packet, origin, body, whole)?,
            // RFC 8200 4.7: nothing follows, and nothing is wrong with that.
            Protocol::NO_NEXT_HEADER => {}
            _ => {
                let named_at = packet.named_at;
                let problem = Problem::ProtocolUnreachable { named_at };
                self.complain_about(problem, whole, origin.to_group);
                return Err(DropReason::UnknownProtocol);
            }
        }
        Ok(Taken::Done)
    }

    /// Whether a datagram is for us or a group of ours, and has a valid sender.
    pub(super) fn check_ends(&self, packet: &Packet) -> Result<(), DropReason> {
        let (routes, target) = (&self.next_hops.routes, packet.target);
        let is_broadcast = match target {
            IpAddr::V4(target) => routes.is_broadcast(target),
            IpAddr::V6(_) => false,
        };
        // RFC 4861 7.1.1: a host that checks whether an address is in use has none yet.
        let is_nobody = packet.protocol == Protocol::ICMPV6 && packet.source.is_unspecified();
        let neighbors = &self.next_hops.neighbors;
        if is_broadcast || is_nobody {
            let is_ours =
                is_broadcast || neighbors.is_own(target) || neighbors.accepts_group(target);
            if !is_ours {
                return Err(DropReason::NotForUs);
            }
            if !is_nobody && routes.is_bad_source(packet.source) {
                return Err(DropReason::BadSource);
            }
            return Ok(());
        }
        self.check_addresses(packet.source, target)
    }

    /// Whether a packet is for us alone or for a group of ours, and has a valid sender. Segments of connections need
    /// no such check: their flows were checked when they began.
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

    /// RFC 8200 4, 4.2, 4.4: some headers that are not implemented are answered with an error.
    pub(super) fn complain_of_headers(&mut self, refused: Refused, whole: &[u8], origin: Origin) {
        if let Refused::Problem {
            code,
            pointer,
            also_multicast,
        } = refused
        {
            let problem = Problem::Parameter {
                code,
                pointer,
                also_multicast,
            };
            self.complain_about(problem, whole, origin.to_group);
        }
    }
}

/// The fast path for nearly every segment: in a frame to us alone, whole, behind an IPv4 header without options.
/// `None` leads to the complete checks.
#[inline]
pub(super) fn plain_tcp(
    frame: &[u8],
    mac: MacAddress,
    received: &Received,
) -> Option<(Packet, Flow)> {
    let (ethernet, at) = EthernetHeader::parse(frame).ok()?;
    if ethernet.ether_type != EtherType::IPV4 || ethernet.target != mac {
        return None;
    }
    let (header, len) = PlainIpv4::parse(frame.get(at..)?)?;
    if header.protocol != Protocol::TCP || header.target.is_multicast() {
        return None;
    }
    let packet = Packet {
        frame: received.id,
        checksum: received.checksum,
        merged: received.merged,
        source: IpAddr::V4(header.source),
        target: IpAddr::V4(header.target),
        protocol: header.protocol,
        named_at: PROTOCOL_AT,
        hop_limit: header.ttl,
        ecn: header.ecn,
        body: at + len..at + usize::from(header.total_len),
    };
    let ends = Flow {
        local: IpAddr::V4(header.target),
        remote: IpAddr::V4(header.source),
        local_port: 0,
        remote_port: 0,
    };
    Some((packet, ends))
}

/// `None` is a fragment.
#[inline]
fn ipv4(frame: &[u8], at: usize, received: &Received) -> Result<Option<Packet>, DropReason> {
    let bytes = frame.get(at..).unwrap_or_default();
    let (header, len) = Ipv4Header::parse(bytes).map_err(reason_of)?;
    // RFC 1122 3.2.1.8 (c): a source route that leads on would make a router of us.
    if header.options.leads_on() {
        return Err(DropReason::NotForUs);
    }
    if header.is_fragment() {
        return Ok(None);
    }
    Ok(Some(Packet {
        frame: received.id,
        checksum: received.checksum,
        merged: received.merged,
        source: header.source.into(),
        target: header.target.into(),
        protocol: header.protocol,
        named_at: PROTOCOL_AT,
        hop_limit: header.ttl,
        ecn: header.ecn,
        body: at + len..at + usize::from(header.total_len),
    }))
}

/// Where an IPv6 header names what follows it (RFC 8200 3).
pub(super) const NEXT_HEADER_AT_IPV6: usize = 6;

/// Where an IPv4 header names what follows it (RFC 791 3.1).
const PROTOCOL_AT: u32 = 9;
