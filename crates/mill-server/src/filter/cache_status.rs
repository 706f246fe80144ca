//! `cache_status`: the answer tells what the cache did (RFC 9211).

use crate::cache::note::{CacheNote, CacheOutcome as Outcome};
use crate::local::Local;
use crate::request::Request;
use crate::response::Response;
use mill_http::caching::cache_status::{CacheOutcome, CacheStatus};
use mill_http::caching::reuse::ForwardReason;
use mill_http::status::Status;
use mill_runtime::engine::Engine;

/// Adds the field, behind those of caches nearer to the origin.
pub(super) fn apply<E: Engine>(
    request: &Request,
    response: &mut Response<crate::local::FileOf<E>>,
    local: &Local<E>,
) {
    let (Some(name), Some(note)) = (&request.location.caching.status, &request.cached) else {
        return;
    };
    let now = local.scheduler.wall_clock().seconds;
    let found = note.found.as_ref().filter(|_| note.outcome.is_of_cache());
    let refused = note.storing.and_then(Result::err);
    let status = CacheStatus {
        cache: name,
        outcome: outcome(note),
        ttl: found.map(|kept| kept.meta().freshness.ttl_told(now)),
        key: None,
        detail: refused.map(|why| why.word().as_bytes()),
    };
    let mut value = Vec::new();
    status.emit(&mut value);
    response.push_field("Cache-Status", value);
}

fn outcome(note: &CacheNote) -> CacheOutcome {
    let forwarded = |status| CacheOutcome::Forwarded {
        reason: note.forwarded.unwrap_or(ForwardReason::UriMiss),
        status,
        is_stored: note.is_collapsed || note.storing == Some(Ok(())),
        is_collapsed: note.is_collapsed,
    };
    match note.outcome {
        Outcome::Hit if note.is_collapsed => forwarded(None),
        Outcome::Hit | Outcome::Stale | Outcome::Updating => CacheOutcome::Hit,
        Outcome::Revalidated => forwarded(Some(Status::NOT_MODIFIED)),
        Outcome::Miss | Outcome::Bypass | Outcome::Expired if note.is_unavailable => {
            CacheOutcome::Neither
        }
        Outcome::Miss | Outcome::Bypass | Outcome::Expired => forwarded(None),
    }
}
