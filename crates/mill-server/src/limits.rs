//! Limits by a key: `limit_req`, and `limit_conn` of `http` and of `stream`.
//!
//! A zone has one table for all workers, so limits are exact however requests are spread. A look-up takes one short lock:
//! tables of more than a thousand keys are in parts, and a key is in the part that its seeded hash tells. A table never
//! takes more memory than nginx's has: `limit_req` makes room by forgetting the key that was not used for longest
//! (of its part), `limit_conn` refuses a key for which there is none.
//!
//! What a request does with them is in `request/limit_req.rs` and `request/limit_conn.rs`, of a hot answer in `hot/limits.rs`,
//! of a session in `stream/limit.rs`.

/// Keys and what is known of them, in the order of their uses.
mod table;

/// A table in parts.
mod shards;

/// What a key owes.
mod owed;

/// Counting requests.
pub(crate) mod requests;

/// Counting what is under way.
pub(crate) mod connections;

/// What limits have made of a request.
pub(crate) mod note;

/// `$limit_req_status`, `$limit_conn_status`.
pub(crate) mod status;

/// The zones of a configuration.
mod zones;

pub use connections::{ConnectionFigures, ConnectionTable};
pub use requests::{RequestFigures, RequestTable};
pub use zones::{
    LimitZones, LimitedConnections, LimitedRequests, LimitedZone, ZoneDirective, ZoneFigures,
    ZoneTable,
};

use mill_config::config::{LogLevel, Template};
use std::fmt;

/// A number of requests in thousandths, as logs show it: `0.500`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thousandths(pub(crate) u64);

impl fmt::Display for Thousandths {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// What is limited: a request, or a session of `stream`.
pub(crate) trait Limited {
    /// The key, by which it is counted.
    fn evaluate(&mut self, key: &Template) -> Vec<u8>;

    /// Writes a line to its error log.
    fn log(&self, level: LogLevel, line: fmt::Arguments<'_>);
}
