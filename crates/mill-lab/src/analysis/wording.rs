//! Figures as text: in cells and sentences.

use crate::metric::{Metric, Unit};

/// A figure with as many decimals as asked for. Times and bytes a second have a prefix that fits, as tools print them.
pub(super) fn written(value: f64, metric: &Metric, digits: Option<usize>) -> String {
    let plain = digits.unwrap_or(metric.digits);
    let scaled = digits.unwrap_or(SCALED_DIGITS);
    match metric.unit {
        Unit::Seconds => {
            let (divisor, unit) = match value.abs() {
                size if size >= 1.0 || size == 0.0 => (1.0, "s"),
                size if size >= 1e-3 => (1e-3, "ms"),
                _ => (1e-6, "µs"),
            };
            // Whole runs are told in seconds to the millisecond.
            let scaled = if divisor == 1.0 {
                digits.unwrap_or(SECONDS_DIGITS)
            } else {
                scaled
            };
            format!("{:.scaled$} {unit}", value / divisor)
        }
        Unit::BytesPerSecond => {
            let (divisor, unit) = match value.abs() {
                size if size >= 1e9 => (1e9, "GB/s"),
                size if size >= 1e6 => (1e6, "MB/s"),
                size if size >= 1e3 => (1e3, "kB/s"),
                _ => (1.0, "B/s"),
            };
            format!("{:.scaled$} {unit}", value / divisor)
        }
        Unit::Microseconds => format!("{value:.plain$} µs"),
        Unit::Percent => format!("{value:.plain$} %"),
        Unit::Share => format!("{:.scaled$} %", value * 100.0),
        Unit::Count
        | Unit::PerSecond
        | Unit::Bytes
        | Unit::GigabitsPerSecond
        | Unit::PerRequest => {
            format!("{value:.plain$}")
        }
    }
}

/// The same in a sentence, with the unit's word.
pub(super) fn spoken(value: f64, metric: &Metric) -> String {
    match metric.unit {
        Unit::PerSecond if value.abs() >= 1000.0 => written(value, metric, Some(0)),
        Unit::Bytes => format!("{} B", written(value, metric, None)),
        Unit::GigabitsPerSecond => format!("{} Gb/s", written(value, metric, None)),
        _ => written(value, metric, None),
    }
}

/// The change that a ratio's logarithm means, in percent.
pub(super) fn percent_of_log(log: f64) -> f64 {
    log.exp_m1() * 100.0
}

/// Percent with as many decimals as mean something: one below a hundred, none above.
pub(super) fn percent(value: f64) -> String {
    let digits = usize::from(value.abs() < 99.95);
    let text = format!("{value:.digits$}");
    // -0.0 is a sign without a change.
    if text == "-0.0" {
        String::from("0.0")
    } else {
        text
    }
}

/// The same with its sign.
pub(super) fn signed_percent(value: f64) -> String {
    let text = percent(value);
    if text.starts_with('-') || text == "0.0" {
        text
    } else {
        format!("+{text}")
    }
}

/// A p-value: two significant digits, never zero.
pub(super) fn p_value(p: f64) -> String {
    if p < 0.0001 {
        String::from("p < 0.0001")
    } else if p < 0.0995 {
        let digits = if p < 0.000_995 {
            5
        } else if p < 0.009_95 {
            4
        } else {
            3
        };
        let text = format!("{p:.digits$}");
        format!("p = {}", text.trim_end_matches('0'))
    } else {
        format!("p = {p:.2}")
    }
}

/// "1 pair", "12 pairs".
pub(super) fn counted(count: usize, word: &str) -> String {
    if count == 1 {
        format!("1 {word}")
    } else {
        format!("{count} {word}s")
    }
}

/// Decimals of a figure that has a prefix, as wrk prints its times.
const SCALED_DIGITS: usize = 2;

/// Decimals of whole seconds, as ab prints the time taken.
const SECONDS_DIGITS: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::describe;

    #[test]
    fn figures_are_written_as_tools_write_them() {
        for (name, value, digits, expected) in [
            ("requests_per_s", 33_585.56, None, "33585.56"),
            ("requests_per_s", 33_585.56, Some(0), "33586"),
            ("latency_s.p99", 0.049_46, None, "49.46 ms"),
            ("latency_s.p99", 0.000_521, Some(0), "521 µs"),
            ("seconds", 23.82, None, "23.820 s"),
            ("transfer_bytes_per_s", 97_734_000.0, None, "97.73 MB/s"),
            ("cpu.server.usr", 24.28, None, "24.28 %"),
            ("failed_share", 0.0123, None, "1.23 %"),
            ("malloc_per_request", 4.004, None, "4.00"),
        ] {
            assert_eq!(written(value, &describe(name), digits), expected, "{name}");
        }
    }

    #[test]
    fn small_p_values_keep_two_digits() {
        for (p, expected) in [
            (0.000_03, "p < 0.0001"),
            (0.000_488, "p = 0.00049"),
            (0.0125, "p = 0.013"),
            (0.0627, "p = 0.063"),
            (0.25, "p = 0.25"),
            (1.0, "p = 1.00"),
        ] {
            assert_eq!(p_value(p), expected);
        }
    }

    #[test]
    fn no_change_has_no_sign() {
        assert_eq!(signed_percent(-0.04), "0.0");
        assert_eq!(signed_percent(709.3), "+709");
        assert_eq!(signed_percent(-12.06), "-12.1");
    }
}
