//! Carries load onto this machine: threads, descriptor tables, clocks, signals, names, what /proc tells.
//!
//! mill-load says what is to be done and knows no machine; this crate is the machine under it. Read on in this
//! order: `platform` is what a run asks for, `run` starts its threads and listens to them, `thread` is one of them.
//!
//! Invariants:
//! - A thread that sends for itself has a descriptor table of its own; nothing is shared but one flag that is read
//!   once a turn.
//! - Whatever this machine does not tell is `None`, never a guess.
#![forbid(unsafe_code)]

/// The end of a thread's connections.
mod ending;
/// Ctrl-C, once and twice.
mod interrupt;
/// What the machine noticed during the measured period.
mod machine;
/// Host names and what listens there.
mod names;
/// Other processes that take a part of a run.
mod parts;
/// The machine, as a run asks for it.
mod platform;
/// The formats of /proc and /sys.
mod proc;
/// The responder on kernel sockets.
mod respond;
/// One run: its threads, and what they say.
mod run;
/// Which processes the server is.
mod server;
/// The network stack of our own.
mod stack;
/// One generating thread.
mod thread;

pub use interrupt::Interrupts;
pub use parts::Processes;
pub use platform::KernelPlatform;
pub use respond::{Responding, respond};
pub use stack::OwnStack;
