//! Numbers and their units as wrk reads and prints them.

/// A unit and the larger ones of its kind.
#[derive(Debug)]
pub(crate) struct Units {
    scale: u64,
    base: &'static str,
    /// Each `scale` times the one before. wrk reads all of them and prints all but the last.
    larger: &'static [&'static str],
}

pub(crate) const MICROSECONDS: Units = Units {
    scale: 1000,
    base: "us",
    larger: &["ms", "s"],
};
pub(crate) const SECONDS: Units = Units {
    scale: 60,
    base: "s",
    larger: &["m", "h"],
};
pub(crate) const BINARY: Units = Units {
    scale: 1024,
    base: "",
    larger: &["K", "M", "G", "T", "P"],
};
pub(crate) const METRIC: Units = Units {
    scale: 1000,
    base: "",
    larger: &["k", "M", "G", "T", "P"],
};

impl Units {
    /// Reads a whole number with one of these units, in either case: digits, blanks if any, at most two letters. The
    /// rest after a blank is ignored, as by `sscanf`.
    pub(crate) fn scan(&self, text: &[u8]) -> Option<u64> {
        let text = text.trim_ascii_start();
        let (negative, text) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            text => (false, text),
        };
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return None;
        }
        let (digits, rest) = text.split_at(digits);
        let number = digits.iter().fold(0_u64, |number, digit| {
            number
                .saturating_mul(10)
                .saturating_add(u64::from(digit - b'0'))
        });
        // strtoull negates a number with a minus; such a number is never intended.
        let number = if negative {
            number.wrapping_neg()
        } else {
            number
        };
        let rest = rest.trim_ascii_start();
        let unit = rest
            .iter()
            .take_while(|byte| !byte.is_ascii_whitespace())
            .count();
        let unit = rest.get(..unit.min(2)).unwrap_or_default();
        Some(number.saturating_mul(self.factor(unit)?))
    }

    fn factor(&self, unit: &[u8]) -> Option<u64> {
        if unit.is_empty() || unit.eq_ignore_ascii_case(self.base.as_bytes()) {
            return Some(1);
        }
        let mut factor = 1;
        for larger in self.larger {
            factor *= self.scale;
            if unit.eq_ignore_ascii_case(larger.as_bytes()) {
                return Some(factor);
            }
        }
        None
    }

    /// The number in a suitable unit: the next larger one from 0.85 of it on.
    pub(crate) fn format(&self, number: f64, decimals: usize) -> String {
        let scale = self.scale as f64;
        let (mut amount, mut unit) = (number, self.base);
        let printed = self.larger.len() - 1;
        for larger in self.larger.iter().take(printed) {
            if amount >= scale * NEXT_UNIT_FROM {
                amount /= scale;
                unit = larger;
            } else {
                break;
            }
        }
        format!("{}{unit}", decimal(amount, decimals))
    }
}

pub(crate) fn binary(bytes: f64) -> String {
    BINARY.format(bytes, 2)
}

pub(crate) fn metric(number: f64) -> String {
    METRIC.format(number, 2)
}

pub(crate) fn time_us(micros: f64) -> String {
    if micros >= 1e6 {
        SECONDS.format(micros / 1e6, 2)
    } else {
        MICROSECONDS.format(micros, 2)
    }
}

/// Seconds without decimals.
pub(crate) fn time_s(seconds: f64) -> String {
    SECONDS.format(seconds, 0)
}

/// A number as C prints it; NaN has the sign that x86 gives to zero by zero.
pub(crate) fn decimal(number: f64, decimals: usize) -> String {
    if number.is_nan() {
        String::from("-nan")
    } else {
        format!("{number:.decimals$}")
    }
}

/// Right-aligned so that digits stand below digits: two columns are for a unit's letters or blanks. Longer text is
/// truncated, as in wrk.
pub(crate) fn padded(text: &str, width: usize) -> String {
    let mut ends = text.bytes().rev();
    let letter =
        |byte: Option<u8>| usize::from(byte.is_some_and(|byte| byte.is_ascii_alphabetic()));
    let pad = 2 - letter(ends.next()) - letter(ends.next());
    let width = width - pad;
    format!("{text:>width$.width$}{:pad$}", "")
}

/// From this share of the next larger unit on, wrk takes that one.
const NEXT_UNIT_FROM: f64 = 0.85;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_unit_that_wrk_gives_them() {
        let check = |text: String, expected| assert_eq!(text, expected);
        check(time_us(0.0), "0.00us");
        check(time_us(849.0), "849.00us");
        check(time_us(849.99), "849.99us");
        check(time_us(850.0), "0.85ms");
        check(time_us(999_999.0), "1000.00ms");
        check(time_us(1e6), "1.00s");
        check(time_us(50_990_000.0), "50.99s");
        check(time_us(51e6), "0.85m");
        check(time_us(180_100_000.0), "3.00m");
        check(time_us(7200e6), "120.00m");
        check(time_s(1.0), "1s");
        check(time_s(50.0), "50s");
        check(time_s(51.0), "1m");
        check(time_s(90.0), "2m");
        // Half-way cases go to the even digit, as glibc's do.
        check(time_s(150.0), "2m");
        check(time_s(180.0), "3m");
        check(time_s(7200.0), "120m");
        check(binary(870.0), "870.00");
        check(binary(871.0), "0.85K");
        check(binary(1e9), "0.93G");
        check(binary(17.76 * 1024.0 * 1024.0 * 1024.0), "17.76G");
        check(binary(1e18), "909494.70T");
        check(metric(849.0), "849.00");
        check(metric(850.0), "0.85k");
        check(metric(56_200.0), "56.20k");
        check(metric(1e18), "1000000.00T");
        check(metric(f64::NAN), "-nan");
    }

    #[test]
    fn padding_keeps_digits_below_digits() {
        let check = |text, width, expected: &str| assert_eq!(padded(text, width), expected);
        check("635.91us", 8, "635.91us");
        check("56.20k", 8, " 56.20k ");
        check("533.12", 8, "533.12  ");
        check("1.10s", 10, "    1.10s ");
        check("0.89ms", 10, "    0.89ms");
        check("1000.00ms", 8, "1000.00m");
        check("1234567.89", 9, "1234567  ");
        check("-nan", 8, "    -nan");
    }

    #[test]
    fn numbers_and_times_are_read_as_wrk_does() {
        let check = |units: &Units, text: &str, expected| {
            assert_eq!(units.scan(text.as_bytes()), expected, "{text}");
        };
        check(&METRIC, "8192", Some(8192));
        check(&METRIC, "1k", Some(1000));
        check(&METRIC, "1K", Some(1000));
        check(&METRIC, "3m", Some(3_000_000));
        check(&METRIC, "2G", Some(2_000_000_000));
        check(&METRIC, "1t", Some(1_000_000_000_000));
        check(&METRIC, "1p", Some(1_000_000_000_000_000));
        check(&METRIC, " +5 k later", Some(5000));
        check(&METRIC, "1.5k", None);
        check(&METRIC, "1kk", None);
        check(&METRIC, "k", None);
        check(&METRIC, "", None);
        check(&METRIC, "5s", None);
        check(&METRIC, "-1", Some(u64::MAX));
        check(&METRIC, "99999999999999999999k", Some(u64::MAX));
        check(&SECONDS, "30", Some(30));
        check(&SECONDS, "30s", Some(30));
        check(&SECONDS, "600S", Some(600));
        check(&SECONDS, "3m", Some(180));
        check(&SECONDS, "2h", Some(7200));
        check(&SECONDS, "10ms", None);
        check(&SECONDS, "10sec", None);
        check(&SECONDS, "1d", None);
    }
}
