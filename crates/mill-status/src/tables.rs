//! The tables of one worker.

use crate::document::Worker;
use serde::{Deserialize, Serialize};

/// A worker's answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Part {
    pub process: u32,
    pub worker: u32,
    /// The worker's figures as of its answer; they are moved to `Status::workers`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figures: Option<Box<Worker>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<Connection>,
    /// Connections that the worker has, in every state, shown or not.
    #[serde(default)]
    pub connections_total: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listeners: Vec<Listener>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub neighbors: Vec<Neighbor>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Route>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rings: Vec<Fact>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timers: Vec<Fact>,
    /// Of all workers together, in the first one's part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub upstreams: Vec<UpstreamServer>,
    /// As `upstreams`, those of all workers together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<Zone>,
    /// As `upstreams`, those of all workers together; asked for with `zones`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<Limit>,
    /// As `upstreams`, those of all workers together; always there, whatever was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caches: Vec<Cache>,
    /// As `upstreams`, those of all workers together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<Block>,
    /// As `upstreams`, those of all workers together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub certificates: Vec<Certificate>,
    /// The result of a capture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captured: Option<Captured>,
}

/// The result of a capture.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Captured {
    pub frames: u64,
    /// Of records, headers included.
    pub bytes: u64,
    pub seconds: f64,
    /// Blocks of frames that were lost because writing was too slow.
    pub lost_blocks: u64,
    /// Why it ended early, if it failed: a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// A connection, with the names of `ss -ti`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Connection {
    /// `established`, `syn-sent`, …
    pub state: String,
    /// `stack` or `kernel`: which TCP has it.
    pub by: String,
    pub local: String,
    pub remote: String,
    /// Bytes that the application has not read.
    pub receive_queue: u64,
    /// Bytes that the application has written and the peer has not acknowledged.
    pub send_queue: u64,
    pub rtt_us: u64,
    pub rttvar_us: u64,
    pub rto_us: u64,
    pub mss: u16,
    /// Bytes.
    pub cwnd: u32,
    /// Bytes; `None` before the first reduction.
    pub ssthresh: Option<u32>,
    /// The window offered by the peer, and the one offered to it.
    pub send_window: u32,
    pub receive_window: u32,
    pub in_flight: u32,
    pub sacked: u32,
    pub lost: u32,
    pub retransmitted: u32,
    /// Consecutive expiries of the retransmission timer.
    pub backoff: u8,
    /// Of loss recovery: `open`, `disorder`, `cwr`, `recovery`, `loss`.
    pub recovery: String,
    /// Negotiated options: `ts`, `sack`, `ecn`, `wscale:7,7`.
    pub options: Vec<String>,
    pub bytes_acked: u64,
    /// The application has closed it.
    pub is_orphan: bool,
}

/// A listening address of the stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listener {
    pub address: String,
    /// Connections that wait to be accepted, and their maximum.
    pub waiting: u32,
    pub backlog: u32,
    /// Handshakes in progress, and their number above which cookies are sent.
    pub half_open: u32,
    pub half_open_max: u32,
    /// Cookies are being sent.
    pub sends_cookies: bool,
}

/// A zone of `limit_req` or `limit_conn`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    pub name: String,
    /// Its directive.
    pub kind: String,
    /// Keys that it has.
    pub keys: u64,
    /// Requests, or sessions, by what became of them; only requests are delayed.
    pub passed: u64,
    pub delayed: Option<u64>,
    pub rejected: u64,
    /// Those that would have been delayed or rejected.
    pub dry_run: u64,
}

/// A server of a group that requests are passed to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpstreamServer {
    pub group: String,
    pub server: String,
    /// Its number in the API.
    pub id: u32,
    /// As in the API: `up`, `draining`, `down`, …
    pub state: String,
    pub weight: u32,
    pub is_backup: bool,
    /// Requests and tunnels that use it.
    pub active: u32,
    pub requests: u64,
    /// By class, 1xx to 5xx.
    pub answers: [u64; 5],
    /// Tries that failed.
    pub fails: u64,
    /// Health checks, those that did not pass, and whether the last one did; `None` before the first.
    pub checks: u64,
    pub checks_failed: u64,
    pub last_check_passed: Option<bool>,
    /// Until the head and the end of answers; `None` before the first answer.
    pub header_p50_us: Option<u64>,
    pub header_p99_us: Option<u64>,
    pub response_p50_us: Option<u64>,
    pub response_p99_us: Option<u64>,
}

/// Servers, or locations, with one `status_zone`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zone {
    pub name: String,
    /// `server` or `location`.
    pub kind: String,
    /// Requests under way; `None` for locations, which count a request at its end.
    pub processing: Option<u64>,
    pub requests: u64,
    /// By class, 1xx to 5xx.
    pub answers: [u64; 5],
    /// Requests that were over without an answer.
    pub discarded: u64,
    pub received_bytes: u64,
    pub sent_bytes: u64,
    /// Until the end of answers; `None` before the first answer.
    pub p50_us: Option<u64>,
    pub p99_us: Option<u64>,
}

/// A cache of answers: one `…_cache_path`. Counts of requests are since the last reset through the API, the others since
/// the cache was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    pub name: String,
    /// Whose directive it is: `proxy`, `fastcgi`, …
    pub protocol: String,
    /// Objects, also those that are being filled, and their limit.
    pub objects: u64,
    pub objects_max: u64,
    /// Bytes of whole objects, and their limit.
    pub bytes: u64,
    pub bytes_max: u64,
    /// Answers to requests, by what became of the look-up.
    pub hit: CacheAnswers,
    pub stale: CacheAnswers,
    pub updating: CacheAnswers,
    pub revalidated: CacheAnswers,
    pub miss: CacheAnswers,
    pub expired: CacheAnswers,
    pub bypass: CacheAnswers,
    /// Fills under way, and their bytes.
    pub filling: u64,
    pub filling_bytes: u64,
    /// Objects that became whole, or were validated.
    pub filled: u64,
    /// Requests that found their answer being filled by another one.
    pub collapsed: u64,
    /// Requests and fills that went on without being stored, because of a limit.
    pub passes: u64,
    /// Purges, and those by the beginning of a key whose objects are not all removed yet.
    pub purges: u64,
    pub purges_pending: u64,
    /// Objects that left: for want of room, unused for too long, purged, replaced by newer ones, never whole.
    pub left_room: u64,
    pub left_inactive: u64,
    pub left_purged: u64,
    pub left_replaced: u64,
    pub left_unfinished: u64,
    /// Its folder, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<CacheDisk>,
    /// The objects that take the most memory, if the table was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub largest: Vec<CacheObject>,
}

/// The folder of a cache. Counts are since the cache was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheDisk {
    /// Files and the bytes that they take; `bytes_max` is absent without `max_size`.
    pub files: u64,
    pub bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_max: Option<u64>,
    /// The files of earlier processes are not all known yet.
    pub cold: bool,
    /// Objects that were written, and bytes of their files; objects that wait for it.
    pub written: u64,
    pub written_bytes: u64,
    pub queued: u64,
    /// Objects that were read back into memory.
    pub restored: u64,
    /// Objects that were not written, because too many waited or one was too large; that could not be written or read.
    pub skipped: u64,
    pub failed: u64,
    /// Files that did not match their checksums.
    pub damaged: u64,
    /// Files that left for want of room, and because nothing asked for them.
    pub left_room: u64,
    pub left_inactive: u64,
    /// Purges that are in effect, and kept until no file is left that they concern.
    pub purges: u64,
}

/// Answers to requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheAnswers {
    pub responses: u64,
    /// Bytes of heads and content that clients were sent.
    pub bytes: u64,
}

/// An object in a cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheObject {
    /// Its key; bytes that are no visible ASCII are escaped, and a long one is cut.
    pub key: String,
    /// What it takes of the cache's limit.
    pub bytes: u64,
}

impl Cache {
    /// Answers that were kept ones.
    pub const fn hits(&self) -> u64 {
        self.hit.responses
            + self.stale.responses
            + self.updating.responses
            + self.revalidated.responses
    }

    /// Answers that a server gave although they were looked for: without those that bypass the cache.
    pub const fn misses(&self) -> u64 {
        self.miss.responses + self.expired.responses
    }
}

/// An address whose connections are refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    pub address: String,
    /// The limit that it has exceeded, or `api`.
    pub reason: String,
    /// Seconds since it was blocked.
    pub since_s: u64,
    /// Seconds until the block ends; `None` if it has no end.
    pub left_s: Option<u64>,
}

/// A certificate that servers show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// The server, by its first name; others may share it.
    pub server: String,
    /// Where it was read from.
    pub file: String,
    /// What it is valid for.
    pub names: Vec<String>,
    pub subject: String,
    pub issuer: String,
    pub serial: String,
    /// Seconds since 1970.
    pub not_before: i64,
    /// Seconds since 1970.
    pub not_after: i64,
    /// Until then; negative once it has expired.
    pub days_left: i64,
}

/// A neighbour on the link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbor {
    pub address: String,
    pub mac: String,
    /// `reachable`, `stale`, `asked`, …
    pub state: String,
}

/// A route.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    pub target: String,
    /// `None` is on the link.
    pub gateway: Option<String>,
    /// Another interface leads there: kernel sockets reach it.
    pub is_elsewhere: bool,
}

/// A figure of a device, a table or a ring, in its own terms.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    pub name: String,
    pub value: String,
}
