//! The kernel engine under a worker, over sockets of the loopback interface: the behaviour of all engines, and what is
//! specific to this one.

#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helping functions as well"
)]

mill_conformance::conformance!(crate::server::Kernel);

/// Kernel sockets as a testbed, and the servers that run on it.
mod server;

/// The other end: a socket that never blocks the test.
mod client;

/// Tasks that connect.
mod connecting;

/// Workers that connect and never listen: source addresses and ports, thousands of connections, lack of descriptors.
mod sources;

/// Unix sockets, offered sockets, mail, and sockets with duplicates in other processes.
mod listeners;

/// Kernel sockets and the stack together.
mod combined;

/// Reuse of slots.
mod slots;

/// The file system.
mod files;

/// Files that are not in the page cache.
mod cold_files;

/// Datagrams over devices that carry less.
mod narrow_paths;
