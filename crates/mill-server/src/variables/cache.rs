//! What a cache had to do with the request.

use crate::request::Request;
use mill_config::config::Variable;
use mill_http::field::KnownField;
use std::borrow::Cow;

/// `$upstream_cache_…` and `$cache_decision`, at these Unix seconds; `None` where there was no cache.
pub(super) fn value<'a>(
    variable: &Variable,
    request: &'a Request,
    now: i64,
) -> Option<Cow<'a, [u8]>> {
    let note = request.cached.as_deref()?;
    let of_found = |known| note.found.as_ref()?.meta().field(known).map(Cow::Borrowed);
    match variable {
        Variable::UpstreamCacheStatus => Some(note.outcome.word().as_bytes().into()),
        Variable::UpstreamCacheKey => Some((&*note.key).into()),
        Variable::UpstreamCacheAge => {
            let found = note.found.as_ref().filter(|_| note.outcome.is_of_cache())?;
            let age = found.meta().freshness.age(now);
            Some(age.to_string().into_bytes().into())
        }
        Variable::UpstreamCacheEtag => of_found(KnownField::ETag),
        Variable::UpstreamCacheLastModified => of_found(KnownField::LastModified),
        Variable::CacheDecision => Some(note.decision().into_bytes().into()),
        _ => None,
    }
}
