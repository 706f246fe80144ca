//! Byte ranges, RFC 9110 14, as nginx evaluates them.

use alloc::vec::Vec;

use crate::limits::{CONTENT_LENGTH_MAX, RANGES_MAX};

/// Bytes `start` up to, not including, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    pub start: u64,
    pub end: u64,
}

impl ByteRange {
    pub const fn len(self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    pub const fn is_empty(self) -> bool {
        self.start >= self.end
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeVerdict {
    /// 200 with the whole content: another unit, too many ranges, or more bytes than there are.
    Whole,
    /// 206 with the ranges found: one, or a multipart answer.
    Partial,
    /// 416: malformed, or no range lies inside the content. nginx answers malformed ones so too,
    /// where RFC 9110 14.2 would ignore them.
    NotSatisfiable,
}

/// Parses the value of `Range` for a content of `length` bytes. `ranges` is emptied first and is meaningful for
/// `Partial` only; it never grows beyond `ranges_max` + 1 (nor `RANGES_MAX`). `ranges_max` is `max_ranges`; if that is
/// 0 the caller must not call this.
pub fn parse_ranges(
    value: &[u8],
    length: u64,
    ranges_max: Option<usize>,
    ranges: &mut Vec<ByteRange>,
) -> RangeVerdict {
    ranges.clear();
    let Some((unit, list)) = value.split_at_checked(6) else {
        return RangeVerdict::Whole;
    };
    if !unit.eq_ignore_ascii_case(b"bytes=") || list.is_empty() {
        return RangeVerdict::Whole;
    }
    let ranges_max = ranges_max.unwrap_or(RANGES_MAX).min(RANGES_MAX);
    let mut total = 0_u64;
    let mut text = Text { rest: list };
    loop {
        let Some(range) = text.range(length) else {
            return RangeVerdict::NotSatisfiable;
        };
        let is_last = match text.next() {
            Some(b',') => false,
            None => true,
            Some(_) => return RangeVerdict::NotSatisfiable,
        };
        if !range.is_empty() {
            total = match total.checked_add(range.len()) {
                Some(total) if total <= CONTENT_LENGTH_MAX => total,
                _ => return RangeVerdict::NotSatisfiable,
            };
            if ranges.len() >= ranges_max {
                return RangeVerdict::Whole;
            }
            ranges.push(range);
        } else if range.start == 0 {
            // A range from the first byte can only be empty if the content is.
            return RangeVerdict::Whole;
        }
        if is_last {
            break;
        }
    }
    if ranges.is_empty() {
        RangeVerdict::NotSatisfiable
    } else if total > length {
        RangeVerdict::Whole
    } else {
        RangeVerdict::Partial
    }
}

struct Text<'a> {
    rest: &'a [u8],
}

impl Text<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn skip_spaces(&mut self) {
        while let [b' ', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    /// Digits and the spaces after them. At least one digit; not beyond 2^63 - 1.
    fn number(&mut self) -> Option<u64> {
        let mut number = None;
        while let [digit @ b'0'..=b'9', rest @ ..] = self.rest {
            let digit = u64::from(digit - b'0');
            number = Some(
                number
                    .unwrap_or(0_u64)
                    .checked_mul(10)?
                    .checked_add(digit)?,
            );
            self.rest = rest;
        }
        self.skip_spaces();
        number.filter(|number| *number <= CONTENT_LENGTH_MAX)
    }

    /// One of `first-last`, `first-`, `-suffix`; cut to the content, and empty (but never from 0)
    /// where it lies outside.
    fn range(&mut self, length: u64) -> Option<ByteRange> {
        self.skip_spaces();
        if let [b'-', rest @ ..] = self.rest {
            self.rest = rest;
            let suffix = self.number()?;
            return Some(ByteRange {
                start: length.saturating_sub(suffix),
                end: length,
            });
        }
        let start = self.number()?;
        if self.next()? != b'-' {
            return None;
        }
        self.skip_spaces();
        if matches!(self.rest, [] | [b',', ..]) {
            return Some(ByteRange { start, end: length });
        }
        let last = self.number()?;
        Some(ByteRange {
            start,
            end: last.saturating_add(1).min(length),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use RangeVerdict::{NotSatisfiable, Partial, Whole};

    fn check_of(
        value: &str,
        length: u64,
        max: Option<usize>,
        verdict: RangeVerdict,
        expected: &[(u64, u64)],
    ) {
        let mut ranges = Vec::new();
        assert_eq!(
            parse_ranges(value.as_bytes(), length, max, &mut ranges),
            verdict,
            "{value}"
        );
        if verdict == Partial {
            let found: Vec<(u64, u64)> = ranges.iter().map(|r| (r.start, r.end)).collect();
            assert_eq!(found, expected, "{value}");
        }
    }

    #[test]
    fn ranges_of_a_hundred_bytes() {
        let check = |value: &str, verdict, expected: &[(u64, u64)]| {
            check_of(value, 100, None, verdict, expected);
        };
        check("bytes=0-0", Partial, &[(0, 1)]);
        check("bytes=0-99", Partial, &[(0, 100)]);
        check("BYTES=5-", Partial, &[(5, 100)]);
        check("bytes=-5", Partial, &[(95, 100)]);
        check("bytes=-500", Partial, &[(0, 100)]);
        check("bytes=99-1000", Partial, &[(99, 100)]);
        check("bytes= 1 - 2 , 3 - 4 ", Partial, &[(1, 3), (3, 5)]);
        check("bytes=1-2,200-300,-1", Partial, &[(1, 3), (99, 100)]);
        check("bytes=0-60,30-60", Partial, &[(0, 61), (30, 61)]);
        check("bytes=0-60,30-90", Whole, &[]);
        check("bytes=100-", NotSatisfiable, &[]);
        check("bytes=5-3", NotSatisfiable, &[]);
        check("bytes=-0", NotSatisfiable, &[]);
        check("bytes=1", NotSatisfiable, &[]);
        check("bytes=a-b", NotSatisfiable, &[]);
        check("bytes=1-2x", NotSatisfiable, &[]);
        check("bytes=1-2,", NotSatisfiable, &[]);
        check("bytes=--1", NotSatisfiable, &[]);
        check("bytes=1--2", NotSatisfiable, &[]);
        check("bytes=9223372036854775808-", NotSatisfiable, &[]);
        check("bytes=0-9223372036854775807", Partial, &[(0, 100)]);
        check("bytes=0-9223372036854775808", NotSatisfiable, &[]);
        check("bytes=", Whole, &[]);
        check("bytes", Whole, &[]);
        check("lines=1-2", Whole, &[]);
        check("bytes =1-2", Whole, &[]);
    }

    #[test]
    fn an_empty_content_has_no_ranges() {
        check_of("bytes=0-", 0, None, Whole, &[]);
        check_of("bytes=-5", 0, None, Whole, &[]);
        check_of("bytes=0-5,x", 0, None, Whole, &[]);
        check_of("bytes=0-5;x", 0, None, NotSatisfiable, &[]);
        check_of("bytes=-5;x", 0, None, NotSatisfiable, &[]);
        check_of("bytes=1-", 0, None, NotSatisfiable, &[]);
    }

    #[test]
    fn max_ranges_holds_on_both_sides() {
        check_of("bytes=0-0,2-2", 100, Some(2), Partial, &[(0, 1), (2, 3)]);
        check_of("bytes=0-0,2-2,4-4", 100, Some(2), Whole, &[]);
        check_of(
            "bytes=0-0,200-,2-2",
            100,
            Some(2),
            Partial,
            &[(0, 1), (2, 3)],
        );
    }
}
