//! Runs the load generator on this machine: threads, descriptor tables, clocks, signals, names, /proc.
//!
//! mill-load defines the load and does no I/O of its own; this crate is its platform. Read in this order: `platform` is
//! what a run needs, `run` starts its threads and collects their reports, `thread` is one of them.
//!
//! Invariants:
//! - A thread that opens its own connections has a descriptor table of its own; all threads share only one flag, read
//!   once a turn.
//! - A value that the kernel does not report is `None`, never a guess.
#![forbid(unsafe_code)]

/// The end of a thread's connections.
mod ending;
/// Ctrl-C, once and twice.
mod interrupt;
/// The network stack of our own, attached when a run begins.
mod lazy_attachment;
/// What the kernel reports about the measured period.
mod machine;
/// Name resolution, and whether a port accepts connections.
mod names;
/// Child processes that run a part of the load.
mod parts;
/// The platform of a run.
mod platform;
/// The formats of /proc and /sys.
mod proc;
/// The responder on kernel sockets.
mod respond;
/// One run: its threads and their reports.
mod run;
/// The server's processes.
mod server;
/// One generating thread.
mod thread;

pub use interrupt::Interrupts;
pub use lazy_attachment::LazyAttachment;
pub use parts::Processes;
pub use platform::KernelPlatform;
pub use respond::{Responding, respond};
