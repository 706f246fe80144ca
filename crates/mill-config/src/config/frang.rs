//! `frang`: limits against attacks, with the names and the meaning of Tempesta FW's `frang_limits`.
//!
//! What has to be known before there is a request, or holds for all of a client's requests together, is the same for all of
//! `http` ([`FrangLimits`]); what is looked at in one request belongs to its location
//! ([`FrangSettings`](super::settings::FrangSettings)).

use super::byte_set::AllowedBytes;
use super::{LogLevel, Network};
use crate::Text;
use crate::diagnostic::Spot;

/// Limits of clients, for all servers of `http` together. 0 is no limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrangLimits {
    /// There is a `frang` block somewhere; without one nothing is counted.
    pub is_on: bool,
    /// `ip_block`: whether and how long a client that exceeds a limit is refused before anything else is looked at.
    pub ip_block: Option<BlockTime>,
    /// `request_rate`, `request_burst`.
    pub requests: RateLimit,
    /// `tcp_connection_rate`, `tcp_connection_burst`.
    pub connections: RateLimit,
    /// `concurrent_tcp_connections`.
    pub connections_max: u32,
    /// `tls_connection_rate`, `tls_connection_burst`: handshakes that do not resume a session.
    pub handshakes: RateLimit,
    /// `tls_incomplete_connection_rate`: connections that end before their handshake does, in a second.
    pub incomplete_handshakes: u32,
    /// `http_hdr_len`: bytes of a field with its name.
    pub field_bytes: u32,
    /// `http_header_cnt`: fields of a request.
    pub fields: u32,
    /// `http_header_chunk_cnt`: pieces in which a head may arrive.
    pub head_pieces: u32,
    /// `http_body_chunk_cnt`: pieces in which content may arrive.
    pub content_pieces: u32,
    /// `action`.
    pub action: FrangAction,
    /// `error_action`: what becomes of requests that are malformed.
    pub error_action: FrangAction,
    /// `http_uri_brange` and its like: bytes that parts of heads may have.
    pub bytes: Vec<AllowedBytes>,
    /// `log_level`.
    pub log_level: LogLevel,
    /// `clients`: most clients of which the counts are kept.
    pub clients: u32,
    /// `blocks`: most addresses that are blocked at a time.
    pub blocks: u32,
    /// `whitelist`: clients without limits.
    pub whitelist: Vec<Network>,
    /// `whitelist_mark`: clients without limits, by what netfilter says of their connections.
    pub whitelist_marks: Option<WhitelistMarks>,
    /// `tls_fingerprint`, `http_fingerprint`: limits of kinds of clients, whatever their addresses are.
    pub tls_fingerprints: Vec<FingerprintLimit>,
    pub http_fingerprints: Vec<FingerprintLimit>,
}

/// `whitelist_mark MARK…`.
#[derive(Debug, Clone)]
pub struct WhitelistMarks {
    /// Marks of netfilter.
    pub marks: Vec<u32>,
    /// Where it is written: whether this machine has marks is known at start.
    pub spot: Spot,
}

/// Equal marks are equal, wherever they are written.
impl PartialEq for WhitelistMarks {
    fn eq(&self, other: &Self) -> bool {
        self.marks == other.marks
    }
}

impl Eq for WhitelistMarks {}

/// The limit of a kind of clients; 0 lets none in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FingerprintLimit {
    /// As `$tls_fingerprint` and `$request_fingerprint` show it.
    pub fingerprint: u64,
    /// Most new connections in a second.
    pub connections: u16,
    /// Most requests in a second.
    pub requests: u16,
}

/// How many in a time frame, and in an eighth of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// Most in the last time frame; 0 is no limit.
    pub rate: u32,
    /// Most in an eighth of it; 0 is no limit.
    pub burst: u32,
    /// The time frame in seconds.
    pub frame_s: u16,
}

/// How long an address is blocked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockTime {
    Seconds(u32),
    /// Until it is removed through the API, or another one needs its place.
    Unlimited,
}

/// What becomes of a client that exceeds a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrangAction {
    /// It gets 403, or 400 for what is malformed, and its connection is closed behind that.
    Reply,
    /// Its connection is reset.
    Drop,
}

/// `http_resp_code_block`: how many answers with certain statuses a client may cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusLimit {
    /// First and last of each range.
    pub statuses: Vec<(u16, u16)>,
    /// Most in the time frame.
    pub most: u16,
    /// In seconds.
    pub frame_s: u16,
    /// Its number among those of the configuration: each is counted by itself.
    pub index: u32,
}

/// `http_methods`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FrangMethods {
    /// In upper case.
    pub named: Vec<Text>,
    /// `unknown`: also those that [`KNOWN_METHODS`] does not have.
    pub unknown: bool,
}

impl FrangLimits {
    /// Whether connections are counted by their client.
    pub const fn counts_connections(&self) -> bool {
        self.connections.is_limited()
            || self.connections_max > 0
            || self.handshakes.is_limited()
            || self.incomplete_handshakes > 0
    }

    /// Whether kinds of clients have limits.
    pub const fn limits_kinds(&self) -> bool {
        !self.tls_fingerprints.is_empty() || !self.http_fingerprints.is_empty()
    }

    /// Whether a request with a kept answer goes the whole way, too, where all of it is looked at.
    pub const fn looks_at_all(&self) -> bool {
        self.limits_kinds() || !self.bytes.is_empty()
    }

    /// Whether heads have limits of their own.
    pub const fn limits_heads(&self) -> bool {
        self.field_bytes > 0 || self.fields > 0
    }
}

impl Default for FrangLimits {
    fn default() -> Self {
        Self {
            is_on: false,
            ip_block: None,
            requests: RateLimit::default(),
            connections: RateLimit::default(),
            connections_max: 0,
            handshakes: RateLimit::default(),
            incomplete_handshakes: 0,
            field_bytes: 0,
            fields: 0,
            head_pieces: 0,
            content_pieces: 0,
            action: FrangAction::Reply,
            error_action: FrangAction::Reply,
            bytes: Vec::new(),
            log_level: LogLevel::Warn,
            clients: CLIENTS_DEFAULT,
            blocks: BLOCKS_DEFAULT,
            whitelist: Vec::new(),
            whitelist_marks: None,
            tls_fingerprints: Vec::new(),
            http_fingerprints: Vec::new(),
        }
    }
}

impl RateLimit {
    pub const fn is_limited(&self) -> bool {
        self.rate > 0 || self.burst > 0
    }
}

impl Default for RateLimit {
    fn default() -> Self {
        Self {
            rate: 0,
            burst: 0,
            frame_s: 1,
        }
    }
}

impl StatusLimit {
    pub fn contains(&self, status: u16) -> bool {
        let mut ranges = self.statuses.iter();
        ranges.any(|&(first, last)| (first..=last).contains(&status))
    }
}

impl FrangMethods {
    /// Whether the method is let in; methods are case-sensitive (RFC 9110 9.1).
    pub fn contains(&self, method: &[u8]) -> bool {
        let is_named = self.named.iter().any(|named| **named == *method);
        is_named || (self.unknown && !is_known(method))
    }
}

/// Whether `http_methods` has a name for the method.
fn is_known(method: &[u8]) -> bool {
    let mut known = KNOWN_METHODS.iter();
    known.any(|known| known.as_bytes() == method)
}

/// Names that `http_methods` takes, besides `unknown` and `all`.
pub const KNOWN_METHODS: [&str; 16] = [
    "COPY",
    "DELETE",
    "GET",
    "HEAD",
    "LOCK",
    "MKCOL",
    "MOVE",
    "OPTIONS",
    "PATCH",
    "POST",
    "PROPFIND",
    "PROPPATCH",
    "PURGE",
    "PUT",
    "TRACE",
    "UNLOCK",
];

/// Clients whose counts are kept where nothing is written: about 20 MB when all places are taken.
pub const CLIENTS_DEFAULT: u32 = 65_536;

/// Addresses that may be blocked at a time where nothing is written.
pub const BLOCKS_DEFAULT: u32 = 16_384;
