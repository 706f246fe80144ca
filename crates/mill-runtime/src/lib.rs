//! Thread per core: the turn of a worker, its tasks and timers, and the traits of the engine below.
//!
//! A worker owns one engine (kernel sockets, our own stack, a simulated network) and runs one
//! task per connection over it. Nothing here does I/O, reads a clock or knows HTTP: the engine brings
//! events and time, the tasks bring work.
//!
//! Invariants:
//! - A task is polled only by its own worker; nothing in this crate is `Send`, and no atomic is touched.
//! - Readiness is state kept by the engine, not a message: a future may be polled at any time and checks it again.
//! - After the slabs have grown to the load, a turn allocates nothing.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

/// The turn of a core: poll, accept, expire timers, run ready tasks, settle, park.
pub mod worker;

/// What a task may call on its worker: the time, a deadline, to be polled again.
pub mod scheduler;

/// The slab of tasks, one future type, reused boxes.
pub mod tasks;

/// Tasks spawned by other tasks: any future type, in pooled boxes.
pub mod spawned;

/// Synchronisation between tasks of one worker: permits, channels, one-shots.
pub mod sync;

/// Waiting for the first of two futures, or for both.
pub mod race;

/// The timer wheel: 1 ms ticks, lazily re-armed.
pub mod timer;

/// The trait of what carries connections: kernel sockets, our own stack, the simulation.
pub mod engine;

/// One connection: borrowed reads, handed-over writes.
pub mod stream;

/// UDP sockets: batches in and out, local address, ECN, segments.
pub mod datagrams;

/// The bytes handed over in a write.
pub mod payload;

/// Received bytes that are given away with the memory they stand in.
pub mod received;

/// The file system as the server needs it.
pub mod files;

/// Where a peer or a listener is.
pub mod address;

/// Monotonic and wall-clock time as plain values.
pub mod time;

/// Boxes for long futures, taken for a request and returned after it.
pub mod pool;

/// An engine for this crate's own tests, which replays scripted events.
#[cfg(test)]
mod scripted_engine;
