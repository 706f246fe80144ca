//! Bytes to response head; the hot path of a client.
//!
//! A line's end is searched first and its colon then, so that the search for the next end does not depend on a line's
//! content; strict reading takes an ordinary line in one pass, and gives its parts out. When the bytes end inside a
//! line, the scan remembers where that line began and how far it was searched; a complete line is split once. Bytes
//! beyond the limit are never looked at, and faults are those of lines in their order, so the result does not depend on
//! the pieces in which a response arrives. A peer that speaks another protocol is recognised by its first wrong byte,
//! since it may wait for us instead of ending a line.

use crate::field::Field;
use crate::h1::response::framing::FramingFields;
use crate::h1::response::line::{self, Stop};
use crate::h1::response::strict::{self, FramingChecks};
use crate::h1::response::{RequestKind, ResponseFault, ResponseHead};
use crate::limits::{Reading, ResponseRules};
use crate::version::Version;

/// One response's head while it arrives. The module above has the order of calls.
#[derive(Clone, Copy, Debug)]
pub struct ResponseScan {
    request: RequestKind,
    reading: Reading,
    bytes_max: u32,
    /// Where the first unfinished line begins.
    line_start: usize,
    /// Bytes of the unfinished line before this offset were looked at and do not end it.
    examined: usize,
    /// 0 while the status line is not whole.
    fields_start: usize,
    status: u16,
    version: Version,
    fields: FramingFields,
    checks: FramingChecks,
}

impl ResponseScan {
    pub const fn new(request: RequestKind, rules: &ResponseRules) -> Self {
        Self::begun(request, rules.reading, rules.head_bytes_max)
    }

    const fn begun(request: RequestKind, reading: Reading, bytes_max: u32) -> Self {
        Self {
            request,
            reading,
            bytes_max,
            line_start: 0,
            examined: 0,
            fields_start: 0,
            status: 0,
            version: Version::Http11,
            fields: FramingFields::NONE,
            checks: FramingChecks::NONE,
        }
    }

    /// Begins again, behind an interim head: the final answer follows.
    pub const fn restart(&mut self) {
        *self = Self::begun(self.request, self.reading, self.bytes_max);
    }

    /// Parses the head at the beginning of `bytes`. `None` when more bytes are needed: call again with the same bytes
    /// and those after them; the buffer itself may have moved. After a head or a fault the scan must not be used again.
    pub fn parse(&mut self, bytes: &[u8]) -> Result<Option<ResponseHead>, ResponseFault> {
        self.parse_fields(bytes, |_| ())
    }

    /// As `parse`; strict reading passes each field on, once, in their order.
    pub fn parse_fields(
        &mut self,
        bytes: &[u8],
        on_field: impl FnMut(Field),
    ) -> Result<Option<ResponseHead>, ResponseFault> {
        let bytes_max = self.bytes_max as usize;
        // One byte more than allowed shows that the head is too long.
        let seen = bytes.get(..=bytes_max).unwrap_or(bytes);
        match self.parse_lines(seen, on_field) {
            Ok(len) if len <= bytes_max => self.conclude(len).map(Some),
            Err(Stop::Partial { .. }) if seen.len() <= bytes_max => Ok(None),
            Err(Stop::Fault(fault)) => Err(fault),
            Ok(_) | Err(Stop::Partial { .. }) => Err(ResponseFault::HeadTooLong {
                bytes_max: self.bytes_max,
            }),
        }
    }

    /// The length of the head.
    fn parse_lines(
        &mut self,
        bytes: &[u8],
        mut on_field: impl FnMut(Field),
    ) -> Result<usize, Stop> {
        if self.fields_start == 0 {
            if self.examined == self.line_start {
                self.skip_empty_lines(bytes)?;
            }
            self.status_line(bytes)?;
        }
        let (mut start, mut from) = (self.line_start, self.examined);
        loop {
            if from == start && !matches!(bytes.get(start), Some(byte) if *byte > b' ') {
                return self.end_of_head(bytes, start);
            }
            let found = match self.reading {
                Reading::Lenient => line::field_end(bytes, from).map(|next| (next, None)),
                Reading::Strict => strict::field_line(bytes, start, from, &mut self.checks)
                    .map(|(next, field)| (next, Some(field))),
            };
            let (next, field) = match found {
                Ok(found) => found,
                Err(stop) => {
                    self.line_start = start;
                    return self.remember(Err(stop));
                }
            };
            match field {
                Some(field) => {
                    self.fields.on_known(field.known, field.value.of(bytes));
                    on_field(field);
                }
                None => {
                    let colon = line::colon(bytes, start)?;
                    self.fields.on_line(bytes, start, colon, next);
                }
            }
            (start, from) = (next, next);
        }
    }

    /// The length of the head, if the line at `start` is the empty one.
    fn end_of_head(&mut self, bytes: &[u8], start: usize) -> Result<usize, Stop> {
        match bytes.get(start..) {
            Some([b'\r', b'\n', ..]) => Ok(start + 2),
            Some([b'\n', ..]) if self.reading == Reading::Strict => {
                Err(Stop::Fault(ResponseFault::BareLf))
            }
            Some([b'\n', ..]) => Ok(start + 1),
            Some([b'\r'] | []) | None => {
                self.begin_line(start);
                Err(Stop::Partial { examined: start })
            }
            Some([b'\r', ..]) => Err(Stop::Fault(ResponseFault::BareCr)),
            // After a field line lenient reading would have taken it for a fold.
            Some([b' ' | b'\t', ..]) if start > self.fields_start => {
                Err(Stop::Fault(ResponseFault::Fold))
            }
            Some([b' ' | b'\t', ..]) => Err(Stop::Fault(ResponseFault::BlankBeforeFields)),
            Some(_) => Err(Stop::Fault(ResponseFault::FieldLine)),
        }
    }

    fn begin_line(&mut self, start: usize) {
        self.line_start = start;
        self.examined = start;
    }

    fn remember(&mut self, found: Result<usize, Stop>) -> Result<usize, Stop> {
        if let Err(Stop::Partial { examined }) = found {
            self.examined = examined;
        }
        found
    }

    /// RFC 9112 4. The version's name is case-sensitive, 2.3; a higher minor version is read as 1.1, RFC 9110 2.5.
    fn status_line(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        let begun = bytes.get(self.line_start..).unwrap_or(&[]);
        if !begun.iter().zip(HTTP_1).all(|(byte, known)| byte == known) {
            return Err(Stop::Fault(ResponseFault::NotHttp1));
        }
        let next = self.remember(line::end(bytes, self.examined))?;
        let line = bytes.get(self.line_start..next).unwrap_or(&[]);
        let Some([minor @ b'0'..=b'9', b' ' | b'\t', code @ ..]) = line.strip_prefix(HTTP_1) else {
            return Err(Stop::Fault(ResponseFault::NotHttp1));
        };
        self.version = match minor {
            b'0' => Version::Http10,
            _ => Version::Http11,
        };
        self.status = parse_status(code).ok_or(Stop::Fault(ResponseFault::StatusCode))?;
        if self.reading == Reading::Strict {
            // From the first byte: no empty line may precede it.
            strict::first_line(bytes.get(..next).unwrap_or(bytes))?;
        }
        self.fields_start = next;
        self.begin_line(next);
        Ok(())
    }

    fn skip_empty_lines(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        loop {
            let start = match bytes.get(self.line_start..) {
                Some([b'\n', ..]) => self.line_start + 1,
                Some([b'\r', b'\n', ..]) => self.line_start + 2,
                Some([b'\r'] | []) | None => {
                    return Err(Stop::Partial {
                        examined: self.line_start,
                    });
                }
                Some(_) => return Ok(()),
            };
            self.begin_line(start);
        }
    }

    fn conclude(&self, len: usize) -> Result<ResponseHead, ResponseFault> {
        let (request, status, version) = (self.request, self.status, self.version);
        let (framing, keep_alive) = self.fields.conclude(request, status, version)?;
        let head = ResponseHead {
            status,
            version,
            framing,
            keep_alive,
            len,
            fields_start: self.fields_start,
        };
        if self.reading == Reading::Strict {
            self.checks.conclude(&head)?;
        }
        Ok(head)
    }
}

const HTTP_1: &[u8] = b"HTTP/1.";

/// Three digits after any blanks, then a blank and a phrase, or the line's end.
fn parse_status(mut rest: &[u8]) -> Option<u16> {
    while let [b' ' | b'\t', after @ ..] = rest {
        rest = after;
    }
    let [
        hundreds @ b'1'..=b'9',
        tens @ b'0'..=b'9',
        ones @ b'0'..=b'9',
        b' ' | b'\t' | b'\r' | b'\n',
        ..,
    ] = rest
    else {
        return None;
    };
    let digit = |byte: &u8| u16::from(byte - b'0');
    Some(digit(hundreds) * 100 + digit(tens) * 10 + digit(ones))
}

const _: () = assert!(size_of::<ResponseScan>() <= 80);
