//! The lab as a process: whole runs of its smallest recipe, in namespaces of their own.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

/// The processes that a test starts, and their leftovers.
mod bench;
/// A lab that is killed in the middle of a run.
mod crash;
/// Ctrl-C in the middle of a run.
mod interrupt;
/// Both sides on a stack of our own.
mod own_stack;
/// From command to report.
mod report;
/// A system behind the one under test.
mod upstream;
/// Typing errors.
mod words;
