//! Dates: IMF-fixdate out, the three formats of RFC 9110 5.6.7 in, and the access log's two.

use alloc::vec::Vec;

use crate::decimal::{emit_decimal, emit_two_digits};

/// Bytes of `Sun, 06 Nov 1994 08:49:37 GMT`: always the same, so that the date in a serialised head can be overwritten.
pub const IMF_FIXDATE_LEN: usize = 29;

/// A moment in the Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DateTime {
    pub year: i64,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    pub hour: u8,
    pub minute: u8,
    pub second: u8,
    /// 0 is Sunday.
    pub weekday: u8,
}

impl DateTime {
    /// The calendar at `unix_seconds`, `offset_minutes` east of UTC. Any input is valid: seconds beyond year ±10^10
    /// saturate.
    pub fn at(unix_seconds: i64, offset_minutes: i32) -> Self {
        let seconds = unix_seconds
            .clamp(-SECONDS_MAX, SECONDS_MAX)
            .saturating_add(i64::from(offset_minutes) * 60);
        let days = seconds.div_euclid(86_400);
        let of_day = seconds.rem_euclid(86_400);
        let (year, month, day) = date_of_days(days);
        Self {
            year,
            month,
            day,
            hour: small(of_day / 3600),
            minute: small(of_day / 60 % 60),
            second: small(of_day % 60),
            // 1970-01-01 was a Thursday.
            weekday: small((days + 4).rem_euclid(7)),
        }
    }

    /// `Jan` to `Dec`.
    pub fn month_name(&self) -> &'static [u8; 3] {
        MONTHS
            .get(usize::from(self.month).wrapping_sub(1))
            .copied()
            .unwrap_or(b"???")
    }
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`. Years outside 0 to 9999 are written modulo 10000.
pub fn imf_fixdate(unix_seconds: i64) -> [u8; IMF_FIXDATE_LEN] {
    let date_time = DateTime::at(unix_seconds, 0);
    let mut text = *b"Sun, 00 Jan 0000 00:00:00 GMT";
    let year = date_time.year.rem_euclid(10_000);
    let pairs = [
        (5, date_time.day),
        (12, small(year / 100)),
        (14, small(year % 100)),
        (17, date_time.hour),
        (20, date_time.minute),
        (23, date_time.second),
    ];
    for (at, number) in pairs {
        if let Some([tens, ones]) = text.get_mut(at..at + 2) {
            *tens = b'0' + number / 10;
            *ones = b'0' + number % 10;
        }
    }
    let weekday = WEEKDAYS
        .get(usize::from(date_time.weekday))
        .copied()
        .unwrap_or(b"Sun");
    if let Some(place) = text.get_mut(0..3) {
        place.copy_from_slice(weekday);
    }
    if let Some(place) = text.get_mut(8..11) {
        place.copy_from_slice(date_time.month_name());
    }
    text
}

/// `$time_local`: `21/Nov/2026:01:30:00 +0000`.
pub fn emit_time_local(unix_seconds: i64, offset_minutes: i32, out: &mut Vec<u8>) {
    let date_time = DateTime::at(unix_seconds, offset_minutes);
    emit_two_digits(date_time.day, out);
    out.push(b'/');
    out.extend_from_slice(date_time.month_name());
    out.push(b'/');
    emit_year(date_time.year, out);
    out.push(b':');
    emit_clock(&date_time, out);
    out.push(b' ');
    emit_offset(offset_minutes, false, out);
}

/// `$time_iso8601`: `2026-11-21T01:30:00+00:00`.
pub fn emit_time_iso8601(unix_seconds: i64, offset_minutes: i32, out: &mut Vec<u8>) {
    let date_time = DateTime::at(unix_seconds, offset_minutes);
    emit_year(date_time.year, out);
    out.push(b'-');
    emit_two_digits(date_time.month, out);
    out.push(b'-');
    emit_two_digits(date_time.day, out);
    out.push(b'T');
    emit_clock(&date_time, out);
    emit_offset(offset_minutes, true, out);
}

/// The error log's `2026/11/21 01:30:00`.
pub fn emit_time_error_log(unix_seconds: i64, offset_minutes: i32, out: &mut Vec<u8>) {
    let date_time = DateTime::at(unix_seconds, offset_minutes);
    emit_year(date_time.year, out);
    out.push(b'/');
    emit_two_digits(date_time.month, out);
    out.push(b'/');
    emit_two_digits(date_time.day, out);
    out.push(b' ');
    emit_clock(&date_time, out);
}

fn emit_year(year: i64, out: &mut Vec<u8>) {
    let year = u64::try_from(year).unwrap_or(0);
    if year < 1000 {
        let leading = if year < 10 {
            3
        } else if year < 100 {
            2
        } else {
            1
        };
        out.extend((0..leading).map(|_| b'0'));
    }
    emit_decimal(year, out);
}

fn emit_clock(date_time: &DateTime, out: &mut Vec<u8>) {
    emit_two_digits(date_time.hour, out);
    out.push(b':');
    emit_two_digits(date_time.minute, out);
    out.push(b':');
    emit_two_digits(date_time.second, out);
}

fn emit_offset(offset_minutes: i32, with_colon: bool, out: &mut Vec<u8>) {
    out.push(if offset_minutes < 0 { b'-' } else { b'+' });
    let minutes = i64::from(offset_minutes).abs();
    emit_two_digits(small(minutes / 60 % 100), out);
    if with_colon {
        out.push(b':');
    }
    emit_two_digits(small(minutes % 60), out);
}

/// Unix seconds of a date in one of the three formats of RFC 9110 5.6.7, or `None`. As in nginx
/// the weekday is not compared with the date, and what follows the time is not looked at.
///
/// ```text
/// IMF-fixdate  Sun, 06 Nov 1994 08:49:37 GMT
/// RFC 850      Sunday, 06-Nov-94 08:49:37 GMT
/// asctime      Sun Nov  6 08:49:37 1994
/// ```
pub fn parse_http_date(value: &[u8]) -> Option<i64> {
    let weekday_end = value.iter().position(|byte| matches!(byte, b',' | b' '))?;
    let is_asctime = value.get(weekday_end) == Some(&b' ');
    let mut text = Text {
        rest: value.get(weekday_end + 1..)?,
    };
    text.skip_spaces();
    let (year, month, day, of_day);
    if is_asctime {
        month = text.month()?;
        text.expect(b' ')?;
        text.skip_spaces();
        day = text.one_or_two_digits()?;
        text.expect(b' ')?;
        of_day = text.clock()?;
        text.expect(b' ')?;
        year = text.digits(4)?;
    } else {
        day = text.digits(2)?;
        let separator = text.next()?;
        month = text.month()?;
        text.expect(separator)?;
        year = match separator {
            b' ' => text.digits(4)?,
            // nginx's window for two digits: 1970 to 2069.
            b'-' => text
                .digits(2)
                .map(|year| if year < 70 { year + 2000 } else { year + 1900 })?,
            _ => return None,
        };
        text.expect(b' ')?;
        of_day = text.clock()?;
    }
    (1..=days_in_month(year, month))
        .contains(&day)
        .then_some(())?;
    Some(days_of_date(year, month, day) * 86_400 + of_day)
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

    fn expect(&mut self, expected: u8) -> Option<()> {
        (self.next()? == expected).then_some(())
    }

    fn skip_spaces(&mut self) {
        while let [b' ', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    fn digits(&mut self, count: usize) -> Option<i64> {
        let mut number = 0;
        for _ in 0..count {
            let digit = self.next()?;
            digit.is_ascii_digit().then_some(())?;
            number = number * 10 + i64::from(digit - b'0');
        }
        Some(number)
    }

    fn one_or_two_digits(&mut self) -> Option<i64> {
        let first = self.digits(1)?;
        match self.rest {
            [digit, ..] if digit.is_ascii_digit() => Some(first * 10 + self.digits(1)?),
            _ => Some(first),
        }
    }

    fn month(&mut self) -> Option<i64> {
        let (name, rest) = self.rest.split_at_checked(3)?;
        self.rest = rest;
        let index = MONTHS.iter().position(|month| *month == name)?;
        i64::try_from(index + 1).ok()
    }

    fn clock(&mut self) -> Option<i64> {
        let hour = self.digits(2)?;
        self.expect(b':')?;
        let minute = self.digits(2)?;
        self.expect(b':')?;
        let second = self.digits(2)?;
        (hour < 24 && minute < 60 && second < 60).then_some(hour * 3600 + minute * 60 + second)
    }
}

const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];
const WEEKDAYS: [&[u8; 3]; 7] = [b"Sun", b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat"];

/// Seconds; no sum in this file overflows within it.
const SECONDS_MAX: i64 = i64::MAX / 32;

/// Days of 400 years: the Gregorian calendar repeats after them.
const DAYS_PER_ERA: i64 = 146_097;

/// Years are counted from March 1, so that the leap day is a year's last day; the beginning of a month is then the
/// linear `(153 m + 2) / 5`.
fn date_of_days(days: i64) -> (i64, u8, u8) {
    // 719468 days lie between 0000-03-01 and 1970-01-01.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(DAYS_PER_ERA);
    let of_era = shifted.rem_euclid(DAYS_PER_ERA);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, small(month), small(day))
}

fn days_of_date(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted_month = (month + 9) % 12;
    let of_year = (153 * shifted_month + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    era * DAYS_PER_ERA + of_era - 719_468
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "calendar pieces are 0 to 99"
)]
const fn small(piece: i64) -> u8 {
    piece as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    #[test]
    fn dates_are_parsed_in_all_three_formats() {
        let check = |text: &str, expected: Option<i64>| {
            assert_eq!(parse_http_date(text.as_bytes()), expected, "{text}");
        };
        let seconds = Some(784_111_777);
        check("Sun, 06 Nov 1994 08:49:37 GMT", seconds);
        check("Sunday, 06-Nov-94 08:49:37 GMT", seconds);
        check("Sun Nov  6 08:49:37 1994", seconds);
        check("Mon, 06 Nov 1994 08:49:37", seconds);
        check("Thu, 01 Jan 1970 00:00:00 GMT", Some(0));
        check("Wed, 31 Dec 1969 23:59:59 GMT", Some(-1));
        check("Thu, 29 Feb 2024 00:00:00 GMT", Some(1_709_164_800));
        check("Fri, 29 Feb 2025 00:00:00 GMT", None);
        check("Fri, 29 Feb 1900 00:00:00 GMT", None);
        check("Sun, 00 Nov 1994 08:49:37 GMT", None);
        check("Sun, 31 Nov 1994 08:49:37 GMT", None);
        check("Sun, 06 Nov 1994 24:00:00 GMT", None);
        check("Sun, 06 Nov 1994 08:60:37 GMT", None);
        check("Sun, 06 Nov 1994 08:49:60 GMT", None);
        check("Sun, 06 Nox 1994 08:49:37 GMT", None);
        check("Sun, 06/Nov/1994 08:49:37 GMT", None);
        check("Sun, 06 Nov 1994 08:49:3", None);
        check("Sun, 6 Nov 1994 08:49:37 GMT", None);
        check("1700000000", None);
        check("Sun,", None);
        check("", None);
    }

    #[test]
    fn every_day_of_600_years_is_emitted_and_parsed_back() {
        let start = parse_http_date(b"Fri, 01 Jan 1700 12:34:56 GMT").unwrap();
        let mut weekday = DateTime::at(start, 0).weekday;
        for day in 0..600 * 365 {
            let seconds = start + day * 86_400;
            assert_eq!(parse_http_date(&imf_fixdate(seconds)), Some(seconds));
            assert_eq!(DateTime::at(seconds, 0).weekday, weekday);
            weekday = (weekday + 1) % 7;
        }
    }

    #[test]
    fn the_formats_look_as_in_nginx() {
        let seconds = 1_795_224_600; // 2026-11-21 01:30:00 UTC
        assert_eq!(&imf_fixdate(seconds), b"Sat, 21 Nov 2026 01:30:00 GMT");
        let check = |emit: fn(i64, i32, &mut Vec<u8>), offset: i32, expected: &str| {
            let mut out = Vec::new();
            emit(seconds, offset, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        };
        check(emit_time_local, 0, "21/Nov/2026:01:30:00 +0000");
        check(emit_time_local, -150, "20/Nov/2026:23:00:00 -0230");
        check(emit_time_iso8601, 0, "2026-11-21T01:30:00+00:00");
        check(emit_time_iso8601, 345, "2026-11-21T07:15:00+05:45");
        check(emit_time_error_log, 60, "2026/11/21 02:30:00");
    }

    #[test]
    fn extreme_times_saturate_and_do_not_panic() {
        for seconds in [i64::MIN, i64::MAX, -1, -62_135_596_801] {
            let text = imf_fixdate(seconds);
            assert_eq!(text.len(), IMF_FIXDATE_LEN);
            for offset in [i32::MIN, i32::MAX] {
                emit_time_iso8601(seconds, offset, &mut Vec::new());
            }
        }
    }
}
