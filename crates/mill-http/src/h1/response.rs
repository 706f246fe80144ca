//! Responses as a client reads them: the head, and how the content after it ends.
//!
//! Read this first: RFC 9112 4 to 6 and 9.3. A client that measures a server reads as little as possible: the status
//! line, and the three fields that define where the response ends and whether the connection persists. All others are
//! skipped and can be read later, by `ResponseHead::fields`. Nothing here allocates.
//!
//! Order of calls, for each response:
//! 1. `ResponseScan::new`, then `ResponseScan::parse` with all bytes since the response's beginning, again whenever
//!    more have arrived, until it returns a head.
//! 2. `ResponseBody::new`, then `ResponseBody::on_bytes` with the bytes after the head, until it is complete; or
//!    `ResponseBody::on_end_of_stream`.
//! 3. After an interim head (100, 102, 103) begin again with the same request: its final answer follows.
//!
//! Lenient reading accepts some forms that a server would refuse, since an answer is counted and not passed on. Strict
//! reading refuses them, and more: [`Reading`](crate::limits::Reading).
//! - a line that ends with LF alone (RFC 9112 2.2), but never a CR without LF;
//! - empty lines before the status line, which some servers send after a content;
//! - several blanks in the status line, and no reason phrase, with or without the space before it;
//! - blanks between a field's name and its colon, which do not hide the name (5.1);
//! - control bytes other than CR, LF and NUL in values (RFC 9110 5.5);
//! - folded field lines, each fold read as blanks (5.2).
//!
//! The heads of CGI programs have a scan of their own, `CgiScan`.

mod body;
mod cgi;
mod fault;
mod framing;
mod line;
mod scan;
/// The checks of strict reading.
mod strict;

pub use body::{BodyStep, ResponseBody};
pub use cgi::CgiScan;
pub use fault::ResponseFault;
pub use scan::ResponseScan;

use crate::field::{Field, KnownField};
use crate::limits::ResponseRules;
use crate::method::Method;
use crate::version::Version;

/// A response's head, as far as it concerns the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// 100 to 999. Codes from 600 on have no meaning; RFC 9110 15 treats them as a server's error.
    pub status: u16,
    pub version: Version,
    pub framing: Framing,
    /// Whether the server allows another request on the connection after this response: RFC 9112 9.3. (The caller knows
    /// what the request itself asked for.)
    pub keep_alive: bool,
    /// Bytes up to and with the empty line; the content or the next response begins there.
    pub len: usize,
    /// Where the first field line begins, or the empty line if there is none.
    pub fields_start: usize,
}

/// How the content ends, RFC 9112 6.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is none: an answer to HEAD, or a status of 1xx, 204 or 304.
    None,
    /// Bytes, perhaps 0.
    Length(u64),
    Chunked,
    /// With the connection.
    UntilClose,
}

/// The properties of a request that determine its answer's framing, RFC 9112 6.3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestKind {
    /// Its answer never has content.
    Head,
    /// An answer of 2xx turns the connection into a tunnel.
    Connect,
    #[default]
    Other,
}

impl RequestKind {
    pub const fn of(method: Method) -> Self {
        match method {
            Method::Head => Self::Head,
            Method::Connect => Self::Connect,
            _ => Self::Other,
        }
    }
}

/// Parses the head at the beginning of `bytes`; `None` when it is incomplete. To parse bytes as they arrive use a
/// [`ResponseScan`], which looks at each byte once.
pub fn parse_response_head(
    bytes: &[u8],
    request: RequestKind,
    rules: &ResponseRules,
) -> Result<Option<ResponseHead>, ResponseFault> {
    ResponseScan::new(request, rules).parse(bytes)
}

impl ResponseHead {
    /// An interim answer, RFC 9110 15.2: the final one follows on the same connection. Not 101, after which the
    /// connection no longer carries HTTP/1.
    pub const fn is_interim(&self) -> bool {
        matches!(self.status, 100..=199) && self.status != SWITCHING_PROTOCOLS
    }

    /// What stands behind the status code, in the status line or in CGI's `Status`; empty where nothing does. `bytes`
    /// must be those of the parse.
    pub fn reason<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        let text = if self.fields_start > 0 {
            let line = bytes.get(..self.fields_start).unwrap_or(&[]);
            let version = line.iter().position(|byte| *byte == b'/').unwrap_or(0);
            line.get(version + "/1.x".len()..).unwrap_or(&[])
        } else {
            let mut fields = self.fields(bytes);
            let status = fields.find(|(name, _)| name.eq_ignore_ascii_case(b"status"));
            status.map_or(&[][..], |(_, value)| value)
        };
        line::trim(line::trim(text).get("200".len()..).unwrap_or(&[]))
    }

    /// The fields in their order: the name as sent, and the value without the blanks around it. A folded value still
    /// has its line ends inside. `bytes` must be those of the parse, and may be longer; with others the fields are
    /// wrong, or none.
    pub fn fields<'a>(&self, bytes: &'a [u8]) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let spans = self.field_spans(bytes);
        spans.map(|field| (field.name.of(bytes), field.value.of(bytes)))
    }

    /// As `fields`, with their meanings.
    pub fn field_spans<'a>(&self, bytes: &'a [u8]) -> Fields<'a> {
        Fields {
            bytes: bytes.get(..self.len).unwrap_or(&[]),
            at: self.fields_start,
        }
    }
}

/// RFC 9110 15.2.2.
const SWITCHING_PROTOCOLS: u16 = 101;

/// See [`ResponseHead::field_spans`].
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Iterator for Fields<'_> {
    type Item = Field;

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.at;
        if let Some(b'\r' | b'\n') | None = self.bytes.get(start) {
            return None;
        }
        let end = line::field_end(self.bytes, start).ok()?;
        let colon = line::colon(self.bytes, start).ok()?;
        self.at = end;
        let name = line::trimmed(self.bytes, start, colon);
        Some(Field {
            name,
            value: line::trimmed(self.bytes, colon + 1, end),
            known: KnownField::parse(name.of(self.bytes)),
            ..Field::default()
        })
    }
}

const _: () = assert!(size_of::<ResponseHead>() == 40);

#[cfg(test)]
mod tests;
