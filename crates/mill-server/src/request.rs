//! A request on its way, and the spine that leads it through its phases.

use crate::response::FieldLine;
use crate::site::Site;
use mill_config::config::{Location, Server};
use mill_http::h1::head::RequestHead;
use mill_http::method::Method;
use mill_runtime::address::Address;
use mill_runtime::time::{Instant, UnixTime};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// Everything that is known of a request while it is handled. Handlers and filters read and change it; what is
/// evaluated for a variable comes from it.
#[derive(Debug)]
pub struct Request {
    /// The configuration this request began with.
    pub site: Arc<Site>,
    pub connection: Rc<ConnectionFacts>,
    /// How many requests the connection has brought, this one included.
    pub connection_requests: u64,
    pub message: Message,
    /// When its first byte was looked at.
    pub started: Instant,
    pub started_wall_clock: UnixTime,

    pub server: Arc<Server>,
    pub location: Arc<Location>,
    /// As sent, or GET after an `error_page` redirect.
    pub method: Method,
    /// Decoded and normalised path; changed by rewrites and internal redirects.
    pub uri: Vec<u8>,
    /// What follows `?`; changed by rewrites.
    pub args: Vec<u8>,
    /// The captures of the regular expression that matched last.
    pub captures: CaptureSet,
    /// Values of user variables (`set`, `map`, named captures) by their index; `None` is not set.
    pub variables: Vec<Option<Vec<u8>>>,
    /// It came here by an internal redirect.
    pub internal: bool,
    /// How many internal redirects it has made.
    pub redirects: u8,
    /// The status that an `error_page` answers for.
    pub error_status: Option<u16>,
    /// Set by `set $limit_rate`; bytes per second.
    pub limit_rate: Option<u64>,
    pub sent: Sent,
}

/// What does not change while a connection lives.
#[derive(Debug)]
pub struct ConnectionFacts {
    /// Unique within the server process: `$connection`.
    pub number: u64,
    pub peer: Address,
    pub local: Address,
    /// Index into `Config.http.listeners` of the configuration it was accepted under.
    pub listener: usize,
    pub started: Instant,
}

/// The request's head, in memory of its own.
#[derive(Debug, Default)]
pub struct Message {
    /// From the request line's first byte to the empty line. What `head`'s spans refer to.
    pub bytes: Vec<u8>,
    pub head: RequestHead,
}

/// Captures and the text they were taken from.
#[derive(Debug, Default)]
pub struct CaptureSet {
    pub subject: Vec<u8>,
    pub ranges: Vec<Option<Range<usize>>>,
}

/// What has been sent, for logs and variables.
#[derive(Debug, Default)]
pub struct Sent {
    /// 0 until the answer's head is made; 499 if the client went first.
    pub status: u16,
    /// Head and content.
    pub bytes: u64,
    pub content_bytes: u64,
    /// The answer's field lines, for `$sent_http_…`; empty for an answer that came from the hot path.
    pub fields: Vec<FieldLine>,
    /// Content bytes before compression, if it was compressed.
    pub uncompressed_bytes: Option<u64>,
    /// The answer went out whole (`$request_completion`).
    pub complete: bool,
}

impl CaptureSet {
    /// Capture `number`; empty if it took no part.
    pub fn capture(&self, number: usize) -> &[u8] {
        let range = self.ranges.get(number).and_then(Option::clone);
        range
            .and_then(|range| self.subject.get(range))
            .unwrap_or_default()
    }
}
