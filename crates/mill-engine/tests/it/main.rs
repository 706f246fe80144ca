//! The kernel engine under a worker, over real sockets of the loopback interface.
//!
//! Worker and clients share the test's thread: a client acts, the worker turns until what is expected has happened.
//! Nothing polls a task but the engine's own reports, so that a lost one fails the test.

#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helping functions as well"
)]

/// The worker that the tests run, and the servers they run on it.
mod server;

/// Turns until something has happened.
mod turns;

/// What servers do with a connection.
mod serving;

/// A server that connects.
mod connector;

/// What tasks tell the test, in order.
mod story;

/// Bytes that streams carry.
mod content;

/// The other end: a socket that never blocks the test.
mod client;

/// What clients expect of the server.
mod expecting;

/// Reading: splits, contiguous bytes, what is left unread.
mod reading;

/// Writing: order, gathering, slow readers, fairness.
mod writing;

/// Files that are sent.
mod file_payloads;

/// FIN and RST, both ways.
mod ending;

/// Tasks that connect.
mod connecting;

/// Workers that connect and never listen: source addresses and ports, thousands of connections, running out.
mod sources;

/// Accepting: pauses, limits, clients that are gone, and the end of it.
mod accepting;

/// Unix sockets, offered sockets, mail, sockets that others hold.
mod listeners;

/// Kernel sockets and the stack together.
mod combined;

/// Slots that change their tenants.
mod slots;

/// The file system.
mod files;
