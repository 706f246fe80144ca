//! What is to be sent to neighbours: ARP packets and messages of neighbour discovery, as whole frames.

use core::net::Ipv6Addr;
use mill_wire::arp::{self, ArpPacket};
use mill_wire::checksum::{self, Sum};
use mill_wire::ethernet::{self, EtherType, EthernetHeader, MacAddress};
use mill_wire::ipv6::{self, Ipv6Header};
use mill_wire::ndp::{self, Ndp};
use mill_wire::protocol::Protocol;

/// Bytes of the longest frame made here: a solicitation or advertisement with its option.
pub const FRAME_BYTES_MAX: usize = ethernet::HEADER_BYTES + ipv6::HEADER_BYTES + 32;

const _: () = assert!(FRAME_BYTES_MAX >= ethernet::HEADER_BYTES + arp::PACKET_BYTES);

/// A frame as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outgoing {
    Arp {
        to: MacAddress,
        packet: ArpPacket,
    },
    /// A solicitation or advertisement of a neighbour.
    Ndp {
        to: MacAddress,
        source: Ipv6Addr,
        target: Ipv6Addr,
        message: Ndp,
    },
}

impl Outgoing {
    /// Writes the frame, sent by `mac`; returns its length in bytes.
    ///
    /// # Panics
    /// If `into` is shorter than [`FRAME_BYTES_MAX`].
    pub fn emit(&self, mac: MacAddress, into: &mut [u8]) -> usize {
        let (to, ether_type) = match self {
            Self::Arp { to, .. } => (*to, EtherType::ARP),
            Self::Ndp { to, .. } => (*to, EtherType::IPV6),
        };
        let header = EthernetHeader {
            target: to,
            source: mac,
            ether_type,
        };
        let len = header.emit(into);
        let rest = into.get_mut(len..).unwrap_or_default();
        len + match self {
            Self::Arp { packet, .. } => packet.emit(rest),
            Self::Ndp {
                source,
                target,
                message,
                ..
            } => emit_ndp(*source, *target, message, rest),
        }
    }
}

fn emit_ndp(source: Ipv6Addr, target: Ipv6Addr, message: &Ndp, into: &mut [u8]) -> usize {
    let (_, rest) = into
        .split_at_mut_checked(ipv6::HEADER_BYTES)
        .expect("the caller reserves room for the frame");
    let len = message.emit(rest);
    if let Some(bytes) = rest.get_mut(..len) {
        let pseudo_header = Sum::of_pseudo_header_v6(source, target, Protocol::ICMPV6.0, len);
        checksum::fill(pseudo_header, bytes, ndp::CHECKSUM_OFFSET);
    }
    let header = Ipv6Header {
        payload_len: u16::try_from(len).unwrap_or(0),
        next_header: Protocol::ICMPV6,
        hop_limit: ndp::HOP_LIMIT,
        source,
        target,
        ..Ipv6Header::default()
    };
    header.emit(into) + len
}

#[cfg(test)]
mod tests {
    use super::*;
    use mill_wire::arp::ArpOperation;

    const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);

    #[test]
    fn a_question_over_ipv6_is_a_whole_frame_with_its_checksum() {
        let source = MAC.link_local();
        let wanted = "fd00::2".parse().unwrap();
        let target = ndp::solicited_node(wanted);
        let message = Ndp::NeighborSolicitation {
            target: wanted,
            source_mac: Some(MAC),
        };
        let outgoing = Outgoing::Ndp {
            to: MacAddress::of_multicast_v6(target),
            source,
            target,
            message,
        };
        let mut frame = [0; FRAME_BYTES_MAX];
        assert_eq!(outgoing.emit(MAC, &mut frame), 86);
        let (ethernet, at) = EthernetHeader::parse(&frame).unwrap();
        assert_eq!(
            (ethernet.source, ethernet.ether_type),
            (MAC, EtherType::IPV6)
        );
        let (header, len) = Ipv6Header::parse(&frame[at..]).unwrap();
        assert_eq!((header.hop_limit, header.payload_len), (255, 32));
        let bytes = &frame[at + len..86];
        let pseudo_header = Sum::of_pseudo_header_v6(source, target, 58, bytes.len());
        assert!(checksum::verify(pseudo_header, bytes));
        assert_eq!(Ndp::parse(bytes), Ok((message, 32)));
    }

    #[test]
    fn an_arp_packet_is_a_frame_of_42_bytes() {
        let packet = ArpPacket {
            operation: ArpOperation::Request,
            sender_mac: MAC,
            sender: "10.0.0.1".parse().unwrap(),
            target_mac: MacAddress::UNSPECIFIED,
            target: "10.0.0.2".parse().unwrap(),
        };
        let outgoing = Outgoing::Arp {
            to: MacAddress::BROADCAST,
            packet,
        };
        let mut frame = [0; FRAME_BYTES_MAX];
        assert_eq!(outgoing.emit(MAC, &mut frame), 42);
        assert_eq!(
            frame[..14],
            [255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 8, 6]
        );
        assert_eq!(ArpPacket::parse(&frame[14..42]), Ok((packet, 28)));
    }
}
