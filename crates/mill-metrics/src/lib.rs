//! Counters: what every worker counts, how it publishes the figures, and how their sum is shown.
//!
//! Place in the walk: a worker adds to its own `ServerCounters` while it serves requests, and
//! publishes them to its `Published` once a turn. Whoever answers `stub_status` or
//! `millstream status` reads all of them and adds them up.
//!
//! Whoever measures durations keeps them in a `Histogram`: the load generator, and the lab later.
//!
//! Invariants: no I/O, no clock, no `unsafe`, no global state. A worker adds with ordinary
//! arithmetic and publishes with ordinary stores: no atomic read-modify-write, no lock.
#![forbid(unsafe_code)]

/// Bytes as text (RFC 4648).
pub mod base64;
/// What a counter is called, what it counts, and the macro that makes a set from one table.
mod counter;
/// Durations by their frequency.
mod histogram;
/// A worker's figures, readable from other threads.
mod published;
/// Everything the server counts, one field each.
mod server_counters;
/// The four lines of nginx's `stub_status`.
mod stub_status;

pub use counter::{Description, Kind, Unit};
pub use histogram::{Histogram, HistogramError, Step};
pub use published::Published;
pub use server_counters::ServerCounters;
