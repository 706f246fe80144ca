//! The stack of our own against Linux, over TAP devices.
//!
//! Every test runs on a thread with a network namespace of its own, which vanishes with the thread and the processes
//! that it has started, whatever happens. Without the right to make one (CAP_SYS_ADMIN) the tests print that they were
//! skipped.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(
    clippy::print_stdout,
    reason = "a failed test shows what it did; one that can't run says so"
)]

/// A thread with a network namespace of its own.
#[expect(dead_code, reason = "tests that measure time need more of it")]
mod namespace;

/// Bytes that both ends can compute.
mod pattern;

/// The stack's end of transfers: an engine on a thread.
mod ours;

/// Linux's end of transfers: blocking sockets.
mod linux;

/// Both families, sizes of frames and options, both ways, as client and as server.
mod matrix;

/// Packets that are lost, reordered, duplicated and corrupted.
mod bad_wire;

/// The binary, serving.
mod server;

/// Common clients: curl, wrk, ab, Python.
mod tools;

/// Reloads, restarts, upgrades.
mod lifetime;

/// What is left behind after any kind of end: nothing.
mod ending;

/// nginx on kernel sockets.
mod nginx;

/// Load over the stack.
mod load;

/// What tests of proxies share.
mod proxied;

/// A proxy between kernel and stack.
mod proxy;

/// A server with TLS and HTTP/2.
mod secured;

/// TLS and HTTP/2.
mod tls;

/// Errors as users see them.
mod errors;

/// The stack that a configuration names.
mod directive;
