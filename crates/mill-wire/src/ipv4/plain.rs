//! Packets as nearly all of them are: whole, and without options. Both ways cost a few nanoseconds.

use super::{DONT_FRAGMENT, Ecn, HEADER_BYTES, MORE_FRAGMENTS, OFFSET};
use crate::checksum::Sum;
use crate::protocol::Protocol;
use core::net::Ipv4Addr;

/// What is left of a header that is neither a fragment's nor has options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainIpv4 {
    /// Differentiated services, 6 bits.
    pub dscp: u8,
    pub ecn: Ecn,
    /// Bytes of the whole packet, header included.
    pub total_len: u16,
    pub ttl: u8,
    pub protocol: Protocol,
    pub source: Ipv4Addr,
    pub target: Ipv4Addr,
}

impl PlainIpv4 {
    /// The header and its length in bytes. `None` of any other packet, and of one whose header
    /// [`super::Ipv4Header::parse`] refuses.
    #[inline]
    pub fn parse(packet: &[u8]) -> Option<(Self, usize)> {
        let fixed = packet.first_chunk::<HEADER_BYTES>()?;
        let total_len = u16::from_be_bytes([fixed[2], fixed[3]]);
        let fragment = u16::from_be_bytes([fixed[6], fixed[7]]);
        let is_plain = fixed[0] == VERSION_AND_LENGTH
            && fragment & (MORE_FRAGMENTS | OFFSET) == 0
            && usize::from(total_len) >= HEADER_BYTES
            && usize::from(total_len) <= packet.len()
            && Sum::of_header(fixed).is_valid();
        let header = Self {
            dscp: fixed[1] >> 2,
            ecn: Ecn::from_bits(fixed[1]),
            total_len,
            ttl: fixed[8],
            protocol: Protocol(fixed[9]),
            source: Ipv4Addr::new(fixed[12], fixed[13], fixed[14], fixed[15]),
            target: Ipv4Addr::new(fixed[16], fixed[17], fixed[18], fixed[19]),
        };
        is_plain.then_some((header, HEADER_BYTES))
    }

    /// Writes the header of a packet that must not be fragmented and therefore needs no identification (RFC 6864 4), with
    /// its checksum; returns its length in bytes.
    ///
    /// # Panics
    /// If `into` is shorter than [`HEADER_BYTES`].
    #[inline]
    pub fn emit(&self, into: &mut [u8]) -> usize {
        let fixed = into
            .first_chunk_mut::<HEADER_BYTES>()
            .expect("the caller reserves room for the header");
        // Summed from what is at hand: memory would have to wait for the narrow writes that come before.
        let class = self.dscp << 2 | self.ecn.bits();
        let version = u16::from_be_bytes([VERSION_AND_LENGTH, class]);
        let lives = u16::from_be_bytes([self.ttl, self.protocol.0]);
        let words = [
            (u32::from(version) << 16) | u32::from(self.total_len),
            u32::from(DONT_FRAGMENT),
            u32::from(lives) << 16,
            self.source.to_bits(),
            self.target.to_bits(),
        ];
        let checksum = Sum::of_longs(words).checksum();
        for (place, mut word) in (0..).zip(fixed.as_chunks_mut::<4>().0).zip(words) {
            if place.0 == CHECKSUM_WORD {
                word |= u32::from(checksum);
            }
            *place.1 = word.to_be_bytes();
        }
        HEADER_BYTES
    }
}

/// Version 4, five words.
const VERSION_AND_LENGTH: u8 = 0x45;

/// Which word of the header holds the checksum, in its lower half.
const CHECKSUM_WORD: usize = 2;

#[cfg(test)]
mod tests {
    use super::super::Ipv4Header;
    use super::*;
    use crate::checksum;
    use crate::random::Random;
    use std::vec;

    #[test]
    fn a_plain_header_is_written_as_the_general_way_writes_it() {
        let mut random = Random::new(1);
        for _ in 0..200 {
            let plain = PlainIpv4 {
                dscp: random.byte() >> 2,
                ecn: Ecn::from_bits(random.byte()),
                total_len: random.word().max(20),
                ttl: random.byte(),
                protocol: Protocol(random.byte()),
                source: Ipv4Addr::from_bits(random.long()),
                target: Ipv4Addr::from_bits(random.long()),
            };
            let general = Ipv4Header {
                dscp: plain.dscp,
                ecn: plain.ecn,
                total_len: plain.total_len,
                dont_fragment: true,
                ttl: plain.ttl,
                protocol: plain.protocol,
                source: plain.source,
                target: plain.target,
                ..Ipv4Header::default()
            };
            let (mut as_plain, mut as_general) = (vec![1; 65_535], vec![1; 65_535]);
            assert_eq!(plain.emit(&mut as_plain), general.emit(&mut as_general));
            assert_eq!(as_plain, as_general, "{plain:?}");
            assert_eq!(PlainIpv4::parse(&as_plain), Some((plain, HEADER_BYTES)));
        }
    }

    #[test]
    fn what_is_taken_for_plain_is_what_the_general_way_finds_whole_and_bare() {
        let mut random = Random::new(2);
        let (mut plain, mut other) = (0, 0);
        for _ in 0..20_000 {
            let mut packet: [u8; 48] = random.bytes();
            packet[0] = if random.below(8) == 0 {
                random.byte()
            } else {
                0x45
            };
            packet[2] = 0;
            packet[3] = 16 + u8::try_from(random.below(40)).unwrap();
            if random.below(4) > 0 {
                packet[6] &= 0xc0;
                packet[7] = 0;
            }
            if random.below(8) > 0 {
                checksum::fill(Sum::ZERO, &mut packet[..20], 10);
            }
            let general = Ipv4Header::parse(&packet).ok();
            let expected =
                general.filter(|(header, _)| !header.is_fragment() && header.options.is_empty());
            let found = PlainIpv4::parse(&packet);
            assert_eq!(found.is_some(), expected.is_some(), "{packet:?}");
            if let (Some((found, _)), Some((header, _))) = (found, expected) {
                let ends = (found.source, found.target, found.protocol);
                assert_eq!(ends, (header.source, header.target, header.protocol));
                let rest = (found.ecn, found.total_len, found.ttl);
                assert_eq!(rest, (header.ecn, header.total_len, header.ttl));
                plain += 1;
            } else {
                other += 1;
            }
        }
        assert!(plain > 1000 && other > 1000, "{plain} plain, {other} other");
    }
}
