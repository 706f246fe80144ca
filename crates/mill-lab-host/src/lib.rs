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

/// `millstream lab`.
pub mod command;

/// The sweep over a plan.
pub mod sweep;

/// Progress shown to the user.
pub mod progress;

/// One trial.
pub mod trial;

/// What stays in place between trials.
pub mod prepared_testbed;

/// The links between client and server.
pub mod topology;

/// Changes to the system.
pub mod tune;

/// The system under test.
pub mod system;

/// A Millstream network stack below a system or a client.
mod own_stack;

/// How many files processes may open.
pub mod limits;

/// Allocators by LD_PRELOAD.
pub mod allocator;

/// The load.
pub mod client;

/// Requests that the lab itself sends.
pub mod request;

/// Counters of /proc while the load runs.
pub mod monitor;

/// Measurements that slow the system down.
pub mod probe;

/// The machine, described.
pub mod environment;

/// Records of changes, written before they are made.
pub mod journal;

/// Where commands run.
pub mod host;

/// Processes that the lab started.
pub mod process;

/// /proc/PID/stat.
pub mod process_stat;

/// Folders with configuration and content.
pub mod host_folder;

/// The files that servers serve.
pub mod content;

/// `${url}` and the like.
pub mod names;

/// Splitting command lines into words.
pub mod shell;

/// Programs and rights that a plan requires.
pub mod needs;

/// Ctrl-C.
pub mod interrupt;

mod patience;

/// The command line.
pub mod options;
