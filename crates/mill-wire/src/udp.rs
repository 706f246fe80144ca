//! The header of a UDP datagram (RFC 768).
//!
//! ```text
//! | Source Port, 2 | Destination Port, 2 | Length, 2 | Checksum, 2 | payload
//! ```

use crate::Malformed;
use crate::checksum::{self, Sum};

/// Bytes of a header.
pub const HEADER_BYTES: usize = 8;

/// Where the checksum lies in the header.
pub const CHECKSUM_OFFSET: usize = 6;

/// A datagram's header. The checksum is not part of it: the caller, which has the addresses, verifies and fills it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpHeader {
    /// 0 if no answer is wanted.
    pub source: u16,
    pub target: u16,
    /// Bytes of the datagram, header included.
    pub len: u16,
}

impl UdpHeader {
    /// The header and its length in bytes; the payload ends at `len`, and is all there.
    pub fn parse(datagram: &[u8]) -> Result<(Self, usize), Malformed> {
        let &[a, b, c, d, e, f, _, _] = datagram
            .first_chunk::<HEADER_BYTES>()
            .ok_or(Malformed::Short)?;
        let header = Self {
            source: u16::from_be_bytes([a, b]),
            target: u16::from_be_bytes([c, d]),
            len: u16::from_be_bytes([e, f]),
        };
        let len = usize::from(header.len);
        if len < HEADER_BYTES || len > datagram.len() {
            return Err(Malformed::Length);
        }
        Ok((header, HEADER_BYTES))
    }

    /// Writes the header with a checksum of zero; returns its length in bytes.
    ///
    /// # Panics
    /// If `into` is shorter than [`HEADER_BYTES`].
    pub fn emit(&self, into: &mut [u8]) -> usize {
        debug_assert!(usize::from(self.len) >= HEADER_BYTES, "{self:?}");
        let bytes = into
            .first_chunk_mut::<HEADER_BYTES>()
            .expect("the caller reserves room for the header");
        bytes[0..2].copy_from_slice(&self.source.to_be_bytes());
        bytes[2..4].copy_from_slice(&self.target.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.len.to_be_bytes());
        bytes[6..8].fill(0);
        HEADER_BYTES
    }
}

/// Whether the checksum is right. None at all, which is zero, is right over IPv4 only (RFC 768, RFC 8200 8.1).
pub fn verify(pseudo_header: Sum, datagram: &[u8], is_ipv6: bool) -> bool {
    match datagram.get(CHECKSUM_OFFSET..HEADER_BYTES) {
        Some([0, 0]) => !is_ipv6,
        Some(_) => checksum::verify(pseudo_header, datagram),
        None => false,
    }
}

/// Computes and writes the checksum; one that comes out as zero is sent as its other form (RFC 768).
///
/// # Panics
/// If `datagram` is shorter than its header.
pub fn fill(pseudo_header: Sum, datagram: &mut [u8]) {
    checksum::fill(pseudo_header, datagram, CHECKSUM_OFFSET);
    if let Some(field @ [0, 0]) = datagram.get_mut(CHECKSUM_OFFSET..HEADER_BYTES) {
        field.fill(0xff);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Random, any_bytes, round_trip};

    #[test]
    fn headers_are_read_as_they_were_written() {
        let mut random = Random::new(1);
        for _ in 0..100 {
            let header = UdpHeader {
                source: random.word(),
                target: random.word(),
                len: 8,
            };
            round_trip(&header, HEADER_BYTES, UdpHeader::emit, UdpHeader::parse);
        }
        let shape = |random: &mut Random, bytes: &mut std::vec::Vec<u8>| {
            if let Some(fixed) = bytes.first_chunk_mut::<6>() {
                fixed[4] = 0;
                fixed[5] = random.byte() & 63;
            }
        };
        any_bytes(3, shape, UdpHeader::emit, UdpHeader::parse);
    }

    #[test]
    fn the_length_lies_between_the_header_and_the_end() {
        for (len, expected) in [(7, false), (8, true), (20, true), (21, false)] {
            let mut bytes = [0; 20];
            bytes[5] = len;
            assert_eq!(UdpHeader::parse(&bytes).is_ok(), expected, "{len}");
        }
    }

    #[test]
    fn a_checksum_of_zero_is_sent_as_ones_and_zero_means_none() {
        let mut datagram = [0, 0, 0, 0, 0, 8, 0, 0, 0, 0];
        // A pseudo-header that makes the sum 0xffff, so that the checksum is zero.
        let pseudo = Sum::of_word(0xffff - 8);
        fill(pseudo, &mut datagram);
        assert_eq!(datagram[6..8], [0xff, 0xff]);
        assert!(verify(pseudo, &datagram, false) && verify(pseudo, &datagram, true));
        datagram[9] = 1;
        assert!(!verify(pseudo, &datagram, false));
        datagram[6..8].fill(0);
        assert!(verify(pseudo, &datagram, false));
        assert!(!verify(pseudo, &datagram, true));
        assert!(!verify(pseudo, &datagram[..7], false));
    }
}
