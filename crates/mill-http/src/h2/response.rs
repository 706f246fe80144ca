//! The head of an answer, from the text of an HTTP/1 head.
//!
//! The server writes one kind of head. What HTTP/2 has otherwise is changed here: names in lower case, no fields of the
//! connection (RFC 9113 8.2.2), the status as a field.

use super::hpack::{Encoder, Indexing};
use crate::date::IMF_FIXDATE_LEN;
use alloc::vec::Vec;

/// Appends the block of a head, or of trailers, which have no status line.
pub fn emit_block(text: &[u8], encoder: &mut Encoder, name: &mut Vec<u8>, out: &mut Vec<u8>) {
    encoder.begin(out);
    if let Some(status) = status(text) {
        encoder.field(b":status", status, Indexing::Kept, out);
    }
    for (mixed_case, value) in fields(text) {
        lower(mixed_case, name);
        encoder.field(name, value, indexing(name, value), out);
    }
}

/// Appends the block of a request, from the text of an HTTP/1 head that this program has made itself.
pub fn emit_request_block(
    scheme: &[u8],
    text: &[u8],
    encoder: &mut Encoder,
    name: &mut Vec<u8>,
    out: &mut Vec<u8>,
) {
    encoder.begin(out);
    let line_end = text.iter().position(|byte| *byte == b'\n');
    let (line, text) = text.split_at(line_end.unwrap_or(text.len()));
    let mut words = line.split(|byte| *byte == b' ');
    let (method, target) = (words.next(), words.next());
    let is_host = |(name, _): &(&[u8], &[u8])| name.eq_ignore_ascii_case(b"host");
    let authority = fields(text).find(is_host);
    let pseudo = [
        (&b":method"[..], method, Indexing::Kept),
        (b":scheme", Some(scheme), Indexing::Kept),
        (b":path", target, Indexing::NotKept),
        (
            b":authority",
            authority.map(|(_, value)| value),
            Indexing::Kept,
        ),
    ];
    for (name, value, indexing) in pseudo {
        if let Some(value) = value {
            encoder.field(name, value, indexing, out);
        }
    }
    for field in fields(text).filter(|field| !is_host(field)) {
        let (mixed_case, value) = field;
        lower(mixed_case, name);
        if name == b"te" && !value.eq_ignore_ascii_case(b"trailers") {
            continue;
        }
        encoder.field(name, value, indexing(name, value), out);
    }
}

/// Appends a block that uses no connection's table, for an answer that is kept for many connections. Returns where the
/// date's bytes stand in `out`, if there is one.
pub fn emit_kept_block(text: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let (mut name, mut date_at) = (Vec::new(), None);
    if let Some(status) = status(text) {
        super::hpack::emit_plain(b":status", status, out);
    }
    for (mixed_case, value) in fields(text) {
        lower(mixed_case, &mut name);
        if name == b"date" && value.len() == IMF_FIXDATE_LEN {
            date_at = Some(super::hpack::emit_stamped(&name, value, out));
        } else {
            super::hpack::emit_plain(&name, value, out);
        }
    }
    date_at
}

/// The digits of the status line.
fn status(text: &[u8]) -> Option<&[u8]> {
    text.strip_prefix(b"HTTP/1.1 ")?.get(..3)
}

/// The lines that HTTP/2 has too.
fn fields(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    text.split(|byte| *byte == b'\n').filter_map(|line| {
        let line = line.strip_suffix(b"\r")?;
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (name, value) = (line.get(..colon)?, line.get(colon + 1..)?);
        (!is_of_connection(name)).then_some((name, value.trim_ascii()))
    })
}

fn is_of_connection(name: &[u8]) -> bool {
    [
        &b"connection"[..],
        b"keep-alive",
        b"proxy-connection",
        b"transfer-encoding",
        b"upgrade",
    ]
    .iter()
    .any(|known| name.eq_ignore_ascii_case(known))
}

fn lower(name: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.extend(name.iter().map(u8::to_ascii_lowercase));
}

/// Values that differ from answer to answer would only push others out of the table.
fn indexing(name: &[u8], value: &[u8]) -> Indexing {
    match name {
        b"set-cookie"
        | b"cookie"
        | b"authorization"
        | b"proxy-authorization"
        | b"www-authenticate"
            if value.len() < SECRET_BYTES =>
        {
            Indexing::Never
        }
        b"content-length" | b"etag" | b"last-modified" | b"location" | b"content-range"
        | b"set-cookie" | b"age" | b"x-request-id" => Indexing::NotKept,
        _ => Indexing::Kept,
    }
}

/// Shorter secrets can be guessed from the sizes of blocks (RFC 7541 7.1.3).
const SECRET_BYTES: usize = 20;

#[cfg(test)]
mod tests {
    use super::super::hpack::{Decoder, TABLE_BYTES};
    use super::*;
    use alloc::string::String;

    const HEAD: &[u8] = b"HTTP/1.1 301 Moved Permanently\r\nServer: m\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
          Connection: keep-alive\r\nKeep-Alive: timeout=5\r\nTransfer-Encoding: chunked\r\nX-A: b: c\r\nEmpty: \r\n\r\n";

    const FIELDS: &str = ":status=301 server=m date=Sun, 06 Nov 1994 08:49:37 GMT x-a=b: c empty=";

    fn decoded(decoder: &mut Decoder, block: &[u8]) -> String {
        let mut text = String::new();
        let take = |name: &[u8], value: &[u8]| {
            let line = alloc::format!(" {}={}", name.escape_ascii(), value.escape_ascii());
            text.push_str(&line);
        };
        decoder.decode(block, take).unwrap();
        text.split_off(1)
    }

    #[test]
    fn a_head_loses_what_http2_has_not() {
        let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(TABLE_BYTES));
        let mut lens = [0; 2];
        for len in &mut lens {
            let mut block = Vec::new();
            emit_block(HEAD, &mut encoder, &mut Vec::new(), &mut block);
            assert_eq!(decoded(&mut decoder, &block), FIELDS);
            *len = block.len();
        }
        assert!(lens[1] < 8, "the second one is in the table: {lens:?}");
    }

    #[test]
    fn secrets_that_can_be_guessed_are_never_indexed() {
        let long = "x".repeat(SECRET_BYTES);
        for (line, is_never_indexed) in [
            ("cookie: a=1", true),
            ("set-cookie: a=1", true),
            ("authorization: b", true),
            ("proxy-authorization: b", true),
            ("www-authenticate: c", true),
            (&*alloc::format!("cookie: {long}"), false),
        ] {
            let mut block = Vec::new();
            let text = alloc::format!("{line}\r\n\r\n");
            let mut encoder = Encoder::new();
            emit_block(text.as_bytes(), &mut encoder, &mut Vec::new(), &mut block);
            // RFC 7541 6.2.3.
            assert_eq!(block[0] >> 4 == 1, is_never_indexed, "{line}");
        }
    }

    #[test]
    fn a_request_loses_what_http2_has_not() {
        let text = b"OPTIONS * HTTP/1.1\r\nHost: h\r\nTE: gzip\r\nConnection: te\r\nUpgrade: h2c\r\n\
              Proxy-Connection: a\r\nKeep-Alive: 1\r\nTransfer-Encoding: chunked\r\nCookie: a=b; c=d\r\n\r\n";
        let mut block = Vec::new();
        emit_request_block(
            b"http",
            text,
            &mut Encoder::new(),
            &mut Vec::new(),
            &mut block,
        );
        assert_eq!(
            decoded(&mut Decoder::new(TABLE_BYTES), &block),
            ":method=OPTIONS :scheme=http :path=* :authority=h cookie=a=b; c=d"
        );
    }

    #[test]
    fn a_kept_block_is_stamped_and_needs_no_table() {
        let mut block = Vec::new();
        let at = emit_kept_block(HEAD, &mut block).unwrap();
        block[at..at + 29].copy_from_slice(b"Mon, 23 Nov 2026 13:00:00 GMT");
        let expected = FIELDS.replace("Sun, 06 Nov 1994 08:49:37", "Mon, 23 Nov 2026 13:00:00");
        for _ in 0..2 {
            assert_eq!(decoded(&mut Decoder::new(0), &block), expected);
        }
    }
}
