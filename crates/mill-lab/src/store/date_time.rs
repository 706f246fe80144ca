//! Unix time as a calendar date, in UTC: a run's name and the list of runs need it, and no code here reads a clock.

/// A minute of the proleptic Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DateTime {
    pub year: u64,
    /// 1 to 12.
    pub month: u64,
    /// 1 to 31.
    pub day: u64,
    pub hour: u64,
    pub minute: u64,
}

impl DateTime {
    pub fn of_unix_ms(ms: u64) -> Self {
        let minutes = ms / 60_000;
        let days = minutes / (24 * 60);
        // Years begin in March here, so that the leap day is a year's last.
        let days = days + DAYS_TO_1970;
        let era = days / DAYS_PER_ERA;
        let of_era = days % DAYS_PER_ERA;
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        // Months of 31, 30, 31, 30, 31 days repeat: 153 days are five of them.
        let march_month = (5 * of_year + 2) / 153;
        let month = if march_month < 10 {
            march_month + 3
        } else {
            march_month - 9
        };
        Self {
            year: era * 400 + year_of_era + u64::from(month <= 2),
            month,
            day: of_year - (153 * march_month + 2) / 5 + 1,
            hour: minutes / 60 % 24,
            minute: minutes % 60,
        }
    }

    /// `2026-11-21 07:36`.
    pub fn text(self) -> String {
        format!(
            "{:04}-{:02}-{:02} {:02}:{:02}",
            self.year, self.month, self.day, self.hour, self.minute
        )
    }
}

/// 400 years of the Gregorian calendar, after which it repeats.
const DAYS_PER_ERA: u64 = 146_097;

/// From 0000-03-01 to 1970-01-01.
const DAYS_TO_1970: u64 = 719_468;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_their_dates() {
        let cases = [
            (0, "1970-01-01 00:00"),
            (951_782_399, "2000-02-28 23:59"),
            (951_782_400, "2000-02-29 00:00"),
            (1_000_000_000, "2001-09-09 01:46"),
            (4_107_542_399, "2100-02-28 23:59"),
            (4_107_542_400, "2100-03-01 00:00"),
            (1_767_225_599, "2025-12-31 23:59"),
            (1_767_225_600, "2026-01-01 00:00"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(DateTime::of_unix_ms(seconds * 1000).text(), expected);
        }
    }
}
