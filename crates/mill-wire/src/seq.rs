//! Sequence numbers of TCP: arithmetic modulo 2^32 (RFC 9293 3.4).

use core::cmp::Ordering;
use core::ops::{Add, AddAssign, Sub, SubAssign};

/// A sequence number. Two of them can be compared while they are less than 2^31 apart, which windows of at most
/// 2^30 bytes guarantee (RFC 7323 2.3); therefore this is not `Ord`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SeqNumber(pub u32);

impl SeqNumber {
    /// How far this is behind `other`, negative if it is before it.
    #[expect(clippy::cast_possible_wrap, reason = "the wrapping is the meaning")]
    pub const fn since(self, other: Self) -> i32 {
        self.0.wrapping_sub(other.0) as i32
    }

    pub const fn is_before(self, other: Self) -> bool {
        self.since(other) < 0
    }

    pub const fn is_after(self, other: Self) -> bool {
        self.since(other) > 0
    }

    pub const fn is_at_or_before(self, other: Self) -> bool {
        self.since(other) <= 0
    }

    pub const fn is_at_or_after(self, other: Self) -> bool {
        self.since(other) >= 0
    }

    /// Whether this lies in `start .. start + len`.
    pub const fn is_within(self, start: Self, len: u32) -> bool {
        self.0.wrapping_sub(start.0) < len
    }

    /// The later of two.
    #[must_use]
    pub const fn max(self, other: Self) -> Self {
        if self.is_after(other) { self } else { other }
    }

    /// The earlier of two.
    #[must_use]
    pub const fn min(self, other: Self) -> Self {
        if self.is_before(other) { self } else { other }
    }
}

impl PartialOrd for SeqNumber {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.since(*other).cmp(&0))
    }
}

impl Add<u32> for SeqNumber {
    type Output = Self;

    fn add(self, bytes: u32) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

impl AddAssign<u32> for SeqNumber {
    fn add_assign(&mut self, bytes: u32) {
        *self = *self + bytes;
    }
}

impl Sub<u32> for SeqNumber {
    type Output = Self;

    fn sub(self, bytes: u32) -> Self {
        Self(self.0.wrapping_sub(bytes))
    }
}

impl SubAssign<u32> for SeqNumber {
    fn sub_assign(&mut self, bytes: u32) {
        *self = *self - bytes;
    }
}

/// The bytes from `earlier` to `self`. In debug builds it asserts that `self` is not before `earlier`.
impl Sub<Self> for SeqNumber {
    type Output = u32;

    fn sub(self, earlier: Self) -> u32 {
        debug_assert!(
            self.is_at_or_after(earlier),
            "{self:?} lies before {earlier:?}"
        );
        self.0.wrapping_sub(earlier.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparison_goes_round_the_end_of_the_number_space() {
        let before = SeqNumber(u32::MAX - 1);
        let after = before + 5;
        assert_eq!(after, SeqNumber(3));
        assert!(before < after);
        assert!(after > before);
        assert_eq!(after - before, 5);
        assert_eq!(before.since(after), -5);
        assert_eq!((before.max(after), before.min(after)), (after, before));
    }

    #[test]
    fn a_range_holds_its_start_and_not_its_end() {
        let start = SeqNumber(u32::MAX);
        assert!(start.is_within(start, 1));
        assert!((start + 1).is_within(start, 2));
        assert!(!(start + 2).is_within(start, 2));
        assert!(!start.is_within(start, 0));
        assert!(!(start - 1).is_within(start, 10));
    }
}
