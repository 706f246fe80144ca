//! Servers over AF_XDP without copies, on network cards whose drivers have it: those of a guest of QEMU.
//!
//! `cargo xtask vm` runs these tests; elsewhere each prints that it was not run. The guest has four cards on a bridge
//! outside, recognised by their addresses. A test takes the server's card and the clients' into network namespaces of its
//! own, and gives them back.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(
    clippy::print_stdout,
    reason = "a test that can't run says so, and tests of hardware what they have seen"
)]

/// A thread with a network namespace of its own.
#[expect(dead_code, reason = "tests over TAP devices need more of it")]
#[path = "../stack/namespace.rs"]
mod namespace;

/// The binary, serving.
#[expect(dead_code, reason = "tests over TAP devices need more of it")]
#[path = "../stack/server.rs"]
mod server;

/// Requests of one connection.
#[expect(dead_code, reason = "tests of the processes need more of it")]
#[path = "../process/client.rs"]
mod client;

/// The guest's cards.
mod card;

/// QEMU's monitor.
mod monitor;

/// A server on a card, and its client.
mod serving;

/// Requests and large bodies.
mod exchanging;

/// Links that go down and up.
mod links;

/// Numbers of queues, and sizes of rings.
mod settings;

/// Cards that lose their driver.
mod unbinding;
