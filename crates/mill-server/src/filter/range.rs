//! Ranges (RFC 9110 14): 206 with one part or several, or 416.

use crate::content::{Content, Origin, Part};
use crate::local::Local;
use crate::request::Request;
use crate::response::Response;
use mill_config::config::settings::CacheRules;
use mill_http::conditional::{Conditions, Validators, if_range_holds, is_weak_tag};
use mill_http::field::KnownField;
use mill_http::multipart::{Boundary, Multipart, emit_content_range, emit_unsatisfied_range};
use mill_http::range::{ByteRange, RangeVerdict, parse_ranges};
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use mill_runtime::payload::Shared;

/// Answers with the requested ranges, or announces that ranges are supported.
pub(super) fn apply<E: Engine>(
    request: &mut Request,
    response: &mut Response<crate::local::FileOf<E>>,
    local: &Local<E>,
) -> Result<(), Status> {
    let max = request.location.headers.max_ranges;
    let len = response.content.len().filter(|_| !response.streamed);
    let Some(len) =
        len.filter(|_| response.ranges && response.status == Status::OK && max != Some(0))
    else {
        response.ranges = false;
        return Ok(());
    };
    let mut ranges = Vec::new();
    match wanted(request, response, len, &mut ranges) {
        RangeVerdict::Whole => response.push_field("Accept-Ranges", *b"bytes"),
        RangeVerdict::Partial => {
            let boundary = || Boundary(local.engine.random());
            cut(response, &ranges, len, boundary);
        }
        RangeVerdict::NotSatisfiable => {
            let mut value = Vec::new();
            emit_unsatisfied_range(len, &mut value);
            response.push_field("Content-Range", value);
            request.carried_fields = std::mem::take(&mut response.fields);
            return Err(Status::RANGE_NOT_SATISFIABLE);
        }
    }
    Ok(())
}

/// The requested ranges.
fn wanted<File>(
    request: &mut Request,
    response: &Response<File>,
    len: u64,
    ranges: &mut Vec<ByteRange>,
) -> RangeVerdict {
    let bytes = &request.message.bytes;
    let Some(range) = request.message.head.value(KnownField::Range) else {
        return RangeVerdict::Whole;
    };
    request.pure = false;
    let validators = Validators {
        last_modified: response.last_modified,
        etag: response.etag.as_deref(),
    };
    let conditions = Conditions::of(&request.message.head, bytes);
    let is_rfc = response.is_kept && request.location.caching.rules == CacheRules::Rfc9111;
    let is_of_another =
        |value: &[u8]| !if_range_holds(value, &validators) || (is_rfc && is_weak_tag(value));
    if conditions.if_range.is_some_and(is_of_another) {
        return RangeVerdict::Whole;
    }
    let max = request.location.headers.max_ranges;
    let max = max.map(|max| usize::try_from(max).unwrap_or(usize::MAX));
    // What is awaited comes once, in its order: nginx gives one range of it too.
    let is_awaited = matches!(
        response.content.origin(),
        Origin::Source(_) | Origin::Held(_) | Origin::Sliced(_)
    );
    let max = if response.proxied && is_awaited {
        Some(1)
    } else {
        max
    };
    parse_ranges(range.of(bytes), len, max, ranges)
}

/// Makes the answer a partial one.
fn cut<File: Clone>(
    response: &mut Response<File>,
    ranges: &[ByteRange],
    len: u64,
    boundary: impl FnOnce() -> Boundary,
) {
    response.status = Status::PARTIAL_CONTENT;
    response.ranges = false;
    if let [range] = ranges {
        let mut value = Vec::new();
        emit_content_range(*range, len, &mut value);
        response.push_field("Content-Range", value);
        response.content.cut(*range);
        return;
    }
    let content_type = response.content_type.take();
    let multipart = Multipart {
        boundary: boundary(),
        content_type: content_type.as_deref().unwrap_or_default(),
        length: len,
    };
    let mut parts = Vec::with_capacity(ranges.len() * 2 + 1);
    for range in ranges {
        let mut head = Vec::new();
        multipart.emit_part_head(*range, &mut head);
        parts.push(in_memory(head));
        parts.extend(response.content.parts_of(*range));
    }
    let mut end = Vec::new();
    multipart.emit_end(&mut end);
    parts.push(in_memory(end));
    response.content = Content::parts(parts);
    let mut value = Vec::new();
    multipart.boundary.emit_content_type(&mut value);
    response.content_type = Some(value.into());
}

fn in_memory<File>(bytes: Vec<u8>) -> Part<File> {
    let range = 0..bytes.len();
    Part::Bytes(Shared::from(bytes), range)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(content: &Content<&'static str>) -> String {
        let text = |part: &Part<&'static str>| match part {
            Part::Bytes(bytes, range) => {
                String::from_utf8_lossy(&bytes[range.clone()]).into_owned()
            }
            Part::File { file, offset, len } => format!("<{file} {offset}+{len}>"),
        };
        match content.origin() {
            Origin::Absent => String::new(),
            Origin::Part(part) => text(part),
            Origin::Parts(parts) => parts.iter().map(text).collect(),
            Origin::Source(_) | Origin::Held(_) | Origin::Sliced(_) => String::from("source"),
        }
    }

    fn check(ranges: &[(u64, u64)], in_file: &str, in_memory: &str) {
        let ranges: Vec<_> = ranges
            .iter()
            .map(|&(start, end)| ByteRange { start, end })
            .collect();
        let whole = Response {
            content: Content::file("f", 0, 10),
            content_type: Some("text/plain".into()),
            ..Response::empty(Status::OK)
        };
        let bytes = Response::with_bytes(Status::OK, b"text/plain", b"0123456789".to_vec());
        for (mut response, expected) in [(whole, in_file), (bytes, in_memory)] {
            cut(&mut response, &ranges, 10, || Boundary(7));
            assert_eq!(response.status, Status::PARTIAL_CONTENT);
            assert_eq!(text_of(&response.content), expected);
        }
    }

    #[test]
    fn one_range_is_a_part_of_the_same_content() {
        check(&[(2, 5)], "<f 2+3>", "234");
        check(&[(0, 10)], "<f 0+10>", "0123456789");
        check(&[(9, 10)], "<f 9+1>", "9");
    }

    #[test]
    fn several_ranges_are_put_between_boundaries() {
        let layout = |first: &str, second: &str| {
            let head = |range: &str| {
                format!(
                    "\r\n--00000000000000000007\r\nContent-Type: text/plain\r\n\
                     Content-Range: bytes {range}/10\r\n\r\n"
                )
            };
            let end = "\r\n--00000000000000000007--\r\n";
            format!("{}{first}{}{second}{end}", head("0-0"), head("4-6"))
        };
        check(
            &[(0, 1), (4, 7)],
            &layout("<f 0+1>", "<f 4+3>"),
            &layout("0", "456"),
        );
    }

    #[test]
    fn a_partial_answer_names_its_range_and_offers_no_more() {
        let mut response: Response<()> =
            Response::with_bytes(Status::OK, b"text/plain", b"0123456789".to_vec());
        response.ranges = true;
        cut(&mut response, &[ByteRange { start: 0, end: 1 }], 10, || {
            Boundary(7)
        });
        assert!(!response.ranges);
        let line = response.fields.first().unwrap();
        assert_eq!(
            (&*line.name, &*line.value),
            (&b"Content-Range"[..], &b"bytes 0-0/10"[..])
        );
        assert_eq!(response.content_type.as_deref(), Some(&b"text/plain"[..]));
    }
}
