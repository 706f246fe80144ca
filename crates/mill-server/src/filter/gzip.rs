//! `gzip`: whether the answer is compressed. The compression itself is done at delivery (`delivery/compressed.rs`), or
//! while sending (`content/gzip.rs`).

use super::charset::divide;
use super::is_accept_ranges;
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
    // Nor does the server's word on ranges hold for what is sent.
    response.fields.retain(|line| !is_accept_ranges(line));
    response.push_field("Content-Encoding", *b"gzip");
    response.etag = response.etag.take().and_then(weakened);
}

/// Whether the configuration allows this answer to be compressed, whatever the client accepts.
fn is_worth_it<File>(response: &Response<File>, settings: &GzipSettings) -> bool {
    let is_compressible = match response.content.origin() {
        Origin::Part(_) | Origin::Source(_) | Origin::Held(_) | Origin::Sliced(_) => true,
        // Several parts here are those of an answer that is kept: multipart/byteranges is made behind this filter.
        Origin::Parts(_) => true,
        Origin::Absent => false,
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
        && media_type(response).is_some_and(|media_type| settings.types.contains(media_type))
}

/// The type that `gzip_types` is compared with: that of an upstream server without its character set, as in nginx.
fn media_type<File>(response: &Response<File>) -> Option<&[u8]> {
    let whole = response.content_type.as_deref()?;
    if !response.proxied {
        return Some(whole);
    }
    Some(divide(whole).0)
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
    fn the_type_of_a_server_is_known_without_its_character_set() {
        let check = |content_type: &str, expected: &str, expected_of_ours: &str| {
            let mut response: Response<()> =
                Response::with_bytes(Status::OK, content_type.as_bytes(), b"x".to_vec());
            assert_eq!(media_type(&response), Some(expected_of_ours.as_bytes()));
            response.proxied = true;
            assert_eq!(media_type(&response), Some(expected.as_bytes()));
        };
        let unchanged = |content_type: &str| check(content_type, content_type, content_type);
        let typed = "text/css; charset=utf-8";
        check(typed, "text/css", typed);
        check("a/b;Charset=\"x\"", "a/b", "a/b;Charset=\"x\"");
        check("a/b; q=1; charset=x", "a/b; q=1", "a/b; q=1; charset=x");
        unchanged("text/css");
        unchanged("text/css; q=1");
        unchanged("text/css;");
    }

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
