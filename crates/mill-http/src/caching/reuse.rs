//! Whether a stored response may be used: RFC 9111 4 and 4.2.4, RFC 5861.

use super::freshness::{Freshness, LifetimeSource};
use super::request_directives::RequestDirectives;

/// Why a request goes on to the origin, in the words of RFC 9211 2.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardReason {
    /// The cache was configured not to handle this request.
    Bypass,
    /// The method asks for it.
    Method,
    /// Nothing is stored for the target.
    UriMiss,
    /// Something is stored for the target, but nothing for these field values.
    VaryMiss,
    /// Nothing fits, for one of the two reasons above.
    Miss,
    /// Fresh, but the request did not allow its use.
    Request,
    /// Stale, or to be validated at each use.
    Stale,
    /// Only a part of what is asked is stored.
    Partial,
}

impl ForwardReason {
    /// The token of RFC 9211 2.2.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Bypass => "bypass",
            Self::Method => "method",
            Self::UriMiss => "uri-miss",
            Self::VaryMiss => "vary-miss",
            Self::Miss => "miss",
            Self::Request => "request",
            Self::Stale => "stale",
            Self::Partial => "partial",
        }
    }
}

/// Where the configuration departs from what request and response say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReuseRules {
    /// nginx: the request's directives have no effect.
    pub ignores_request_directives: bool,
    /// nginx: `must-revalidate`, `proxy-revalidate` and `no-cache` have no effect on what is stored.
    pub ignores_must_revalidate: bool,
    /// `proxy_cache_use_stale updating`: any age will do while it is validated.
    pub uses_stale_while_revalidating: bool,
    /// `proxy_cache_use_stale error …`: any age will do when the origin fails.
    pub uses_stale_on_error: bool,
}

/// What to do with the stored response that was selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// Answer with it. Age and seconds of freshness left.
    Fresh { age: u64, ttl: u64 },
    /// It is stale, and the request does not mind its validation.
    Stale(StaleReuse),
    /// It must be validated before it is used, whatever happens: if the origin fails, the answer is 504.
    Validate { age: u64, reason: ForwardReason },
    /// The request has `only-if-cached` (RFC 9111 5.2.1.7): 504, nothing is forwarded.
    Unavailable,
}

/// How a stale response may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaleReuse {
    /// Seconds.
    pub age: u64,
    /// Seconds since it became stale.
    pub stale_by: u64,
    /// The request accepts it as it is (`max-stale`).
    pub may_serve: bool,
    /// It may be used at once if its validation begins (RFC 5861 3).
    pub may_serve_while_revalidating: bool,
    /// It may be used if the origin cannot be reached or answers 500, 502, 503 or 504 (RFC 5861 4).
    pub may_serve_on_error: bool,
    /// Validate it first; the other leaves hold all the same, the last of them when validation fails.
    pub must_validate: bool,
}

/// Decides about the stored response that was selected for a request (same target, fields of `Vary` matching).
pub fn may_reuse(
    stored: &Freshness,
    request: &RequestDirectives,
    now: i64,
    rules: ReuseRules,
) -> Reuse {
    let none = RequestDirectives::default();
    let request = if rules.ignores_request_directives {
        &none
    } else {
        request
    };
    let found = judge(stored, request, now, rules);
    let answers = match &found {
        Reuse::Fresh { .. } => true,
        Reuse::Stale(stale) => !stale.must_validate,
        Reuse::Validate { .. } | Reuse::Unavailable => false,
    };
    if request.only_if_cached && !answers {
        return Reuse::Unavailable;
    }
    found
}

fn judge(stored: &Freshness, request: &RequestDirectives, now: i64, rules: ReuseRules) -> Reuse {
    let age = stored.age(now);
    let ttl = stored.ttl(now);
    let is_always_validated = stored.no_cache() && !rules.ignores_must_revalidate;
    if is_always_validated {
        return Reuse::Validate {
            age,
            reason: ForwardReason::Stale,
        };
    }
    if ttl > 0 {
        let ttl = ttl.cast_unsigned();
        if refuses(request, age)
            || request
                .min_fresh
                .is_some_and(|least| ttl < u64::from(least))
        {
            return Reuse::Validate {
                age,
                reason: ForwardReason::Request,
            };
        }
        return Reuse::Fresh { age, ttl };
    }
    // What is stale has no freshness to keep, so `min-fresh` refuses it as well.
    if refuses(request, age) || request.min_fresh.is_some_and(|least| least > 0) {
        return Reuse::Validate {
            age,
            reason: ForwardReason::Stale,
        };
    }
    Reuse::Stale(stale(stored, request, age, ttl.unsigned_abs(), rules))
}

/// `no-cache`, or an age above `max-age`.
fn refuses(request: &RequestDirectives, age: u64) -> bool {
    request.no_cache || request.max_age.is_some_and(|most| age > u64::from(most))
}

/// RFC 9111 4.2.4: `must-revalidate` and `proxy-revalidate` forbid all use. `s-maxage` means the same as
/// `proxy-revalidate` (5.2.2.10), but yields to a leave which the same response gives by RFC 5861: together they are
/// sent to caches like this one, and would contradict each other otherwise.
fn stale(
    stored: &Freshness,
    request: &RequestDirectives,
    age: u64,
    stale_by: u64,
    rules: ReuseRules,
) -> StaleReuse {
    let is_bound = !rules.ignores_must_revalidate;
    let forbidden = is_bound && stored.must_revalidate();
    let forbidden_to_others = forbidden || (is_bound && stored.source == LifetimeSource::SMaxage);
    let within = |seconds: u32| stale_by < u64::from(seconds);
    let may_serve =
        !forbidden_to_others && request.max_stale.is_some_and(|most| most.accepts(stale_by));
    let configured_while = rules.uses_stale_while_revalidating && !forbidden_to_others;
    let configured_on_error =
        rules.uses_stale_on_error || request.stale_if_error.is_some_and(within);
    let may_serve_while_revalidating =
        !forbidden && (configured_while || within(stored.stale_while_revalidate));
    let may_serve_on_error = !forbidden
        && (may_serve
            || may_serve_while_revalidating
            || (configured_on_error && !forbidden_to_others)
            || within(stored.stale_if_error));
    StaleReuse {
        age,
        stale_by,
        may_serve,
        may_serve_while_revalidating,
        may_serve_on_error,
        must_validate: !may_serve && !may_serve_while_revalidating,
    }
}

#[cfg(test)]
mod tests;
