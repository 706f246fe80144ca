//! Figures as text: in cells and sentences.

use crate::metric::{Metric, Unit};
use crate::record::TrialRecord;
use crate::statistics::Interval;

/// A figure with the given number of decimals. Times and bytes a second have a fitting prefix, as tools print them.
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
            // Whole runs are shown in seconds to the millisecond.
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

/// Two figures of a change, with more decimals where rounded ones would show another change than measured.
pub(super) fn written_apart(
    (a, b): (f64, f64),
    metric: &Metric,
    digits: Option<usize>,
) -> (String, String) {
    let both = |digits| (written(a, metric, digits), written(b, metric, digits));
    let texts = both(digits);
    let fits = |texts: &(String, String)| tells((a, b), texts);
    if fits(&texts) {
        return texts;
    }
    (digits.unwrap_or(SCALED_DIGITS) + 1..=DECIMALS_MAX)
        .map(|digits| both(Some(digits)))
        .find(fits)
        .unwrap_or(texts)
}

/// Whether the rounded figures have the quotient of the exact ones.
fn tells((a, b): (f64, f64), texts: &(String, String)) -> bool {
    let parts = |text: &str| -> Option<(f64, String)> {
        let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
        Some((number.parse().ok()?, String::from(unit)))
    };
    let (Some((from, from_unit)), Some((to, to_unit))) = (parts(&texts.0), parts(&texts.1)) else {
        return true;
    };
    // Zero has no quotient; figures with different prefixes have digits enough.
    if from_unit != to_unit || a == 0.0 || b == 0.0 {
        return true;
    }
    (to / from - b / a).abs() <= QUOTIENT_ERROR * (b / a).abs()
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

/// Two figures of a change in a sentence.
pub(super) fn spoken_apart((a, b): (f64, f64), metric: &Metric) -> (String, String) {
    let texts = (spoken(a, metric), spoken(b, metric));
    if tells((a, b), &texts) {
        return texts;
    }
    written_apart((a, b), metric, None)
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

/// "12 %", "12 to 75 %": the CPU time of the machine that others, the hypervisor among them, took from these trials.
pub(super) fn span_of_shares(trials: &[&TrialRecord]) -> String {
    let share = |trial: &&TrialRecord| {
        let figure = |name: &str| trial.figures.get(name).copied().unwrap_or(0.0);
        100.0 * (figure("foreign_cpu_share") + figure("steal_share"))
    };
    let shares = trials.iter().map(share);
    let least = shares.clone().fold(f64::INFINITY, f64::min);
    let (least, most) = (
        format!("{least:.0}"),
        format!("{:.0}", shares.fold(0.0, f64::max)),
    );
    match trials {
        [] => String::from("none"),
        _ if least == most => format!("{most} %"),
        _ => format!("{least} to {most} %"),
    }
}

/// Of the range of a few values how sure it is; nothing of an interval of 95 %.
pub(super) fn range_covers(interval: Interval) -> String {
    if interval.is_sure() {
        return String::new();
    }
    let covers = percent(interval.covers * 100.0);
    format!(" (their range, which covers {covers} %)")
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

/// Share by which the quotient of two written figures may be off: half of what a change of one decimal in percent shows.
const QUOTIENT_ERROR: f64 = 0.0005;

/// The most decimals for distinguishing two figures.
const DECIMALS_MAX: usize = 6;

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
    fn figures_of_a_change_tell_of_that_change() {
        for (name, pair, expected) in [
            ("gbit_per_s", (0.0118, 0.015), ("0.0118", "0.0150")),
            ("latency_s.p99", (0.0121, 0.0124), ("12.10 ms", "12.40 ms")),
            (
                "latency_s.p99",
                (0.012_001, 0.012_009),
                ("12.00 ms", "12.01 ms"),
            ),
            ("requests_per_s", (1250.27, 1581.07), ("1250.27", "1581.07")),
            ("cpu.server.idle", (0.0, 0.0), ("0.00 %", "0.00 %")),
        ] {
            let (from, to) = written_apart(pair, &describe(name), None);
            assert_eq!((from.as_str(), to.as_str()), expected, "{name}");
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
