//! A deterministic world for tests: virtual time, in-memory links and files, scripted clients.
//!
//! Whatever is written over `mill_runtime::engine::Engine` runs here unchanged, without a socket, a sleep or a
//! clock. A test makes a [`world::World`], gives its engine to a worker, lets clients act, and runs the worker's
//! turns until the world is at rest:
//!
//! ```
//! # use mill_runtime::engine::{Engine, ListenOptions};
//! # use mill_runtime::payload::Payload;
//! # use mill_runtime::scheduler::Scheduler;
//! # use mill_runtime::stream::Stream;
//! # use mill_runtime::worker::Worker;
//! # use mill_sim::world::{Until, World};
//! # use std::time::Duration;
//! let world = World::new(7);
//! let engine = world.engine();
//! let (now, wall_clock) = engine.clock();
//! let options = ListenOptions::new(world.address("10.0.0.1:80"));
//! let listener = engine.listen(&options).unwrap().id;
//! let mut worker = Worker::new(engine, Scheduler::new(now, wall_clock), |stream, _| async move {
//!     if stream.readable(5).await.is_ok() {
//!         let heard = stream.read(|bytes| (bytes.len(), bytes.to_ascii_uppercase()));
//!         stream.write(Payload::Copy(&heard));
//!     }
//! });
//! worker.add_listener(listener);
//!
//! let client = world.connect("10.0.0.1:80");
//! client.send_each_byte("hello", Duration::from_millis(3));
//! world.run(|| worker.turn(), Until::Quiet);
//! assert_eq!(client.received(), b"HELLO");
//! assert!(client.is_closed());
//! assert_eq!(client.ended_at(), Some(Duration::from_millis(12)));
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

/// A socket of datagrams, as a task holds it.
pub mod datagrams;

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
pub mod random;

/// A network of frames: links for the TCP/IP stack, and wires that mistreat what they carry.
pub mod packet;
