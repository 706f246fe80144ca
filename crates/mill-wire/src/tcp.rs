//! The header of a TCP segment (RFC 9293 3.1).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! |          Source Port          |       Destination Port        |  0
//! |                        Sequence Number                        |  4
//! |                    Acknowledgment Number                      |  8
//! |Offset |Rsrvd|A|C|E|U|A|P|R|S|F|            Window             | 12
//! |           Checksum            |         Urgent Pointer        | 16
//! |                           Options, padded                     | 20
//! ```

use crate::Malformed;
use crate::seq::SeqNumber;
use crate::tcp_option::TcpOptions;
use core::ops::{BitAnd, BitOr, BitOrAssign, Not};

/// Bytes of a header without options.
pub const HEADER_BYTES: usize = 20;

/// Bytes of the longest header, options included.
pub const HEADER_BYTES_MAX: usize = 60;

/// Where the checksum lies in the header, for the device that completes it later.
pub const CHECKSUM_OFFSET: usize = 16;

/// A segment's header. The checksum is not part of it: the caller, which has the addresses, verifies and fills it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpHeader {
    pub source: u16,
    pub target: u16,
    pub seq: SeqNumber,
    /// Means something only with [`Flags::ACK`].
    pub ack: SeqNumber,
    pub flags: Flags,
    /// As it stands in the segment, not scaled.
    pub window: u16,
    /// Means something only with [`Flags::URG`].
    pub urgent: u16,
    pub options: TcpOptions,
}

/// The fields of a header in front of its options, for a caller that has those elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FixedHeader {
    pub source: u16,
    pub target: u16,
    pub seq: SeqNumber,
    pub ack: SeqNumber,
    pub flags: Flags,
    pub window: u16,
    pub urgent: u16,
}

/// The control bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u16);

impl Flags {
    pub const FIN: Self = Self(1);
    pub const SYN: Self = Self(1 << 1);
    pub const RST: Self = Self(1 << 2);
    pub const PSH: Self = Self(1 << 3);
    pub const ACK: Self = Self(1 << 4);
    pub const URG: Self = Self(1 << 5);
    /// ECN echo (RFC 3168 6.1).
    pub const ECE: Self = Self(1 << 6);
    /// Congestion window reduced (RFC 3168 6.1).
    pub const CWR: Self = Self(1 << 7);
    /// Accurate ECN (RFC 9768), once the nonce sum.
    pub const AE: Self = Self(1 << 8);

    /// Whether all of `flags` are set.
    pub const fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Whether one of `flags` is set.
    pub const fn has_any(self, flags: Self) -> bool {
        self.0 & flags.0 != 0
    }
}

impl BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}

impl BitAnd for Flags {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl Not for Flags {
    type Output = Self;

    fn not(self) -> Self {
        Self(!self.0 & 0x1ff)
    }
}

impl TcpHeader {
    /// The header and its length in bytes, behind which the payload begins. Reserved bits are ignored; the
    /// checksum is not looked at.
    pub fn parse(segment: &[u8]) -> Result<(Self, usize), Malformed> {
        let mut header = Self::default();
        let len = header.read(segment)?;
        Ok((header, len))
    }

    /// As [`TcpHeader::parse`], in place: a header of a hundred bytes is not moved. After an error the fields mean
    /// nothing.
    #[inline]
    pub fn read(&mut self, segment: &[u8]) -> Result<usize, Malformed> {
        let (fixed, rest) = segment
            .split_first_chunk::<HEADER_BYTES>()
            .ok_or(Malformed::Short)?;
        let len = usize::from(fixed[12] >> 4) * 4;
        let options_len = len.checked_sub(HEADER_BYTES).ok_or(Malformed::Length)?;
        let options = rest.get(..options_len).ok_or(Malformed::Length)?;
        self.source = u16::from_be_bytes([fixed[0], fixed[1]]);
        self.target = u16::from_be_bytes([fixed[2], fixed[3]]);
        self.seq = SeqNumber(u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]));
        self.ack = SeqNumber(u32::from_be_bytes([
            fixed[8], fixed[9], fixed[10], fixed[11],
        ]));
        self.flags = Flags(u16::from_be_bytes([fixed[12] & 1, fixed[13]]));
        self.window = u16::from_be_bytes([fixed[14], fixed[15]]);
        self.urgent = u16::from_be_bytes([fixed[18], fixed[19]]);
        self.options.read(options)?;
        Ok(len)
    }

    /// Bytes that [`TcpHeader::emit`] writes.
    pub fn len(&self) -> usize {
        HEADER_BYTES + self.options.len()
    }

    /// Never; a header has bytes.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Writes the header with a checksum of zero; returns its length in bytes.
    ///
    /// # Panics
    /// If `into` is shorter than [`TcpHeader::len`].
    pub fn emit(&self, into: &mut [u8]) -> usize {
        let fixed = FixedHeader {
            source: self.source,
            target: self.target,
            seq: self.seq,
            ack: self.ack,
            flags: self.flags,
            window: self.window,
            urgent: self.urgent,
        };
        fixed.emit(&self.options, into)
    }
}

impl FixedHeader {
    /// Writes a header with these options and a checksum of zero; returns its length in bytes.
    ///
    /// # Panics
    /// If it does not fit into `into`.
    #[inline]
    pub fn emit(&self, options: &TcpOptions, into: &mut [u8]) -> usize {
        let (fixed, rest) = into
            .split_first_chunk_mut::<HEADER_BYTES>()
            .expect("the caller reserves room for the header");
        let len = HEADER_BYTES + options.emit(rest);
        let words = u8::try_from(len / 4).unwrap_or(15);
        fixed[0..2].copy_from_slice(&self.source.to_be_bytes());
        fixed[2..4].copy_from_slice(&self.target.to_be_bytes());
        fixed[4..8].copy_from_slice(&self.seq.0.to_be_bytes());
        fixed[8..12].copy_from_slice(&self.ack.0.to_be_bytes());
        let [high, low] = self.flags.0.to_be_bytes();
        fixed[12] = (words << 4) | (high & 1);
        fixed[13] = low;
        fixed[14..16].copy_from_slice(&self.window.to_be_bytes());
        fixed[16..18].fill(0);
        fixed[18..20].copy_from_slice(&self.urgent.to_be_bytes());
        len
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp_option::{SackBlocks, Timestamps};

    fn check(header: TcpHeader, len: usize) {
        let mut bytes = [0xaa; HEADER_BYTES_MAX];
        assert_eq!(header.len(), len);
        assert_eq!(header.emit(&mut bytes), len);
        assert_eq!(TcpHeader::parse(&bytes[..len]), Ok((header, len)));
        for cut in 0..len {
            assert!(TcpHeader::parse(&bytes[..cut]).is_err(), "{cut} bytes");
        }
    }

    #[test]
    fn what_is_emitted_is_parsed_as_the_same_header() {
        check(TcpHeader::default(), 20);
        let syn = TcpHeader {
            source: 1234,
            target: 80,
            seq: SeqNumber(u32::MAX),
            ack: SeqNumber(7),
            flags: Flags::SYN | Flags::ACK | Flags::AE,
            window: 65535,
            urgent: 9,
            options: TcpOptions {
                mss: Some(1460),
                window_scale: Some(7),
                sack_permitted: true,
                timestamps: Some(Timestamps { value: 1, echo: 2 }),
                ..TcpOptions::default()
            },
        };
        check(syn, 40);
        let mut sack = SackBlocks::default();
        for block in 0..4 {
            assert!(sack.push(SeqNumber(block * 10), SeqNumber(block * 10 + 5)));
        }
        let ack = TcpHeader {
            options: TcpOptions {
                sack,
                ..TcpOptions::default()
            },
            ..TcpHeader::default()
        };
        check(ack, 56);
    }

    #[test]
    fn an_offset_inside_the_fixed_header_is_malformed() {
        let mut bytes = [0; HEADER_BYTES];
        bytes[12] = 4 << 4;
        assert_eq!(TcpHeader::parse(&bytes), Err(Malformed::Length));
    }
}
