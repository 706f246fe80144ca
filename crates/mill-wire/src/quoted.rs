//! The packet that an ICMP error is about (RFC 792, RFC 4443 2.4 (c)): as much of it as the error holds.

use crate::Malformed;
use crate::ipv4::Ipv4Header;
use crate::ipv6::Ipv6Header;
use crate::ipv6_extension::{Start, walk};
use crate::protocol::Protocol;
use crate::seq::SeqNumber;
use core::net::IpAddr;

/// Whose packet it was, as its sender sees it: `source` is the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoted {
    pub protocol: Protocol,
    pub source: IpAddr,
    pub target: IpAddr,
    /// Ports and sequence number mean something for TCP, and the ports for UDP.
    pub source_port: u16,
    pub target_port: u16,
    pub seq: SeqNumber,
}

impl Quoted {
    /// Reads an IPv4 packet that is cut off at least eight bytes behind its header. A later fragment says
    /// nothing about ports: it has a wrong version.
    pub fn parse_v4(packet: &[u8]) -> Result<Self, Malformed> {
        let (header, len) = Ipv4Header::parse_quoted(packet)?;
        if header.fragment_offset != 0 {
            return Err(Malformed::Version);
        }
        let upper = packet.get(len..).unwrap_or_default();
        Self::parse_upper(
            header.protocol,
            header.source.into(),
            header.target.into(),
            upper,
        )
    }

    /// Reads an IPv6 packet, extension headers included. Such as no host here sends have a wrong version.
    pub fn parse_v6(packet: &[u8]) -> Result<Self, Malformed> {
        let (header, len) = Ipv6Header::parse_quoted(packet)?;
        let payload = packet.get(len..).unwrap_or_default();
        let upper =
            walk(header.next_header, payload, Start::Packet).map_err(|_| Malformed::Version)?;
        if upper.fragment.is_some_and(|fragment| fragment.offset != 0) {
            return Err(Malformed::Version);
        }
        let bytes = payload.get(upper.offset..).unwrap_or_default();
        Self::parse_upper(
            upper.protocol,
            header.source.into(),
            header.target.into(),
            bytes,
        )
    }

    fn parse_upper(
        protocol: Protocol,
        source: IpAddr,
        target: IpAddr,
        upper: &[u8],
    ) -> Result<Self, Malformed> {
        let &[a, b, c, d, e, f, g, h] = upper.first_chunk::<8>().ok_or(Malformed::Short)?;
        Ok(Self {
            protocol,
            source,
            target,
            source_port: u16::from_be_bytes([a, b]),
            target_port: u16::from_be_bytes([c, d]),
            seq: SeqNumber(u32::from_be_bytes([e, f, g, h])),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use core::net::{Ipv4Addr, Ipv6Addr};
    use std::vec::Vec;

    const UPPER: [u8; 8] = [0x12, 0x34, 0, 80, 1, 2, 3, 4];

    fn packet_v4(header: Ipv4Header) -> Vec<u8> {
        let mut bytes = [0; 28].to_vec();
        header.emit(&mut bytes);
        bytes[20..].copy_from_slice(&UPPER);
        bytes
    }

    fn packet_v6(next_header: Protocol, extension: &[u8]) -> Vec<u8> {
        let header = Ipv6Header {
            // Longer than what is there: the packet is cut off.
            payload_len: 1400,
            next_header,
            source: "fd00::1".parse().unwrap(),
            target: "fd00::2".parse().unwrap(),
            ..Ipv6Header::default()
        };
        let mut bytes = [0; 40].to_vec();
        header.emit(&mut bytes);
        bytes.extend(extension);
        bytes.extend(UPPER);
        bytes
    }

    fn expected(source: IpAddr, target: IpAddr) -> Quoted {
        Quoted {
            protocol: Protocol::TCP,
            source,
            target,
            source_port: 0x1234,
            target_port: 80,
            seq: SeqNumber(0x0102_0304),
        }
    }

    #[test]
    fn eight_bytes_behind_the_header_tell_the_flow_and_seven_do_not() {
        let (source, target) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let mut bytes = packet_v4(Ipv4Header {
            total_len: 1500,
            protocol: Protocol::TCP,
            source,
            target,
            ..Ipv4Header::default()
        });
        // A router that has changed the time to live and not the checksum.
        bytes[8] = 1;
        let expected = expected(source.into(), target.into());
        assert_eq!(Quoted::parse_v4(&bytes), Ok(expected));
        for cut in 0..bytes.len() {
            assert!(Quoted::parse_v4(&bytes[..cut]).is_err(), "{cut}");
        }
    }

    #[test]
    fn extension_headers_are_passed_over() {
        let (source, target): (Ipv6Addr, Ipv6Addr) =
            ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap());
        let expected = expected(source.into(), target.into());
        let tcp = Protocol::TCP.0;
        for (next_header, extension) in [
            (Protocol::TCP, &[][..]),
            (Protocol::DESTINATION_OPTIONS, &[tcp, 0, 1, 4, 0, 0, 0, 0]),
            (Protocol::FRAGMENT, &[tcp, 0, 0, 1, 0, 0, 0, 7]),
        ] {
            let bytes = packet_v6(next_header, extension);
            assert_eq!(Quoted::parse_v6(&bytes), Ok(expected));
            for cut in 0..bytes.len() {
                assert!(Quoted::parse_v6(&bytes[..cut]).is_err(), "{cut}");
            }
        }
    }

    #[test]
    fn later_fragments_tell_no_flow() {
        let bytes = packet_v4(Ipv4Header {
            total_len: 28,
            fragment_offset: 8,
            ..Ipv4Header::default()
        });
        assert_eq!(Quoted::parse_v4(&bytes), Err(Malformed::Version));
        let bytes = packet_v6(Protocol::FRAGMENT, &[6, 0, 0, 8, 0, 0, 0, 7]);
        assert_eq!(Quoted::parse_v6(&bytes), Err(Malformed::Version));
    }

    #[test]
    fn no_bytes_panic() {
        let mut random = Random::new(9);
        for _ in 0..3000 {
            let mut bytes: Vec<u8> = (0..random.below(90)).map(|_| random.byte()).collect();
            if let Some(first) = bytes.first_mut() {
                *first = [0x45, 0x46, 0x60][random.below(3)];
            }
            let _ = (Quoted::parse_v4(&bytes), Quoted::parse_v6(&bytes));
        }
    }
}
