//! The kernel engine under a worker, over real sockets of the loopback interface: what every engine must do, and what is
//! its own.

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

/// Workers that connect and never listen: source addresses and ports, thousands of connections, running out.
mod sources;

/// Unix sockets, offered sockets, mail, sockets that others hold.
mod listeners;

/// Kernel sockets and the stack together.
mod combined;

/// Slots that change their tenants.
mod slots;

/// The file system.
mod files;

/// Files that are not in the page cache.
mod cold_files;

/// Datagrams over devices that carry less.
mod narrow_paths;
