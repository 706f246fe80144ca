//! One fragment, read out of a packet.

use core::net::IpAddr;
use mill_wire::ipv4::{Ecn, Ipv4Header};
use mill_wire::ipv6::Ipv6Header;
use mill_wire::ipv6_extension::{self, Start, Upper};
use mill_wire::protocol::Protocol;
use mill_wire::{Malformed, icmpv6, tcp, udp};

/// A piece of a datagram.
#[derive(Clone, Copy, Debug)]
pub struct Fragment<'a> {
    pub source: IpAddr,
    pub target: IpAddr,
    pub ident: u32,
    /// Of the first fragment this is what counts (RFC 8200 4.5).
    pub protocol: Protocol,
    pub ecn: Ecn,
    /// Where in the datagram it lies, in bytes.
    pub offset: u16,
    pub more_fragments: bool,
    pub payload: &'a [u8],
    /// The packet, from the IP header on.
    pub packet: &'a [u8],
}

/// Why a fragment is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    Malformed(Malformed),
    /// It is a whole packet.
    NoFragment,
    /// Its first part is too small to tell what the datagram is (RFC 1858 3, RFC 3128, RFC 7112 5).
    Tiny,
    /// Its length or its end can't be (RFC 8200 4.5); in IPv6 that is answered with a parameter problem of code 0 at
    /// the given byte.
    Length {
        pointer: u32,
    },
    /// The extension headers before it are not in order.
    Extension(ipv6_extension::Refused),
}

impl<'a> Fragment<'a> {
    /// Reads a packet whose header says that it is a fragment.
    pub fn parse(packet: &'a [u8]) -> Result<Self, Refusal> {
        match packet.first().map(|first| first >> 4) {
            Some(4) => Self::parse_v4(packet),
            Some(6) => Self::parse_v6(packet),
            _ => Err(Refusal::Malformed(Malformed::Version)),
        }
    }

    fn parse_v4(packet: &'a [u8]) -> Result<Self, Refusal> {
        let (header, len) = Ipv4Header::parse(packet).map_err(Refusal::Malformed)?;
        if !header.is_fragment() {
            return Err(Refusal::NoFragment);
        }
        let payload = packet
            .get(len..usize::from(header.total_len))
            .unwrap_or_default();
        let fragment = Self {
            source: header.source.into(),
            target: header.target.into(),
            ident: header.ident.into(),
            protocol: header.protocol,
            ecn: header.ecn,
            offset: header.fragment_offset,
            more_fragments: header.more_fragments,
            payload,
            packet,
        };
        // RFC 791 3.1: the total length is at byte 2.
        fragment.check_length(2)?;
        fragment.check_end(2)?;
        fragment.check_size(header.protocol, payload)
    }

    fn parse_v6(packet: &'a [u8]) -> Result<Self, Refusal> {
        let (header, len) = Ipv6Header::parse(packet).map_err(Refusal::Malformed)?;
        let end = len + usize::from(header.payload_len);
        let behind = packet.get(len..end).unwrap_or_default();
        let upper = ipv6_extension::walk(header.next_header, behind, Start::Packet)
            .map_err(Refusal::Extension)?;
        let Upper {
            fragment: Some(extension),
            offset,
            ..
        } = upper
        else {
            return Err(Refusal::NoFragment);
        };
        let payload = behind.get(offset..).unwrap_or_default();
        let fragment = Self {
            source: header.source.into(),
            target: header.target.into(),
            ident: extension.ident,
            protocol: extension.next_header,
            ecn: header.ecn,
            offset: extension.offset,
            more_fragments: extension.more_fragments,
            payload,
            packet,
        };
        // RFC 8200 4.5: a wrong length is shown at the payload length, which is at byte 4; an end beyond what a datagram
        // may have at the fragment's offset.
        fragment.check_length(4)?;
        let offset_at = u32::try_from(len + offset).unwrap_or(0) - 6;
        fragment.check_end(offset_at)?;
        // RFC 7112 5: the first fragment holds all headers, that of the upper layer included.
        if fragment.offset != 0 {
            return Ok(fragment);
        }
        match ipv6_extension::walk(fragment.protocol, payload, Start::Datagram) {
            Ok(upper) => {
                let rest = payload.get(upper.offset..).unwrap_or_default();
                fragment.check_size(upper.protocol, rest)
            }
            Err(ipv6_extension::Refused::Malformed(Malformed::Short | Malformed::Length)) => {
                Err(Refusal::Tiny)
            }
            Err(refused) => Err(Refusal::Extension(refused)),
        }
    }

    /// All but the last one end at a multiple of eight bytes, and have some.
    fn check_length(&self, pointer: u32) -> Result<(), Refusal> {
        let is_uneven = self.more_fragments && !self.payload.len().is_multiple_of(8);
        if is_uneven || self.payload.is_empty() {
            return Err(Refusal::Length { pointer });
        }
        Ok(())
    }

    fn check_end(&self, pointer: u32) -> Result<(), Refusal> {
        if usize::from(self.offset) + self.payload.len() > usize::from(u16::MAX) {
            return Err(Refusal::Length { pointer });
        }
        Ok(())
    }

    /// RFC 1858 3: a first fragment without the whole header, or a second one that begins inside it, would let others
    /// look at a header that is not the one that counts.
    fn check_size(self, protocol: Protocol, upper: &[u8]) -> Result<Self, Refusal> {
        let header_len = match protocol {
            Protocol::TCP => tcp::HEADER_BYTES,
            Protocol::UDP => udp::HEADER_BYTES,
            Protocol::ICMPV4 | Protocol::ICMPV6 => icmpv6::HEADER_BYTES,
            _ => 0,
        };
        let inside = usize::from(self.offset) < header_len;
        if inside && (self.offset != 0 || upper.len() < header_len) {
            return Err(Refusal::Tiny);
        }
        Ok(self)
    }
}
