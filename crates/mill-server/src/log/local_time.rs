//! Local time as log lines write it. Each text is made once a second and then copied.

use std::io::Write;

/// A moment as calendar and clock show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CivilTime {
    pub year: i64,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    pub hour: u8,
    pub minute: u8,
    pub second: u8,
}

/// The texts of one second.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    /// The second they are for; nothing is cached while they are empty.
    second: i64,
    error: Vec<u8>,
    common: Vec<u8>,
    iso8601: Vec<u8>,
}

impl CivilTime {
    /// Of seconds since 1970-01-01T00:00:00, in whatever zone they were counted. The proleptic Gregorian calendar.
    pub fn from_seconds(seconds: i64) -> Self {
        let days = seconds.div_euclid(86_400);
        let within = seconds.rem_euclid(86_400);
        let (year, month, day) = calendar(days);
        Self {
            year,
            month,
            day,
            hour: small(within / 3600),
            minute: small(within / 60 % 60),
            second: small(within % 60),
        }
    }
}

impl Stamps {
    /// `2026/11/21 01:30:00`, as in error logs.
    pub(super) fn error(&mut self, second: i64, utc_offset: fn(i64) -> i32) -> &[u8] {
        self.refresh(second, utc_offset);
        &self.error
    }

    /// `21/Nov/2026:01:30:00 +0000`: `$time_local`.
    pub(super) fn common(&mut self, second: i64, utc_offset: fn(i64) -> i32) -> &[u8] {
        self.refresh(second, utc_offset);
        &self.common
    }

    /// `2026-11-21T01:30:00+00:00`: `$time_iso8601`.
    pub(super) fn iso8601(&mut self, second: i64, utc_offset: fn(i64) -> i32) -> &[u8] {
        self.refresh(second, utc_offset);
        &self.iso8601
    }

    fn refresh(&mut self, second: i64, utc_offset: fn(i64) -> i32) {
        if self.second == second && !self.error.is_empty() {
            return;
        }
        let offset = utc_offset(second);
        self.second = second;
        self.error.clear();
        self.common.clear();
        self.iso8601.clear();
        emit_error_time(second, offset, &mut self.error);
        emit_time_local(second, offset, &mut self.common);
        emit_time_iso8601(second, offset, &mut self.iso8601);
    }
}

/// Appends `2026/11/21 01:30:00`.
pub fn emit_error_time(unix_seconds: i64, utc_offset: i32, out: &mut Vec<u8>) {
    let t = CivilTime::from_seconds(unix_seconds.saturating_add(i64::from(utc_offset)));
    append(
        out,
        format_args!(
            "{:04}/{:02}/{:02} {:02}:{:02}:{:02}",
            t.year, t.month, t.day, t.hour, t.minute, t.second
        ),
    );
}

/// Appends `21/Nov/2026:01:30:00 +0000`.
pub fn emit_time_local(unix_seconds: i64, utc_offset: i32, out: &mut Vec<u8>) {
    let t = CivilTime::from_seconds(unix_seconds.saturating_add(i64::from(utc_offset)));
    let month = MONTHS.get(usize::from(t.month) - 1).copied().unwrap_or("");
    let (sign, hours, minutes) = offset_parts(utc_offset);
    append(
        out,
        format_args!(
            "{:02}/{month}/{:04}:{:02}:{:02}:{:02} {sign}{hours:02}{minutes:02}",
            t.day, t.year, t.hour, t.minute, t.second
        ),
    );
}

/// Appends `2026-11-21T01:30:00+00:00`.
pub fn emit_time_iso8601(unix_seconds: i64, utc_offset: i32, out: &mut Vec<u8>) {
    let t = CivilTime::from_seconds(unix_seconds.saturating_add(i64::from(utc_offset)));
    let (sign, hours, minutes) = offset_parts(utc_offset);
    append(
        out,
        format_args!(
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{sign}{hours:02}:{minutes:02}",
            t.year, t.month, t.day, t.hour, t.minute, t.second
        ),
    );
}

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

fn append(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to memory does not fail.
    let _ = out.write_fmt(text);
}

fn offset_parts(utc_offset: i32) -> (char, u32, u32) {
    let minutes = utc_offset.unsigned_abs() / 60;
    let sign = if utc_offset < 0 { '-' } else { '+' };
    (sign, minutes / 60, minutes % 60)
}

/// Year, month and day of a day counted from 1970-01-01. Counts in eras of 400 years (146 097 days) whose years begin
/// in March, so that the leap day is the last of its year.
fn calendar(days_since_1970: i64) -> (i64, u8, u8) {
    // 719 468 days lie between 0000-03-01 and 1970-01-01.
    let days = days_since_1970 + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, small(month), small(day))
}

fn small(number: i64) -> u8 {
    debug_assert!((0..=99).contains(&number));
    u8::try_from(number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(emit: fn(i64, i32, &mut Vec<u8>), seconds: i64, offset: i32) -> String {
        let mut out = Vec::new();
        emit(seconds, offset, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn times_are_written_in_the_zone_of_the_machine() {
        // 2026-11-21T01:30:00Z
        let moment = 1_795_224_600;
        for (offset, error, common, iso) in [
            (
                0,
                "2026/11/21 01:30:00",
                "21/Nov/2026:01:30:00 +0000",
                "2026-11-21T01:30:00+00:00",
            ),
            (
                3600,
                "2026/11/21 02:30:00",
                "21/Nov/2026:02:30:00 +0100",
                "2026-11-21T02:30:00+01:00",
            ),
            (
                -12_600,
                "2026/11/20 22:00:00",
                "20/Nov/2026:22:00:00 -0330",
                "2026-11-20T22:00:00-03:30",
            ),
        ] {
            assert_eq!(text(emit_error_time, moment, offset), error);
            assert_eq!(text(emit_time_local, moment, offset), common);
            assert_eq!(text(emit_time_iso8601, moment, offset), iso);
        }
    }

    #[test]
    fn the_calendar_knows_leap_years_and_times_before_1970() {
        for (seconds, expected) in [
            (-1, "1969/12/31 23:59:59"),
            (0, "1970/01/01 00:00:00"),
            (951_782_400, "2000/02/29 00:00:00"),
            (4_107_542_400, "2100/03/01 00:00:00"),
            (1_709_251_199, "2024/02/29 23:59:59"),
        ] {
            assert_eq!(text(emit_error_time, seconds, 0), expected);
        }
    }

    #[test]
    fn stamps_change_with_the_second() {
        let mut stamps = Stamps::default();
        let zone: fn(i64) -> i32 = |_| 3600;
        assert_eq!(stamps.error(0, zone), b"1970/01/01 01:00:00");
        assert_eq!(stamps.error(1, zone), b"1970/01/01 01:00:01");
        assert_eq!(stamps.common(1, zone), b"01/Jan/1970:01:00:01 +0100");
        assert_eq!(stamps.iso8601(2, zone), b"1970-01-01T01:00:02+01:00");
    }
}
