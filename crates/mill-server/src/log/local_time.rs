//! Local time as log lines write it. Each text is made once a second and then copied.

use mill_http::date::{emit_time_error_log, emit_time_iso8601, emit_time_local};

/// The texts of one second.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    /// The second they are for; nothing is cached while they are empty.
    second: i64,
    error: Vec<u8>,
    common: Vec<u8>,
    iso8601: Vec<u8>,
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
        let offset_minutes = utc_offset(second) / 60;
        self.second = second;
        self.error.clear();
        self.common.clear();
        self.iso8601.clear();
        emit_time_error_log(second, offset_minutes, &mut self.error);
        emit_time_local(second, offset_minutes, &mut self.common);
        emit_time_iso8601(second, offset_minutes, &mut self.iso8601);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_made_anew_when_the_second_changes_and_in_the_local_time_zone() {
        let mut stamps = Stamps::default();
        // 2026-11-21T01:30:00Z
        let moment = 1_795_224_600;
        let zone = |_| -12_600;
        assert_eq!(stamps.error(moment, zone), b"2026/11/20 22:00:00");
        assert_eq!(stamps.common(moment, zone), b"20/Nov/2026:22:00:00 -0330");
        assert_eq!(stamps.iso8601(moment, zone), b"2026-11-20T22:00:00-03:30");
        assert_eq!(
            stamps.error(moment, |_| 0),
            b"2026/11/20 22:00:00",
            "kept for the second"
        );
        assert_eq!(stamps.error(moment + 1, |_| 0), b"2026/11/21 01:30:01");
    }
}
