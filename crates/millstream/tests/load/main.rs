//! The load generators as processes, beside the tools whose command lines they take.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

/// Beside Debian's ab.
mod ab;
/// The client commands of published experiments.
mod commands;
/// Ctrl-C.
mod interrupt;
/// By which names generators are called.
mod names;
/// Too few descriptors, nobody who reads, nothing to connect to.
mod scarcity;
/// Beside Debian's wrk.
mod wrk;
