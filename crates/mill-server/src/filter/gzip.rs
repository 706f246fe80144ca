//! `gzip`: compression while the answer is sent.

use crate::gzip::acceptable::{Answered, is_acceptable};
use crate::gzip::compress;
use crate::local::{FileOf, Local};
use crate::request::Request;
use crate::response::{Content, Response};
use mill_config::config::Settings;
use mill_http::etag::is_weak;
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use mill_runtime::payload::Shared;

/// Compresses what is worth it for a client that takes it: what is in memory now, a file when it is sent.
pub(super) fn apply<E: Engine>(
    request: &mut Request,
    response: &mut Response<FileOf<E>>,
    local: &Local<E>,
) {
    if !is_worth_it(response, &request.location.settings) {
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
    let level = request.location.gzip_comp_level;
    let content = std::mem::replace(&mut response.content, Content::Absent);
    response.content = match content {
        Content::Bytes(bytes, range) => {
            let bytes = bytes.get(range).unwrap_or_default();
            request.sent.uncompressed_bytes = Some(bytes.len() as u64);
            let compressed = Shared::from(compress(bytes, level));
            let range = 0..compressed.len();
            // It was made at once because it is small; nginx makes it while it sends it.
            response.streamed = true;
            Content::Bytes(compressed, range)
        }
        Content::File {
            file,
            offset: 0,
            len,
        } => Content::Gzip { file, len, level },
        content => content,
    };
    response.ranges = false;
    response.push_field("Content-Encoding", *b"gzip");
    response.etag = response.etag.take().and_then(weakened);
}

/// Whether the configuration wants this answer compressed, for whomever.
fn is_worth_it<File>(response: &Response<File>, settings: &Settings) -> bool {
    let is_compressible = match &response.content {
        Content::Bytes(..) | Content::File { offset: 0, .. } => true,
        Content::Absent | Content::File { .. } | Content::Pieces(_) | Content::Gzip { .. } => false,
    };
    // Of an answer whose length is not announced nginx does not know whether it is too short.
    let is_long_enough = response.streamed
        || response
            .content
            .len()
            .is_none_or(|len| len >= settings.gzip_min_length);
    let is_encoded = |name: &[u8]| name.eq_ignore_ascii_case(b"Content-Encoding");
    settings.gzip
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
            .is_some_and(|content_type| settings.gzip_types.contains(content_type))
}

/// The compressed bytes are not the ones that the tag is of (RFC 9110 8.8.3.3), so it is weak now. What does not
/// look like a tag cannot be made weak and goes.
fn weakened(etag: Vec<u8>) -> Option<Vec<u8>> {
    if is_weak(&etag) {
        return Some(etag);
    }
    etag.starts_with(b"\"")
        .then(|| [b"W/", etag.as_slice()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_becomes_weak_once() {
        let check = |etag: &str, expected: Option<&str>| {
            let found = weakened(etag.as_bytes().to_vec());
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{etag}");
        };
        check("\"a\"", Some("W/\"a\""));
        check("W/\"a\"", Some("W/\"a\""));
        check("bare", None);
    }
}
