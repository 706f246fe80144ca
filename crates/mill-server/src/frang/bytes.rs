//! Which bytes the parts of a head may have: `http_uri_brange` and its like.

use super::head::{Broken, How};
use super::limit::FrangLimit;
use mill_config::config::byte_set::{AllowedBytes, BytePart, ByteSet};
use mill_http::field::{Field, KnownField};
use mill_http::head::RequestHead;

/// What the head breaks. Costs a look at each byte of the parts that have a set.
pub(super) fn broken<'a>(
    allowed: &[AllowedBytes],
    head: &RequestHead,
    bytes: &'a [u8],
) -> Option<Broken<'a>> {
    let found = allowed.iter().find_map(|AllowedBytes { part, set }| {
        let byte = outside(*part, set, head, bytes)?;
        Some((*part, byte))
    });
    let (part, byte) = found?;
    let how = How::Byte(part.name(), byte);
    let limit = FrangLimit::Bytes;
    Some(Broken { limit, how })
}

/// The first byte of a part that its set does not have.
fn outside(part: BytePart, set: &ByteSet, head: &RequestHead, bytes: &[u8]) -> Option<u8> {
    if part == BytePart::Uri {
        let target = &head.target;
        let parts = [target.path.of(bytes), target.query.of(bytes)];
        let found = parts.iter().find_map(|text| set.first_outside(text));
        let mark = || (target.has_query && !set.contains(b'?')).then_some(b'?');
        if let Some(byte) = found.or_else(mark) {
            return Some(byte);
        }
    }
    let fields = head.fields.iter();
    let mut fields = fields.filter(|field| part_of(field, bytes).contains(&part));
    fields.find_map(|field| outside_of_value(part, set, field.value.of(bytes)))
}

/// Parts that the value of a field consists of.
fn part_of(field: &Field, bytes: &[u8]) -> &'static [BytePart] {
    match field.known {
        KnownField::Referer => &[BytePart::Uri],
        KnownField::Cookie => &[BytePart::Token, BytePart::Cookie],
        KnownField::CacheControl => &[BytePart::QuotedToken],
        KnownField::Date | KnownField::IfModifiedSince | KnownField::IfUnmodifiedSince => {
            &[BytePart::NoControl]
        }
        KnownField::IfMatch | KnownField::IfNoneMatch => &[BytePart::EntityTag],
        _ if field
            .name
            .of(bytes)
            .eq_ignore_ascii_case(b"x-forwarded-for") =>
        {
            &[BytePart::ForwardedFor]
        }
        _ => &[BytePart::Text],
    }
}

fn outside_of_value(part: BytePart, set: &ByteSet, value: &[u8]) -> Option<u8> {
    match part {
        BytePart::Token => cookies(value).find_map(|(name, _)| set.first_outside(name)),
        BytePart::Cookie => cookies(value).find_map(|(_, value)| set.first_outside(value)),
        BytePart::ForwardedFor | BytePart::QuotedToken => {
            let mut elements = value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
            elements.find_map(|element| set.first_outside(element))
        }
        // Every second piece is within quotes.
        BytePart::EntityTag => {
            let mut pieces = value.split(|&byte| byte == b'"').skip(1).step_by(2);
            pieces.find_map(|piece| set.first_outside(piece))
        }
        BytePart::Uri | BytePart::NoControl | BytePart::Text => set.first_outside(value),
    }
}

/// Names and values.
fn cookies(value: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let pairs = value.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
    pairs.map(|pair| {
        let end = pair.iter().position(|&byte| byte == b'=');
        let (name, value) = pair.split_at(end.unwrap_or(pair.len()));
        (name, value.get(1..).unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use mill_http::h1::parse::parse_request;
    use mill_http::limits::HeadRules;

    /// The byte for which a request is refused.
    fn check(part: BytePart, ranges: &[(u8, u8)], request: &str, expected: Option<u8>) {
        let mut set = ByteSet::default();
        ranges
            .iter()
            .for_each(|&(first, last)| set.add(first, last));
        let text = format!("{}\r\n\r\n", request.replace('|', "\r\n"));
        let mut head = RequestHead::default();
        parse_request(text.as_bytes(), &mut head, &HeadRules::default());
        assert!(head.is_whole, "{request}");
        let allowed = [AllowedBytes { part, set }];
        let found = broken(&allowed, &head, text.as_bytes());
        let byte = found.map(|found| match found.how {
            How::Byte(name, byte) => {
                assert_eq!(name, part.name());
                byte
            }
            other => panic!("{other:?}"),
        });
        assert_eq!(byte, expected, "{request}");
    }

    const LETTERS: (u8, u8) = (b'a', b'z');

    #[test]
    fn a_target_and_a_referer_are_uris() {
        let ranges = [(0x2d, 0x39), (b'A', b'Z'), LETTERS];
        let check = |target: &str, referer: &str, expected| {
            let request = format!("GET {target} HTTP/1.1|Host: a|Referer: {referer}");
            check(BytePart::Uri, &ranges, &request, expected);
        };
        check("/js/prism.min.js", "/a-b", None);
        check("/js%61", "/", Some(b'%'));
        check("/a_b", "/", Some(b'_'));
        check("/a?b", "/", Some(b'?'));
        check("/a", "/example+", Some(b'+'));
    }

    #[test]
    fn names_and_values_of_cookies_have_sets_of_their_own() {
        let check = |part, cookie: &str, expected| {
            let request = format!("GET / HTTP/1.1|Host: a|Cookie: {cookie}");
            check(part, &[LETTERS], &request, expected);
        };
        check(BytePart::Token, "unknown=VALUE%", None);
        check(BytePart::Token, "unknown%=value", Some(b'%'));
        check(BytePart::Cookie, "ID=qwerty; b=c", None);
        check(BytePart::Cookie, "id=qwerty; b=QWE", Some(b'Q'));
        check(BytePart::Cookie, "id=a=b", Some(b'='));
        check(BytePart::Cookie, "", None);
    }

    #[test]
    fn lists_are_looked_at_element_by_element() {
        let request = |field: &str| format!("GET / HTTP/1.1|Host: a|{field}");
        let addresses = [(b'0', b'9'), (b'.', b'.')];
        let check_address = |field: &str, expected| {
            check(
                BytePart::ForwardedFor,
                &addresses,
                &request(field),
                expected,
            );
        };
        check_address("X-Forwarded-For: 5.10.50.6, 10.0.0.1", None);
        check_address("x-forwarded-for: 5.10.50.6,::1", Some(b':'));
        let check_directive = |ranges: &[(u8, u8)], field: &str, expected| {
            check(BytePart::QuotedToken, ranges, &request(field), expected);
        };
        check_directive(&[LETTERS], "Cache-Control: abc, def", None);
        check_directive(&[LETTERS], "Cache-Control: unknown=value", Some(b'='));
    }

    #[test]
    fn of_entity_tags_what_is_quoted_counts() {
        let check = |tags: &str, expected| {
            let request = format!("GET / HTTP/1.1|Host: a|If-None-Match: {tags}");
            check(BytePart::EntityTag, &[LETTERS], &request, expected);
        };
        check("\"asdf\", W/\"qwe\"", None);
        check("*", None);
        check("\"asdfQWE\"", Some(b'Q'));
        check("\"a\", \"B\"", Some(b'B'));
    }

    #[test]
    fn other_fields_are_text_and_dates_are_not() {
        let ranges = [(b' ', b' '), (0x28, 0x3b), (b'A', b'z')];
        let check = |part, field: &str, expected| {
            let request = format!("GET / HTTP/1.1|Host: a|{field}");
            check(part, &ranges, &request, expected);
        };
        check(BytePart::Text, "User-Agent: Mozilla/5.0 (a; b)", None);
        check(BytePart::Text, "User-Agent: Mozilla/5.0 %", Some(b'%'));
        check(BytePart::Text, "X-Other: %", Some(b'%'));
        check(BytePart::Text, "Date: %", None);
        check(
            BytePart::NoControl,
            "Date: Mon, 12 Dec 2016% 13:59:39 GMT",
            Some(b'%'),
        );
        check(BytePart::NoControl, "If-Modified-Since: %", Some(b'%'));
        check(BytePart::NoControl, "User-Agent: %", None);
    }
}
