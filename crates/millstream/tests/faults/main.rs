//! Faults and attacks, over kernel sockets, AF_XDP and memif, with a client that follows every request to its end:
//! started = answered + refused + reset + cut + wrong bytes + timed out + in progress when the client was ended.
//!
//! The client is `millstream load --expect`, one process on the tested transport. Each fault prints a row of
//! docs/measurements/faults.md, and appends it to the file that MILL_FAULTS names; the commands are in that page.
//! Without the right to make network namespaces the tests print that they were skipped.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(
    clippy::print_stdout,
    reason = "rows, and a test that can't run says so"
)]

/// A thread with a network namespace of its own.
#[expect(dead_code, reason = "tests of other suites need more of it")]
#[path = "../stack/namespace.rs"]
mod namespace;

/// The binary, serving.
#[expect(dead_code, reason = "tests of other suites need more of it")]
#[path = "../stack/server.rs"]
mod server;

/// Two namespaces and the link between them.
#[expect(dead_code, reason = "tests of other suites need more of it")]
#[path = "../bypass/topology.rs"]
mod topology;

/// The transports between client and server.
mod transport;

/// The fate of every request.
mod fates;

/// A server, its client, and the faults.
mod stage;

/// Reloads, upgrades, processes that are killed.
mod processes;

/// Slow clients.
mod slow;

/// Forged packets.
mod forged;

/// Disks, logs and served files.
mod files;
