//! `http_post_validate`: what a POST of `multipart/form-data` says of its boundary. Applications read that in more ways than
//! one, by which a filter in front can be evaded; what they could read differently is refused.

use mill_http::field::KnownField;
use mill_http::head::RequestHead;
use mill_http::method::Method;

/// Longest boundary (RFC 2046 5.1.1).
const BOUNDARY_LEN_MAX: usize = 70;

/// Why the request is not taken.
pub(super) fn broken(head: &RequestHead, bytes: &[u8]) -> Option<&'static str> {
    if head.method != Method::Post {
        return None;
    }
    let mut types = head.known(KnownField::ContentType);
    let value = types.next()?.of(bytes);
    let (kind, parameters) = match value.iter().position(|&byte| byte == b';') {
        Some(at) => value.split_at(at),
        None => (value, &[][..]),
    };
    if !kind
        .trim_ascii()
        .eq_ignore_ascii_case(b"multipart/form-data")
    {
        return None;
    }
    if types.next().is_some() {
        return Some("there is more than one Content-Type");
    }
    match boundaries(parameters) {
        None => Some("a parameter of Content-Type is malformed"),
        Some(1) => None,
        Some(0) => Some("there is no boundary"),
        Some(_) => Some("there is more than one boundary"),
    }
}

/// How many parameters are called like the boundary, or contain its name; `None` if one is malformed (RFC 9110 5.6.6).
fn boundaries(mut rest: &[u8]) -> Option<usize> {
    let mut count = 0;
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Some(count);
        }
        rest = rest.strip_prefix(b";")?.trim_ascii_start();
        if rest.is_empty() || rest.starts_with(b";") {
            continue;
        }
        let end = rest.iter().position(|&byte| byte == b'=')?;
        let (name, after) = rest.split_at(end);
        if name.is_empty() || !name.iter().all(|&byte| is_token(byte)) {
            return None;
        }
        let (value, after) = value(after.get(1..)?)?;
        rest = after;
        if name.eq_ignore_ascii_case(b"boundary") {
            if !is_boundary(value) {
                return None;
            }
            count += 1;
        } else if contains(name, b"boundary") || contains(value, b"boundary") {
            // PHP takes the first one for the boundary, and what looks for the word alone the second one.
            count += 1;
        }
    }
}

/// A token, or a quoted text without escapes, and what is behind it.
fn value(text: &[u8]) -> Option<(&[u8], &[u8])> {
    if let Some(inner) = text.strip_prefix(b"\"") {
        let end = inner.iter().position(|&byte| byte == b'"')?;
        let (value, after) = inner.split_at(end);
        return (!value.contains(&b'\\')).then_some((value, after.get(1..)?));
    }
    let end = text.iter().position(|&byte| !is_token(byte));
    let (value, after) = text.split_at(end.unwrap_or(text.len()));
    (!value.is_empty()).then_some((value, after))
}

/// RFC 2046 5.1.1.
fn is_boundary(text: &[u8]) -> bool {
    let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"'()+_,-./:=? ".contains(byte);
    (1..=BOUNDARY_LEN_MAX).contains(&text.len())
        && text.iter().all(is_allowed)
        && !text.ends_with(b" ")
}

/// RFC 9110 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    let mut windows = text.windows(part.len());
    windows.any(|window| window.eq_ignore_ascii_case(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mill_http::h1::parse::parse_request;
    use mill_http::limits::HeadRules;

    fn check_request(request: &str, expected: Option<&str>) {
        let text = format!("{}\r\n\r\n", request.replace('|', "\r\n"));
        let mut head = RequestHead::default();
        parse_request(text.as_bytes(), &mut head, &HeadRules::default());
        assert_eq!(broken(&head, text.as_bytes()), expected, "{request}");
    }

    fn check(content_type: &str, expected: Option<&str>) {
        let request = format!("POST / HTTP/1.1|Host: a|Content-Type: {content_type}");
        check_request(&request, expected);
    }

    #[test]
    fn a_form_has_one_boundary_that_all_read_alike() {
        const NONE: Option<&str> = Some("there is no boundary");
        const SEVERAL: Option<&str> = Some("there is more than one boundary");
        const MALFORMED: Option<&str> = Some("a parameter of Content-Type is malformed");
        check("multipart/form-data; boundary=abc", None);
        check("Multipart/Form-Data;charset=utf-8 ; BOUNDARY=\"a b\"", None);
        check("multipart/form-data; boundary=abc;", None);
        check("multipart/form-data", NONE);
        check("multipart/form-data; charset=utf-8", NONE);
        check("multipart/form-data; boundary=a; boundary=b", SEVERAL);
        check("multipart/form-data; xxboundaryxx=a; boundary=b", SEVERAL);
        check(
            "multipart/form-data; boundary=a; c=\"; boundary=b\"",
            SEVERAL,
        );
        check("multipart/form-data; boundary=", MALFORMED);
        check("multipart/form-data; boundary=\"\"", MALFORMED);
        check("multipart/form-data; boundary=\"a", MALFORMED);
        check("multipart/form-data; boundary=\"a\\\"b\"", MALFORMED);
        check("multipart/form-data; boundary=a b", MALFORMED);
        check("multipart/form-data; boundary=a, boundary=b", MALFORMED);
        check("multipart/form-data; boundary =a", MALFORMED);
        check("multipart/form-data; boundary", MALFORMED);
        let longest = "a".repeat(BOUNDARY_LEN_MAX);
        check(&format!("multipart/form-data; boundary={longest}"), None);
        check(
            &format!("multipart/form-data; boundary={longest}a"),
            MALFORMED,
        );
    }

    #[test]
    fn other_requests_are_not_looked_at() {
        check("multipart/mixed; boundary=", None);
        check("text/plain; boundary", None);
        check("multipart/form-dataX", None);
        check_request("POST / HTTP/1.1|Host: a", None);
        check_request(
            "PUT / HTTP/1.1|Host: a|Content-Type: multipart/form-data",
            None,
        );
    }
}
