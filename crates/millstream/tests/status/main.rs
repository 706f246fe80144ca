//! `millstream status` against running servers: on kernel sockets, over TAP and over AF_XDP; hanging workers are named.
//!
//! Tests with a stack run in network namespaces of their own, as those of tests/bypass; without the right to make them
//! the tests print that they were skipped.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "a test that can't run says so")]

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

/// Two namespaces and the link between them.
#[expect(dead_code, reason = "tests of the bypass need more of it")]
#[path = "../bypass/topology.rs"]
mod topology;

/// Queries and their results.
mod ask;

/// Servers on kernel sockets, and those that do not answer.
mod kernel;

/// Servers on a stack of their own.
mod stack;
