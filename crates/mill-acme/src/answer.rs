//! Answers of the authority, as far as they are of use.

use mill_http::date::parse_http_date;
use std::time::Duration;

/// An answer of HTTP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// `Replay-Nonce`.
    pub(crate) nonce: Option<String>,
    /// `Location`.
    pub(crate) location: Option<String>,
    /// `Retry-After`.
    pub(crate) retry_after: Option<Duration>,
    /// Targets of `Link` with `rel="alternate"`.
    pub(crate) alternates: Vec<String>,
    pub content: Vec<u8>,
}

impl Answer {
    /// Without fields and content.
    pub fn new(status: u16) -> Self {
        Self {
            status,
            ..Self::default()
        }
    }

    /// A field line; `now` is in seconds since 1970.
    pub fn on_field(&mut self, name: &[u8], value: &[u8], now: i64) {
        let Ok(text) = std::str::from_utf8(value) else {
            return;
        };
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        if is("replay-nonce") {
            self.nonce = Some(text.to_owned());
        } else if is("location") {
            self.location = Some(text.to_owned());
        } else if is("retry-after") {
            self.retry_after = retry_after(text, now);
        } else if is("link") {
            let room = ALTERNATES_MAX.saturating_sub(self.alternates.len());
            let found = text.split(',').filter_map(alternate);
            self.alternates.extend(found.map(String::from).take(room));
        }
    }

    pub(crate) const fn is_success(&self) -> bool {
        matches!(self.status, 200..=299)
    }

    pub(crate) const fn is_redirect(&self) -> bool {
        matches!(self.status, 301 | 302 | 303 | 307 | 308)
    }
}

/// Seconds, or a date (RFC 9110 10.2.3).
fn retry_after(text: &str, now: i64) -> Option<Duration> {
    let seconds: Option<u64> = text.trim().parse().ok();
    let seconds = seconds.or_else(|| {
        let date = parse_http_date(text.trim().as_bytes())?;
        u64::try_from(date.saturating_sub(now).max(0)).ok()
    });
    seconds.map(Duration::from_secs)
}

/// The target of a link to another chain (RFC 8288, RFC 8555 7.4.2).
fn alternate(link: &str) -> Option<&str> {
    let (target, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
    let mut parameters = parameters
        .split(';')
        .filter_map(|one| one.trim().split_once('='));
    let is_alternate = parameters.any(|(name, value)| {
        name.eq_ignore_ascii_case("rel") && value.trim_matches('"') == "alternate"
    });
    is_alternate.then_some(target)
}

/// Chains that are looked at for a preferred one.
const ALTERNATES_MAX: usize = 8;

/// Where a reference of an answer to `base` leads (RFC 3986 5.2, without steps up); `None`: nowhere.
pub(crate) fn resolve(base: &str, reference: &str) -> Option<String> {
    if reference.starts_with("https://") || reference.starts_with("http://") {
        return Some(reference.to_owned());
    }
    let (scheme, rest) = base.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    reference
        .starts_with('/')
        .then(|| format!("{scheme}://{authority}{reference}"))
}

#[cfg(test)]
mod tests {
    use super::{Answer, resolve};
    use std::time::Duration;

    #[test]
    fn fields_are_taken_in_any_case() {
        let mut answer = Answer::new(200);
        answer.on_field(b"replay-NONCE", b"n1", 0);
        answer.on_field(b"Retry-After", b"120", 0);
        answer.on_field(b"Location", b"https://ca/order/1", 0);
        let links = b"<https://ca/dir>;rel=\"index\", <https://ca/2>; title=x; rel=\"alternate\"";
        answer.on_field(b"Link", links, 0);
        assert_eq!(answer.nonce.as_deref(), Some("n1"));
        assert_eq!(answer.retry_after, Some(Duration::from_secs(120)));
        assert_eq!(answer.alternates, ["https://ca/2"]);
        answer.on_field(b"Retry-After", b"Thu, 01 Jan 1970 00:01:40 GMT", 40);
        assert_eq!(answer.retry_after, Some(Duration::from_secs(60)));
        answer.on_field(b"Retry-After", b"soon", 0);
        assert_eq!(answer.retry_after, None);
    }

    #[test]
    fn references_are_taken_from_where_they_stand() {
        let check = |reference: &str, expected: Option<&str>| {
            let found = resolve("https://ca:14000/dir?x", reference);
            assert_eq!(found.as_deref(), expected);
        };
        check("https://other/dir", Some("https://other/dir"));
        check("/order/1", Some("https://ca:14000/order/1"));
        check("order", None);
    }
}
