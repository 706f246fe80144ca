//! Request heads to bytes, for clients.

use alloc::vec::Vec;
use core::fmt;

use crate::field::{is_token_byte, is_value_byte};
use crate::version::Version;

/// A part of a request that would be read as another message than intended: RFC 9112 11.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestFault {
    /// RFC 9110 9.1: a token.
    Method,
    /// RFC 9112 3.2: not empty, no white space, no control byte. Bytes above 0x7f pass, since such names are requested
    /// in practice.
    Target,
    /// RFC 9110 5.1: a token. `index` is the field's index, from 0.
    FieldName { index: usize },
    /// RFC 9110 5.5: no control byte but tab.
    FieldValue { index: usize },
}

impl fmt::Display for RequestFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Method => out.write_str("method is not a token"),
            Self::Target => out.write_str("target is empty or has white space or control bytes"),
            Self::FieldName { index } => {
                write!(out, "name of field {} is not a token", index + 1)
            }
            Self::FieldValue { index } => {
                write!(out, "value of field {} has control bytes", index + 1)
            }
        }
    }
}

impl core::error::Error for RequestFault {}

/// Appends a request line, the fields in their order, and the empty line. It adds no field: `Host` and the fields that
/// frame the content are the caller's. On a fault `out` is unchanged.
pub fn emit_request_head<'a>(
    method: &[u8],
    target: &[u8],
    version: Version,
    fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    out: &mut Vec<u8>,
) -> Result<(), RequestFault> {
    let before = out.len();
    let emitted = emit_lines(method, target, version, fields, out);
    if emitted.is_err() {
        out.truncate(before);
    }
    emitted
}

fn emit_lines<'a>(
    method: &[u8],
    target: &[u8],
    version: Version,
    fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    out: &mut Vec<u8>,
) -> Result<(), RequestFault> {
    if !is_token(method) {
        return Err(RequestFault::Method);
    }
    if target.is_empty() || target.iter().any(|byte| *byte <= b' ' || *byte == 0x7f) {
        return Err(RequestFault::Target);
    }
    for part in [
        method,
        b" ",
        target,
        b" ",
        version.name().as_bytes(),
        b"\r\n",
    ] {
        out.extend_from_slice(part);
    }
    for (index, (name, value)) in fields.into_iter().enumerate() {
        if !is_token(name) {
            return Err(RequestFault::FieldName { index });
        }
        if !value.iter().all(|byte| is_value_byte(*byte)) {
            return Err(RequestFault::FieldValue { index });
        }
        for part in [name, b": ", value, b"\r\n"] {
            out.extend_from_slice(part);
        }
    }
    out.extend_from_slice(b"\r\n");
    Ok(())
}

fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|byte| is_token_byte(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h1::parse::{Parsed, parse_request};
    use crate::head::RequestHead;
    use crate::limits::HeadRules;
    use alloc::string::{String, ToString};

    #[test]
    fn a_request_head_is_written_and_read_back() {
        let mut out = b"before".to_vec();
        let fields = [
            (&b"Host"[..], &b"a:80"[..]),
            (b"X", b"\tb \xff"),
            (b"E", b""),
        ];
        emit_request_head(b"GET", b"/a?b", Version::Http11, fields, &mut out).unwrap();
        let expected = b"beforeGET /a?b HTTP/1.1\r\nHost: a:80\r\nX: \tb \xff\r\nE: \r\n\r\n";
        assert_eq!(out, expected);
        let head = &out["before".len()..];
        let mut request = RequestHead::default();
        let parsed = parse_request(head, &mut request, &HeadRules::default());
        let consumed = head.len();
        assert_eq!(parsed, Parsed::Complete { consumed });
        assert_eq!(request.fields.len(), 3);

        out.clear();
        emit_request_head(b"M-X", b"*", Version::Http10, [], &mut out).unwrap();
        assert_eq!(out, b"M-X * HTTP/1.0\r\n\r\n");
    }

    #[test]
    fn values_that_would_begin_another_line_are_refused_and_nothing_is_written() {
        let check = |method: &str, target: &str, name: &str, value: &str, expected: &str| {
            let mut out = b"before".to_vec();
            let fields = [("Host", "a"), (name, value)];
            let fields = fields.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
            let (method, target) = (method.as_bytes(), target.as_bytes());
            let found = emit_request_head(method, target, Version::Http11, fields, &mut out);
            let found = found.map_or_else(|fault| fault.to_string(), |()| String::new());
            assert_eq!(found, expected);
            assert_eq!(out == b"before", !expected.is_empty());
        };
        let method = "method is not a token";
        let target = "target is empty or has white space or control bytes";
        let name = "name of field 2 is not a token";
        let value = "value of field 2 has control bytes";
        check("GET", "/", "A", "b", "");
        for bad in ["", "G T", "GET\r\n", "G\0", "GE\u{e4}"] {
            check(bad, "/", "A", "b", method);
        }
        for bad in [
            "",
            "/ HTTP/1.1\r\nX: y",
            "/a b",
            "/\n",
            "/\r",
            "/\t",
            "/\0",
            "/\x7f",
        ] {
            check("GET", bad, "A", "b", target);
        }
        for bad in ["", "A:", "A ", "A\r\nB", "A\n", "\tA"] {
            check("GET", "/", bad, "b", name);
        }
        for bad in ["b\r\nC: d", "b\n", "\r", "\0", "\x7f"] {
            check("GET", "/", "A", bad, value);
        }
    }
}
