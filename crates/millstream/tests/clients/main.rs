//! TLS and HTTP/2 by clients of other authors, over each of the networks that Millstream serves on: kernel sockets, a TAP
//! device and AF_XDP.
//!
//! Every test runs on a thread with network namespaces of its own, as those in `bypass` do; without the right to make
//! them the tests print that they were skipped. A client whose program or library is not installed is not tested.
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

/// Two namespaces and the link between them.
#[expect(dead_code, reason = "tests of AF_XDP alone need more of it")]
#[path = "../bypass/topology.rs"]
mod topology;

/// A server on one of the networks, and the place of its clients.
mod stage;

/// A server behind, of HTTP/1.1.
mod origin;

/// Futures of one connection.
mod executor;

/// What h2 reads from and writes to.
mod transport;

/// Rust's h2, under hyper.
mod rust_h2;

/// Go's net/http.
mod go;

/// grpcio.
mod grpc;

/// Chromium.
mod browser;

/// curl and h2load.
mod tools;
