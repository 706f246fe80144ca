//! The header of an IPv6 packet (RFC 8200 3).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! |Version|    DSCP   |ECN|           Flow Label                  |  0
//! |         Payload Length        |  Next Header  |   Hop Limit   |  4
//! |                    Source Address, 16 bytes                   |  8
//! |                  Destination Address, 16 bytes                | 24
//! ```

use crate::Malformed;
use crate::ipv4::Ecn;
use crate::protocol::Protocol;
use core::net::Ipv6Addr;

/// Bytes of a header; extension headers follow it.
pub const HEADER_BYTES: usize = 40;

/// A packet's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Header {
    /// Differentiated services, 6 bits.
    pub dscp: u8,
    pub ecn: Ecn,
    /// 20 bits, the same for all packets of a flow (RFC 6437).
    pub flow_label: u32,
    /// Bytes behind this header, extension headers included.
    pub payload_len: u16,
    pub next_header: Protocol,
    pub hop_limit: u8,
    pub source: Ipv6Addr,
    pub target: Ipv6Addr,
}

impl Ipv6Header {
    /// The header and its length in bytes; the payload ends `payload_len` bytes behind it, and is all there. Packets
    /// longer than 65 575 bytes (RFC 2675) are not taken.
    #[inline]
    pub fn parse(packet: &[u8]) -> Result<(Self, usize), Malformed> {
        let (header, len) = Self::parse_quoted(packet)?;
        if packet.len() - len < usize::from(header.payload_len) {
            return Err(Malformed::Length);
        }
        Ok((header, len))
    }

    /// A header quoted by an ICMP error: the packet is cut off.
    #[inline]
    pub fn parse_quoted(packet: &[u8]) -> Result<(Self, usize), Malformed> {
        let (fixed, addresses) = packet.split_first_chunk::<8>().ok_or(Malformed::Short)?;
        let (source, rest) = addresses
            .split_first_chunk::<16>()
            .ok_or(Malformed::Short)?;
        let target = rest.first_chunk::<16>().ok_or(Malformed::Short)?;
        let first = u32::from_be_bytes([fixed[0], fixed[1], fixed[2], fixed[3]]);
        if first >> 28 != 6 {
            return Err(Malformed::Version);
        }
        let [_, class, ..] = (first >> 4).to_be_bytes();
        let header = Self {
            dscp: class >> 2,
            ecn: Ecn::from_bits(class),
            flow_label: first & FLOW_LABEL,
            payload_len: u16::from_be_bytes([fixed[4], fixed[5]]),
            next_header: Protocol(fixed[6]),
            hop_limit: fixed[7],
            source: Ipv6Addr::from(*source),
            target: Ipv6Addr::from(*target),
        };
        Ok((header, HEADER_BYTES))
    }

    /// Writes the header; returns its length in bytes.
    ///
    /// # Panics
    /// If `into` is shorter than [`HEADER_BYTES`].
    #[inline]
    pub fn emit(&self, into: &mut [u8]) -> usize {
        debug_assert!(self.dscp < 64 && self.flow_label <= FLOW_LABEL);
        let bytes = into
            .first_chunk_mut::<HEADER_BYTES>()
            .expect("the caller reserves room for the header");
        let class = (self.dscp << 2) | self.ecn.bits();
        let first = 6 << 28 | u32::from(class) << 20 | (self.flow_label & FLOW_LABEL);
        bytes[0..4].copy_from_slice(&first.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.payload_len.to_be_bytes());
        bytes[6] = self.next_header.0;
        bytes[7] = self.hop_limit;
        bytes[8..24].copy_from_slice(&self.source.octets());
        bytes[24..40].copy_from_slice(&self.target.octets());
        HEADER_BYTES
    }
}

/// An empty packet with the hop limit that hosts use.
impl Default for Ipv6Header {
    fn default() -> Self {
        Self {
            dscp: 0,
            ecn: Ecn::NotCapable,
            flow_label: 0,
            payload_len: 0,
            next_header: Protocol::NO_NEXT_HEADER,
            hop_limit: crate::ipv4::TTL_DEFAULT,
            source: Ipv6Addr::UNSPECIFIED,
            target: Ipv6Addr::UNSPECIFIED,
        }
    }
}

/// Bytes that every link carries in one packet (RFC 8200 5).
pub const MTU_MIN: u16 = 1280;

const FLOW_LABEL: u32 = (1 << 20) - 1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Random, any_bytes, round_trip};

    #[test]
    fn headers_are_read_as_they_were_written() {
        let mut random = Random::new(1);
        for _ in 0..200 {
            let header = Ipv6Header {
                dscp: random.byte() >> 2,
                ecn: Ecn::from_bits(random.byte()),
                flow_label: random.long() & FLOW_LABEL,
                payload_len: 0,
                next_header: Protocol(random.byte()),
                hop_limit: random.byte(),
                source: Ipv6Addr::from(random.bytes()),
                target: Ipv6Addr::from(random.bytes()),
            };
            round_trip(&header, HEADER_BYTES, Ipv6Header::emit, Ipv6Header::parse);
        }
    }

    #[test]
    fn the_first_word_holds_version_class_and_label() {
        let header = Ipv6Header {
            dscp: 0b101_110,
            ecn: Ecn::Capable0,
            flow_label: 0xabcde,
            ..Ipv6Header::default()
        };
        let mut bytes = [0; HEADER_BYTES];
        header.emit(&mut bytes);
        assert_eq!(bytes[..4], [0x6b, 0xaa, 0xbc, 0xde]);
    }

    #[test]
    fn the_payload_may_be_shorter_than_the_frame_and_not_longer() {
        for (payload_len, expected) in [(0, true), (20, true), (21, false)] {
            let mut bytes = [0; 60];
            let header = Ipv6Header {
                payload_len,
                ..Ipv6Header::default()
            };
            header.emit(&mut bytes);
            assert_eq!(Ipv6Header::parse(&bytes).is_ok(), expected, "{payload_len}");
            assert!(Ipv6Header::parse_quoted(&bytes).is_ok());
        }
    }

    #[test]
    fn other_versions_are_refused() {
        let mut bytes = [0; HEADER_BYTES];
        Ipv6Header::default().emit(&mut bytes);
        bytes[0] = 0x45;
        assert_eq!(Ipv6Header::parse(&bytes), Err(Malformed::Version));
    }

    #[test]
    fn no_bytes_panic_and_what_is_read_is_written_the_same() {
        let shape = |random: &mut Random, bytes: &mut std::vec::Vec<u8>| {
            if let Some(fixed) = bytes.first_chunk_mut::<6>() {
                fixed[0] = 0x60 | (fixed[0] & 15);
                fixed[4] = 0;
                fixed[5] = random.byte() & 63;
            }
        };
        any_bytes(3, shape, Ipv6Header::emit, Ipv6Header::parse);
    }
}
