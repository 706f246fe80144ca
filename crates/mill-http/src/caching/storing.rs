//! Which responses may be stored: RFC 9111 3, for a shared cache.

use super::freshness::{Freshness, LifetimeSource, is_heuristically_cacheable};
use super::request_directives::RequestDirectives;
use super::response_directives::ResponseDirectives;
use super::vary::Vary;
use crate::method::Method;
use crate::status::Status;

/// What of the request decides.
#[derive(Clone, Copy, Debug)]
pub struct RequestFacts<'a> {
    pub method: Method,
    pub directives: &'a RequestDirectives,
    pub has_authorization: bool,
}

/// What of the response decides; its status is in `freshness`.
#[derive(Clone, Copy, Debug)]
pub struct ResponseFacts<'a> {
    pub directives: &'a ResponseDirectives,
    pub freshness: &'a Freshness,
    pub vary: &'a Vary,
    /// It is a single range of known place: a 206 with a valid `Content-Range`.
    pub is_single_range: bool,
}

/// What the cache can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoringRules {
    /// It stores and combines parts (RFC 9111 3.3, 3.4).
    pub stores_parts: bool,
    /// The configuration lets it use stale responses, so that one which is stale at once is worth storing.
    pub uses_stale: bool,
    /// It leaves aside what the request's directives say (`no-store`).
    pub ignores_request_directives: bool,
}

/// Why a response was not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyNotStored {
    /// RFC 9111 3: not GET or HEAD.
    Method,
    /// RFC 9111 3, 5.2.2.3: an interim status, 304, or one that this cache does not understand.
    Status,
    /// RFC 9111 5.2.2.5
    NoStore,
    /// RFC 9111 5.2.1.5
    RequestNoStore,
    /// RFC 9111 5.2.2.7
    Private,
    /// RFC 9111 3.5
    Authorization,
    /// RFC 9111 4.1: `Vary: *`, or more than this cache compares.
    Vary,
    /// RFC 9111 3.3: a part, which this cache does not store, or of which it does not know the place.
    Partial,
    /// RFC 9111 3, the last point: nothing says that it may be stored.
    NotCacheable,
    /// Allowed, but of no use: stale at once, without validator, and never to be used stale.
    Useless,
    /// nginx: `Set-Cookie`.
    SetCookie,
    /// nginx: `no-cache` in `Cache-Control`.
    NoCache,
    /// nginx: `max-age=0` or `s-maxage=0`, an `Expires` in the past, or `X-Accel-Expires: 0`.
    Expired,
    /// nginx: seconds in `Cache-Control` that are no number.
    InvalidSeconds,
    /// nginx: neither a field nor `proxy_cache_valid` gives a time.
    NoLifetime,
}

impl WhyNotStored {
    /// The word for logs and for `detail` of Cache-Status; a token.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::Status => "status",
            Self::NoStore => "no-store",
            Self::RequestNoStore => "request-no-store",
            Self::Private => "private",
            Self::Authorization => "authorization",
            Self::Vary => "vary",
            Self::Partial => "partial",
            Self::NotCacheable => "not-cacheable",
            Self::Useless => "useless",
            Self::SetCookie => "set-cookie",
            Self::NoCache => "no-cache",
            Self::Expired => "expired",
            Self::InvalidSeconds => "invalid-seconds",
            Self::NoLifetime => "no-lifetime",
        }
    }
}

/// RFC 9110 15: final statuses whose requirements on caches this cache fulfils (RFC 9111 3, 5.2.2.3). 206 is decided
/// apart; 304 updates what is stored and is no response of its own.
pub const fn is_understood(status: Status) -> bool {
    matches!(
        status.0,
        200 | 203 | 204 | 300..=303 | 307 | 308 | 400..=405 | 409 | 410 | 414 | 421 | 429 | 451 | 500..=504
    )
}

/// Decides whether a response to this request may be stored and is worth it.
pub fn may_store(
    request: &RequestFacts<'_>,
    response: &ResponseFacts<'_>,
    rules: StoringRules,
) -> Result<(), WhyNotStored> {
    let (directives, freshness) = (response.directives, response.freshness);
    if !matches!(request.method, Method::Get | Method::Head) {
        return Err(WhyNotStored::Method);
    }
    status_allows(response, rules)?;
    if request.directives.no_store && !rules.ignores_request_directives {
        return Err(WhyNotStored::RequestNoStore);
    }
    // RFC 9111 5.2.2.3: `no-store` beside it is for caches that do not know the status.
    let knows_status = directives.must_understand && is_understood(freshness.status);
    if directives.no_store && !knows_status {
        return Err(WhyNotStored::NoStore);
    }
    if directives.private {
        return Err(WhyNotStored::Private);
    }
    if request.has_authorization && !is_for_all(directives) {
        return Err(WhyNotStored::Authorization);
    }
    if *response.vary == Vary::Any {
        return Err(WhyNotStored::Vary);
    }
    if !is_cacheable(directives, freshness) {
        return Err(WhyNotStored::NotCacheable);
    }
    if is_useless(freshness, rules) {
        return Err(WhyNotStored::Useless);
    }
    Ok(())
}

fn status_allows(response: &ResponseFacts<'_>, rules: StoringRules) -> Result<(), WhyNotStored> {
    let status = response.freshness.status;
    match status {
        Status::PARTIAL_CONTENT if rules.stores_parts && response.is_single_range => Ok(()),
        Status::PARTIAL_CONTENT => Err(WhyNotStored::Partial),
        Status(..200) | Status::NOT_MODIFIED => Err(WhyNotStored::Status),
        _ if response.directives.must_understand && !is_understood(status) => {
            Err(WhyNotStored::Status)
        }
        _ => Ok(()),
    }
}

/// RFC 9111 3.5: a response to an authorised request that others may have too.
const fn is_for_all(directives: &ResponseDirectives) -> bool {
    directives.must_revalidate || directives.public || directives.s_maxage.is_some()
}

/// RFC 9111 3, the last point. `private` with names is no leave for a shared cache.
fn is_cacheable(directives: &ResponseDirectives, freshness: &Freshness) -> bool {
    directives.public
        || freshness.source.is_explicit()
        || freshness.source == LifetimeSource::Configured
        || is_heuristically_cacheable(freshness.status)
}

fn is_useless(freshness: &Freshness, rules: StoringRules) -> bool {
    let is_stale_at_once = freshness.no_cache() || freshness.ttl(freshness.response_time) <= 0;
    let may_be_stale =
        rules.uses_stale || freshness.stale_while_revalidate > 0 || freshness.stale_if_error > 0;
    let is_used_stale = may_be_stale && !freshness.must_revalidate() && !freshness.no_cache();
    is_stale_at_once && !freshness.has_validator() && !is_used_stale
}

#[cfg(test)]
mod tests;
