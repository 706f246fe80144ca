//! The lab's hands: carries out on this machine (and over ssh) what mill-lab has planned, and writes down what it saw.
//!
//! The way of a trial, top to bottom:
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
//! Invariants: nothing is changed, made or started that is not in the journal first; the journal is carried out backwards
//! at the end, on Ctrl-C, and by `millstream lab restore` after a crash. A process is ended by its id.
#![forbid(unsafe_code)]

/// `millstream lab`.
pub mod command;

/// The sweep over a plan.
pub mod sweep;

/// What a person sees meanwhile.
pub mod progress;

/// One trial.
pub mod trial;

/// What stands between trials.
pub mod prepared_testbed;

/// What lies between client and server.
pub mod topology;

/// Changes to the system.
pub mod tune;

/// The system under test.
pub mod system;

/// A network stack of our own below a system or a client.
mod own_stack;

/// How many files processes may open.
pub mod limits;

/// Allocators by LD_PRELOAD.
pub mod allocator;

/// The load.
pub mod client;

/// Requests of the lab's own.
pub mod request;

/// What /proc says meanwhile.
pub mod monitor;

/// Looks that cost.
pub mod probe;

/// The machine, described.
pub mod environment;

/// What was changed, before it was changed.
pub mod journal;

/// Where commands are run.
pub mod host;

/// Processes that the lab started.
pub mod process;

/// Folders with configuration and content.
pub mod host_folder;

/// The files that servers give.
pub mod content;

/// `${url}` and its kin.
pub mod names;

/// Words of a command line.
pub mod shell;

/// What has to be there.
pub mod needs;

/// Ctrl-C.
pub mod interrupt;

mod patience;

/// The command line.
pub mod options;
