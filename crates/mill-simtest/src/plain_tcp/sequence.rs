//! Sequence numbers (RFC 9293 3.4): 32 bits that begin again.

/// Whether `a` comes before `b`, as long as they are less than 2^31 apart.
pub(super) const fn before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) > 1 << 31
}

/// The later of two.
pub(super) const fn later(a: u32, b: u32) -> u32 {
    if before(a, b) { b } else { a }
}

/// A length as a difference of sequence numbers; no segment or window is longer than 2^31.
pub(super) fn len(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(1 << 30)
}

/// A difference of sequence numbers as an index.
pub(super) fn index(distance: u32) -> usize {
    usize::try_from(distance).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_goes_on_where_the_numbers_begin_again() {
        for (a, b) in [(0, 1), (u32::MAX, 0), (u32::MAX - 5, 100), (7, 1 << 30)] {
            assert!(before(a, b) && !before(b, a) && !before(a, a), "{a} {b}");
            assert_eq!((later(a, b), later(b, a)), (b, b));
        }
    }
}
