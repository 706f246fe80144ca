//! `…_cache_purge`, as NGINX Plus has it: a request whose condition holds removes what is kept under its key, or with `*`
//! at the end of the key all that begins so. One that has a field of `cache_tags` removes by these tags instead.

use super::forget;
use super::look_up::{Looking, is_any_true};
use crate::answer::Answer;
use crate::cache::{StoredAnswer, field_lines};
use crate::local::{AnswerOf, Local};
use crate::request::Request;
use mill_cache::{PurgeMode, Zone};
use mill_config::config::LogLevel;
use mill_http::caching::tags::{TagForm, Tags};
use mill_http::status::Status;
use mill_runtime::engine::Engine;

/// The answer to a request that purges; `None` of any other.
pub(super) fn answer<E: Engine>(
    looking: &Looking,
    request: &mut Request,
    local: &Local<E>,
) -> Option<AnswerOf<E>> {
    let settings = &looking.settings;
    if settings.purge.is_empty() || !is_any_true(&settings.purge, request, local) {
        return None;
    }
    request.pure = false;
    let store = looking.zone.store(local);
    let tags = tags(request);
    let purged = if !tags.tags.is_empty() {
        for tag in &tags.tags {
            store.purge_tag(tag, PurgeMode::Remove);
        }
        true
    } else {
        purge_key(looking, store, &looking.key)
    };
    if !purged {
        let text = format_args!("too many purges by prefix are under way");
        local.log_error(Some(request), LogLevel::Error, text);
        return Some(Answer::Status(Status::SERVICE_UNAVAILABLE));
    }
    Some(Answer::Response(local.take_response(Status::NO_CONTENT)))
}

/// Removes a key, or all that begins as it does before `*`; false if that has to wait.
fn purge_key(looking: &Looking, store: &Zone<StoredAnswer>, key: &[u8]) -> bool {
    if let Some(prefix) = key.strip_suffix(b"*") {
        let prefix = prefix.to_vec();
        let begins = move |key: &[u8]| key.starts_with(&prefix);
        return store
            .purge_matching(Box::new(begins), PurgeMode::Remove)
            .is_ok();
    }
    forget(&looking.zone, key);
    true
}

/// The tags that the request names.
fn tags(request: &Request) -> Tags {
    let names = &request.location.caching.tags;
    let is_named = |name: &[u8]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    let mut tags = Tags::default();
    for (name, value) in field_lines(request).filter(|(name, _)| is_named(name)) {
        tags.add(TagForm::of_field(name).unwrap_or(TagForm::Blanks), value);
    }
    tags
}
