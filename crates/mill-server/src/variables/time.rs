//! Clocks.

use crate::local::Local;
use mill_http::date::{DateTime, emit_time_iso8601, emit_time_local};
use mill_runtime::engine::Engine;
use mill_runtime::time::UnixTime;
use std::time::Duration;

/// Seconds with milliseconds, as `$request_time` and `$connection_time` show them.
pub(super) fn seconds(duration: Duration) -> Vec<u8> {
    format!("{}.{:03}", duration.as_secs(), duration.subsec_millis()).into_bytes()
}

/// `$msec`.
pub(super) fn milliseconds(time: UnixTime) -> Vec<u8> {
    format!("{}.{:03}", time.seconds, time.millis()).into_bytes()
}

/// `$time_local`.
pub(super) fn local<E: Engine>(local: &Local<E>) -> Vec<u8> {
    let (now, offset_minutes) = clock(local);
    let mut text = Vec::new();
    emit_time_local(now, offset_minutes, &mut text);
    text
}

/// `$time_iso8601`.
pub(super) fn iso8601<E: Engine>(local: &Local<E>) -> Vec<u8> {
    let (now, offset_minutes) = clock(local);
    let mut text = Vec::new();
    emit_time_iso8601(now, offset_minutes, &mut text);
    text
}

/// `$date_local`.
pub(super) fn date_local<E: Engine>(local: &Local<E>) -> Vec<u8> {
    let (now, offset_minutes) = clock(local);
    let zone = match offset_minutes {
        0 => String::from("UTC"),
        minutes => {
            let sign = if minutes < 0 { '-' } else { '+' };
            let minutes = minutes.unsigned_abs();
            format!("{sign}{:02}{:02}", minutes / 60, minutes % 60)
        }
    };
    date(now, offset_minutes, &zone)
}

/// `$date_gmt`.
pub(super) fn date_gmt<E: Engine>(local: &Local<E>) -> Vec<u8> {
    date(local.scheduler.wall_clock().seconds, 0, "GMT")
}

/// Seconds since 1970, and the minutes that the local time zone is ahead of UTC.
fn clock<E: Engine>(local: &Local<E>) -> (i64, i32) {
    let now = local.scheduler.wall_clock().seconds;
    (now, (local.environment.utc_offset)(now) / 60)
}

/// `Sunday, 06-Nov-1994 08:49:37 GMT`: the format that nginx's SSI module begins with.
fn date(now: i64, offset_minutes: i32, zone: &str) -> Vec<u8> {
    let date_time = DateTime::at(now, offset_minutes);
    let weekday = WEEKDAYS
        .get(usize::from(date_time.weekday))
        .copied()
        .unwrap_or_default();
    let month = usize::from(date_time.month).checked_sub(1);
    let month = month
        .and_then(|month| MONTHS.get(month))
        .copied()
        .unwrap_or_default();
    format!(
        "{weekday}, {:02}-{month}-{:04} {:02}:{:02}:{:02} {zone}",
        date_time.day, date_time.year, date_time.hour, date_time.minute, date_time.second
    )
    .into_bytes()
}

const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_decimals() {
        let check = |millis: u64, expected: &str| {
            assert_eq!(seconds(Duration::from_millis(millis)), expected.as_bytes());
        };
        check(0, "0.000");
        check(7, "0.007");
        check(61_250, "61.250");
    }

    #[test]
    fn dates_are_written_out() {
        let check = |now: i64, offset_minutes: i32, zone: &str, expected: &str| {
            assert_eq!(date(now, offset_minutes, zone), expected.as_bytes());
        };
        check(784_111_777, 0, "GMT", "Sunday, 06-Nov-1994 08:49:37 GMT");
        check(0, 60, "+0100", "Thursday, 01-Jan-1970 01:00:00 +0100");
    }
}
