//! Figures in readable form: a unit's prefix, only significant digits, thousands separated.

use crate::metric::Unit;

/// With its unit: `33,586`, `2.98 ms`, `97.7 MB/s`, `24.3 %`.
pub(super) fn figure(value: f64, unit: Unit) -> String {
    figure_of(value, unit, 3)
}

/// The same with so many significant digits.
pub(super) fn figure_of(value: f64, unit: Unit, digits: i32) -> String {
    if !value.is_finite() {
        return String::from("–");
    }
    let with = |value: f64, suffix: &str| format!("{}{suffix}", significant(value, digits));
    match unit {
        Unit::Count | Unit::PerSecond if digits <= 3 => plain(value),
        Unit::Count | Unit::PerSecond | Unit::PerRequest => significant(value, digits),
        Unit::Microseconds => with(value, " µs"),
        Unit::Percent => with(value, " %"),
        Unit::Share => with(value * 100.0, " %"),
        Unit::GigabitsPerSecond => with(value, " Gb/s"),
        Unit::Seconds | Unit::Bytes | Unit::BytesPerSecond => {
            let prefix = Prefix::of(value.abs(), unit);
            with(value / prefix.divisor, prefix.suffix)
        }
    }
}

/// From a thousand on whole and grouped; below with three significant digits.
fn plain(value: f64) -> String {
    if value.abs() >= HUGE {
        significant(value, 3)
    } else if value.abs() >= 999.5 {
        grouped(&format!("{value:.0}"))
    } else if value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        significant(value, 3)
    }
}

/// `digits` significant digits; whole numbers are never rounded to tens. Only what no experiment measures has an exponent.
pub(super) fn significant(value: f64, digits: i32) -> String {
    if value == 0.0 || !value.is_finite() {
        return String::from(if value == 0.0 { "0" } else { "–" });
    }
    if value.abs() >= HUGE {
        return format!("{value:.1e}");
    }
    // 9.996 has three digits as 10.0, not as 10.00: round first, then count.
    let mut decimals = digits - 1 - floor_log10(value.abs());
    let rounded = round_to(value, decimals);
    decimals = digits - 1 - floor_log10(rounded.abs().max(f64::MIN_POSITIVE));
    let places = usize::try_from(decimals.clamp(0, DECIMALS_MAX)).unwrap_or(0);
    grouped(&format!("{value:.places$}"))
}

/// Numbers from here on are nonsense or nanoseconds since 1970, and too wide to be written out.
pub(super) const HUGE: f64 = 1e15;

/// Decimals of the smallest figure that is written out, below it is zero to a reader.
const DECIMALS_MAX: i32 = 9;

fn round_to(value: f64, decimals: i32) -> f64 {
    let scale = 10_f64.powi(decimals);
    let rounded = (value * scale).round() / scale;
    if rounded.is_finite() { rounded } else { value }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the logarithm of a finite double lies within ±324"
)]
fn floor_log10(value: f64) -> i32 {
    value.log10().floor() as i32
}

/// The divisor of a unit, and the text after the number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Prefix {
    pub(super) divisor: f64,
    pub(super) suffix: &'static str,
}

impl Prefix {
    /// That fits a value, or all values of an axis that ends there.
    pub(super) fn of(value: f64, unit: Unit) -> Self {
        let ladder: &[(f64, &'static str)] = match unit {
            Unit::Seconds => &[(1.0, " s"), (1e-3, " ms"), (1e-6, " µs"), (1e-9, " ns")],
            Unit::Bytes => &[(1e9, " GB"), (1e6, " MB"), (1e3, " kB"), (1.0, " B")],
            Unit::BytesPerSecond => &[
                (1e9, " GB/s"),
                (1e6, " MB/s"),
                (1e3, " kB/s"),
                (1.0, " B/s"),
            ],
            Unit::Count | Unit::PerSecond => &[(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")],
            Unit::Percent => &[(1.0, " %")],
            Unit::Share => &[(0.01, " %")],
            Unit::GigabitsPerSecond => &[(1.0, " Gb/s")],
            Unit::Microseconds => &[(1e6, " s"), (1e3, " ms"), (1.0, " µs")],
            Unit::PerRequest => &[(1.0, "")],
        };
        // Nothing is not a nanosecond: zero takes the unit itself.
        let plain = ladder
            .iter()
            .find(|(divisor, _)| *divisor == 1.0)
            .or(ladder.first());
        let fits = ladder
            .iter()
            .find(|(divisor, _)| value >= *divisor * 0.9995);
        let chosen = if value > 0.0 {
            fits.or(ladder.last())
        } else {
            plain
        };
        let &(divisor, suffix) = chosen.unwrap_or(&(1.0, ""));
        Self { divisor, suffix }
    }
}

/// Commas between thousands of every number in a cell: `from 33585.56 to 36120.88` becomes `from 33,585.56 to 36,120.88`. Decimals
/// and words with digits in them stay.
pub(super) fn grouped(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len() + 4);
    let mut rest = text;
    while let Some(start) = rest.find(|character: char| character.is_ascii_digit()) {
        let offset = text.len() - rest.len() + start;
        let digits = rest[start..]
            .find(|character: char| !character.is_ascii_digit())
            .unwrap_or(rest.len() - start);
        let stands_alone = stands_alone(&bytes[..offset], &bytes[offset + digits..]);
        out.push_str(&rest[..start]);
        let run = &rest[start..start + digits];
        if stands_alone && digits > 3 {
            for (index, digit) in run.chars().enumerate() {
                if index > 0 && (digits - index).is_multiple_of(3) {
                    out.push(',');
                }
                out.push(digit);
            }
        } else {
            out.push_str(run);
        }
        rest = &rest[start + digits..];
    }
    out.push_str(rest);
    out
}

/// Whether digits between these two texts are a number of their own: not decimals, not part of a word (`E5-2620v2`), a date or a port.
fn stands_alone(before: &[u8], after: &[u8]) -> bool {
    let part_of_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"._,:".contains(byte);
    let begins = match before {
        [.., word, b'-'] => !part_of_word(word),
        [.., last] => !part_of_word(last),
        [] => true,
    };
    let ends = match after {
        [b'-' | b':' | b',', next, ..] => !next.is_ascii_digit(),
        [next, ..] => !next.is_ascii_alphabetic(),
        [] => true,
    };
    begins && ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_their_unit_and_three_digits() {
        let cases = [
            (33_585.56, Unit::PerSecond, "33,586"),
            (999.9, Unit::PerSecond, "1,000"),
            (533.12, Unit::PerSecond, "533"),
            (0.002_977, Unit::Seconds, "2.98 ms"),
            (0.000_999_9, Unit::Seconds, "1.00 ms"),
            (0.000_05, Unit::Seconds, "50.0 µs"),
            (1.5, Unit::Seconds, "1.50 s"),
            (0.0, Unit::Seconds, "0 s"),
            (97_700_000.0, Unit::BytesPerSecond, "97.7 MB/s"),
            (2649.0, Unit::Bytes, "2.65 kB"),
            (24.28, Unit::Percent, "24.3 %"),
            (0.0123, Unit::Share, "1.23 %"),
            (9.996, Unit::GigabitsPerSecond, "10.0 Gb/s"),
            (4.0, Unit::PerRequest, "4.00"),
            (1e300, Unit::PerSecond, "1.0e300"),
            (f64::NAN, Unit::Count, "–"),
            (f64::INFINITY, Unit::Seconds, "–"),
        ];
        for (value, unit, expected) in cases {
            assert_eq!(figure(value, unit), expected, "{value} {unit:?}");
        }
    }

    #[test]
    fn thousands_are_apart_and_decimals_are_not() {
        let cases = [
            ("33585.56", "33,585.56"),
            ("2334780", "2,334,780"),
            ("999", "999"),
            ("-1234", "-1,234"),
            (
                "from 33585.56 to 36120.88 (+7.5 %)",
                "from 33,585.56 to 36,120.88 (+7.5 %)",
            ),
            ("0.123456", "0.123456"),
            ("33,585.56", "33,585.56"),
            ("E5-2620v2", "E5-2620v2"),
            ("2026-11-21 at 10.0.0.1:8080", "2026-11-21 at 10.0.0.1:8080"),
            ("1600, 3200", "1,600, 3,200"),
            ("v2620", "v2620"),
            ("", ""),
            ("µ 5000 µ", "µ 5,000 µ"),
        ];
        for (input, expected) in cases {
            assert_eq!(grouped(input), expected);
        }
    }
}
