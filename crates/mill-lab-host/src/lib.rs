//! The part of the lab that acts: carries out on this machine (and over ssh) what mill-lab has planned, and records
//! the results.
//!
//! The path of a trial, top to bottom:
//!
//! ```text
//! sweep        the plan, trial after trial; Ctrl-C; what is left and how long
//! topology     namespaces, veth, macvlan, tbf, remote hosts -> Testbed: where each side lives
//! tune         changes to the system, written into the journal before they are made
//! system       the server under test: files, command line, allocator, until it listens
//! client       the load, N processes
//! monitor      /proc while the load runs, cut to the steady part -> figures
//! probe        looks that cost, each in a pass of its own
//! ```
//!
//! Invariants: whatever is changed, made or started is in the journal first; the journal is undone backwards at the
//! end, on Ctrl-C, and by `millstream lab restore` after a crash. A process is ended by its id.
#![forbid(unsafe_code)]

/// Allocators by LD_PRELOAD.
pub mod allocator;
/// The load.
pub mod client;
/// `millstream lab`.
pub mod command;
/// The files that servers serve.
pub mod content;
/// The machine, described.
pub mod environment;
/// Where commands run.
pub mod host;
/// Folders with configuration and content.
pub mod host_folder;
/// Ctrl-C.
pub mod interrupt;
/// Records of changes, written before they are made.
pub mod journal;
/// How many files processes may open.
pub mod limits;
/// Counters of /proc while the load runs.
pub mod monitor;
/// `${url}` and the like.
pub mod names;
/// Programs and rights that a plan requires.
pub mod needs;
/// A Millstream network stack below a system or a client.
mod own_stack;
/// Waiting with a limit.
mod patience;
/// What stays in place between trials.
pub mod prepared_testbed;
/// Measurements that slow the system down.
pub mod probe;
/// Processes that the lab started.
pub mod process;
/// /proc/PID/stat.
pub mod process_stat;
/// Progress shown to the user.
pub mod progress;
/// ssh(1), and guests.
pub(crate) mod remote_shell;
/// Requests that the lab itself sends.
pub mod request;
/// Folders of tests.
#[cfg(test)]
mod scratch;
/// Splitting command lines into words.
pub mod shell;
/// The sweep over a plan.
pub mod sweep;
/// The system under test.
pub mod system;
/// The links between client and server.
pub mod topology;
/// One trial.
pub mod trial;
/// Changes to the system.
pub mod tune;

/// The command line.
pub mod options;
