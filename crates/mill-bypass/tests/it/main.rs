//! The bypass engine under a worker, over a simulated network, in virtual time.
//!
//! The scenarios of reading, writing, ending and files are those that the kernel engine's tests run, word for word: the
//! two engines are meant to be the same to whoever is above. Only the servers and clients here are others.

#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helping functions as well"
)]

/// The network of a test, the worker that it runs, and the servers it runs on it.
mod server;

/// The other end: a stream of another host.
mod client;

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

/// Listening at the stack, at the inner engine, at both.
mod listeners;

/// What the transport counts as taken, and how much memory that is.
mod taken;

/// Wires that lose, and links that are full.
mod wires;
