//! Counters: what every worker counts, how it publishes the figures, and how their sum is shown.
//!
//! Place in the walk: a worker adds to its own `ServerCounters` while it serves requests, and publishes them in its
//! slot of the `Board` once a turn. `stub_status` and `millstream status` read all of them and add them up.
//!
//! Durations are kept in a `Histogram`: by the load generator, and by the lab later.
//!
//! What counts for a server behind a proxy, or for a `status_zone`, is shared by the workers: `Latency`, `StatusCounts`.
//!
//! Invariants: no I/O, no clock, no `unsafe`, no global state, no lock. A worker adds to `ServerCounters` with ordinary
//! arithmetic and publishes with ordinary stores; what is shared takes relaxed additions.
#![forbid(unsafe_code)]

/// Bytes as text (RFC 4648).
pub mod base64;
/// Where the workers of one process publish their figures.
pub mod board;
/// The name and the description of a counter, and the macro that makes a set from one table.
mod counter;
/// Durations by their frequency.
mod histogram;
/// How long answers took.
mod latency;
/// The text format of Prometheus.
pub mod prometheus;
/// Everything the server counts, one field each.
mod server_counters;
/// Everything that a stack of our own counts, one field each.
pub mod stack_counters;
/// Answers by their status.
mod status_counts;
/// The four lines of nginx's `stub_status`.
mod stub_status;

pub use board::{Board, WorkerFigures};
pub use counter::{Description, Kind, Unit};
pub use histogram::{Histogram, HistogramError, Step};
pub use latency::{Latency, LatencyCounts};
pub use server_counters::ServerCounters;
pub use stack_counters::StackCounters;
pub use status_counts::StatusCounts;
