//! The Internet checksum: the one's complement sum of 16-bit words (RFC 1071, 1141, 1624).
//!
//! The sum does not depend on the order of bytes in a word as long as it is the same everywhere, so long runs are
//! added as the machine's own words, 32 bytes a step, and turned round once at the end.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::ops::{Add, AddAssign};

/// A folded sum, not yet complemented. All zero only if everything that was added was zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum(u16);

impl Sum {
    /// Of nothing.
    pub const ZERO: Self = Self(0);

    /// Of `bytes`, the first of which stands at an even offset; a last odd one is followed by a zero.
    #[inline]
    pub fn of(bytes: &[u8]) -> Self {
        let (blocks, rest) = bytes.as_chunks::<BLOCK_BYTES>();
        let runs = blocks.chunks(RUN_BLOCKS_MAX).map(sum_of_run);
        let sum = runs.sum::<u64>() + sum_of_rest(rest);
        Self(u16::from_be(fold(sum).0))
    }

    /// Of two bytes.
    pub const fn of_word(word: u16) -> Self {
        Self(word)
    }

    /// Of four bytes.
    pub const fn of_long(long: u32) -> Self {
        fold(long as u64)
    }

    /// Of five times four bytes, each in network order.
    #[inline]
    pub fn of_longs(longs: [u32; 5]) -> Self {
        fold(longs.into_iter().map(u64::from).sum())
    }

    /// Of a header of the length that most have.
    #[inline]
    pub fn of_header(header: &[u8; 20]) -> Self {
        let mut sum = 0;
        for long in header.as_chunks::<4>().0 {
            sum += u64::from(u32::from_ne_bytes(*long));
        }
        Self(u16::from_be(fold(sum).0))
    }

    /// The sum of these bytes if they are moved by an odd number of bytes: each changes its half of the word.
    #[must_use]
    pub const fn at_odd_offset(self) -> Self {
        Self(self.0.swap_bytes())
    }

    /// What stands before the segment in the sum of TCP, UDP and ICMPv6 (RFC 9293 3.1, RFC 8200 8.1). `len` is
    /// that of the segment, header included. Addresses of two families have no sum in common: zero.
    pub fn of_pseudo_header(source: IpAddr, target: IpAddr, protocol: u8, len: usize) -> Self {
        match (source, target) {
            (IpAddr::V4(source), IpAddr::V4(target)) => {
                Self::of_pseudo_header_v4(source, target, protocol, len)
            }
            (IpAddr::V6(source), IpAddr::V6(target)) => {
                Self::of_pseudo_header_v6(source, target, protocol, len)
            }
            _ => {
                debug_assert!(false, "{source} and {target} are of two families");
                Self::ZERO
            }
        }
    }

    #[inline]
    pub const fn of_pseudo_header_v4(
        source: Ipv4Addr,
        target: Ipv4Addr,
        protocol: u8,
        len: usize,
    ) -> Self {
        fold(source.to_bits() as u64 + target.to_bits() as u64 + protocol as u64 + len as u64)
    }

    #[inline]
    pub fn of_pseudo_header_v6(
        source: Ipv6Addr,
        target: Ipv6Addr,
        protocol: u8,
        len: usize,
    ) -> Self {
        let mut sum = u64::from(protocol) + len as u64;
        for address in [source, target] {
            for quarter in address.octets().as_chunks::<4>().0 {
                sum += u64::from(u32::from_be_bytes(*quarter));
            }
        }
        fold(sum)
    }

    /// What a checksum field holds for data of this sum.
    pub const fn checksum(self) -> u16 {
        !self.0
    }

    /// The sum as it is, which is what the field of a partial checksum holds.
    pub const fn folded(self) -> u16 {
        self.0
    }

    /// Whether this is the sum of data that holds its own, right checksum.
    pub const fn is_valid(self) -> bool {
        self.0 == u16::MAX
    }
}

impl Add for Sum {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        let (sum, carry) = self.0.overflowing_add(other.0);
        Self(sum + u16::from(carry))
    }
}

impl AddAssign for Sum {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// Whether `segment`, which holds its checksum, goes with `pseudo_header` ([`Sum::ZERO`] where there is none).
pub fn verify(pseudo_header: Sum, segment: &[u8]) -> bool {
    (pseudo_header + Sum::of(segment)).is_valid()
}

/// Computes the checksum of `segment` and writes it at `offset`, whatever was there before.
///
/// # Panics
/// If there are no two bytes at `offset`.
pub fn fill(pseudo_header: Sum, segment: &mut [u8], offset: usize) {
    put(segment, offset, 0);
    let sum = pseudo_header + Sum::of(segment);
    put(segment, offset, sum.checksum());
}

/// Writes a *partial* checksum: the field holds the sum of the pseudo-header alone, not complemented, and the
/// device adds the rest ([`complete`]). This is what Linux hands to a device that offloads checksums, and what a
/// neighbour on the same machine gets to see.
///
/// # Panics
/// If there are no two bytes at `offset`.
pub fn fill_partial(pseudo_header: Sum, segment: &mut [u8], offset: usize) {
    put(segment, offset, pseudo_header.folded());
}

/// Whether the field at `offset` holds a partial checksum. One of 65 536 segments with a right checksum looks the
/// same: this is to be asked only of links that hand on partial checksums, and before [`verify`].
pub fn is_partial(pseudo_header: Sum, segment: &[u8], offset: usize) -> bool {
    segment
        .get(offset..)
        .and_then(|rest| rest.first_chunk::<2>())
        .is_some_and(|field| u16::from_be_bytes(*field) == pseudo_header.folded())
}

/// Makes a partial checksum whole, as a device does.
///
/// # Panics
/// If there are no two bytes at `offset`.
pub fn complete(segment: &mut [u8], offset: usize) {
    // The field's own content is the pseudo-header's share.
    let sum = Sum::of(segment);
    put(segment, offset, sum.checksum());
}

/// The checksum after data of the sum `old` was replaced by data of the sum `new`, both at even offsets
/// (RFC 1624 3, equation 3, which has no trouble with the two zeros).
#[must_use]
pub fn update(checksum: u16, old: Sum, new: Sum) -> u16 {
    (Sum(!checksum) + Sum(!old.0) + new).checksum()
}

fn put(segment: &mut [u8], offset: usize, checksum: u16) {
    segment
        .get_mut(offset..)
        .and_then(|rest| rest.first_chunk_mut::<2>())
        .expect("the segment's header holds the checksum")
        .copy_from_slice(&checksum.to_be_bytes());
}

/// Bytes of one step: eight words of 32 bits, which the compiler puts into vector registers.
const BLOCK_BYTES: usize = 32;

const LANES: usize = BLOCK_BYTES / 4;

/// Blocks of which 16-bit halves add up to less than 2^32; 2 MiB.
const RUN_BLOCKS_MAX: usize = 1 << 16;

/// The words of at most so many blocks, in three operations each: whole words are added up, whose carries are lost,
/// and beside them their upper halves, which tell in the end what the lower halves come to.
#[inline]
fn sum_of_run(blocks: &[[u8; BLOCK_BYTES]]) -> u64 {
    debug_assert!(blocks.len() <= RUN_BLOCKS_MAX);
    let mut wholes = [0_u32; LANES];
    let mut uppers = [0_u32; LANES];
    for block in blocks {
        let lanes = wholes.iter_mut().zip(&mut uppers);
        for ((whole, upper), word) in lanes.zip(block.as_chunks::<4>().0) {
            let word = u32::from_ne_bytes(*word);
            *whole = whole.wrapping_add(word);
            *upper += word >> 16;
        }
    }
    let lanes = wholes.into_iter().zip(uppers);
    lanes
        .map(|(whole, upper)| u64::from(whole.wrapping_sub(upper << 16)) + u64::from(upper))
        .sum()
}

/// The bytes that fill no block.
#[inline]
fn sum_of_rest(rest: &[u8]) -> u64 {
    let (words, rest) = rest.as_chunks::<4>();
    let mut last = [0; 4];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    let words = words.iter().chain([&last]);
    words.map(|word| u64::from(u32::from_ne_bytes(*word))).sum()
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the last fold leaves 16 bits"
)]
const fn fold(sum: u64) -> Sum {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + ((sum >> 16) & 0xffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    debug_assert!(sum <= 0xffff);
    Sum(sum as u16)
}

#[cfg(test)]
mod tests;
