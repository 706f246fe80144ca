//! The bypass engine under a worker, over a simulated network, in virtual time: the behaviours of every engine, and
//! its own.

#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helping functions as well"
)]

mill_conformance::conformance!(crate::server::Network);

mod connecting;
#[path = "../../../mill-sim/tests/it/directory.rs"]
mod directory;
mod listeners;
mod path_mtu;
mod server;
mod taken;
mod wires;

use server::sim_files;
