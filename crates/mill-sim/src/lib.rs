//! A deterministic world for tests: virtual time, in-memory links and files, scripted clients.
//!
//! Whatever is written over `mill_runtime::engine::Engine` runs here unchanged, without a socket, a sleep or a
//! clock. A test makes a [`world::World`], gives its engine to a worker, lets clients act, and runs the worker's
//! turns until the world is at rest:
//!
//! ```
//! # use mill_sim::world::{Until, World};
//! # use mill_runtime::engine::{Engine, ListenOptions};
//! # use mill_runtime::worker::Worker;
//! # use mill_runtime::scheduler::Scheduler;
//! # use mill_runtime::stream::Stream;
//! # use mill_runtime::payload::Payload;
//! let world = World::new(7);
//! let engine = world.engine();
//! let (now, wall_clock) = engine.clock();
//! let listening = engine.listen(&ListenOptions::new(world.address("10.0.0.1:80"))).unwrap();
//! let mut worker = Worker::new(engine, Scheduler::new(now, wall_clock), |stream, _| async move {
//!     if stream.readable(5).await.is_ok() {
//!         stream.read(|bytes| {
//!             stream_free_answer(bytes);
//!             (bytes.len(), ())
//!         });
//!         stream.write(Payload::Copy(b"hello yourself"));
//!     }
//! });
//! # fn stream_free_answer(_: &[u8]) {}
//! worker.add_listener(listening.id);
//!
//! let client = world.connect("10.0.0.1:80");
//! client.send(b"hello");
//! world.run(|| worker.turn(), Until::Quiet);
//! assert_eq!(client.received(), b"hello yourself");
//! assert!(client.is_closed());
//! ```
//!
//! Invariants:
//! - The same seed and the same test make the same [`world::World::ladder`], line by line.
//! - Time moves only when every worker of the world waits, and only to the next instant at which something happens.
//! - Nothing here asks the operating system for anything.
#![forbid(unsafe_code)]

/// The world as a test sees it: engines, clients, time.
pub mod world;

/// A scripted peer.
pub mod client;

/// How bytes travel between two ends.
pub mod link;

/// The engine that a worker runs over.
pub mod engine;

/// One end of a connection, as a task holds it.
pub mod stream;

/// Files in memory, changed by the test while the server runs.
pub mod files;

/// Everything that carries connections: ends, listening sockets, engines.
mod network;

/// One end of a connection, as the network keeps it.
mod endpoint;

/// Listening sockets and their queues.
mod socket;

/// What will happen, by time.
mod agenda;

/// What happened, line by line.
mod ladder;

/// Seeded randomness.
mod random;
