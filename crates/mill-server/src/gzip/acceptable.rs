//! Whether a client may get a compressed answer: `Accept-Encoding`, and the directives `gzip_http_version`,
//! `gzip_proxied` and `gzip_disable`.

use crate::request::Request;
use crate::response::{FieldLine, Response};
use crate::user_agent::is_msie6;
use mill_config::config::settings::{GzipDisable, GzipProxied, HttpVersion};
use mill_http::accept_encoding::accepts_gzip;
use mill_http::date::parse_http_date;
use mill_http::field::{KnownField, ListElements};
use mill_http::version::Version;
use mill_runtime::time::UnixTime;

/// The fields of the answer that `gzip_proxied` depends on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answered<'a> {
    pub(crate) fields: &'a [FieldLine],
    pub(crate) has_etag: bool,
}

impl<'a> Answered<'a> {
    pub(crate) fn of<File>(response: &'a Response<File>) -> Self {
        Self {
            fields: &response.fields,
            has_etag: response.etag.is_some(),
        }
    }

    fn values(&self, name: &'static str) -> impl Iterator<Item = &'a [u8]> {
        let named = move |line: &&FieldLine| line.name.eq_ignore_ascii_case(name.as_bytes());
        self.fields.iter().filter(named).map(|line| &*line.value)
    }
}

/// Whether the client accepts gzip, and the configuration allows it. Marks the request as impure if the decision
/// depended on more than `Accept-Encoding`.
pub(crate) fn is_acceptable(request: &mut Request, answered: &Answered<'_>, now: UnixTime) -> bool {
    let bytes = &request.message.bytes;
    let head = &request.message.head;
    let accepted = head
        .accept_encoding()
        .is_some_and(|value| accepts_gzip(value.of(bytes)));
    if !accepted {
        return false;
    }
    let settings = &request.location.gzip;
    let user_agent = head
        .value(KnownField::UserAgent)
        .map(|value| value.of(bytes));
    let authorized = head.has(KnownField::Authorization);
    let version = match head.version {
        Version::Http10 => HttpVersion::Http10,
        Version::Http11 | Version::Http2 => HttpVersion::Http11,
    };
    let proxied = head.has(KnownField::Via);
    let acceptable = version >= settings.http_version
        && (!proxied || suits_proxies(&settings.proxied, answered, authorized, now))
        && !is_disabled(&settings.disable, user_agent);
    let is_pure = version == HttpVersion::Http11 && !proxied && settings.disable.is_empty();
    request.pure &= is_pure;
    acceptable
}

/// `gzip_proxied`, for a request that came through a proxy.
fn suits_proxies(
    proxied: &GzipProxied,
    answered: &Answered<'_>,
    authorized: bool,
    now: UnixTime,
) -> bool {
    // `off` is none of them.
    if *proxied == GzipProxied::default() {
        return false;
    }
    if proxied.any || (authorized && proxied.auth) {
        return true;
    }
    if let Some(expires) = answered.values("Expires").next() {
        let expired = parse_http_date(expires).is_some_and(|expires| expires < now.seconds);
        return proxied.expired && expired;
    }
    if answered.values("Cache-Control").next().is_some() {
        let says = |word: &[u8]| {
            let mut elements = answered.values("Cache-Control").flat_map(ListElements::of);
            elements.any(|element| element.eq_ignore_ascii_case(word))
        };
        return (proxied.no_cache && says(b"no-cache"))
            || (proxied.no_store && says(b"no-store"))
            || (proxied.private && says(b"private"));
    }
    // nginx means a line of `add_header`: a file's own date does not count here.
    let has_last_modified = answered.values("Last-Modified").next().is_some();
    let is_kept_apart =
        (proxied.no_last_modified && has_last_modified) || (proxied.no_etag && answered.has_etag);
    !is_kept_apart
}

/// `gzip_disable`.
fn is_disabled(disabled: &[GzipDisable], user_agent: Option<&[u8]>) -> bool {
    let Some(user_agent) = user_agent else {
        return false;
    };
    disabled.iter().any(|disabled| match disabled {
        GzipDisable::Msie6 => is_msie6(user_agent),
        GzipDisable::Pattern(pattern) => pattern.is_match(user_agent),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::response::FieldText;

    #[test]
    fn proxies_get_what_the_configuration_lets_them_have() {
        let now = UnixTime::from_seconds(784_111_777);
        let off = GzipProxied::default();
        let check = |proxied: GzipProxied, fields: &[(&'static str, &str)], expected: bool| {
            let line = |(name, value): &(&'static str, &str)| FieldLine {
                name: (*name).into(),
                value: FieldText::copy(value.as_bytes()),
            };
            let fields: Vec<_> = fields.iter().map(line).collect();
            let answered = Answered {
                fields: &fields,
                has_etag: true,
            };
            let suits = suits_proxies(&proxied, &answered, false, now);
            assert_eq!(suits, expected, "{proxied:?} {fields:?}");
        };
        let past = [("Expires", "Sun, 06 Nov 1994 08:49:36 GMT")];
        let present = [("Expires", "Sun, 06 Nov 1994 08:49:37 GMT")];
        let any = GzipProxied { any: true, ..off };
        let expired = GzipProxied {
            expired: true,
            ..off
        };
        let no_cache = GzipProxied {
            no_cache: true,
            ..off
        };
        let private = GzipProxied {
            private: true,
            ..off
        };
        let no_etag = GzipProxied {
            no_etag: true,
            ..off
        };
        let no_date = GzipProxied {
            no_last_modified: true,
            ..off
        };
        let auth = GzipProxied { auth: true, ..off };
        check(off, &[], false);
        check(any, &past, true);
        check(expired, &past, true);
        check(expired, &present, false);
        check(expired, &[("Expires", "tomorrow")], false);
        check(no_cache, &past, false);
        check(no_cache, &[("Cache-Control", "max-age=0, No-Cache")], true);
        check(no_cache, &[("Cache-Control", "private")], false);
        check(
            private,
            &[("Cache-Control", "a"), ("cache-control", "private")],
            true,
        );
        check(no_etag, &[], false);
        check(no_date, &[], true);
        check(no_date, &[("last-modified", "today")], false);
        check(auth, &[], true);
        assert!(suits_proxies(&auth, &Answered::default(), true, now));
        assert!(suits_proxies(&no_etag, &Answered::default(), false, now));
    }

    #[test]
    fn a_client_that_names_itself_may_be_disabled() {
        let disabled = [GzipDisable::Msie6];
        assert!(is_disabled(&disabled, Some(b"MSIE 5.0")));
        assert!(!is_disabled(&disabled, None));
        assert!(!is_disabled(&[], Some(b"MSIE 5.0")));
    }
}
