//! Numbers with their units.

/// Bytes, in the powers of 1024 that programs like `ls -h` use.
pub fn bytes(count: u64) -> String {
    scaled(
        count,
        1024.0,
        &["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"],
    )
}

/// A count, short: `1234567` is `1.23 M`.
pub fn short(count: u64) -> String {
    scaled(count, 1000.0, &["", "k", "M", "G", "T", "P", "E"])
}

/// A running time.
pub fn uptime(seconds: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates, and times are no less than zero"
    )]
    let whole = seconds as u64;
    match whole {
        0..60 => format!("{seconds:.1} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        3600..86_400 => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
        _ => format!("{} d {} h", whole / 86_400, whole % 86_400 / 3600),
    }
}

/// A share, in percent.
pub fn percent(part: f64, whole: f64) -> String {
    if whole <= 0.0 {
        return String::from("-");
    }
    let percent = 100.0 * part / whole;
    if percent > 0.0 && percent < 0.95 {
        format!("{percent:.1}%")
    } else {
        format!("{percent:.0}%")
    }
}

/// Microseconds with a unit usual for network times.
pub fn micros(us: u64) -> String {
    let us_f = float(us);
    match us {
        0..1000 => format!("{us}us"),
        1000..10_000 => format!("{:.2}ms", us_f / 1e3),
        10_000..1_000_000 => format!("{:.0}ms", us_f / 1e3),
        _ => format!("{:.1}s", us_f / 1e6),
    }
}

#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub(crate) fn float(count: u64) -> f64 {
    count as f64
}

fn scaled(count: u64, base: f64, units: &[&str]) -> String {
    let mut value = float(count);
    let mut unit = 0;
    // A value that would be rounded up to the next unit is shown in that.
    while value >= base - 0.5 && unit + 1 < units.len() {
        value /= base;
        unit += 1;
    }
    let unit = units.get(unit).copied().unwrap_or_default();
    let text = match value {
        _ if float(count) < base - 0.5 => format!("{count}"),
        0.0..9.995 => format!("{value:.2}"),
        9.995..99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    };
    format!("{text} {unit}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        let check = |count, expected: [&str; 2]| assert_eq!([short(count), bytes(count)], expected);
        check(0, ["0", "0 B"]);
        check(999, ["999", "999 B"]);
        check(1000, ["1.00 k", "1000 B"]);
        check(1024, ["1.02 k", "1.00 KiB"]);
        check(12_345, ["12.3 k", "12.1 KiB"]);
        check(999_499, ["999 k", "976 KiB"]);
        check(999_500, ["1.00 M", "976 KiB"]);
        check(1_234_567, ["1.23 M", "1.18 MiB"]);
        check(u64::MAX, ["18.4 E", "16.0 EiB"]);
    }

    #[test]
    fn times_and_shares() {
        assert_eq!(uptime(3.21), "3.2 s");
        assert_eq!(uptime(61.0), "1 min 1 s");
        assert_eq!(uptime(3661.0), "1 h 1 min");
        assert_eq!(uptime(90_000.0), "1 d 1 h");
        assert_eq!(percent(1.0, 0.0), "-");
        assert_eq!(percent(1.0, 3.0), "33%");
        assert_eq!(percent(1.0, 500.0), "0.2%");
        assert_eq!(percent(0.0, 3.0), "0%");
        assert_eq!(micros(25), "25us");
        assert_eq!(micros(1234), "1.23ms");
        assert_eq!(micros(40_000), "40ms");
        assert_eq!(micros(1_500_000), "1.5s");
    }
}
