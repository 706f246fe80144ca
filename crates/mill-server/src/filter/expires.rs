//! `expires`: the fields `Expires` and `Cache-Control`.

use crate::local::Local;
use crate::request::Request;
use crate::response::Response;
use crate::variables;
use mill_config::config::Expires;
use mill_http::date::imf_fixdate;
use mill_runtime::engine::Engine;
use mill_runtime::time::Duration;
use std::sync::Arc;

pub(super) fn apply<E: Engine, File>(
    request: &mut Request,
    response: &mut Response<File>,
    local: &Local<E>,
) {
    let location = Arc::clone(&request.location);
    let evaluated;
    let expires = match &location.headers.expires {
        Expires::Evaluated { value, modified } => {
            let text = variables::evaluate(value, request, local);
            // An unreadable value adds nothing, like `off`.
            evaluated = Expires::parse(&text, *modified).unwrap_or(Expires::Off);
            &evaluated
        }
        expires => expires,
    };
    let clock = Clock {
        now: local.scheduler.wall_clock().seconds,
        utc_offset: local.environment.utc_offset,
    };
    let Some((date, cache_control)) = clock.fields(expires, response.last_modified) else {
        return;
    };
    if !matches!(expires, Expires::Epoch | Expires::Max) {
        // The same answer may be given until the clock's next second.
        let nanos = local.scheduler.wall_clock().nanos;
        let rest = Duration::from_secs(1).saturating_sub(Duration::from_nanos(u64::from(nanos)));
        match &mut request.freshness {
            Some(freshness) => freshness.limit(local.scheduler.now() + rest),
            None => request.pure = false,
        }
    }
    response.fields.retain(|line| {
        let replaces = |name: &[u8]| line.name.eq_ignore_ascii_case(name);
        !replaces(b"Expires") && !replaces(b"Cache-Control")
    });
    response.push_field("Expires", date);
    response.push_field("Cache-Control", cache_control);
}

/// The current time, and the local time zone.
struct Clock {
    now: i64,
    /// Seconds east of UTC at a Unix time.
    utc_offset: fn(i64) -> i32,
}

impl Clock {
    /// The values of `Expires` and `Cache-Control`.
    fn fields(&self, expires: &Expires, last_modified: Option<i64>) -> Option<(Vec<u8>, Vec<u8>)> {
        let (at, no_cache) = match expires {
            // An evaluated value was replaced above.
            Expires::Off | Expires::Evaluated { .. } => return None,
            Expires::Epoch => return Some((EPOCH.to_vec(), b"no-cache".to_vec())),
            Expires::Max => return Some((MAX.to_vec(), b"max-age=315360000".to_vec())),
            Expires::Access(0) | Expires::Modified(0) => (self.now, false),
            Expires::Access(seconds) => (self.now.saturating_add(*seconds), *seconds < 0),
            Expires::Modified(seconds) => {
                let from = last_modified.unwrap_or(self.now);
                (from.saturating_add(*seconds), *seconds < 0)
            }
            Expires::Daily(seconds) => (self.next(i64::from(*seconds)), false),
        };
        let date = imf_fixdate(at).to_vec();
        let max_age = at.saturating_sub(self.now);
        if no_cache || max_age < 0 {
            return Some((date, b"no-cache".to_vec()));
        }
        Some((date, format!("max-age={max_age}").into_bytes()))
    }

    /// The next time at which the local clock shows `seconds` after midnight.
    fn next(&self, seconds: i64) -> i64 {
        let offset = i64::from((self.utc_offset)(self.now));
        let local = self.now.saturating_add(offset);
        let midnight = local.saturating_sub(local.rem_euclid(DAY));
        let today = midnight.saturating_add(seconds);
        let next = if today > local {
            today
        } else {
            today.saturating_add(DAY)
        };
        // Daylight saving time may begin or end until then.
        let offset_then = i64::from((self.utc_offset)(next.saturating_sub(offset)));
        next.saturating_sub(offset_then)
    }
}

/// nginx's dates for the past and for `max`, both its own choice; the latter comes with a max-age of ten years.
const EPOCH: &[u8] = b"Thu, 01 Jan 1970 00:00:01 GMT";
const MAX: &[u8] = b"Thu, 31 Dec 2037 23:55:55 GMT";

/// Seconds of a day.
const DAY: i64 = 86_400;

#[cfg(test)]
mod tests {
    use super::*;

    /// Sun, 06 Nov 1994 08:49:37 GMT.
    const NOW: i64 = 784_111_777;

    fn check_at(offset: fn(i64) -> i32, expires: &Expires, modified: Option<i64>, expected: &str) {
        let clock = Clock {
            now: NOW,
            utc_offset: offset,
        };
        let fields = clock.fields(expires, modified);
        let text = fields.map_or(String::from("none"), |(date, cache_control)| {
            let text = |bytes| String::from_utf8(bytes).unwrap();
            format!("{}; {}", text(date), text(cache_control))
        });
        assert_eq!(text, expected, "{expires:?}");
    }

    #[test]
    fn each_form_gives_its_two_fields() {
        let check = |expires, modified, expected: &str| {
            check_at(|_| 0, &expires, modified, expected);
        };
        check(Expires::Off, None, "none");
        check(
            Expires::Epoch,
            None,
            "Thu, 01 Jan 1970 00:00:01 GMT; no-cache",
        );
        check(
            Expires::Max,
            None,
            "Thu, 31 Dec 2037 23:55:55 GMT; max-age=315360000",
        );
        check(
            Expires::Access(0),
            None,
            "Sun, 06 Nov 1994 08:49:37 GMT; max-age=0",
        );
        check(
            Expires::Access(3600),
            None,
            "Sun, 06 Nov 1994 09:49:37 GMT; max-age=3600",
        );
        check(
            Expires::Access(-1),
            None,
            "Sun, 06 Nov 1994 08:49:36 GMT; no-cache",
        );
        let hour_ago = Some(NOW - 3600);
        check(
            Expires::Modified(0),
            hour_ago,
            "Sun, 06 Nov 1994 08:49:37 GMT; max-age=0",
        );
        check(
            Expires::Modified(3601),
            hour_ago,
            "Sun, 06 Nov 1994 08:49:38 GMT; max-age=1",
        );
        check(
            Expires::Modified(60),
            hour_ago,
            "Sun, 06 Nov 1994 07:50:37 GMT; no-cache",
        );
        check(
            Expires::Modified(-60),
            Some(NOW + 3600),
            "Sun, 06 Nov 1994 09:48:37 GMT; no-cache",
        );
        check(
            Expires::Modified(60),
            None,
            "Sun, 06 Nov 1994 08:50:37 GMT; max-age=60",
        );
    }

    #[test]
    fn a_time_of_day_is_the_next_one_on_the_local_clock() {
        let nine = Expires::Daily(9 * 3600);
        check_at(
            |_| 0,
            &nine,
            None,
            "Sun, 06 Nov 1994 09:00:00 GMT; max-age=623",
        );
        check_at(
            |_| 3600,
            &nine,
            None,
            "Mon, 07 Nov 1994 08:00:00 GMT; max-age=83423",
        );
        let now = Expires::Daily(8 * 3600 + 49 * 60 + 37);
        check_at(
            |_| 0,
            &now,
            None,
            "Mon, 07 Nov 1994 08:49:37 GMT; max-age=86400",
        );
        // The clock is set back an hour in between.
        let summer_ends = |at| if at < NOW + 60 { 3600 } else { 0 };
        check_at(
            summer_ends,
            &nine,
            None,
            "Mon, 07 Nov 1994 09:00:00 GMT; max-age=87023",
        );
    }
}
