//! Parts of a representation: which are stored, and which may be put together. RFC 9111 3.3 and 3.4.

use alloc::vec::Vec;

use super::validation::ResponseValidators;
use crate::range::ByteRange;
use crate::status::Status;

/// The most intervals that are kept of one representation; a part that would make more is not stored.
pub const INTERVALS_MAX: usize = 64;

/// The value of `Content-Range` of a 206 (RFC 9110 14.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentRange {
    pub range: ByteRange,
    /// Bytes of the whole; `None` is `*`.
    pub complete_length: Option<u64>,
}

/// Parses `bytes 0-99/1000`; `None` is malformed, of another unit, or outside the whole.
pub fn parse_content_range(value: &[u8]) -> Option<ContentRange> {
    let (unit, rest) = value.split_at_checked(6)?;
    unit.eq_ignore_ascii_case(b"bytes ").then_some(())?;
    let slash = rest.iter().position(|byte| *byte == b'/')?;
    let dash = rest.iter().position(|byte| *byte == b'-')?;
    let start = whole_number(rest.get(..dash)?)?;
    let end = whole_number(rest.get(dash + 1..slash)?)?.checked_add(1)?;
    let complete_length = match rest.get(slash + 1..)? {
        b"*" => None,
        digits => Some(whole_number(digits)?),
    };
    let is_inside = start < end && complete_length.is_none_or(|length| end <= length);
    is_inside.then_some(ContentRange {
        range: ByteRange { start, end },
        complete_length,
    })
}

fn whole_number(text: &[u8]) -> Option<u64> {
    let digit = |number: u64, byte: &u8| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    };
    (!text.is_empty())
        .then(|| text.iter().try_fold(0, digit))
        .flatten()
}

/// A stored or received part.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// 206, or 200 that was not received to its end.
    pub status: Status,
    pub validators: ResponseValidators<'a>,
    /// Bytes of the whole, as far as known.
    pub complete_length: Option<u64>,
}

/// RFC 9111 3.4, RFC 9110 15.3.7.3: parts may be put together if they share a strong validator and do not disagree on
/// the length of the whole.
pub fn may_combine(stored: &Part<'_>, new: &Part<'_>) -> bool {
    let is_part = |part: &Part<'_>| matches!(part.status, Status::OK | Status::PARTIAL_CONTENT);
    let lengths = stored.complete_length.zip(new.complete_length);
    is_part(stored)
        && is_part(new)
        && lengths.is_none_or(|(one, another)| one == another)
        && stored.validators.is_same_strongly(&new.validators)
}

/// Which bytes of a representation are stored: intervals in their order that neither overlap nor touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Intervals {
    intervals: Vec<ByteRange>,
}

impl Intervals {
    /// Adds bytes; false if there would be more than [`INTERVALS_MAX`] intervals, and then nothing changes.
    pub fn insert(&mut self, added: ByteRange) -> bool {
        if added.is_empty() {
            return true;
        }
        // Those that overlap or touch it.
        let first = self.intervals.partition_point(|one| one.end < added.start);
        let after = self.intervals.partition_point(|one| one.start <= added.end);
        let joined = self.intervals.get(first..after).unwrap_or_default();
        if joined.is_empty() && self.intervals.len() == INTERVALS_MAX {
            return false;
        }
        let union = joined.iter().fold(added, |union, one| ByteRange {
            start: union.start.min(one.start),
            end: union.end.max(one.end),
        });
        self.intervals.splice(first..after.max(first), [union]);
        true
    }

    pub fn covers(&self, asked: ByteRange) -> bool {
        asked.is_empty() || self.missing(asked).next().is_none()
    }

    /// The bytes of `asked` that are not stored, in their order.
    pub fn missing(&self, asked: ByteRange) -> impl Iterator<Item = ByteRange> + '_ {
        let mut start = asked.start;
        let last = ByteRange {
            start: asked.end,
            end: asked.end,
        };
        let gaps = self
            .intervals
            .iter()
            .copied()
            .chain([last])
            .map(move |one| {
                let gap = ByteRange {
                    start,
                    end: one.start.min(asked.end),
                };
                start = start.max(one.end);
                gap
            });
        gaps.filter(|gap| !gap.is_empty())
    }

    /// Bytes stored.
    pub fn bytes(&self) -> u64 {
        self.intervals.iter().map(|one| one.len()).sum()
    }

    pub fn as_slice(&self) -> &[ByteRange] {
        &self.intervals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn range(start: u64, end: u64) -> ByteRange {
        ByteRange { start, end }
    }

    #[test]
    fn content_ranges_are_read_or_refused() {
        let check = |value: &str, expected: Option<(u64, u64, Option<u64>)>| {
            let found = parse_content_range(value.as_bytes());
            let found = found.map(|one| (one.range.start, one.range.end, one.complete_length));
            assert_eq!(found, expected, "{value}");
        };
        check("bytes 0-99/1000", Some((0, 100, Some(1000))));
        check("Bytes 5-5/*", Some((5, 6, None)));
        check("bytes 0-999/1000", Some((0, 1000, Some(1000))));
        for value in [
            "",
            "bytes",
            "bytes 0-1000/1000",
            "bytes 5-4/1000",
            "bytes */1000",
            "bytes 0-99",
            "bytes 0-/5",
            "bytes -5/9",
            "bytes=0-99/1000",
            "items 0-9/10",
            "bytes 0-99/1000 ",
            "bytes 0-99/x",
            "bytes 0-99/",
            "bytes +0-99/100",
            "bytes 0-18446744073709551615/*",
            "bytes 0-99999999999999999999/*",
            "bytes 0/5-6",
            "bytes 0--5/6",
        ] {
            check(value, None);
        }
    }

    #[test]
    fn parts_are_combined_with_the_same_strong_validator_only() {
        let part = |status, etag: &'static str, complete_length| Part {
            status: Status(status),
            validators: ResponseValidators {
                etag: Some(etag.as_bytes()),
                last_modified: None,
                date: 0,
            },
            complete_length,
        };
        let stored = part(206, "\"a\"", Some(10));
        for (new, expected) in [
            (part(206, "\"a\"", Some(10)), true),
            (part(200, "\"a\"", Some(10)), true),
            (part(206, "\"a\"", None), true),
            (part(206, "\"a\"", Some(11)), false),
            (part(206, "\"b\"", Some(10)), false),
            (part(206, "W/\"a\"", Some(10)), false),
            (part(416, "\"a\"", Some(10)), false),
        ] {
            assert_eq!(may_combine(&stored, &new), expected, "{new:?}");
            assert_eq!(may_combine(&new, &stored), expected, "{new:?}");
        }
        let weak = part(206, "W/\"a\"", Some(10));
        assert!(!may_combine(&weak, &weak));
    }

    #[test]
    fn intervals_are_what_a_set_of_bytes_says() {
        let mut state = 7_u64;
        let mut next = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..300 {
            let (mut intervals, mut bytes) = (Intervals::default(), [false; 64]);
            for _ in 0..next(12) {
                let start = next(60);
                let added = range(start, start + next(6));
                assert!(intervals.insert(added));
                (added.start..added.end).for_each(|at| bytes[usize::try_from(at).unwrap()] = true);
                let pairs = intervals.as_slice().windows(2);
                assert!(pairs.into_iter().all(|pair| pair[0].end < pair[1].start));
                assert_eq!(
                    intervals.bytes(),
                    bytes.iter().filter(|byte| **byte).count() as u64
                );
            }
            let start = next(60);
            let asked = range(start, start + next(10).min(64 - start));
            let missing: Vec<u64> = intervals
                .missing(asked)
                .flat_map(|gap| gap.start..gap.end)
                .collect();
            let expected =
                (asked.start..asked.end).filter(|at| !bytes[usize::try_from(*at).unwrap()]);
            assert_eq!(
                missing,
                expected.collect::<Vec<_>>(),
                "{intervals:?} {asked:?}"
            );
            assert_eq!(intervals.covers(asked), missing.is_empty());
        }
    }

    #[test]
    fn the_number_of_intervals_is_bounded() {
        let mut intervals = Intervals::default();
        for index in 0..INTERVALS_MAX as u64 {
            assert!(intervals.insert(range(index * 10, index * 10 + 5)));
        }
        let before = intervals.clone();
        assert!(!intervals.insert(range(10_000, 10_001)));
        assert_eq!(intervals, before);
        assert!(intervals.insert(range(5, 10)), "it joins two");
        assert!(intervals.insert(range(10_000, u64::MAX)));
        assert!(intervals.covers(range(20_000, u64::MAX)));
    }
}
