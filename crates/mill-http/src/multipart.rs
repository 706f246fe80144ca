//! Answers of several ranges: `multipart/byteranges`, RFC 9110 14.6, laid out as nginx does.
//!
//! ```text
//! CRLF --00000000000000000001 CRLF
//! Content-Type: text/plain CRLF
//! Content-Range: bytes 0-0/100 CRLF
//! CRLF
//! (content)
//! CRLF --00000000000000000001-- CRLF
//! ```

use alloc::vec::Vec;

use crate::decimal::{decimal_len, emit_decimal};
use crate::range::ByteRange;

/// Twenty digits. The number is the caller's: it must differ from answer to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Boundary(pub u64);

/// One multipart answer.
#[derive(Clone, Copy, Debug)]
pub struct Multipart<'a> {
    pub boundary: Boundary,
    /// Of the parts, with charset; empty for none.
    pub content_type: &'a [u8],
    /// Bytes of the whole representation.
    pub length: u64,
}

impl Boundary {
    pub fn emit(self, out: &mut Vec<u8>) {
        for _ in decimal_len(self.0)..BOUNDARY_LEN {
            out.push(b'0');
        }
        emit_decimal(self.0, out);
    }

    /// The value of the answer's `Content-Type`.
    pub fn emit_content_type(self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"multipart/byteranges; boundary=");
        self.emit(out);
    }
}

impl Multipart<'_> {
    /// The bytes before the content of `range`.
    pub fn emit_part_head(&self, range: ByteRange, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\r\n--");
        self.boundary.emit(out);
        if !self.content_type.is_empty() {
            out.extend_from_slice(b"\r\nContent-Type: ");
            out.extend_from_slice(self.content_type);
        }
        out.extend_from_slice(b"\r\nContent-Range: ");
        emit_content_range(range, self.length, out);
        out.extend_from_slice(b"\r\n\r\n");
    }

    /// The bytes after the last part.
    pub fn emit_end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\r\n--");
        self.boundary.emit(out);
        out.extend_from_slice(b"--\r\n");
    }

    /// `Content-Length` of the answer: exactly the bytes of the two functions above and of the ranges.
    pub fn content_length(&self, ranges: &[ByteRange]) -> u64 {
        let type_len = match self.content_type.len() {
            0 => 0,
            len => len as u64 + 16,
        };
        let head_len = 4 + BOUNDARY_LEN + type_len + 17;
        let parts: u64 = ranges
            .iter()
            .map(|range| head_len + content_range_len(*range, self.length) + 4 + range.len())
            .sum();
        parts + 4 + BOUNDARY_LEN + 4
    }
}

/// The value of `Content-Range` for a satisfied range: `bytes 0-0/100`.
pub fn emit_content_range(range: ByteRange, length: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"bytes ");
    emit_decimal(range.start, out);
    out.push(b'-');
    emit_decimal(range.end.saturating_sub(1), out);
    out.push(b'/');
    emit_decimal(length, out);
}

/// The value of `Content-Range` in a 416: `bytes */100`.
pub fn emit_unsatisfied_range(length: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"bytes */");
    emit_decimal(length, out);
}

fn content_range_len(range: ByteRange, length: u64) -> u64 {
    8 + decimal_len(range.start) + decimal_len(range.end.saturating_sub(1)) + decimal_len(length)
}

/// Bytes: nginx prints its 64-bit number with leading zeros.
const BOUNDARY_LEN: u64 = 20;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    #[test]
    fn the_announced_length_is_what_is_written() {
        for content_type in [&b""[..], b"text/html", b"text/plain; charset=utf-8"] {
            for number in [0, 1, u64::MAX] {
                let multipart = Multipart {
                    boundary: Boundary(number),
                    content_type,
                    length: 1000,
                };
                let ranges = [
                    ByteRange { start: 0, end: 1 },
                    ByteRange { start: 9, end: 101 },
                    ByteRange {
                        start: 999,
                        end: 1000,
                    },
                ];
                let mut out = Vec::new();
                for range in ranges {
                    multipart.emit_part_head(range, &mut out);
                    out.extend((0..range.len()).map(|_| b'x'));
                }
                multipart.emit_end(&mut out);
                assert_eq!(out.len() as u64, multipart.content_length(&ranges));
            }
        }
    }

    #[test]
    fn parts_look_as_in_nginx() {
        let multipart = Multipart {
            boundary: Boundary(7),
            content_type: b"text/plain",
            length: 100,
        };
        let mut out = Vec::new();
        multipart.emit_part_head(ByteRange { start: 0, end: 1 }, &mut out);
        multipart.emit_end(&mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "\r\n--00000000000000000007\r\nContent-Type: text/plain\r\n\
             Content-Range: bytes 0-0/100\r\n\r\n\r\n--00000000000000000007--\r\n"
        );
        let mut out = Vec::new();
        Boundary(7).emit_content_type(&mut out);
        out.push(b' ');
        emit_unsatisfied_range(100, &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "multipart/byteranges; boundary=00000000000000000007 bytes */100"
        );
    }
}
