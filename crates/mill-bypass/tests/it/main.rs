//! The bypass engine under a worker, over a simulated network, in virtual time.
//!
//! The scenarios of accepting, reading, writing, ending and files are those that the kernel engine's tests run, word for word: the
//! two engines are meant to be the same to whoever is above. Only the servers and clients here are others.

#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helping functions as well"
)]

/// The network of a test, the worker that it runs, and the servers it runs on it.
mod server;

/// Turns until something has happened.
#[path = "../../../mill-engine/tests/it/turns.rs"]
mod turns;

/// What servers do with a connection.
#[path = "../../../mill-engine/tests/it/serving.rs"]
mod serving;

/// A server that connects.
#[path = "../../../mill-engine/tests/it/connector.rs"]
mod connector;

/// What tasks tell the test, in order.
#[path = "../../../mill-engine/tests/it/story.rs"]
mod story;

/// Bytes that streams carry.
#[path = "../../../mill-engine/tests/it/content.rs"]
mod content;

/// The other end: a stream of another host.
mod client;

/// What clients expect of the server.
#[path = "../../../mill-engine/tests/it/expecting.rs"]
mod expecting;

/// Directories of the simulated file system.
mod files;

/// Reading: splits, contiguous bytes, what is left unread.
#[path = "../../../mill-engine/tests/it/reading.rs"]
mod reading;

/// Writing: order, gathering, slow readers, fairness.
#[path = "../../../mill-engine/tests/it/writing.rs"]
mod writing;

/// Files that are sent.
#[path = "../../../mill-engine/tests/it/file_payloads.rs"]
mod file_payloads;

/// FIN and RST, both ways.
#[path = "../../../mill-engine/tests/it/ending.rs"]
mod ending;

/// Tasks that connect.
mod connecting;

/// Accepting: pauses, limits, clients that are gone, and the end of it.
#[path = "../../../mill-engine/tests/it/accepting.rs"]
mod accepting;

/// Listening at the stack, at the inner engine, at both.
mod listeners;

/// What the transport counts as taken, and how much memory that is.
mod taken;

/// Wires that lose, and links that are full.
mod wires;

/// Paths that carry less than the link.
mod path_mtu;
