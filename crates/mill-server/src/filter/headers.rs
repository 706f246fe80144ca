//! `add_header`, after `expires`.

use super::{expires, is_last_modified, is_safe};
use crate::local::Local;
use crate::request::Request;
use crate::response::{FieldLine, FieldText, Response};
use crate::variables;
use mill_config::Text;
use mill_http::date::parse_http_date;
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use std::sync::Arc;

pub(super) fn apply<E: Engine, File>(
    request: &mut Request,
    response: &mut Response<File>,
    local: &Local<E>,
) {
    let is_safe = is_safe(response.status);
    if is_safe {
        expires::apply(request, response, local);
    }
    let settings = Arc::clone(&request.location.headers);
    let carried_over = response.fields.len();
    for header in settings
        .added
        .iter()
        .filter(|header| is_safe || header.always)
    {
        let value = variables::evaluate(&header.value, request, local);
        if !has_line(response, carried_over, &header.name, &value) {
            add(response, &header.name, value);
        }
    }
}

/// Whether one of the first lines has that name. They were carried over from a refused answer, and nginx sends them
/// twice.
fn has_line<File>(response: &Response<File>, count: usize, name: &[u8], value: &[u8]) -> bool {
    let mut lines = response.fields.iter().take(count);
    response.status == Status::RANGE_NOT_SATISFIABLE
        && lines.any(|line| *line.name == *name && *line.value == *value)
}

/// Adds one field line; an empty value adds none. Two names, `ETag` and `Last-Modified`, replace the answer's own
/// value, and an empty value removes it.
fn add<File>(response: &mut Response<File>, name: &Text, value: Vec<u8>) {
    if name.eq_ignore_ascii_case(b"ETag") {
        response.etag = Some(value.into()).filter(|value: &FieldText| !value.is_empty());
        return;
    }
    if name.eq_ignore_ascii_case(b"Last-Modified") {
        response.fields.retain(|line| !is_last_modified(line));
        response.last_modified = parse_http_date(&value);
    }
    if !value.is_empty() {
        response.fields.push(line(name, value));
    }
}

fn line(name: &Text, value: Vec<u8>) -> FieldLine {
    FieldLine {
        name: name.into(),
        value: value.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(lines: &[(&str, &str)]) -> Response<()> {
        let mut response = Response::empty(Status::OK);
        response.last_modified = Some(0);
        response.etag = Some("\"a\"".into());
        for (name, value) in lines {
            add(
                &mut response,
                &Text::from(name.as_bytes()),
                value.as_bytes().to_vec(),
            );
        }
        response
    }

    fn lines(response: &Response<()>) -> Vec<String> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let lines = response.fields.iter();
        lines
            .map(|line| format!("{}: {}", text(&line.name), text(&line.value)))
            .collect()
    }

    #[test]
    fn lines_are_added_in_order_and_empty_ones_are_not() {
        let response = added(&[
            ("X-A", "1"),
            ("Cache-Control", "a"),
            ("x-a", ""),
            ("cache-control", "b"),
        ]);
        assert_eq!(
            lines(&response),
            ["X-A: 1", "Cache-Control: a", "cache-control: b"]
        );
        assert_eq!(response.etag.as_deref(), Some(&b"\"a\""[..]));
    }

    #[test]
    fn etag_and_last_modified_are_replaced_or_removed() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        let response = added(&[("etag", "\"b\""), ("Last-Modified", date)]);
        assert_eq!(response.etag.as_deref(), Some(&b"\"b\""[..]));
        assert_eq!(response.last_modified, Some(784_111_777));
        assert_eq!(lines(&response), [format!("Last-Modified: {date}")]);
        let response = added(&[("Last-Modified", date), ("ETag", ""), ("last-modified", "")]);
        assert_eq!((response.etag, response.last_modified), (None, None));
        assert!(response.fields.is_empty());
    }

    #[test]
    fn a_last_modified_that_is_no_date_is_sent_as_it_is() {
        let response = added(&[("Last-Modified", "today"), ("last-modified", "yesterday")]);
        assert_eq!(response.last_modified, None);
        assert_eq!(lines(&response), ["last-modified: yesterday"]);
    }
}
