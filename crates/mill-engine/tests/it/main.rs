//! The kernel engine under a worker, over sockets of the loopback interface: the behaviour of all engines, and what is
//! specific to this one.

#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helping functions as well"
)]

mill_conformance::conformance!(crate::server::Kernel);

mod client;
mod cold_files;
mod combined;
mod connecting;
mod files;
mod listeners;
mod narrow_paths;
mod server;
mod slots;
mod sources;
mod temporary_files;
