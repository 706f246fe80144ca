//! `gzip`: whether the answer is compressed. The compression itself is done at delivery (`delivery/compressed.rs`), or
//! while sending (`content/gzip.rs`).

use crate::content::Origin;
use crate::gzip::acceptable::{Answered, is_acceptable};
use crate::local::{FileOf, Local};
use crate::request::Request;
use crate::response::{FieldText, Response};
use mill_config::config::settings::GzipSettings;
use mill_http::etag::is_weak;
use mill_http::status::Status;
use mill_runtime::engine::Engine;

/// Marks the answer to be compressed if the configuration and the client allow it.
pub(super) fn apply<E: Engine>(
    request: &mut Request,
    response: &mut Response<FileOf<E>>,
    local: &Local<E>,
) {
    if !is_worth_it(response, &request.location.gzip) {
        return;
    }
    request.varies_by_encoding = true;
    if !is_acceptable(
        request,
        &Answered::of(response),
        local.scheduler.wall_clock(),
    ) {
        return;
    }
    response.content.compress(request.location.gzip.comp_level);
    response.ranges = false;
    response.push_field("Content-Encoding", *b"gzip");
    response.etag = response.etag.take().and_then(weakened);
}

/// Whether the configuration allows this answer to be compressed, whatever the client accepts.
fn is_worth_it<File>(response: &Response<File>, settings: &GzipSettings) -> bool {
    let is_compressible = match response.content.origin() {
        Origin::Part(_) | Origin::Source(_) => true,
        Origin::Absent | Origin::Parts(_) => false,
    };
    // nginx applies `gzip_min_length` only to an announced length.
    let is_long_enough = response.streamed
        || response
            .content
            .len()
            .is_none_or(|len| len >= settings.min_length);
    let is_encoded = |name: &[u8]| name.eq_ignore_ascii_case(b"Content-Encoding");
    settings.enabled
        && matches!(
            response.status,
            Status::OK | Status::FORBIDDEN | Status::NOT_FOUND
        )
        && is_compressible
        && is_long_enough
        && !response.fields.iter().any(|line| is_encoded(&line.name))
        && response
            .content_type
            .as_deref()
            .is_some_and(|content_type| settings.types.contains(content_type))
}

/// The compressed representation differs from the tagged one (RFC 9110 8.8.3.3), so its tag must be weak. A malformed
/// tag cannot be made weak and is removed.
fn weakened(etag: FieldText) -> Option<FieldText> {
    if is_weak(&etag) {
        return Some(etag);
    }
    etag.starts_with(b"\"")
        .then(|| [b"W/", &*etag].concat().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_becomes_weak_once() {
        let check = |etag: &str, expected: Option<&str>| {
            let found = weakened(FieldText::copy(etag.as_bytes()));
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{etag}");
        };
        check("\"a\"", Some("W/\"a\""));
        check("W/\"a\"", Some("W/\"a\""));
        check("bare", None);
    }
}
