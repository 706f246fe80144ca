//! How old a stored response is and how long it is fresh: RFC 9111 4.2, RFC 5861.

mod encoding;

pub use encoding::FRESHNESS_BYTES;

use super::directive::{DELTA_SECONDS_MAX, parse_delta_seconds};
use super::nginx_validity::NginxValidity;
use super::response_directives::ResponseDirectives;
use crate::date::parse_http_date;
use crate::field::trim_blanks;
use crate::status::Status;

/// When a request was sent and its response came, in Unix seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExchangeTimes {
    pub request: i64,
    pub response: i64,
}

/// How a lifetime is found where the response has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LifetimeRules {
    /// Seconds that the configuration gives to responses of this status; it comes before a heuristic.
    pub configured: Option<u64>,
    /// Percent of the time since `Last-Modified` (RFC 9111 4.2.2 has 10 as a typical setting); 0 is none.
    pub heuristic_percent: u8,
    /// Seconds that a heuristic lifetime is at most.
    pub heuristic_max: u32,
}

/// Ten percent, a day at most.
impl Default for LifetimeRules {
    fn default() -> Self {
        Self {
            configured: None,
            heuristic_percent: 10,
            heuristic_max: 86_400,
        }
    }
}

/// What a lifetime comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LifetimeSource {
    /// Nothing says how long: validated at each use.
    #[default]
    None,
    /// RFC 9111 5.2.2.10
    SMaxage,
    /// RFC 9111 5.2.2.1
    MaxAge,
    /// RFC 9111 5.3
    Expires,
    /// RFC 9111 4.2.2
    Heuristic,
    /// The configuration (`proxy_cache_valid`).
    Configured,
    /// nginx's `X-Accel-Expires`.
    AccelExpires,
}

impl LifetimeSource {
    /// The response itself says it.
    pub const fn is_explicit(self) -> bool {
        matches!(
            self,
            Self::SMaxage | Self::MaxAge | Self::Expires | Self::AccelExpires
        )
    }
}

/// What later decisions need of a stored response. 40 bytes, without reference to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freshness {
    /// Unix seconds of `Date`; if it has none, of its arrival (RFC 9110 6.6.1).
    pub date: i64,
    /// Unix seconds of its arrival, or of the last validation.
    pub response_time: i64,
    /// Seconds: `corrected_initial_age` of RFC 9111 4.2.3.
    pub initial_age: u32,
    /// Seconds: `freshness_lifetime` of RFC 9111 4.2.1.
    pub lifetime: u32,
    /// Seconds after its lifetime in which it may be used while it is validated (RFC 5861 3).
    pub stale_while_revalidate: u32,
    /// Seconds after its lifetime in which it may be used when the origin fails (RFC 5861 4).
    pub stale_if_error: u32,
    pub status: Status,
    pub source: LifetimeSource,
    flags: u8,
}

const _: () = assert!(size_of::<Freshness>() <= 40);

const MUST_REVALIDATE: u8 = 1;
const NO_CACHE: u8 = 2;
const HAS_ETAG: u8 = 4;
const HAS_LAST_MODIFIED: u8 = 8;
const IMMUTABLE: u8 = 16;
const LAST_SECOND: u8 = 32;

impl Freshness {
    /// Of a response that arrived now: its status, all its field lines, and the directives that count (`Cache-Control`
    /// or a targeted field). Of fields that may occur once, the first line counts.
    pub fn of_response<'a>(
        status: Status,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        directives: &ResponseDirectives,
        times: ExchangeTimes,
        rules: LifetimeRules,
    ) -> Self {
        let known = TimeFields::of(fields);
        let date = known.date.unwrap_or(times.response);
        let (lifetime, source) = lifetime(status, &known, date, directives, rules);
        Self {
            date,
            response_time: times.response,
            initial_age: initial_age(date, known.age, times),
            lifetime,
            stale_while_revalidate: directives.stale_while_revalidate.unwrap_or(0),
            stale_if_error: directives.stale_if_error.unwrap_or(0),
            status,
            source,
            flags: flags(&known, directives),
        }
    }

    /// `current_age` of RFC 9111 4.2.3, in seconds. A clock that was set back makes nothing younger than it came.
    pub fn age(&self, now: i64) -> u64 {
        let resident = now.saturating_sub(self.response_time).max(0);
        u64::from(self.initial_age).saturating_add(resident.cast_unsigned())
    }

    /// Seconds of freshness left; 0 and less is stale (RFC 9111 4.2: fresh while the lifetime exceeds the age).
    pub fn ttl(&self, now: i64) -> i64 {
        let age = i64::try_from(self.age(now)).unwrap_or(i64::MAX);
        i64::from(self.lifetime).saturating_sub(age)
    }

    /// The same as it is told: under nginx's rules without the last second, which is used too although the lifetime that is
    /// configured is over.
    pub fn ttl_told(&self, now: i64) -> i64 {
        self.ttl(now) - i64::from(self.flags & LAST_SECOND != 0)
    }

    pub fn is_fresh(&self, now: i64) -> bool {
        self.ttl(now) > 0
    }

    /// `must-revalidate` or `proxy-revalidate`: never used stale (RFC 9111 5.2.2.2, 5.2.2.8).
    pub const fn must_revalidate(&self) -> bool {
        self.flags & MUST_REVALIDATE != 0
    }

    /// `no-cache` without names: validated at each use (RFC 9111 5.2.2.4).
    pub const fn no_cache(&self) -> bool {
        self.flags & NO_CACHE != 0
    }

    pub const fn has_etag(&self) -> bool {
        self.flags & HAS_ETAG != 0
    }

    pub const fn has_last_modified(&self) -> bool {
        self.flags & HAS_LAST_MODIFIED != 0
    }

    /// It can be validated by a conditional request.
    pub const fn has_validator(&self) -> bool {
        self.flags & (HAS_ETAG | HAS_LAST_MODIFIED) != 0
    }

    /// RFC 8246: its content does not change while it is fresh. That is a word to clients, which need not ask; a request
    /// that asks nonetheless gets what it asks for.
    pub const fn is_immutable(&self) -> bool {
        self.flags & IMMUTABLE != 0
    }

    /// Of a response that arrived now, valid as nginx's rules say: its age begins with 0, and nothing binds it.
    pub fn of_nginx<'a>(
        status: Status,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        validity: &NginxValidity,
        now: i64,
    ) -> Self {
        let known = TimeFields::of(fields);
        // nginx uses it up to and including its last second; here it is fresh while the lifetime exceeds the age.
        let last = validity.valid_until.saturating_sub(now);
        Self {
            date: known.date.unwrap_or(now),
            response_time: now,
            initial_age: 0,
            lifetime: saturated(last.saturating_add(1).max(0).cast_unsigned()),
            stale_while_revalidate: saturated(validity.stale_while_revalidate),
            stale_if_error: saturated(validity.stale_if_error),
            status,
            source: validity.source,
            flags: flags(&known, &ResponseDirectives::default()) | LAST_SECOND,
        }
    }
}

/// RFC 9110 15.1: statuses whose responses may have a heuristic lifetime.
pub const fn is_heuristically_cacheable(status: Status) -> bool {
    matches!(
        status.0,
        200 | 203 | 204 | 206 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501
    )
}

/// The fields that tell times, each the first line of its name.
#[derive(Clone, Copy, Debug, Default)]
struct TimeFields {
    date: Option<i64>,
    age: Option<u32>,
    /// `Some(None)`: there, and no date.
    expires: Option<Option<i64>>,
    last_modified: Option<i64>,
    has_etag: bool,
}

impl TimeFields {
    fn of<'a>(fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Self {
        let mut found = Self::default();
        let (mut has_date, mut has_age, mut has_last_modified) = (false, false, false);
        for (name, value) in fields {
            let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
            if is(b"date") && !has_date {
                has_date = true;
                found.date = parse_http_date(value);
            } else if is(b"age") && !has_age {
                has_age = true;
                found.age = parse_age(value);
            } else if is(b"expires") && found.expires.is_none() {
                found.expires = Some(parse_http_date(value));
            } else if is(b"last-modified") && !has_last_modified {
                has_last_modified = true;
                found.last_modified = parse_http_date(value);
            } else if is(b"etag") {
                found.has_etag |= !value.is_empty();
            }
        }
        found
    }
}

/// RFC 9111 5.1: of a list the first member; what is no number is ignored.
fn parse_age(value: &[u8]) -> Option<u32> {
    parse_delta_seconds(trim_blanks(value.split(|byte| *byte == b',').next()?))
}

/// `corrected_initial_age` of RFC 9111 4.2.3.
fn initial_age(date: i64, age: Option<u32>, times: ExchangeTimes) -> u32 {
    let apparent = times.response.saturating_sub(date).max(0);
    let delay = times.response.saturating_sub(times.request).max(0);
    let corrected = i64::from(age.unwrap_or(0)).saturating_add(delay);
    saturated(apparent.max(corrected).cast_unsigned())
}

/// RFC 9111 4.2.1 and 4.2.2, and the configured one between them.
fn lifetime(
    status: Status,
    known: &TimeFields,
    date: i64,
    directives: &ResponseDirectives,
    rules: LifetimeRules,
) -> (u32, LifetimeSource) {
    if let Some(seconds) = directives.s_maxage {
        return (seconds, LifetimeSource::SMaxage);
    }
    if let Some(seconds) = directives.max_age {
        return (seconds, LifetimeSource::MaxAge);
    }
    if let Some(expires) = known.expires
        && !directives.is_targeted
    {
        // RFC 9111 5.3: what is no date, `0` above all, is in the past.
        let seconds = expires.map_or(0, |at| at.saturating_sub(date).max(0));
        return (saturated(seconds.cast_unsigned()), LifetimeSource::Expires);
    }
    if let Some(seconds) = rules.configured {
        return (saturated(seconds), LifetimeSource::Configured);
    }
    let may_guess = is_heuristically_cacheable(status) || directives.public;
    match known.last_modified {
        Some(modified) if may_guess && rules.heuristic_percent > 0 => {
            (heuristic(modified, date, rules), LifetimeSource::Heuristic)
        }
        _ => (0, LifetimeSource::None),
    }
}

fn heuristic(modified: i64, date: i64, rules: LifetimeRules) -> u32 {
    let unchanged = date.saturating_sub(modified).max(0).cast_unsigned();
    let seconds = u128::from(unchanged) * u128::from(rules.heuristic_percent) / 100;
    u64::try_from(seconds)
        .map_or(rules.heuristic_max, saturated)
        .min(rules.heuristic_max)
}

fn flags(known: &TimeFields, directives: &ResponseDirectives) -> u8 {
    let must_revalidate = directives.must_revalidate || directives.proxy_revalidate;
    [
        (must_revalidate, MUST_REVALIDATE),
        (directives.no_cache, NO_CACHE),
        (known.has_etag, HAS_ETAG),
        (known.last_modified.is_some(), HAS_LAST_MODIFIED),
        (directives.immutable, IMMUTABLE),
    ]
    .into_iter()
    .filter(|(is_set, _)| *is_set)
    .fold(0, |flags, (_, flag)| flags | flag)
}

/// RFC 9111 1.2.2.
fn saturated(seconds: u64) -> u32 {
    u32::try_from(seconds).map_or(DELTA_SECONDS_MAX, |seconds| seconds.min(DELTA_SECONDS_MAX))
}

#[cfg(test)]
mod tests;
