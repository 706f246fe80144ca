//! Printed numbers with their units, and how exact they can be.

/// A number as printed: the true one is within `half_width` of `value`, because digits were cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Quantity {
    pub(crate) value: f64,
    pub(crate) half_width: f64,
}

impl Quantity {
    /// `13489.36`, also with thousands separated by commas.
    pub(crate) fn plain(text: &str) -> Option<Self> {
        let (number, rest) = split(text)?;
        rest.is_empty().then_some(number)
    }

    /// `1.88s`, `49.46ms`, `3m`, in seconds.
    pub(crate) fn time(text: &str) -> Option<Self> {
        let (number, unit) = split(text)?;
        let scale = match unit {
            "ns" => 1e-9,
            "us" | "µs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        Some(number.times(scale))
    }

    /// `322.45MB`, `0.00B`, in bytes. Units are binary, as wrk and h2load print them; the B must be there, so that a text that was
    /// cut off inside the unit is not read as something smaller.
    pub(crate) fn bytes(text: &str) -> Option<Self> {
        let (number, unit) = split(text)?;
        let scale = match unit.strip_suffix('B')? {
            "" => 1.0,
            "K" | "Ki" | "k" => KIB,
            "M" | "Mi" => KIB.powi(2),
            "G" | "Gi" => KIB.powi(3),
            "T" | "Ti" => KIB.powi(4),
            "P" | "Pi" => KIB.powi(5),
            _ => return None,
        };
        Some(number.times(scale))
    }

    /// `7.69k`, `726.97`. Units are decimal.
    pub(crate) fn metric(text: &str) -> Option<Self> {
        let (number, unit) = split(text)?;
        let scale = match unit {
            "" => 1.0,
            "k" | "K" => 1e3,
            "M" => 1e6,
            "G" => 1e9,
            "T" => 1e12,
            "P" => 1e15,
            _ => return None,
        };
        Some(number.times(scale))
    }

    /// The quotient; its half-width is that of both together, at first order.
    pub(crate) fn over(self, divisor: Self) -> Option<Self> {
        if self.value <= 0.0 || divisor.value <= 0.0 {
            return None;
        }
        let value = self.value / divisor.value;
        let share = self.half_width / self.value + divisor.half_width / divisor.value;
        Some(Self {
            value,
            half_width: value * share,
        })
    }

    pub(crate) fn times(self, scale: f64) -> Self {
        Self {
            value: self.value * scale,
            half_width: self.half_width * scale,
        }
    }
}

/// Bytes, by which wrk, ab and h2load divide.
const KIB: f64 = 1024.0;

/// The digits in front, and what follows them.
fn split(text: &str) -> Option<(Quantity, &str)> {
    let text = text.trim();
    let end = text
        .find(|letter: char| !letter.is_ascii_digit() && !matches!(letter, '.' | ',' | '-' | '+'))
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let digits: String = digits.chars().filter(|digit| *digit != ',').collect();
    let value: f64 = digits.parse().ok()?;
    let decimals = digits.split_once('.').map_or(0, |(_, after)| after.len());
    let last_digit = 10_f64.powi(-i32::try_from(decimals).ok()?);
    let half_width = last_digit / 2.0;
    Some((Quantity { value, half_width }, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(read: Option<Quantity>, expected: Option<f64>) {
        match (read, expected) {
            (Some(read), Some(expected)) => {
                assert!(
                    (read.value - expected).abs() <= expected.abs() * 1e-12,
                    "{read:?} is not {expected}"
                );
            }
            (None, None) => {}
            (read, expected) => panic!("{read:?} is not {expected:?}"),
        }
    }

    #[test]
    fn times_come_in_every_unit_of_wrk() {
        check(Quantity::time("849.00us"), Some(849e-6));
        check(Quantity::time("0.85ms"), Some(850e-6));
        check(Quantity::time("1.10s "), Some(1.1));
        check(Quantity::time("0.85m"), Some(51.0));
        check(Quantity::time("2h"), Some(7200.0));
        check(Quantity::time("-nan"), None);
        check(Quantity::time("12"), None);
    }

    #[test]
    fn bytes_are_binary_and_rates_are_decimal() {
        check(Quantity::bytes("0.85KB"), Some(870.4));
        check(
            Quantity::bytes("1.52GB"),
            Some(1.52 * 1024.0 * 1024.0 * 1024.0),
        );
        check(Quantity::bytes("0.00B"), Some(0.0));
        check(Quantity::bytes("10.72M"), None);
        check(Quantity::metric("107.80k"), Some(107_800.0));
        check(Quantity::metric("726.97"), Some(726.97));
        check(Quantity::plain("1,027,994"), Some(1_027_994.0));
    }

    #[test]
    fn what_was_rounded_off_is_known() {
        let read = Quantity::bytes("53.19MB").unwrap();
        assert!((read.half_width - 0.005 * 1_048_576.0).abs() < 1e-6);
        let rate = Quantity::plain("66954.88").unwrap();
        let bytes = read.over(rate).unwrap();
        assert!((bytes.value - 833.0).abs() < 0.2, "{bytes:?}");
        assert!(bytes.half_width < 0.1, "{bytes:?}");
    }
}
