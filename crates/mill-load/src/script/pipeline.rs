//! Counts the requests in a script's string: each has a response.

use crate::request::Batch;
use core::fmt;
use std::io::BufRead;

/// The result of parsing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Requests {
    /// Complete requests.
    pub(super) count: u32,
    /// Those among them whose method is HEAD.
    pub(super) heads: u32,
    /// Why and where the rest is no complete request, if there is a rest.
    pub(super) fault: Option<Fault>,
}

/// Where a request is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    reason: &'static str,
    /// Both from 1.
    line: usize,
    column: usize,
}

impl Requests {
    /// Parses all of `bytes`. It only finds where requests end, not whether a server would accept them.
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let mut found = Self {
            count: 0,
            heads: 0,
            fault: None,
        };
        let mut cursor = Cursor { bytes, at: 0 };
        loop {
            cursor.skip_blank_lines();
            if cursor.at == bytes.len() && found.count > 0 {
                return found;
            }
            match cursor.request() {
                Ok(is_head) => {
                    found.count = found.count.saturating_add(1);
                    found.heads = found.heads.saturating_add(u32::from(is_head));
                }
                Err(reason) => {
                    found.fault = Some(Fault::at(reason, bytes, cursor.at));
                    return found;
                }
            }
        }
    }

    /// The responses to these requests. Malformed bytes are sent as they are, with one expected response.
    pub(super) fn batch(self) -> Result<Batch, &'static str> {
        if self.heads > 0 && self.heads < self.count {
            return Err("HEAD can't be pipelined with other methods");
        }
        Ok(Batch {
            responses: self.count.max(1),
            is_head: self.heads > 0,
        })
    }
}

impl Fault {
    fn at(reason: &'static str, bytes: &[u8], at: usize) -> Self {
        let before = bytes.get(..at).unwrap_or(bytes);
        let line_start = before.iter().rposition(|byte| *byte == b'\n');
        Self {
            reason,
            line: before.iter().filter(|byte| **byte == b'\n').count() + 1,
            column: at - line_start.map_or(0, |newline| newline + 1) + 1,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            reason,
            line,
            column,
        } = self;
        write!(formatter, "{reason} at {line}:{column} of the request")
    }
}

/// A position in the bytes; after an error it is that of the error.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// RFC 9112 2.2: empty lines before a request line are ignored.
    fn skip_blank_lines(&mut self) {
        while let Some(b'\r' | b'\n') = self.bytes.get(self.at) {
            self.at += 1;
        }
    }

    /// Skips one request; returns whether it is a HEAD.
    fn request(&mut self) -> Result<bool, &'static str> {
        let start = self.at;
        let request_line = self.line()?;
        let mut words = request_line.split(|byte| *byte == b' ');
        let method = words.next().unwrap_or_default();
        let version = words.next_back().unwrap_or_default();
        if method.is_empty() || !version.starts_with(b"HTTP/") {
            self.at = start;
            return Err("no request line");
        }
        let mut framing = Framing::Length(0);
        loop {
            let start = self.at;
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            if let Err(reason) = framing.on_field_line(line) {
                self.at = start;
                return Err(reason);
            }
        }
        match framing {
            Framing::Length(len) => self.skip(len)?,
            Framing::Chunked => self.chunks()?,
        }
        Ok(method == b"HEAD")
    }

    fn chunks(&mut self) -> Result<(), &'static str> {
        loop {
            let start = self.at;
            let line = self.line()?;
            let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
            let size = core::str::from_utf8(digits.trim_ascii()).ok();
            let size = size.and_then(|digits| usize::from_str_radix(digits, 16).ok());
            let Some(size) = size else {
                self.at = start;
                return Err("no chunk size");
            };
            if size == 0 {
                // Trailer fields, then an empty line.
                while !self.line()?.is_empty() {}
                return Ok(());
            }
            self.skip(size)?;
            self.line()?;
        }
    }

    /// The next line, without its end.
    fn line(&mut self) -> Result<&'a [u8], &'static str> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        // The standard library's search for a byte is far faster than an iterator's.
        let mut reader = rest;
        let len = reader.skip_until(b'\n').unwrap_or(0);
        let line = rest.get(..len).unwrap_or_default();
        let Some(line) = line.strip_suffix(b"\n") else {
            self.at = self.bytes.len();
            return Err(INCOMPLETE);
        };
        self.at += len;
        Ok(line.strip_suffix(b"\r").unwrap_or(line))
    }

    fn skip(&mut self, len: usize) -> Result<(), &'static str> {
        if len > self.bytes.len() - self.at {
            self.at = self.bytes.len();
            return Err(INCOMPLETE);
        }
        self.at += len;
        Ok(())
    }
}

/// The length of the content (RFC 9112 6.3, for requests).
enum Framing {
    Length(usize),
    Chunked,
}

impl Framing {
    fn on_field_line(&mut self, line: &[u8]) -> Result<(), &'static str> {
        if !matches!(line.first(), Some(b'c' | b'C' | b't' | b'T')) {
            return Ok(());
        }
        let mut parts = line.splitn(2, |byte| *byte == b':');
        let name = parts.next().unwrap_or_default();
        let value = parts.next().unwrap_or_default().trim_ascii();
        if name.eq_ignore_ascii_case(b"content-length") && !matches!(self, Self::Chunked) {
            let len = core::str::from_utf8(value).ok();
            let len = len.and_then(|digits| digits.parse().ok());
            *self = Self::Length(len.ok_or("no number in Content-Length")?);
        }
        if name.eq_ignore_ascii_case(b"transfer-encoding")
            && value.to_ascii_lowercase().ends_with(b"chunked")
        {
            *self = Self::Chunked;
        }
        Ok(())
    }
}

const INCOMPLETE: &str = "incomplete request";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, count: u32, heads: u32, fault: Option<&str>) {
        let found = Requests::parse(text.as_bytes());
        assert_eq!((found.count, found.heads), (count, heads), "{text:?}");
        let message = found.fault.map(|fault| fault.to_string());
        let expected = fault.map(|fault| format!("{fault} of the request"));
        assert_eq!(message, expected, "{text:?}");
    }

    #[test]
    fn requests_in_one_string_are_counted() {
        check("GET / HTTP/1.1\r\n\r\n", 1, 0, None);
        check(
            "GET / HTTP/1.1\n\n\r\nHEAD / HTTP/1.1\r\nA: b\r\n\r\n",
            2,
            1,
            None,
        );
        check(
            "POST / HTTP/1.1\r\ncontent-length: 3\r\n\r\na\r\nGET / HTTP/1.0\r\n\r\n",
            2,
            0,
            None,
        );
        check(
            "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: u\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            2,
            0,
            None,
        );
    }

    #[test]
    fn an_incomplete_request_is_reported_with_its_place() {
        check("", 0, 0, Some("incomplete request at 1:1"));
        check("hello\r\n\r\n", 0, 0, Some("no request line at 1:1"));
        check(
            "GET / HTTP/1.1\r\nA: b\r\n",
            0,
            0,
            Some("incomplete request at 3:1"),
        );
        check(
            "GET / HTTP/1.1\r\n\r\nrubbish",
            1,
            0,
            Some("incomplete request at 3:8"),
        );
        check(
            "GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
            0,
            0,
            Some("no number in Content-Length at 2:1"),
        );
        check(
            "GET / HTTP/1.1\r\nContent-Length: 9\r\n\r\nab",
            0,
            0,
            Some("incomplete request at 4:3"),
        );
        check(
            "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            0,
            0,
            Some("no chunk size at 4:1"),
        );
    }

    #[test]
    fn a_batch_is_all_head_or_not_head_at_all() {
        let batch = |text: &str| Requests::parse(text.as_bytes()).batch();
        let head = "HEAD / HTTP/1.1\r\n\r\n";
        let all = batch(&head.repeat(2)).unwrap();
        assert_eq!((all.responses, all.is_head), (2, true));
        assert!(batch(&format!("{head}GET / HTTP/1.1\r\n\r\n")).is_err());
        assert_eq!(batch("rubbish"), Ok(Batch::ONE));
    }
}
