//! The request line, the path, the files.

use crate::local::Local;
use crate::request::Request;
use crate::variables::decimal;
use mill_http::field::KnownField;
use mill_runtime::engine::Engine;
use std::borrow::Cow;

/// `$request`.
pub(super) fn line(request: &Request) -> &[u8] {
    let message = &request.message;
    message.head.request_line.of(&message.bytes)
}

/// `$request_uri`.
pub(super) fn as_sent(request: &Request) -> &[u8] {
    let message = &request.message;
    if request.path_is_invalid {
        return &[];
    }
    message.head.target.whole.of(&message.bytes)
}

/// `$is_args`.
pub(super) fn question_mark(request: &Request) -> &'static [u8] {
    if request.args.is_empty() { b"" } else { b"?" }
}

/// `$host`.
pub(super) fn host(request: &Request) -> Cow<'_, [u8]> {
    let host = request.host();
    if host.is_empty() {
        Cow::Borrowed(&request.server.name)
    } else {
        host
    }
}

/// `$content_length`: as sent; or as counted, once content in chunks was read.
pub(super) fn content_length(request: &Request) -> Option<Cow<'_, [u8]>> {
    let message = &request.message;
    let field = message.head.value(KnownField::ContentLength)?;
    Some(Cow::Borrowed(field.of(&message.bytes)))
}

/// `$request_length`: discarded content does not count, as in nginx.
pub(super) fn length(request: &Request) -> Vec<u8> {
    decimal(request.received_bytes())
}

/// `$server_protocol`.
pub(super) fn protocol(request: &Request) -> &[u8] {
    line(request)
        .rsplit(|byte| *byte == b' ')
        .find(|word| word.starts_with(b"HTTP/"))
        .unwrap_or_default()
}

/// `$remote_user`: the name before the colon in Basic credentials (RFC 7617 2).
pub(super) fn user(request: &Request) -> Option<Vec<u8>> {
    let message = &request.message;
    let field = message.head.value(KnownField::Authorization)?;
    basic_user(field.of(&message.bytes))
}

/// `$request_id`: random, drawn at its first use, then kept.
pub(super) fn id<E: Engine>(request: &mut Request, local: &Local<E>) -> Vec<u8> {
    let id = *request.id.get_or_insert_with(|| {
        let (high, low) = (local.engine.random(), local.engine.random());
        (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
    });
    format!("{:032x}", u128::from_be_bytes(id)).into_bytes()
}

fn basic_user(credentials: &[u8]) -> Option<Vec<u8>> {
    let (scheme, encoded) = credentials.split_at_checked(SCHEME.len())?;
    if !scheme.eq_ignore_ascii_case(SCHEME) {
        return None;
    }
    let blanks = encoded.iter().take_while(|byte| **byte == b' ').count();
    let decoded = decode_base64(encoded.get(blanks..)?)?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    decoded
        .get(..colon)
        .filter(|user| !user.is_empty())
        .map(<[u8]>::to_vec)
}

const SCHEME: &[u8] = b"Basic ";

/// RFC 4648 4; padding ends the text, and may be missing.
fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len() / 4 * 3 + 2);
    let digits = text.split(|byte| *byte == b'=').next()?;
    for group in digits.chunks(4) {
        let mut bits = 0_u32;
        for digit in group {
            bits = bits << 6 | u32::from(sextet(*digit)?);
        }
        let missing = 4 - group.len();
        if missing > 2 {
            return None;
        }
        let [_, bytes @ ..] = (bits << (6 * missing)).to_be_bytes();
        decoded.extend_from_slice(bytes.get(..3 - missing)?);
    }
    Some(decoded)
}

fn sextet(digit: u8) -> Option<u8> {
    match digit {
        b'A'..=b'Z' => Some(digit - b'A'),
        b'a'..=b'z' => Some(digit - b'a' + 26),
        b'0'..=b'9' => Some(digit - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_of_basic_credentials_stands_before_the_colon() {
        let check = |credentials: &str, expected: Option<&str>| {
            let found = basic_user(credentials.as_bytes());
            assert_eq!(
                found.as_deref(),
                expected.map(str::as_bytes),
                "{credentials}"
            );
        };
        check("Basic YWxpY2U6c2VjcmV0", Some("alice"));
        check("basic   YWxpY2U6", Some("alice"));
        check("Basic YTpi", Some("a"));
        check("Basic YTo", Some("a"));
        check("Basic YTo=", Some("a"));
        check("Basic OnNlY3JldA==", None);
        check("Basic YWxpY2U=", None);
        check("Basic YWxpY", None);
        check("Basic !!!!", None);
        check("Bearer YTpi", None);
        check("Basic", None);
        check("", None);
    }
}
