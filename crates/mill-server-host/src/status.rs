//! What a running server reports about itself: the path of a question from a client to the worker threads and back.
//!
//! ```text
//! client.rs           finds the server, asks, waits two seconds, merges the answers
//! control_socket.rs   the socket of the process in charge
//! answer.rs           what that process knows: itself, and the figures that all workers have published
//! board.rs            the shared memory of those figures
//! inspect.rs          in the worker process: asks all worker threads, each of which answers a slice per turn
//! publish.rs          in the worker: figures after each turn
//! snapshot.rs         in the worker: tables on request
//! ```
//!
//! The process in charge (the master, or the only process) never waits for a worker: it answers with what it knows, and
//! passes the client's socket on to the worker process. So a worker that hangs is reported as well as one that runs.

/// What the process in charge knows.
pub(crate) mod answer;

/// The shared memory in which workers publish their figures.
pub(crate) mod board;

/// The client: `millstream status`.
pub mod client;

/// The server's control socket.
pub mod control_socket;

/// Paths of control sockets.
pub mod socket_path;

/// Captured frames of a running stack.
mod capture;

/// Inspection of the worker threads.
pub(crate) mod inspect;

/// Groups of servers.
pub(crate) mod upstreams;

/// Certificates of servers.
pub(crate) mod certificates;

/// Caches of answers.
pub(crate) mod caches;

/// Zones of limits.
pub(crate) mod limits;

/// Servers and locations with a `status_zone`.
pub(crate) mod zones;

/// Blocked addresses.
pub(crate) mod blocks;

/// Tables of a worker's stack.
pub(crate) mod snapshot;

/// Counters of a worker's device rings.
mod rings;

/// Facts about a port of DPDK.
mod port;

/// The figures that a worker publishes after each turn.
pub(crate) mod publish;

/// Types of parcels between client and server.
pub(crate) mod parcel {
    /// A `Request`, as JSON.
    pub(crate) const QUESTION: u8 = 20;
    /// A `Status`, as JSON: the first answer.
    pub(crate) const STATUS: u8 = 21;
    /// A `Part`, as JSON: one for each worker that was asked.
    pub(crate) const PART: u8 = 22;
    /// A message that says why there is no answer.
    pub(crate) const REFUSED: u8 = 23;
}
