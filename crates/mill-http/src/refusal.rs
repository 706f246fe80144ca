//! Why a request is refused: status and log text.

use alloc::vec::Vec;

use crate::field::Field;
use crate::head::RequestHead;
use crate::span::Span;
use crate::status::Status;

/// A request head that gets no handler. The connection is closed after the answer, because the start of the next
/// request is uncertain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The first bytes are no method.
    InvalidMethod,
    /// The request line is malformed: target bytes, blanks, version syntax, line end.
    InvalidRequestLine,
    /// `GET /path` and no version: HTTP/0.9, which nginx still answers and Millstream does not.
    Http09,
    /// HTTP/2.0 or above in an HTTP/1 request line.
    UnsupportedVersion,
    /// The request line is longer than one buffer.
    TargetTooLong,
    /// The authority of an absolute-form target is no host.
    InvalidAuthority,
    /// A field line without colon, with a blank in or after its name, obs-fold, or a control byte.
    InvalidFieldLine,
    /// A field whose name is no token and looks like `Content-Length`, `Transfer-Encoding` or `Host`.
    MisleadingName,
    /// A line ends in LF without CR, and `accept_bare_lf` is off.
    BareLf,
    /// One field line is longer than one buffer.
    FieldTooLarge,
    /// The head is longer than all buffers.
    HeadTooLarge,
    TooManyFields,
    /// A field that may occur once (Content-Length, If-…, Expect, Authorization) occurs again.
    DuplicateField,
    DuplicateHost,
    InvalidHost,
    /// HTTP/1.1 without `Host`.
    MissingHost,
    InvalidContentLength,
    /// HTTP/1.0 with `Transfer-Encoding`.
    TransferEncodingInHttp10,
    ContentLengthAndTransferEncoding,
    /// Another coding behind `chunked`, or `chunked` twice.
    ChunkedIsNotLast,
    /// Any other transfer coding than exactly `chunked`.
    UnknownTransferEncoding,
}

impl Refusal {
    /// The status as nginx counts it: 494 is sent as 400 with its own page
    /// (see [`Status::on_the_wire`]).
    pub const fn status(self) -> Status {
        match self {
            Self::UnsupportedVersion => Status::HTTP_VERSION_NOT_SUPPORTED,
            Self::TargetTooLong => Status::URI_TOO_LONG,
            Self::FieldTooLarge | Self::HeadTooLarge | Self::TooManyFields => {
                Status::REQUEST_HEADER_TOO_LARGE
            }
            Self::UnknownTransferEncoding => Status::NOT_IMPLEMENTED,
            _ => Status::BAD_REQUEST,
        }
    }

    /// nginx's log text, without the part of the request that it quotes; see [`Self::emit_log`].
    pub const fn log_text(self) -> &'static str {
        match self {
            Self::InvalidMethod => "client sent invalid method",
            Self::InvalidRequestLine => "client sent invalid request",
            Self::Http09 => "client sent HTTP/0.9 request",
            Self::UnsupportedVersion => "client sent invalid version",
            Self::TargetTooLong => "client sent too long URI",
            Self::InvalidAuthority => "client sent invalid host in request line",
            Self::InvalidFieldLine => "client sent invalid header line",
            Self::MisleadingName => "client sent misleading header line",
            Self::BareLf => {
                "client sent a line that ends in LF without CR (\"accept_bare_lf\" is off)"
            }
            Self::FieldTooLarge => "client sent too long header line",
            Self::HeadTooLarge => "client sent too large request",
            Self::TooManyFields => "client sent too many header lines",
            Self::DuplicateField => "client sent duplicate header line",
            Self::DuplicateHost => "client sent duplicate host header",
            Self::InvalidHost => "client sent invalid host header",
            Self::MissingHost => "client sent HTTP/1.1 request without \"Host\" header",
            Self::InvalidContentLength => "client sent invalid \"Content-Length\" header",
            Self::TransferEncodingInHttp10 => {
                "client sent HTTP/1.0 request with \"Transfer-Encoding\" header"
            }
            Self::ContentLengthAndTransferEncoding => {
                "client sent \"Content-Length\" and \"Transfer-Encoding\" headers at the same time"
            }
            Self::ChunkedIsNotLast => {
                "client sent \"Transfer-Encoding\" in which \"chunked\" is not the last coding"
            }
            Self::UnknownTransferEncoding => "client sent unknown \"Transfer-Encoding\"",
        }
    }

    /// Appends the whole log text: the fault, nginx's quotation of the request, and what the server was doing. Control
    /// bytes in a quotation are written as `\x0a`, so that a log line stays one line.
    pub fn emit_log(self, bytes: &[u8], head: &RequestHead, out: &mut Vec<u8>) {
        out.extend_from_slice(self.log_text().as_bytes());
        match self {
            Self::InvalidFieldLine => emit_invalid_line(head.refused().of(bytes), out),
            Self::DuplicateField | Self::DuplicateHost => emit_duplicate(bytes, head, out),
            Self::UnknownTransferEncoding | Self::ChunkedIsNotLast | Self::MisleadingName => {
                out.extend_from_slice(b": \"");
                emit_quoted(head.refused().of(bytes), out);
                out.push(b'"');
            }
            Self::FieldTooLarge => {
                let line = head.refused();
                let quoted = Span {
                    len: line.len.min(QUOTED_BYTES_MAX),
                    ..line
                };
                out.extend_from_slice(b": \"");
                emit_quoted(quoted.of(bytes), out);
                out.extend_from_slice(b"...\"");
            }
            _ => {}
        }
        out.extend_from_slice(b" while ");
        out.extend_from_slice(head.action().as_bytes());
    }
}

/// Appends nginx's log text for a field that is ignored because of its name (`ignore_invalid_headers`).
pub fn emit_ignored_field(bytes: &[u8], field: &Field, out: &mut Vec<u8>) {
    let line = Span::between(field.name.start as usize, field.value.end() as usize);
    let line = line.of(bytes);
    out.extend_from_slice(b"client sent invalid header line: \"");
    emit_quoted(line.get(..QUOTED_BYTES_MAX as usize).unwrap_or(line), out);
    out.extend_from_slice(b"\" while reading client request headers");
}

/// `: "Host\x20..."`: the line up to the invalid byte, and that byte in hexadecimal.
fn emit_invalid_line(line: &[u8], out: &mut Vec<u8>) {
    let Some((wrong, before)) = line.split_last() else {
        return;
    };
    let before = before.get(..QUOTED_BYTES_MAX as usize).unwrap_or(before);
    out.extend_from_slice(b": \"");
    emit_quoted(before, out);
    emit_escaped(*wrong, out);
    out.extend_from_slice(b"...\"");
}

/// `: "Host: b", previous value: "Host: a"`. The refused field is the last one of the list.
fn emit_duplicate(bytes: &[u8], head: &RequestHead, out: &mut Vec<u8>) {
    let Some(last) = head.fields.last() else {
        return;
    };
    let first = head
        .fields
        .iter()
        .find(|field| field.known == last.known)
        .unwrap_or(last);
    for (introduction, field) in [(&b": \""[..], last), (b", previous value: \"", first)] {
        out.extend_from_slice(introduction);
        emit_quoted(field.name.of(bytes), out);
        out.extend_from_slice(b": ");
        let value = field.value.of(bytes);
        emit_quoted(
            value.get(..QUOTED_BYTES_MAX as usize / 2).unwrap_or(value),
            out,
        );
        out.push(b'"');
    }
}

/// Bytes of a header line that a log line quotes: nginx's longest log line less its fixed text.
const QUOTED_BYTES_MAX: u32 = 2048 - 300;

fn emit_quoted(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        if byte.is_ascii_control() {
            emit_escaped(byte, out);
        } else {
            out.push(byte);
        }
    }
}

fn emit_escaped(byte: u8, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().unwrap_or(b'?');
    out.extend_from_slice(&[b'\\', b'x', digit(byte >> 4), digit(byte & 15)]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h1::parse::{Parsed, parse_request};
    use crate::limits::HeadRules;
    use alloc::format;
    use alloc::string::String;

    #[test]
    fn log_lines_quote_what_nginx_quotes() {
        let check = |request: &str, status: u16, expected: &str| {
            let mut head = RequestHead::default();
            let rules = HeadRules::default();
            let Parsed::Refused(refusal) = parse_request(request.as_bytes(), &mut head, &rules)
            else {
                panic!("not refused: {request:?}")
            };
            let mut log = Vec::new();
            refusal.emit_log(request.as_bytes(), &head, &mut log);
            assert_eq!(String::from_utf8(log).unwrap(), expected);
            assert_eq!(refusal.status(), Status(status));
        };
        let headers = "while reading client request headers";
        check(
            "get /",
            400,
            "client sent invalid method while reading client request line",
        );
        check(
            "GET / HTTP/1.1\r\nHost : a\r\n",
            400,
            &format!("client sent invalid header line: \"Host\\x20...\" {headers}"),
        );
        check(
            "GET / HTTP/1.1\r\nA:\tb\tc\rD: e\r\n",
            400,
            &format!("client sent invalid header line: \"A:\\x09b\\x09c\\x0d...\" {headers}"),
        );
        let bare = "client sent a line that ends in LF without CR (\"accept_bare_lf\" is off)";
        check(
            "GET / HTTP/1.0\n\n",
            400,
            &format!("{bare} while reading client request line"),
        );
        check("GET / HTTP/1.0\r\n\n", 400, &format!("{bare} {headers}"));
        check(
            "GET / HTTP/1.1\r\nContent\u{85}-Length: 5\r\n",
            400,
            &format!("client sent misleading header line: \"Content\u{85}-Length: 5\" {headers}"),
        );
        check(
            "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n",
            400,
            &format!(
                "client sent \"Transfer-Encoding\" in which \"chunked\" is not the last coding: \
                 \"chunked, gzip\" {headers}"
            ),
        );
        check(
            "GET / HTTP/1.1\r\nHost: a\r\nhost:b\r\n",
            400,
            &format!(
                "client sent duplicate host header: \"host: b\", previous value: \"Host: a\" \
                 {headers}"
            ),
        );
        check(
            "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n",
            501,
            &format!("client sent unknown \"Transfer-Encoding\": \"gzip\" {headers}"),
        );
        let line = format!("X: {}", "a".repeat(9000));
        check(
            &format!("GET / HTTP/1.1\r\n{line}"),
            494,
            &format!(
                "client sent too long header line: \"{}...\" {headers}",
                &line[..1748]
            ),
        );
    }
}
