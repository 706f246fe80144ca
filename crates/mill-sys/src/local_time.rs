//! The local time: the C library's interpretation of TZ and /etc/localtime.

/// Date and time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalTime {
    pub year: i32,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    pub hour: u8,
    pub minute: u8,
    /// 0 to 60.
    pub second: u8,
    /// Seconds east of Greenwich.
    pub offset_s: i32,
}

/// The local time of a Unix time; `None` beyond the calendar's range. Costs about 100 ns; the first call reads the time
/// zone's file.
pub fn local_time(unix_s: i64) -> Option<LocalTime> {
    // SAFETY: a tm is numbers and a pointer, for which zero is valid.
    let mut parts: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to locals that outlive the call.
    let result = unsafe { libc::localtime_r(&raw const unix_s, &raw mut parts) };
    if result.is_null() {
        return None;
    }
    Some(LocalTime {
        year: parts.tm_year.checked_add(1900)?,
        month: u8::try_from(parts.tm_mon + 1).ok()?,
        day: u8::try_from(parts.tm_mday).ok()?,
        hour: u8::try_from(parts.tm_hour).ok()?,
        minute: u8::try_from(parts.tm_min).ok()?,
        second: u8::try_from(parts.tm_sec).ok()?,
        offset_s: i32::try_from(parts.tm_gmtoff).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_shown_within_its_offset() {
        // 2001-09-09 01:46:40 UTC; no zone is further than 14 hours away.
        let shown = local_time(1_000_000_000).unwrap();
        assert_eq!((shown.year, shown.month, shown.second), (2001, 9, 40));
        assert!(shown.day.abs_diff(9) <= 1);
        assert!(shown.offset_s.abs() <= 14 * 3600);
        let utc = i32::from(shown.day) * 86400
            + i32::from(shown.hour) * 3600
            + i32::from(shown.minute) * 60
            - shown.offset_s;
        assert_eq!(utc, 9 * 86400 + 3600 + 46 * 60);
    }

    #[test]
    fn a_moment_beyond_the_calendar_is_none() {
        assert_eq!(local_time(i64::MAX), None);
    }
}
