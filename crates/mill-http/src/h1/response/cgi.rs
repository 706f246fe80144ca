//! Response heads of CGI, RFC 3875 6: FastCGI, SCGI and uwsgi carry them.
//!
//! Such a head has the field lines of HTTP, and its status is a field. Programs may send the head of HTTP/1 with a
//! status line instead (RFC 3875 5, and what uwsgi's applications do). The checks are those of strict reading, except
//! that a line may end with LF alone, as RFC 3875 6.2 has it: a CGI head is never passed on as it came, and it begins
//! no second message on its connection, so that no reader behind us can split it otherwise.

use crate::h1::response::line::{self, Stop};
use crate::h1::response::strict::{self, FramingChecks};
use crate::h1::response::{Framing, RequestKind, ResponseFault, ResponseHead};
use crate::status::Status;
use crate::version::Version;

/// One CGI head while it arrives. Lines are checked as they complete, so that a peer that sends anything else is
/// recognised by its first line.
#[derive(Clone, Copy, Debug)]
pub struct CgiScan {
    request: RequestKind,
    bytes_max: u32,
    /// Where the first unfinished line begins.
    line_start: usize,
    /// Bytes of the unfinished line before this offset were looked at and do not end it.
    examined: usize,
    /// 0 if there is no status line.
    fields_start: usize,
    version: Version,
    /// Of the status line, or of `Status`.
    status: Option<u16>,
    has_status_field: bool,
    has_location: bool,
    framing: FramingChecks,
}

impl CgiScan {
    /// `bytes_max` limits the head: `fastcgi_buffer_size` and the like.
    pub const fn new(request: RequestKind, bytes_max: u32) -> Self {
        Self {
            request,
            bytes_max,
            line_start: 0,
            examined: 0,
            fields_start: 0,
            version: Version::Http11,
            status: None,
            has_status_field: false,
            has_location: false,
            framing: FramingChecks::NONE,
        }
    }

    /// Parses the head at the beginning of `bytes`. `None` when more bytes are needed: call again with the same bytes
    /// and those after them; the buffer itself may have moved. After a head or a fault the scan must not be used again.
    ///
    /// The head never allows the connection to persist: what ends the content is the protocol that carries it.
    pub fn parse(&mut self, bytes: &[u8]) -> Result<Option<ResponseHead>, ResponseFault> {
        let bytes_max = self.bytes_max as usize;
        // One byte more than allowed shows that the head is too long.
        let seen = bytes.get(..=bytes_max).unwrap_or(bytes);
        let too_long = ResponseFault::HeadTooLong {
            bytes_max: self.bytes_max,
        };
        loop {
            let next = match line::end(seen, self.examined) {
                Ok(next) if next > bytes_max => return Err(too_long),
                Ok(next) => next,
                Err(Stop::Partial { .. }) if seen.len() > bytes_max => return Err(too_long),
                Err(Stop::Partial { examined }) => {
                    self.examined = examined;
                    return Ok(None);
                }
                Err(Stop::Fault(fault)) => return Err(fault),
            };
            let line = seen.get(self.line_start..next).unwrap_or(&[]);
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                return self.conclude(next).map(Some);
            }
            self.on_line(line, next)?;
            (self.line_start, self.examined) = (next, next);
        }
    }

    fn on_line(&mut self, line: &[u8], next: usize) -> Result<(), ResponseFault> {
        if self.line_start == 0 && line.starts_with(b"HTTP/") {
            return self.on_status_line(line, next);
        }
        self.framing.on_line(line)?;
        if self.framing.codings > 0 {
            return Err(ResponseFault::CodingInCgi);
        }
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            return Ok(());
        };
        let (name, value) = line.split_at(colon);
        if name.eq_ignore_ascii_case(b"status") {
            let status = status_of(line::trim(value.get(1..).unwrap_or(&[])));
            if self.has_status_field {
                return Err(ResponseFault::StatusAgain);
            }
            self.has_status_field = true;
            // nginx: a status line counts, whatever the field says.
            self.status = self.status.or(status);
            status.map_or(Err(ResponseFault::StatusCode), |_| Ok(()))
        } else {
            self.has_location |= name.eq_ignore_ascii_case(b"location");
            Ok(())
        }
    }

    fn on_status_line(&mut self, line: &[u8], next: usize) -> Result<(), ResponseFault> {
        strict::status_line(line)?;
        if line.starts_with(b"HTTP/1.0") {
            self.version = Version::Http10;
        }
        let code = line.get(b"HTTP/1.x ".len()..).unwrap_or(&[]);
        self.status = Some(status_of(code).ok_or(ResponseFault::StatusCode)?);
        self.fields_start = next;
        Ok(())
    }

    fn conclude(&self, len: usize) -> Result<ResponseHead, ResponseFault> {
        // RFC 3875 6.2: a document is 200, a redirect 302.
        let otherwise = if self.has_location { 302 } else { 200 };
        let status = self.status.unwrap_or(otherwise);
        let has_no_content = Status(status).has_no_content();
        let FramingChecks {
            lengths, length, ..
        } = self.framing;
        if lengths > 1 {
            return Err(ResponseFault::ContentLengthAgain);
        }
        // RFC 9110 8.6. A length of 0 is harmless.
        if has_no_content && status != 304 && length > 0 {
            return Err(ResponseFault::FramingWithoutContent);
        }
        let framing = match lengths {
            _ if has_no_content || self.request == RequestKind::Head => Framing::None,
            0 => Framing::UntilClose,
            _ => Framing::Length(length),
        };
        Ok(ResponseHead {
            status,
            version: self.version,
            framing,
            keep_alive: false,
            len,
            fields_start: self.fields_start,
        })
    }
}

/// Three digits, from 100 on, and nothing or a blank behind them.
fn status_of(text: &[u8]) -> Option<u16> {
    let (digits, rest) = text.split_first_chunk::<3>()?;
    let [b'1'..=b'9', b'0'..=b'9', b'0'..=b'9'] = digits else {
        return None;
    };
    if !matches!(rest, [] | [b' ' | b'\t', ..]) {
        return None;
    }
    let number = |sum: u16, digit: &u8| sum * 10 + u16::from(digit - b'0');
    Some(digits.iter().fold(0, number))
}

const _: () = assert!(size_of::<CgiScan>() <= 72);
