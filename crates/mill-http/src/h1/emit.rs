//! Response heads and chunks into a caller's buffer, laid out as nginx lays them out.
//!
//! Order of calls: `emit_status_line`, fields, `emit_head_end`; then content, or chunks.

use alloc::vec::Vec;

use crate::date::IMF_FIXDATE_LEN;
use crate::decimal::{emit_decimal, emit_hex};
use crate::h1::scan::find_control;
use crate::span::Span;
use crate::status::Status;

/// `HTTP/1.1 200 OK` and CRLF. Always 1.1, as RFC 9110 2.5 has it and nginx does; a code without
/// reason phrase keeps the space.
pub fn emit_status_line(status: Status, out: &mut Vec<u8>) {
    if status == Status::OK {
        return out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    }
    let status = status.on_the_wire();
    out.extend_from_slice(b"HTTP/1.1 ");
    if status.0 < 100 {
        out.extend_from_slice(if status.0 < 10 { b"00" } else { b"0" });
    }
    emit_decimal(u64::from(status.0), out);
    out.push(b' ');
    out.extend_from_slice(status.reason().unwrap_or("").as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// As [`emit_status_line`], with a reason phrase of the caller's, which has no line end.
pub fn emit_status_line_with(status: Status, reason: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"HTTP/1.1 ");
    emit_decimal(status.0.into(), out);
    out.push(b' ');
    out.extend_from_slice(reason);
    out.extend_from_slice(b"\r\n");
}

/// `name: value` and CRLF. Values may come from variables, and those from a request: control bytes other than tab
/// become spaces, so that no value can begin another line.
pub fn emit_field(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    if find_control(value, 0) == value.len() {
        out.extend_from_slice(value);
    } else {
        let is_control = |byte: u8| byte != b'\t' && byte.is_ascii_control();
        out.extend(
            value
                .iter()
                .map(|byte| if is_control(*byte) { b' ' } else { *byte }),
        );
    }
    out.extend_from_slice(b"\r\n");
}

/// A field of a head that was read, where no value has control bytes. The line is copied whole if it stands there as
/// `emit_field` would write it.
pub fn emit_field_of(head: &[u8], name: Span, value: Span, out: &mut Vec<u8>) {
    let start = name.start as usize;
    let line = head.get(start..(value.end() as usize).saturating_add(2));
    let separator = line.and_then(|line| line.get(name.len as usize..)?.first_chunk());
    match (line, separator) {
        (Some(line @ [.., b'\r', b'\n']), Some(b": "))
            if value.start == name.end().saturating_add(2) =>
        {
            out.extend_from_slice(line);
        }
        _ => emit_field(name.of(head), value.of(head), out),
    }
}

/// A field line with a number, such as `Content-Length`.
pub fn emit_number_field(name: &[u8], number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    emit_decimal(number, out);
    out.extend_from_slice(b"\r\n");
}

/// `Date`. Returns the offset of its 29 bytes in `out`, at which [`stamp_date`] updates a kept head.
pub fn emit_date(date: &[u8; IMF_FIXDATE_LEN], out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(b"Date: ");
    let offset = out.len();
    out.extend_from_slice(date);
    out.extend_from_slice(b"\r\n");
    offset
}

/// Overwrites the date that `emit_date` wrote at `offset`. Returns false, and writes nothing, if `head` is too short.
pub fn stamp_date(head: &mut [u8], offset: usize, date: &[u8; IMF_FIXDATE_LEN]) -> bool {
    match head
        .get_mut(offset..)
        .and_then(|rest| rest.first_chunk_mut())
    {
        Some(place) => {
            *place = *date;
            true
        }
        None => false,
    }
}

/// The empty line.
pub fn emit_head_end(out: &mut Vec<u8>) {
    out.extend_from_slice(b"\r\n");
}

/// The interim answer to `Expect: 100-continue`.
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The line before a chunk of `size_bytes`; not for 0, which would end the body.
pub fn emit_chunk_head(size_bytes: u64, out: &mut Vec<u8>) {
    emit_hex(size_bytes, out);
    out.extend_from_slice(b"\r\n");
}

/// The line end after a chunk's content.
pub const CHUNK_END: &[u8] = b"\r\n";

/// The end of a chunked body without trailers.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// The end of a chunked body with trailer fields (`add_trailer`).
pub fn emit_last_chunk<'a>(
    trailers: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b"0\r\n");
    for (name, value) in trailers {
        emit_field(name, value, out);
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::date::imf_fixdate;
    use alloc::string::String;

    #[test]
    fn a_head_is_written_line_by_line_and_stamped() {
        let mut out = Vec::new();
        emit_status_line(Status::OK, &mut out);
        emit_field(b"Server", b"millstream", &mut out);
        let date = emit_date(&imf_fixdate(0), &mut out);
        emit_number_field(b"Content-Length", 612, &mut out);
        emit_field(b"X", b"a\r\nSet-Cookie: b\tc\0\x7f", &mut out);
        emit_head_end(&mut out);
        assert!(stamp_date(&mut out, date, &imf_fixdate(784_111_777)));
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "HTTP/1.1 200 OK\r\nServer: millstream\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
             Content-Length: 612\r\nX: a  Set-Cookie: b\tc  \r\n\r\n"
        );
        assert!(!stamp_date(&mut [0; 28], 0, &imf_fixdate(0)));
        assert!(!stamp_date(&mut [0; 29], 1, &imf_fixdate(0)));
    }

    #[test]
    fn a_field_of_a_head_is_written_as_by_its_parts() {
        for line in [
            "A: b\r\n",
            "Name:value\r\n",
            "A:  b\r\n",
            "A: b \r\n",
            "A: \r\n",
            "A: b\n",
            "A: b",
        ] {
            let head = alloc::format!("GET / HTTP/1.1\r\n{line}");
            let bytes = head.as_bytes();
            let start = "GET / HTTP/1.1\r\n".len();
            let colon = start + line.find(':').unwrap();
            let text = line[colon - start + 1..].trim();
            let value_start = match text {
                "" => head.trim_end().len() + 1,
                text => head.rfind(text).unwrap(),
            };
            let (name, value) = (
                Span::between(start, colon),
                Span::between(value_start, value_start + text.len()),
            );
            let (mut found, mut expected) = (Vec::new(), Vec::new());
            emit_field_of(bytes, name, value, &mut found);
            emit_field(name.of(bytes), value.of(bytes), &mut expected);
            assert_eq!(found, expected, "{line:?}");
        }
    }

    #[test]
    fn status_lines_are_nginxs() {
        let check = |status: u16, expected: &str| {
            let mut out = Vec::new();
            emit_status_line(Status(status), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        };
        check(302, "HTTP/1.1 302 Moved Temporarily\r\n");
        check(416, "HTTP/1.1 416 Requested Range Not Satisfiable\r\n");
        check(203, "HTTP/1.1 203 \r\n");
        check(494, "HTTP/1.1 400 Bad Request\r\n");
        check(7, "HTTP/1.1 007 \r\n");
    }

    #[test]
    fn chunks_are_framed() {
        let mut out = Vec::new();
        emit_chunk_head(255, &mut out);
        out.extend_from_slice(CHUNK_END);
        emit_last_chunk([(&b"A"[..], &b"b"[..])].into_iter(), &mut out);
        assert_eq!(out, b"ff\r\n\r\n0\r\nA: b\r\n\r\n");
        let mut out = Vec::new();
        emit_last_chunk([].into_iter(), &mut out);
        assert_eq!(out, LAST_CHUNK);
    }
}
