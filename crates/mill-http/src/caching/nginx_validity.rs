//! How long nginx would keep a response: the rules of `proxy_cache_valid`, `proxy_ignore_headers` and of the fields
//! which nginx looks at, those of nginx 1.27.
//!
//! Fields are looked at in the order in which they came. `X-Accel-Expires` counts before `Cache-Control`, which counts
//! before `Expires`, which counts before `proxy_cache_valid`. `Cache-Control` is searched for words anywhere in a line.
//! nginx looks at neither `Age` nor `Authorization`, nor at the request's directives. 1.22 differs in one point: what
//! `Cache-Control` or `Expires` forbids there, a later `X-Accel-Expires` does not allow again.

use super::freshness::LifetimeSource;
use super::storing::WhyNotStored;
use crate::date::parse_http_date;
use crate::status::Status;

/// The fields that `proxy_ignore_headers` names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IgnoredFields {
    pub x_accel_expires: bool,
    pub expires: bool,
    pub cache_control: bool,
    pub set_cookie: bool,
    pub vary: bool,
    /// Of `Cache-Control` these directives alone.
    pub directives: IgnoredDirectives,
}

/// Directives of `Cache-Control` that have no effect: not in nginx.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IgnoredDirectives {
    pub no_cache: bool,
    pub no_store: bool,
    pub private: bool,
    pub max_age: bool,
    pub s_maxage: bool,
}

/// One status of `proxy_cache_valid`; `None` is `any`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfiguredValidity {
    pub status: Option<Status>,
    /// Seconds; 0 is not to be stored.
    pub seconds: u64,
}

/// How long a response may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NginxValidity {
    /// Unix seconds up to which, inclusive, it is valid. May be past already (`X-Accel-Expires: @1`): then it is
    /// stored and stale.
    pub valid_until: i64,
    /// Seconds in which it may be used after that while it is updated.
    pub stale_while_revalidate: u64,
    /// Seconds in which it may be used after that when the origin fails.
    pub stale_if_error: u64,
    /// What gave the time.
    pub source: LifetimeSource,
}

/// The longest `Vary` that nginx stores, in bytes; lines are joined by `, `.
pub const NGINX_VARY_BYTES_MAX: usize = 128;

/// Decides as nginx does whether a response is stored, and how long it is valid from `now` on.
pub fn nginx_validity<'a>(
    status: Status,
    fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    ignored: IgnoredFields,
    configured: &[ConfiguredValidity],
    now: i64,
) -> Result<NginxValidity, WhyNotStored> {
    let mut reading = Reading {
        ignored,
        now,
        ..Reading::default()
    };
    for (name, value) in fields {
        reading.on_field(name, value);
    }
    let expired = reading.is_expired.then_some(WhyNotStored::Expired);
    if let Some(why) = reading.never.or(reading.forbidden).or(expired) {
        return Err(why);
    }
    let mut found = reading.found;
    if found.valid_until == 0 {
        let is_it = |one: &&ConfiguredValidity| one.status.is_none_or(|code| code == status);
        let seconds = configured.iter().find(is_it).map_or(0, |one| one.seconds);
        if seconds == 0 {
            return Err(WhyNotStored::NoLifetime);
        }
        found.valid_until = after(now, seconds);
        found.source = LifetimeSource::Configured;
    }
    Ok(found)
}

/// What the fields said so far.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    ignored: IgnoredFields,
    now: i64,
    found: NginxValidity,
    /// Nothing that follows allows it.
    never: Option<WhyNotStored>,
    /// `Cache-Control` forbids it; `X-Accel-Expires` allows it nonetheless.
    forbidden: Option<WhyNotStored>,
    /// `Expires` is past; `Cache-Control` and `X-Accel-Expires` allow it nonetheless.
    is_expired: bool,
    has_x_accel_expires: bool,
    has_expires: bool,
    vary_bytes: usize,
}

impl Reading {
    fn on_field(&mut self, name: &[u8], value: &[u8]) {
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        if is(b"x-accel-expires") {
            self.on_accel_expires(value);
        } else if is(b"cache-control") && !self.ignored.cache_control {
            if let Err(why) = self.on_cache_control(value) {
                self.never = self.never.or(Some(why));
            }
        } else if is(b"expires") {
            self.on_expires(value);
        } else if is(b"set-cookie") && !self.ignored.set_cookie {
            self.never = self.never.or(Some(WhyNotStored::SetCookie));
        } else if is(b"vary") && !self.ignored.vary {
            self.on_vary(value);
        }
    }

    /// Seconds, or `@` and a time. The first line counts; what is no number has no effect.
    fn on_accel_expires(&mut self, value: &[u8]) {
        if self.has_x_accel_expires {
            return;
        }
        self.has_x_accel_expires = true;
        if self.ignored.x_accel_expires {
            return;
        }
        let valid_until = match value {
            [b'@', at @ ..] => whole_number(at),
            seconds => whole_number(seconds).map(|seconds| {
                if seconds == 0 {
                    self.never = self.never.or(Some(WhyNotStored::Expired));
                    return 0;
                }
                self.now.saturating_add(seconds)
            }),
        };
        if let Some(valid_until) = valid_until {
            self.found.valid_until = valid_until;
            self.found.source = LifetimeSource::AccelExpires;
            self.forbidden = None;
            self.is_expired = false;
        }
    }

    fn on_cache_control(&mut self, value: &[u8]) -> Result<(), WhyNotStored> {
        if self.found.valid_until == 0 || !self.has_x_accel_expires {
            let ignored = self.ignored.directives;
            let forbidding = [
                ("no-cache", WhyNotStored::NoCache, ignored.no_cache),
                ("no-store", WhyNotStored::NoStore, ignored.no_store),
                ("private", WhyNotStored::Private, ignored.private),
            ];
            let forbids =
                |word: &str, is_ignored: bool| !is_ignored && after_word(value, word).is_some();
            let mut forbidding = forbidding.into_iter();
            if let Some((_, why, _)) =
                forbidding.find(|(word, _, is_ignored)| forbids(word, *is_ignored))
            {
                self.forbidden = Some(why);
                return Ok(());
            }
            let seconds_of = |word: &str, is_ignored: bool| match is_ignored {
                true => None,
                false => after_word(value, word),
            };
            let lifetime = seconds_of("s-maxage=", ignored.s_maxage)
                .or_else(|| seconds_of("max-age=", ignored.max_age));
            if let Some(text) = lifetime {
                let seconds = delta_seconds(text)?;
                if seconds == 0 {
                    self.forbidden = Some(WhyNotStored::Expired);
                    return Ok(());
                }
                self.found.valid_until = after(self.now, seconds);
                self.found.source = LifetimeSource::MaxAge;
                self.is_expired = false;
            }
        }
        if let Some(text) = after_word(value, "stale-while-revalidate=") {
            let seconds = delta_seconds(text)?;
            self.found.stale_while_revalidate = seconds;
            self.found.stale_if_error = seconds;
        }
        if let Some(text) = after_word(value, "stale-if-error=") {
            self.found.stale_if_error = delta_seconds(text)?;
        }
        Ok(())
    }

    /// The first line counts, and only if no field has given a time yet.
    fn on_expires(&mut self, value: &[u8]) {
        if self.has_expires {
            return;
        }
        self.has_expires = true;
        if self.ignored.expires || self.found.valid_until != 0 {
            return;
        }
        match parse_http_date(value) {
            Some(at) if at >= self.now => {
                self.found.valid_until = at;
                self.found.source = LifetimeSource::Expires;
            }
            _ => self.is_expired = true,
        }
    }

    fn on_vary(&mut self, value: &[u8]) {
        let joint = if self.vary_bytes > 0 { 2 } else { 0 };
        self.vary_bytes = self.vary_bytes.saturating_add(value.len() + joint);
        if value == b"*" || self.vary_bytes > NGINX_VARY_BYTES_MAX {
            self.never = self.never.or(Some(WhyNotStored::Vary));
        }
    }
}

fn after(now: i64, seconds: u64) -> i64 {
    now.saturating_add(i64::try_from(seconds).unwrap_or(i64::MAX))
}

/// The text after the first occurrence of `word`, in any case and anywhere.
fn after_word<'a>(value: &'a [u8], word: &str) -> Option<&'a [u8]> {
    let is_it = |window: &[u8]| window.eq_ignore_ascii_case(word.as_bytes());
    let at = value.windows(word.len()).position(is_it)?;
    value.get(at + word.len()..)
}

/// Digits up to a comma, semicolon, space or the end; none are 0. What is too large is the largest time.
fn delta_seconds(text: &[u8]) -> Result<u64, WhyNotStored> {
    let end = text
        .iter()
        .position(|byte| matches!(byte, b',' | b';' | b' '));
    let mut seconds = 0_i64;
    for byte in text.get(..end.unwrap_or(text.len())).unwrap_or_default() {
        if !byte.is_ascii_digit() {
            return Err(WhyNotStored::InvalidSeconds);
        }
        let digit = i64::from(byte - b'0');
        match seconds
            .checked_mul(10)
            .and_then(|tens| tens.checked_add(digit))
        {
            Some(more) => seconds = more,
            None => return Ok(i64::MAX.cast_unsigned()),
        }
    }
    Ok(seconds.cast_unsigned())
}

/// Digits only, at least one, of a number that nginx's integers hold.
fn whole_number(text: &[u8]) -> Option<i64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_i64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| i64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests;
