//! Dates in the form of HTTP (RFC 9110 5.6.7).

/// A field line in which `@+10` and `@-10` are dates so many seconds from `now`, in Unix seconds.
pub fn written(line: &str, now: i64) -> String {
    let Some((name, value)) = line.split_once(": @") else {
        return line.to_owned();
    };
    match value.parse::<i64>() {
        Ok(offset) => format!("{name}: {}", of(now + offset)),
        Err(_) => line.to_owned(),
    }
}

/// The date of Unix seconds, from 1970 on.
fn of(seconds: i64) -> String {
    let (days, second) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    let mut year = 1970;
    let mut left = days;
    while left >= days_of(year) {
        left -= days_of(year);
        year += 1;
    }
    let mut month = 0;
    while left >= days_in(month, year) {
        left -= days_in(month, year);
        month += 1;
    }
    let weekday = WEEKDAYS[usize::try_from(days.rem_euclid(7)).unwrap_or(0)];
    format!(
        "{weekday}, {:02} {} {year} {:02}:{:02}:{:02} GMT",
        left + 1,
        MONTHS[month].0,
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

const fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

const fn days_of(year: i64) -> i64 {
    if is_leap(year) { 366 } else { 365 }
}

const fn days_in(month: usize, year: i64) -> i64 {
    let days = MONTHS[month].1;
    if month == 1 && is_leap(year) {
        days + 1
    } else {
        days
    }
}

/// Seconds.
const DAY: i64 = 86_400;

/// From the first day of 1970 on.
const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];

/// With their days in a common year.
const MONTHS: [(&str, i64); 12] = [
    ("Jan", 31),
    ("Feb", 28),
    ("Mar", 31),
    ("Apr", 30),
    ("May", 31),
    ("Jun", 30),
    ("Jul", 31),
    ("Aug", 31),
    ("Sep", 30),
    ("Oct", 31),
    ("Nov", 30),
    ("Dec", 31),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, date) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_767_225_599, "Wed, 31 Dec 2025 23:59:59 GMT"),
        ] {
            assert_eq!(of(seconds), date);
        }
    }

    #[test]
    fn an_offset_is_written_as_a_date_and_nothing_else_is() {
        assert_eq!(
            written("Expires: @+10", 0),
            "Expires: Thu, 01 Jan 1970 00:00:10 GMT"
        );
        assert_eq!(
            written("Expires: @-5", 5),
            "Expires: Thu, 01 Jan 1970 00:00:00 GMT"
        );
        assert_eq!(written("X: @home", 5), "X: @home");
        assert_eq!(written("X: 1", 5), "X: 1");
    }
}
