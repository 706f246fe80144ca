//! An engine made of our own stack over any link, beside an inner engine.
//!
//! Follow a turn of `BypassEngine`:
//!
//! ```text
//! bypass          poll: the inner engine waits; then frames come in, timers expire, what changed is reported
//!   stack           one host, its link, and the slots of its streams
//! stream          what tasks do meanwhile: read, write, wait
//!   payload_queue   what was written, until it is acknowledged; files in chunks
//! bypass          settle: what is to be sent leaves, frames go back to the link
//! ```
//!
//! The inner engine (kernel sockets, or the simulation) has the clock, the files, the mailbox, and every connection
//! that does not go over the link: loopback, Unix sockets, other interfaces.
//!
//! Invariants:
//! - Without a link every call is the inner engine's, behind one comparison.
//! - A task is reported only by the engine that has its stream; readiness is state, which a task may poll at any
//!   time.
//! - Per turn nothing is allocated once slots, scratch lists and pools have grown to the load.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

/// The engine: its turn, listening, connecting.
pub mod bypass;

/// One connection, of the stack or of the inner engine.
pub mod stream;

/// A socket of datagrams: of the stack, of the inner engine, or of both.
pub mod datagrams;

/// What was written, until it is acknowledged.
pub mod payload_queue;

/// Files whose ranges can be read at once.
pub mod file_bytes;

/// Memory for copies and chunks of files, used again.
pub mod pool;

/// The stack's half of an engine: listening, accepting, connecting, its part of a turn.
mod stack_half;

/// One host, its link, and the slots of its streams.
mod stack;

/// Connections are noted for the case that the process is killed.
mod noting;

/// When a turn waits, and when it polls the inner engine.
mod pace;

/// Which task uses which socket of datagrams.
mod datagram_tasks;

/// What the engine keeps of one stream of the stack.
mod slot;

/// Listeners of the stack, of the inner engine, or of both.
mod listeners;

/// Options and errors, between the runtime's and the stack's.
mod mapping;

pub use bypass::{BypassEngine, StackOptions};
pub use datagrams::BypassDatagrams;
pub use file_bytes::FileBytes;
pub use payload_queue::PayloadQueue;
pub use stream::BypassStream;
