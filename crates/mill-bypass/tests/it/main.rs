//! The bypass engine under a worker, over a simulated network, in virtual time: the behaviours of every engine, and
//! its own.

#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helping functions as well"
)]

mill_conformance::conformance!(crate::server::Network);

/// A simulated network as a testbed, and the servers that run in it.
mod server;

/// Directories of the simulated file system.
#[path = "../../../mill-sim/tests/it/directory.rs"]
mod directory;

/// Tasks that connect.
mod connecting;

/// Listening at the stack, at the inner engine, at both.
mod listeners;

/// What the transport counts as taken, and how much memory that is.
mod taken;

/// Wires that lose, and links that are full.
mod wires;

/// Paths with a smaller MTU than the link.
mod path_mtu;

use server::sim_files;
