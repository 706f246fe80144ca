//! The head of an upstream server's answer, as the head of ours.

use super::body::AnswerBody;
use crate::response::{FieldLine, Response};
use mill_config::config::pass::PassProtocol;
use mill_config::config::settings::{IgnoredFields, PassSettings};
use mill_http::date::parse_http_date;
use mill_http::h1::response::ResponseHead;
use mill_http::status::Status;
use std::borrow::Cow;

/// A parsed head with its bytes.
#[derive(Debug)]
pub(super) struct AnswerHead {
    pub(super) head: ResponseHead,
    /// Reads what follows.
    pub(super) body: AnswerBody,
    pub(super) bytes: Vec<u8>,
}

/// What the answer says to us, and not to the client.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Accel {
    /// `X-Accel-Redirect`: answer with this URI instead, or with a named location.
    pub(super) redirect: Option<Vec<u8>>,
    /// `X-Accel-Buffering`.
    pub(super) buffering: Option<bool>,
    /// `X-Accel-Limit-Rate`, bytes per second.
    pub(super) limit_rate: Option<u64>,
    /// `X-Accel-Charset`.
    pub(super) charset: Option<Vec<u8>>,
}

/// How a field of the answer is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Treatment {
    /// It concerns the connection to the server.
    Dropped,
    ContentType,
    LastModified,
    ETag,
    AcceptRanges,
    Passed,
}

impl AnswerHead {
    /// The answer without its content, and what the server tells us.
    pub(super) fn respond<File>(
        &self,
        settings: &PassSettings,
        protocol: PassProtocol,
    ) -> (Response<File>, Accel) {
        let mut response = Response::empty(Status(self.head.status));
        response.proxied = true;
        response.ranges = settings.force_ranges;
        // nginx passes the phrase on.
        let reason = self.head.reason(&self.bytes);
        let usual = response.status.reason().unwrap_or_default();
        if !reason.is_empty() && reason != usual.as_bytes() {
            response.reason = Some(reason.to_vec());
        }
        let mut accel = Accel::default();
        for (name, value) in self.head.fields(&self.bytes) {
            accel.read(settings, name, value);
            if settings.hides(protocol, name) {
                continue;
            }
            match treatment(name) {
                Treatment::Dropped => {}
                // The filter of ranges says it.
                Treatment::AcceptRanges if settings.force_ranges => {}
                Treatment::ContentType => response.content_type = Some(value.to_vec()),
                Treatment::LastModified => {
                    response.last_modified = parse_http_date(value);
                    response.fields.push(line(name, value));
                }
                Treatment::ETag => response.etag = Some(value.to_vec()),
                Treatment::AcceptRanges | Treatment::Passed => {
                    response.fields.push(line(name, value));
                }
            }
        }
        (response, accel)
    }

    /// Names and values, in their order.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.head.fields(&self.bytes)
    }

    /// The value of `Content-Length`, where the head alone is sent: to a HEAD, or with 304.
    pub(super) fn announced_length(&self) -> Option<u64> {
        let mut fields = self.head.fields(&self.bytes);
        let (_, value) = fields.find(|(name, _)| name.eq_ignore_ascii_case(b"Content-Length"))?;
        std::str::from_utf8(value).ok()?.parse().ok()
    }
}

impl Accel {
    fn read(&mut self, settings: &PassSettings, name: &[u8], value: &[u8]) {
        let (Some(b'X' | b'x'), Some(rest)) =
            (name.first(), strip_prefix_of_any_case(name, b"X-Accel-"))
        else {
            return;
        };
        let is_heeded = |field| !settings.ignore_headers.contains(field);
        match rest.to_ascii_lowercase().as_slice() {
            b"redirect" if is_heeded(IgnoredFields::ACCEL_REDIRECT) => {
                self.redirect = Some(value.to_vec());
            }
            b"buffering" if is_heeded(IgnoredFields::ACCEL_BUFFERING) => {
                self.buffering = match value.to_ascii_lowercase().as_slice() {
                    b"yes" => Some(true),
                    b"no" => Some(false),
                    _ => self.buffering,
                };
            }
            b"limit-rate" if is_heeded(IgnoredFields::ACCEL_LIMIT_RATE) => {
                let number = std::str::from_utf8(value).ok();
                self.limit_rate = number.and_then(|number| number.parse().ok());
            }
            b"charset" if is_heeded(IgnoredFields::ACCEL_CHARSET) => {
                self.charset = Some(value.to_vec());
            }
            _ => {}
        }
    }
}

fn treatment(name: &[u8]) -> Treatment {
    let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
    match name.len() {
        4 if is("ETag") => Treatment::ETag,
        10 if is("Connection") || is("Keep-Alive") => Treatment::Dropped,
        12 if is("Content-Type") => Treatment::ContentType,
        13 if is("Last-Modified") => Treatment::LastModified,
        13 if is("Accept-Ranges") => Treatment::AcceptRanges,
        14 if is("Content-Length") => Treatment::Dropped,
        17 if is("Transfer-Encoding") => Treatment::Dropped,
        _ => Treatment::Passed,
    }
}

fn strip_prefix_of_any_case<'a>(name: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = name.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

fn line(name: &[u8], value: &[u8]) -> FieldLine {
    FieldLine {
        name: owned_name(name),
        value: value.to_vec(),
    }
}

/// A copy of the name, except of frequent ones in their usual spelling.
fn owned_name(name: &[u8]) -> Cow<'static, [u8]> {
    let known = FREQUENT.iter().find(|known| known.as_bytes() == name);
    known.map_or_else(
        || Cow::Owned(name.to_vec()),
        |known| Cow::Borrowed(known.as_bytes()),
    )
}

/// Fields of many answers that are passed on as they are.
const FREQUENT: &[&str] = &[
    "Accept-Ranges",
    "Cache-Control",
    "Content-Encoding",
    "Expires",
    "Last-Modified",
    "Location",
    "Set-Cookie",
    "Vary",
];
