//! Packets of the peer, byte by byte.

use mill_wire::checksum;
use mill_wire::checksum::Sum;
use mill_wire::ipv4::Ipv4Header;
use mill_wire::ipv6::Ipv6Header;
use mill_wire::protocol::Protocol;
use mill_wire::udp;
use mill_wire::udp::UdpHeader;
use std::net::IpAddr;

pub(crate) fn packet(source: &str, target: &str, protocol: Protocol, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 40];
    let len = match (source.parse().unwrap(), target.parse().unwrap()) {
        (IpAddr::V4(source), IpAddr::V4(target)) => Ipv4Header {
            total_len: u16::try_from(20 + body.len()).unwrap(),
            protocol,
            source,
            target,
            ..Ipv4Header::default()
        }
        .emit(&mut bytes),
        (IpAddr::V6(source), IpAddr::V6(target)) => Ipv6Header {
            payload_len: u16::try_from(body.len()).unwrap(),
            next_header: protocol,
            source,
            target,
            ..Ipv6Header::default()
        }
        .emit(&mut bytes),
        other => panic!("{other:?}"),
    };
    bytes.truncate(len);
    bytes.extend(body);
    bytes
}

pub(crate) fn pseudo_header(source: &str, target: &str, protocol: Protocol, len: usize) -> Sum {
    let (source, target) = (source.parse().unwrap(), target.parse().unwrap());
    Sum::of_pseudo_header(source, target, protocol.0, len)
}

pub(crate) fn icmp(source: &str, target: &str, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let pseudo_header = if source.contains(':') {
        pseudo_header(source, target, Protocol::ICMPV6, bytes.len())
    } else {
        Sum::ZERO
    };
    checksum::fill(pseudo_header, &mut bytes, 2);
    bytes
}

pub(crate) fn datagram(source: &str, target: &str, ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 8];
    let header = UdpHeader {
        source: ports.0,
        target: ports.1,
        len: u16::try_from(8 + payload.len()).unwrap(),
    };
    header.emit(&mut bytes);
    bytes.extend(payload);
    let pseudo_header = pseudo_header(source, target, Protocol::UDP, bytes.len());
    udp::fill(pseudo_header, &mut bytes);
    bytes
}

/// Type and code of the only message that was sent.
pub(crate) fn message(sent: &[Vec<u8>]) -> (u8, u8) {
    let [packet] = sent else {
        panic!("{sent:?}");
    };
    let at = if packet[0] >> 4 == 6 { 40 } else { 20 };
    (packet[at], packet[at + 1])
}
