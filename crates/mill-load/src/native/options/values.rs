//! Values of options: numbers, times, weights. Each error says which values are valid.

use crate::plan::Life;
use core::time::Duration;
use mill_runtime::time::UnixTime;

/// A whole number from `least`; `k` and `M` multiply.
pub(crate) fn count(text: &str, least: u64) -> Result<u64, String> {
    let (digits, factor) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1_000),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 1_000_000),
        _ => (text, 1),
    };
    let number: Option<u64> = digits.parse().ok();
    match number.and_then(|number| number.checked_mul(factor)) {
        Some(number) if number >= least => Ok(number),
        Some(_) => Err(format!("\"{text}\" is too small, it is at least {least}")),
        None => Err(format!(
            "\"{text}\" is not a whole number, such as 400 or 8k"
        )),
    }
}

/// The same for 32 bits.
pub(crate) fn small_count(text: &str, least: u64) -> Result<u32, String> {
    u32::try_from(count(text, least)?).map_err(|_| format!("\"{text}\" is too large"))
}

/// A positive number, fractions allowed; `k` and `M` multiply.
pub(crate) fn positive(text: &str) -> Result<f64, String> {
    let (digits, factor) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1e3),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 1e6),
        _ => (text, 1.0),
    };
    decimal(digits)
        .map(|number| number * factor)
        .filter(|number| *number > 0.0)
        .ok_or_else(|| format!("\"{text}\" is not a positive number, such as 2.5, 20k or 3M"))
}

/// A time: one or more numbers with their units, `1.5s`, `1m30s`; a number alone is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let refuse = || format!("\"{text}\" is not a time, such as 30s, 1.5m, 250ms or 50us");
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, after) = rest.split_at(digits.unwrap_or(rest.len()));
        let unit = after.find(|c: char| c.is_ascii_digit() || c == '.');
        let (unit, after) = after.split_at(unit.unwrap_or(after.len()));
        let is_alone = number.len() == text.len();
        let seconds = match unit {
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            "" if is_alone => 1.0,
            _ => return Err(refuse()),
        };
        let number = decimal(number).ok_or_else(refuse)?;
        let part = Duration::try_from_secs_f64(number * seconds).map_err(|_| refuse())?;
        total = total.checked_add(part).ok_or_else(refuse)?;
        rest = after;
    }
    if text.is_empty() || total > LONGEST {
        return Err(refuse());
    }
    Ok(total)
}

/// A time that is not zero.
pub(crate) fn some_duration(text: &str) -> Result<Duration, String> {
    let duration = duration(text)?;
    if duration.is_zero() {
        return Err(format!("\"{text}\" is no time at all"));
    }
    Ok(duration)
}

/// Requests per connection: a number, or numbers with their shares: `1:35%,4:25%,14:40%`.
pub(crate) fn life(text: &str) -> Result<Life, String> {
    if !text.contains(':') {
        return small_count(text, 1).map(Life::Requests);
    }
    let weights: Result<Vec<(u32, f64)>, String> = text
        .split(',')
        .map(|part| {
            let (requests, share) = part
                .split_once(':')
                .ok_or_else(|| format!("\"{part}\" has no share; write 1:35%,4:25%,14:40%"))?;
            let share = positive(share.strip_suffix('%').unwrap_or(share))?;
            Ok((small_count(requests, 1)?, share))
        })
        .collect();
    let weights = weights?;
    let percents = text.split(',').filter(|part| part.ends_with('%')).count();
    let sum: f64 = weights.iter().map(|(_, share)| share).sum();
    if percents == weights.len() && (sum - 100.0).abs() > 0.5 {
        return Err(format!("the shares of \"{text}\" make {sum} %, not 100 %"));
    }
    if percents > 0 && percents < weights.len() {
        return Err(format!("\"{text}\" mixes percents and weights"));
    }
    Ok(Life::Distribution(weights))
}

/// A wall-clock time: seconds since 1970, as `date +%s` prints them, fractions allowed.
pub(crate) fn moment(text: &str) -> Result<UnixTime, String> {
    let refuse = || {
        format!("\"{text}\" is no moment; write seconds since 1970, such as $(($(date +%s) + 5))")
    };
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(fraction) || !is_number(seconds) || fraction.len() > 9 {
        return Err(refuse());
    }
    Ok(UnixTime {
        seconds: seconds.parse().map_err(|_| refuse())?,
        nanos: format!("{fraction:0<9}").parse().map_err(|_| refuse())?,
    })
}

/// Digits with at most one point, and nothing else: no sign, no exponent, no `inf`.
pub(crate) fn decimal(text: &str) -> Option<f64> {
    let is_plain = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    if !is_plain {
        return None;
    }
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Thirty days: a longer time is a mistake.
const LONGEST: Duration = Duration::from_secs(30 * 86_400);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_and_fractions() {
        let check = |text: &str, nanos: u64| {
            assert_eq!(duration(text), Ok(Duration::from_nanos(nanos)), "{text}");
        };
        check("10", 10_000_000_000);
        check("0", 0);
        check("1.5s", 1_500_000_000);
        check("250ms", 250_000_000);
        check("50us", 50_000);
        check("50µs", 50_000);
        check("7ns", 7);
        check("1.5m", 90_000_000_000);
        check("2h", 7_200_000_000_000);
        check("1m30s", 90_000_000_000);
        for bad in [
            "", "s", "5x", "-1s", "1e3", "5 s", "1m30", ".", "1..2s", "999999h", "inf",
        ] {
            assert!(duration(bad).unwrap_err().contains("such as 30s"), "{bad}");
        }
    }

    #[test]
    fn numbers_have_suffixes() {
        assert_eq!(count("8k", 1), Ok(8000));
        assert_eq!(count("2M", 1), Ok(2_000_000));
        assert_eq!(positive("2.5k"), Ok(2500.0));
        assert_eq!(
            count("0", 1).unwrap_err(),
            "\"0\" is too small, it is at least 1"
        );
        for bad in [
            "",
            "k",
            "-1",
            "1.5",
            "99999999999999999999",
            "18446744073709551615k",
        ] {
            assert!(count(bad, 0).is_err(), "{bad}");
        }
        for bad in ["", "0", "-1", "nan", "inf", "k", "1e9"] {
            assert!(positive(bad).is_err(), "{bad}");
        }
        assert!(small_count("5000000000", 1).is_err());
    }

    #[test]
    fn requests_per_connection_are_a_number_or_a_distribution() {
        assert_eq!(life("4"), Ok(Life::Requests(4)));
        let mixed = vec![(1, 35.0), (4, 25.0), (14, 40.0)];
        assert_eq!(life("1:35%,4:25%,14:40%"), Ok(Life::Distribution(mixed)));
        let weights = vec![(1, 1.0), (10, 3.0)];
        assert_eq!(life("1:1,10:3"), Ok(Life::Distribution(weights)));
        for (bad, why) in [
            ("0", "at least 1"),
            ("1:35%,4:25%", "make 60 %, not 100 %"),
            ("1:35%,4", "has no share"),
            ("1:50%,4:50", "mixes"),
            ("0:100%", "at least 1"),
            ("x:100%", "not a whole number"),
        ] {
            let refusal = life(bad).unwrap_err();
            assert!(refusal.contains(why), "{bad}: {refusal}");
        }
    }

    #[test]
    fn moments_are_seconds_since_1970() {
        let check = |text, seconds, nanos| {
            assert_eq!(moment(text), Ok(UnixTime { seconds, nanos }));
        };
        check("1700000000", 1_700_000_000, 0);
        check("1700000000.25", 1_700_000_000, 250_000_000);
        for bad in ["", "-5", "tomorrow", "1.x", "1.0123456789"] {
            assert!(moment(bad).is_err(), "{bad}");
        }
    }
}
