//! The header of an IPv4 packet (RFC 791 3.1, RFC 2474, RFC 3168).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! |Version|  IHL  |   DSCP    |ECN|          Total Length         |  0
//! |         Identification        |0|D|M|     Fragment Offset     |  4
//! |  Time to Live |    Protocol   |        Header Checksum        |  8
//! |                        Source Address                         | 12
//! |                      Destination Address                      | 16
//! |                         Options, padded                       | 20
//! ```

use crate::Malformed;
use crate::checksum::{self, Sum};
use crate::ipv4_option::Ipv4Options;
use crate::protocol::Protocol;
use core::net::Ipv4Addr;

/// Packets as nearly all of them are.
mod plain;

pub use plain::PlainIpv4;

/// Bytes of a header without options.
pub const HEADER_BYTES: usize = 20;

/// Bytes of the longest header, options included.
pub const HEADER_BYTES_MAX: usize = 60;

/// A packet's header. The checksum is not part of it: `parse` verifies and `emit` computes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Header {
    /// Differentiated services, 6 bits.
    pub dscp: u8,
    pub ecn: Ecn,
    /// Bytes of the whole packet, header included. A frame may be longer: short ones are padded.
    pub total_len: u16,
    pub ident: u16,
    pub dont_fragment: bool,
    /// This is a fragment and not the last one.
    pub more_fragments: bool,
    /// Where in the datagram this fragment lies, in bytes; a multiple of 8.
    pub fragment_offset: u16,
    pub ttl: u8,
    pub protocol: Protocol,
    pub source: Ipv4Addr,
    pub target: Ipv4Addr,
    pub options: Ipv4Options,
}

/// What the network has to say about congestion (RFC 3168 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// The sender does not listen.
    #[default]
    NotCapable,
    /// ECT(1).
    Capable1,
    /// ECT(0).
    Capable0,
    /// CE: a queue was about to overflow.
    CongestionExperienced,
}

impl Ipv4Header {
    /// The header and its length in bytes, behind which the payload begins; the payload ends at `total_len`. The
    /// packet is all there and its header's checksum is right.
    #[inline]
    pub fn parse(packet: &[u8]) -> Result<(Self, usize), Malformed> {
        let (header, len) = Self::parse_quoted(packet)?;
        // RFC 1122 3.2.1.2: a wrong header checksum is dropped without an answer.
        let bytes = packet.get(..len).ok_or(Malformed::Length)?;
        if !checksum::verify(Sum::ZERO, bytes) {
            return Err(Malformed::Checksum);
        }
        let total_len = usize::from(header.total_len);
        if total_len < len || total_len > packet.len() {
            return Err(Malformed::Length);
        }
        Ok((header, len))
    }

    /// A header quoted by an ICMP error: routers on the way may have changed it without care for the checksum, and
    /// the packet is cut off.
    #[inline]
    pub fn parse_quoted(packet: &[u8]) -> Result<(Self, usize), Malformed> {
        let (fixed, rest) = packet
            .split_first_chunk::<HEADER_BYTES>()
            .ok_or(Malformed::Short)?;
        if fixed[0] >> 4 != 4 {
            return Err(Malformed::Version);
        }
        let len = usize::from(fixed[0] & 15) * 4;
        let options_len = len.checked_sub(HEADER_BYTES).ok_or(Malformed::Length)?;
        let options = rest.get(..options_len).ok_or(Malformed::Length)?;
        let fragment = u16::from_be_bytes([fixed[6], fixed[7]]);
        let header = Self {
            dscp: fixed[1] >> 2,
            ecn: Ecn::from_bits(fixed[1]),
            total_len: u16::from_be_bytes([fixed[2], fixed[3]]),
            ident: u16::from_be_bytes([fixed[4], fixed[5]]),
            dont_fragment: fragment & DONT_FRAGMENT != 0,
            more_fragments: fragment & MORE_FRAGMENTS != 0,
            fragment_offset: (fragment & OFFSET) * 8,
            ttl: fixed[8],
            protocol: Protocol(fixed[9]),
            source: Ipv4Addr::new(fixed[12], fixed[13], fixed[14], fixed[15]),
            target: Ipv4Addr::new(fixed[16], fixed[17], fixed[18], fixed[19]),
            options: Ipv4Options::parse(options)?,
        };
        Ok((header, len))
    }

    /// Whether the packet is one piece of a datagram.
    pub const fn is_fragment(&self) -> bool {
        self.more_fragments || self.fragment_offset != 0
    }

    /// Bytes that [`Ipv4Header::emit`] writes.
    pub const fn len(&self) -> usize {
        HEADER_BYTES + self.options.len()
    }

    /// Never; a header has bytes.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Writes the header with its checksum; returns its length in bytes.
    ///
    /// # Panics
    /// If `into` is shorter than [`Ipv4Header::len`].
    #[inline]
    pub fn emit(&self, into: &mut [u8]) -> usize {
        debug_assert!(self.dscp < 64 && self.fragment_offset.is_multiple_of(8));
        debug_assert!(usize::from(self.total_len) >= self.len(), "{self:?}");
        let len = self.len();
        let bytes = into
            .get_mut(..len)
            .expect("the caller reserves room for the header");
        let (fixed, rest) = bytes
            .split_first_chunk_mut::<HEADER_BYTES>()
            .expect("a header is not shorter than its fixed part");
        rest.copy_from_slice(self.options.as_slice());
        let mut fragment = self.fragment_offset / 8;
        if self.dont_fragment {
            fragment |= DONT_FRAGMENT;
        }
        if self.more_fragments {
            fragment |= MORE_FRAGMENTS;
        }
        fixed[0] = 0x40 | u8::try_from(len / 4).unwrap_or(15);
        fixed[1] = (self.dscp << 2) | self.ecn.bits();
        fixed[2..4].copy_from_slice(&self.total_len.to_be_bytes());
        fixed[4..6].copy_from_slice(&self.ident.to_be_bytes());
        fixed[6..8].copy_from_slice(&fragment.to_be_bytes());
        fixed[8] = self.ttl;
        fixed[9] = self.protocol.0;
        fixed[12..16].copy_from_slice(&self.source.octets());
        fixed[16..20].copy_from_slice(&self.target.octets());
        checksum::fill(Sum::ZERO, bytes, CHECKSUM_OFFSET);
        len
    }
}

/// A packet that is no fragment, without options, with the time to live that hosts use.
impl Default for Ipv4Header {
    fn default() -> Self {
        Self {
            dscp: 0,
            ecn: Ecn::NotCapable,
            total_len: 20,
            ident: 0,
            dont_fragment: false,
            more_fragments: false,
            fragment_offset: 0,
            ttl: TTL_DEFAULT,
            protocol: Protocol::default(),
            source: Ipv4Addr::UNSPECIFIED,
            target: Ipv4Addr::UNSPECIFIED,
            options: Ipv4Options::NONE,
        }
    }
}

impl Ecn {
    /// From the low two bits of the byte that holds DSCP and ECN.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotCapable,
            1 => Self::Capable1,
            2 => Self::Capable0,
            _ => Self::CongestionExperienced,
        }
    }

    pub const fn bits(self) -> u8 {
        self as u8
    }
}

/// Hops a packet may take at first (IANA's recommendation, and what Linux does).
pub const TTL_DEFAULT: u8 = 64;

const CHECKSUM_OFFSET: usize = 10;

const DONT_FRAGMENT: u16 = 1 << 14;
const MORE_FRAGMENTS: u16 = 1 << 13;
const OFFSET: u16 = (1 << 13) - 1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Random, any_bytes, round_trip};

    fn arbitrary(random: &mut Random) -> Ipv4Header {
        let mut options = [1; 40];
        let options_len = random.below(11) * 4;
        if options_len >= 4 {
            options[..3].copy_from_slice(&[7, 3, 4]);
        }
        let options = Ipv4Options::parse(&options[..options_len]).unwrap();
        Ipv4Header {
            dscp: random.byte() >> 2,
            ecn: Ecn::from_bits(random.byte()),
            total_len: u16::try_from(HEADER_BYTES + options_len).unwrap(),
            ident: random.word(),
            dont_fragment: random.flag(),
            more_fragments: random.flag(),
            fragment_offset: random.word() & !7,
            ttl: random.byte(),
            protocol: Protocol(random.byte()),
            source: Ipv4Addr::from_bits(random.long()),
            target: Ipv4Addr::from_bits(random.long()),
            options,
        }
    }

    #[test]
    fn headers_are_read_as_they_were_written() {
        let mut random = Random::new(1);
        for _ in 0..200 {
            let header = arbitrary(&mut random);
            round_trip(&header, header.len(), Ipv4Header::emit, Ipv4Header::parse);
        }
    }

    #[test]
    fn a_header_has_the_bytes_that_were_laid_out_by_hand() {
        let bytes = [
            0x45, 0, 0, 0x54, 0x30, 0x39, 0x40, 0, 0x40, 1, 0xf5, 0xd3, 10, 77, 0, 1, 10, 77, 0, 2,
        ];
        let header = Ipv4Header {
            total_len: 84,
            ident: 12345,
            dont_fragment: true,
            protocol: Protocol::ICMPV4,
            source: Ipv4Addr::new(10, 77, 0, 1),
            target: Ipv4Addr::new(10, 77, 0, 2),
            ..Ipv4Header::default()
        };
        let mut emitted = [0; HEADER_BYTES];
        header.emit(&mut emitted);
        assert_eq!(emitted, bytes);
    }

    #[test]
    fn any_flipped_bit_of_a_header_is_found() {
        let mut bytes = [0; 24];
        let header = Ipv4Header {
            total_len: 24,
            ..Ipv4Header::default()
        };
        header.emit(&mut bytes);
        for bit in 0..HEADER_BYTES * 8 {
            let mut wrong = bytes;
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(Ipv4Header::parse(&wrong).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn the_total_length_lies_between_the_header_and_the_end_of_the_frame() {
        let check = |total_len: u16, frame_len: usize, expected: bool| {
            let mut bytes = [0; 64];
            Ipv4Header::default().emit(&mut bytes);
            bytes[2..4].copy_from_slice(&total_len.to_be_bytes());
            checksum::fill(Sum::ZERO, &mut bytes[..20], CHECKSUM_OFFSET);
            assert_eq!(
                Ipv4Header::parse(&bytes[..frame_len]).is_ok(),
                expected,
                "{total_len} of {frame_len}"
            );
        };
        check(19, 40, false);
        check(20, 40, true);
        check(40, 40, true);
        check(41, 40, false);
    }

    #[test]
    fn versions_and_header_lengths_that_do_not_exist_are_malformed() {
        let mut bytes = [0; 60];
        Ipv4Header::default().emit(&mut bytes);
        bytes[0] = 0x65;
        assert_eq!(Ipv4Header::parse(&bytes), Err(Malformed::Version));
        bytes[0] = 0x44;
        assert_eq!(Ipv4Header::parse(&bytes), Err(Malformed::Length));
    }

    #[test]
    fn no_bytes_panic_and_what_is_read_is_written_the_same() {
        let shape = |random: &mut Random, bytes: &mut std::vec::Vec<u8>| {
            if random.flag()
                && let Some(fixed) = bytes.first_chunk_mut::<20>()
            {
                fixed[0] = 0x45 + u8::from(random.flag());
                fixed[2] = 0;
                fixed[3] = random.byte() & 127;
                // The reserved bit is ignored, and not kept.
                fixed[6] &= 0x7f;
                let len = usize::from(fixed[0] & 15) * 4;
                if let Some(header) = bytes.get_mut(..len) {
                    checksum::fill(Sum::ZERO, header, CHECKSUM_OFFSET);
                }
            }
        };
        any_bytes(3, shape, Ipv4Header::emit, Ipv4Header::parse);
    }
}
