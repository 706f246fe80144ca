//! The stack of our own against Linux, over TAP devices.
//!
//! Every test runs on a thread with a network namespace of its own, which vanishes with the thread and the processes
//! that it has started, whatever happens. Without the right to make one (CAP_SYS_ADMIN) there is nothing to test, and the
//! tests say so.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(
    clippy::print_stdout,
    reason = "a failed test shows what it did; one that can't run says so"
)]

/// A thread with a network namespace of its own.
mod namespace;

/// Bytes that both ends know.
mod pattern;

/// The stack's end of transfers: an engine on a thread.
mod ours;

/// Linux's end of transfers: blocking sockets.
mod linux;

/// Both families, sizes of frames and options, both ways, as client and as server.
mod matrix;

/// Packets that are lost, overtaken, doubled and spoilt.
mod bad_wire;

/// The binary, serving.
mod server;

/// What people fetch with: curl, wrk, ab, Python.
mod tools;

/// Reloads, restarts, upgrades.
mod lifetime;

/// What is left at the end, however it comes.
mod ending;

/// nginx on kernel sockets.
mod nginx;

/// Load over the stack.
mod load;

/// What stands in the way, as users see it.
mod errors;

/// The stack that a configuration names.
mod directive;
