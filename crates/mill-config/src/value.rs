//! Values of directives: numbers, sizes, times.

use std::time::Duration;

/// A decimal number without sign. `None` for anything else, an overflow included.
pub fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |value, &byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        value
            .checked_mul(10)?
            .checked_add(digit)
            .filter(|&value| value <= VALUE_MAX)
    })
}

/// A size in bytes: a number with `k`, `K`, `m` or `M`.
pub fn size(text: &[u8]) -> Option<u64> {
    scaled(text, &[(b'k', 10), (b'm', 20)])
}

/// An offset in bytes: a size, or a number with `g` or `G`.
pub fn offset(text: &[u8]) -> Option<u64> {
    scaled(text, &[(b'k', 10), (b'm', 20), (b'g', 30)])
}

fn scaled(text: &[u8], units: &[(u8, u32)]) -> Option<u64> {
    let (digits, shift) = match text.split_last() {
        Some((last, digits)) if !last.is_ascii_digit() => {
            let unit = units
                .iter()
                .find(|(unit, _)| *unit == last.to_ascii_lowercase())?;
            (digits, unit.1)
        }
        _ => (text, 0),
    };
    number(digits)?
        .checked_mul(1 << shift)
        .filter(|&value| value <= VALUE_MAX)
}

/// A time with millisecond precision: `1h30m`, `10ms`, `75` (seconds). No months or years.
pub fn milliseconds(text: &[u8]) -> Option<Duration> {
    Some(Duration::from_millis(time(text, true)?))
}

/// A time with second precision: months (30 days) and years (365 days) too, milliseconds not.
pub fn seconds(text: &[u8]) -> Option<Duration> {
    Some(Duration::from_secs(time(text, false)?))
}

/// The largest value of nginx (its integers are signed, 64 bits).
const VALUE_MAX: u64 = i64::MAX as u64;

/// Units in the order in which they must stand, with their seconds.
const UNITS: [(u8, u64); 7] = [
    (b'y', 365 * 86400),
    (b'M', 30 * 86400),
    (b'w', 7 * 86400),
    (b'd', 86400),
    (b'h', 3600),
    (b'm', 60),
    (b's', 1),
];

/// Sum of numbers with units, each unit smaller than the one before; a number without a unit
/// (last, or followed by a space) is seconds.
fn time(text: &[u8], in_milliseconds: bool) -> Option<u64> {
    let scale = if in_milliseconds { 1000 } else { 1 };
    // Units above index 2 (weeks) exist at either precision.
    let mut next_unit = if in_milliseconds { 2 } else { 0 };
    let mut after_milliseconds = false;
    let mut total = 0_u64;
    let mut value = 0_u64;
    let mut has_digit = false;
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte.is_ascii_digit() {
            has_digit = true;
            value = value.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?;
            if value > VALUE_MAX {
                return None;
            }
            continue;
        }
        let factor = if byte == b'm' && rest.first() == Some(&b's') {
            if !in_milliseconds || after_milliseconds {
                return None;
            }
            rest = rest.get(1..).unwrap_or_default();
            after_milliseconds = true;
            next_unit = UNITS.len();
            1
        } else if byte == b' ' {
            if next_unit >= UNITS.len() {
                return None;
            }
            next_unit = UNITS.len();
            after_milliseconds = true;
            scale
        } else {
            let unit = UNITS.iter().position(|(unit, _)| *unit == byte)?;
            if unit < next_unit {
                return None;
            }
            next_unit = unit + 1;
            UNITS.get(unit)?.1.checked_mul(scale)?
        };
        total = total
            .checked_add(value.checked_mul(factor)?)
            .filter(|&sum| sum <= VALUE_MAX)?;
        value = 0;
        rest = rest.trim_ascii_start();
    }
    if !has_digit {
        return None;
    }
    total
        .checked_add(value.checked_mul(scale)?)
        .filter(|&sum| sum <= VALUE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_offsets_take_their_units() {
        let check = |text: &str, as_size: Option<u64>, as_offset: Option<u64>| {
            assert_eq!(size(text.as_bytes()), as_size, "size {text}");
            assert_eq!(offset(text.as_bytes()), as_offset, "offset {text}");
        };
        check("0", Some(0), Some(0));
        check("8k", Some(8192), Some(8192));
        check("2M", Some(2 << 20), Some(2 << 20));
        check("1g", None, Some(1 << 30));
        check("", None, None);
        check("k", None, None);
        check("-1", None, None);
        check("1kb", None, None);
        check("9223372036854775807", Some(VALUE_MAX), Some(VALUE_MAX));
        check("9223372036854775808", None, None);
        check("9223372036854775807k", None, None);
    }

    #[test]
    fn times_are_sums_of_ever_smaller_units() {
        let check = |text: &str, ms: Option<u64>, s: Option<u64>| {
            let (got_ms, got_s) = (milliseconds(text.as_bytes()), seconds(text.as_bytes()));
            assert_eq!(got_ms, ms.map(Duration::from_millis), "ms {text}");
            assert_eq!(got_s, s.map(Duration::from_secs), "s {text}");
        };
        check("75", Some(75_000), Some(75));
        check("0", Some(0), Some(0));
        check("10ms", Some(10), None);
        check("1s500ms", Some(1500), None);
        check("1h30m", Some(5_400_000), Some(5400));
        check("1h 30m", Some(5_400_000), Some(5400));
        check("1m1h", None, None);
        check("1s1s", None, None);
        check("1M", None, Some(30 * 86400));
        check("1y1M", None, Some(395 * 86400));
        check("1w2d", Some(9 * 86_400_000), Some(9 * 86400));
        check("1m30", Some(90_000), Some(90));
        check("", None, None);
        check("s", None, None);
        check("1x", None, None);
        check("-1", None, None);
        check("99999999999999999999", None, None);
    }
}
