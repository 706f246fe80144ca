//! `…_cache_purge`, as NGINX Plus has it: a request whose condition holds removes what is kept under its key, or with `*`
//! at the end of the key all that begins so. One that has a field of `cache_tags` removes by these tags instead.

use super::look_up::{Looking, is_any_true};
use crate::answer::Answer;
use crate::cache::{NotPurged, Purge, field_lines};
use crate::local::{AnswerOf, Local};
use crate::request::Request;
use mill_cache::PurgeMode;
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
    let tags = tags(request);
    let purged = match tags.tags.is_empty() {
        true => looking
            .zone
            .purge(keyed(&looking.key), PurgeMode::Remove, local),
        false => tags.tags.iter().try_for_each(|tag| {
            let tag = Purge::Tag(tag);
            looking.zone.purge(tag, PurgeMode::Remove, local)
        }),
    };
    match purged {
        Ok(()) => {}
        Err(NotPurged::TooMany) => {
            let text = format_args!("too many purges by prefix are under way");
            local.log_error(Some(request), LogLevel::Error, text);
            return Some(Answer::Status(Status::SERVICE_UNAVAILABLE));
        }
        // It is logged.
        Err(NotPurged::Unwritten) => return Some(Answer::Status(Status::INTERNAL_SERVER_ERROR)),
    }
    Some(Answer::Response(local.take_response(Status::NO_CONTENT)))
}

/// A key, or all that begins as it does before `*`.
fn keyed(key: &[u8]) -> Purge<'_> {
    match key.strip_suffix(b"*") {
        None => Purge::Key(key),
        Some(b"") => Purge::All,
        Some(prefix) => Purge::Prefix(prefix),
    }
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
