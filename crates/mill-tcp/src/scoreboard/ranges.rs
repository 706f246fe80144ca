//! Ranges that the peer has reported: so that the same report costs nothing when it comes again.

use alloc::collections::VecDeque;
use mill_wire::seq::SeqNumber;

/// Ranges of sequence numbers in order, no two of them touching.
#[derive(Debug, Default)]
pub struct Ranges {
    ranges: VecDeque<(SeqNumber, SeqNumber)>,
}

impl Ranges {
    pub fn clear(&mut self) {
        self.ranges.clear();
    }

    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// The first part of `start .. end` that is in no range.
    pub fn first_gap(&self, start: SeqNumber, end: SeqNumber) -> Option<(SeqNumber, SeqNumber)> {
        let index = self.index_of(start);
        let (gap_start, next) = match self.ranges.get(index) {
            Some(range) if range.0.is_at_or_before(start) => (range.1, index + 1),
            _ => (start, index),
        };
        let gap_end = self
            .ranges
            .get(next)
            .map_or(end, |following| following.0.min(end));
        gap_end.is_after(gap_start).then_some((gap_start, gap_end))
    }

    /// Adds `start .. end`; says whether there was room. Where it touches a range there always is.
    pub fn insert(&mut self, start: SeqNumber, end: SeqNumber) -> bool {
        debug_assert!(end.is_after(start));
        // The ranges from `first` to before `last` touch or overlap the new one.
        let first = self
            .ranges
            .partition_point(|range| range.1.is_before(start));
        let last = self
            .ranges
            .partition_point(|range| range.0.is_at_or_before(end));
        if first == last {
            if self.ranges.len() >= Self::COUNT_MAX {
                return false;
            }
            self.ranges.insert(first, (start, end));
            return true;
        }
        let end = self
            .ranges
            .get(last - 1)
            .map_or(end, |range| range.1.max(end));
        if let Some(range) = self.ranges.get_mut(first) {
            range.0 = range.0.min(start);
            range.1 = end;
        }
        self.ranges.drain(first + 1..last);
        true
    }

    /// Forgets what lies before `ack`.
    pub fn forget_before(&mut self, ack: SeqNumber) {
        while let Some(front) = self.ranges.front_mut() {
            if front.0.is_at_or_after(ack) {
                break;
            }
            if front.1.is_after(ack) {
                front.0 = ack;
                break;
            }
            self.ranges.pop_front();
        }
    }

    /// The first range that ends behind `seq`.
    fn index_of(&self, seq: SeqNumber) -> usize {
        self.ranges
            .partition_point(|range| range.1.is_at_or_before(seq))
    }

    /// Ranges kept: 4 KiB of memory, and the most that inserting one moves. Holes beyond them are learnt later, when
    /// those before them are filled.
    pub const COUNT_MAX: usize = 512;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seq(at: u32) -> SeqNumber {
        SeqNumber(u32::MAX - 50) + at
    }

    fn ranges_of(inserts: &[(u32, u32)]) -> Ranges {
        let mut ranges = Ranges::default();
        for &(start, end) in inserts {
            assert!(ranges.insert(seq(start), seq(end)));
        }
        ranges
    }

    #[test]
    fn ranges_that_touch_become_one() {
        let check = |inserts: &[(u32, u32)], expected: &[(u32, u32)]| {
            let ranges = ranges_of(inserts);
            let expected: VecDeque<_> = expected.iter().map(|&(a, b)| (seq(a), seq(b))).collect();
            assert_eq!(ranges.ranges, expected, "{inserts:?}");
        };
        check(&[(10, 20), (30, 40)], &[(10, 20), (30, 40)]);
        check(&[(30, 40), (10, 20)], &[(10, 20), (30, 40)]);
        check(&[(10, 20), (20, 40)], &[(10, 40)]);
        check(&[(20, 40), (10, 20)], &[(10, 40)]);
        check(&[(10, 20), (21, 40)], &[(10, 20), (21, 40)]);
        check(&[(10, 20), (30, 40), (50, 60), (15, 55)], &[(10, 60)]);
        check(&[(10, 60), (20, 30)], &[(10, 60)]);
        check(&[(40, 100), (10, 20), (0, 120)], &[(0, 120)]);
    }

    #[test]
    fn a_gap_is_what_no_range_holds() {
        let ranges = ranges_of(&[(10, 20), (30, 40)]);
        let check = |(start, end): (u32, u32), expected: Option<(u32, u32)>| {
            let gap = ranges.first_gap(seq(start), seq(end));
            assert_eq!(
                gap,
                expected.map(|(a, b)| (seq(a), seq(b))),
                "{start}..{end}"
            );
        };
        check((0, 5), Some((0, 5)));
        check((0, 15), Some((0, 10)));
        check((10, 20), None);
        check((10, 21), Some((20, 21)));
        check((15, 35), Some((20, 30)));
        check((20, 30), Some((20, 30)));
        check((30, 40), None);
        check((39, 90), Some((40, 90)));
    }

    #[test]
    fn no_more_ranges_are_kept_than_the_limit_but_touching_ones_are_taken() {
        let mut ranges = Ranges::default();
        for index in 0..u32::try_from(Ranges::COUNT_MAX).unwrap() {
            assert!(ranges.insert(seq(index * 4), seq(index * 4 + 2)));
        }
        assert!(!ranges.insert(seq(900_000), seq(900_001)));
        assert!(ranges.insert(seq(2), seq(3)));
        ranges.forget_before(seq(5));
        assert_eq!(ranges.len(), Ranges::COUNT_MAX - 1);
        assert!(ranges.insert(seq(900_000), seq(900_001)));
    }
}
