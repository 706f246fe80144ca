//! Figures as people read them: three digits and a unit.

use core::time::Duration;

/// `0 s`, `85.3 µs`, `1.20 ms`, `12.3 s`, `4 min 10 s`.
pub fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    let nanos = duration.as_nanos();
    match nanos {
        0 => String::from("0 s"),
        1..1_000 => format!("{nanos} ns"),
        1_000..999_500 => format!("{} µs", digits(seconds * 1e6)),
        999_500..999_500_000 => format!("{} ms", digits((seconds * 1e3).max(1.0))),
        _ if seconds < 119.5 => format!("{} s", digits(seconds.max(1.0))),
        _ => minutes(duration),
    }
}

/// A time from the command line: no more digits than were written.
pub fn given(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if duration.is_zero() {
        String::from("0 s")
    } else if duration >= Duration::from_secs(120) {
        minutes(duration)
    } else if seconds >= 1.0 {
        format!("{seconds} s")
    } else if seconds >= 1e-3 {
        format!("{} ms", rounded(seconds * 1e3))
    } else {
        format!("{} µs", rounded(seconds * 1e6))
    }
}

/// A round value on an axis: `0`, `50 µs`, `2 ms`, `1 s`.
pub fn tick(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if duration.is_zero() {
        String::from("0")
    } else if seconds < 0.999_999e-6 {
        format!("{} ns", duration.as_nanos())
    } else if seconds < 0.999_999e-3 {
        format!("{} µs", hundredths(seconds * 1e6))
    } else if seconds < 0.999_999 {
        format!("{} ms", hundredths(seconds * 1e3))
    } else {
        format!("{} s", hundredths(seconds))
    }
}

/// `12,345`.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `12,345/s`, `12.3/s`.
pub fn rate(rate: f64) -> String {
    format!("{}/s", number(rate))
}

/// Whole from a hundred on, three digits below.
pub fn number(number: f64) -> String {
    if number < 100.0 {
        return digits(number);
    }
    count(whole(number))
}

/// `512 B`, `1.23 MB`: powers of a thousand.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub fn bytes(bytes: u64) -> String {
    scaled_bytes(bytes as f64)
}

/// `1.23 MB/s`.
pub fn byte_rate(rate: f64) -> String {
    format!("{}/s", scaled_bytes(rate))
}

/// `99.8 %`.
pub fn percent(share: f64) -> String {
    format!("{} %", digits(share * 100.0))
}

/// Three significant digits, without an exponent.
pub fn digits(number: f64) -> String {
    match number {
        number if number <= 0.0 || !number.is_finite() => String::from("0"),
        number if number < 0.000_5 => String::from("<0.001"),
        number if number < 0.999_5 => format!("{number:.3}"),
        number if number < 9.995 => format!("{number:.2}"),
        number if number < 99.95 => format!("{number:.1}"),
        number => format!("{number:.0}"),
    }
}

fn scaled_bytes(bytes: f64) -> String {
    let mut scaled = bytes;
    let mut unit = "B";
    for larger in ["kB", "MB", "GB", "TB"] {
        if scaled < 999.5 {
            break;
        }
        (scaled, unit) = (scaled / 1000.0, larger);
    }
    if unit == "B" {
        format!("{scaled:.0} B")
    } else {
        format!("{} {unit}", digits(scaled))
    }
}

fn minutes(duration: Duration) -> String {
    let seconds = duration.as_secs() + u64::from(duration.subsec_millis() >= 500);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, seconds) {
        (0, 0) => format!("{minutes} min"),
        (0, _) => format!("{minutes} min {seconds} s"),
        (_, 0) if minutes == 0 => format!("{hours} h"),
        (_, 0) => format!("{hours} h {minutes} min"),
        _ => format!("{hours} h {minutes} min {seconds} s"),
    }
}

/// Removes the rounding error of a multiplication from a number with few digits.
fn rounded(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}

fn hundredths(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

fn whole(number: f64) -> u64 {
    Duration::try_from_secs_f64(number.round()).map_or(u64::MAX, |whole| whole.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_digits() {
        for (nanos, expected) in [
            (0, "0 s"),
            (7, "7 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (85_349, "85.3 µs"),
            (999_499, "999 µs"),
            (999_500, "1.00 ms"),
            (12_340_000, "12.3 ms"),
            (999_600_000, "1.00 s"),
            (59_940_000_000, "59.9 s"),
            (100_000_000_000, "100 s"),
            (250_000_000_000, "4 min 10 s"),
            (3_600_000_000_000, "1 h"),
            (7_380_000_000_000, "2 h 3 min"),
        ] {
            assert_eq!(duration(Duration::from_nanos(nanos)), expected);
        }
    }

    #[test]
    fn given_times_are_shown_as_written() {
        for (micros, expected) in [
            (0, "0 s"),
            (50, "50 µs"),
            (1_100, "1.1 ms"),
            (2_500_000, "2.5 s"),
            (10_000_000, "10 s"),
            (180_000_000, "3 min"),
        ] {
            assert_eq!(given(Duration::from_micros(micros)), expected);
        }
    }

    #[test]
    fn counts_rates_and_bytes_are_readable() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(rate(0.0), "0/s");
        assert_eq!(rate(12.34), "12.3/s");
        assert_eq!(rate(123_456.7), "123,457/s");
        assert_eq!(bytes(512), "512 B");
        assert_eq!(bytes(999_900), "1.00 MB");
        assert_eq!(byte_rate(1_234_567.0), "1.23 MB/s");
        assert_eq!(percent(0.998), "99.8 %");
        assert_eq!(percent(0.000_001), "<0.001 %");
    }
}
