//! The master and the worker process: started, told, reloaded, upgraded and ended as people know it from nginx.
//!
//! Place in the walk: the command line makes a [`launch::Launch`]; the master reads the configuration, opens sockets
//! and logs, forks the worker process and hands it everything; the worker process has a thread per core, each of
//! which runs `mill_server::worker` over an engine of its own.
//!
//! Invariants: the master has one thread, or it does not fork; the worker process opens nothing that needs rights; no
//! listening socket that a configuration still names is ever closed; a bad configuration changes nothing.
#![forbid(unsafe_code)]

/// From a command line to a running server.
pub mod launch;

/// Reading a configuration from where it is.
pub mod configuration;

/// A configuration with everything that is held open for it.
pub mod cycle;

/// The network stack's device, from an old binary to a new one.
mod inherited_device;

/// The listening sockets, from one configuration to the next.
pub mod listening;

/// The log files that a configuration names.
pub mod log_files;

/// The pid file.
pub mod pid_file;

/// Going to the background.
pub mod daemon;

/// What the master decides.
pub mod master;

/// The master process: carries that out.
pub mod supervisor;

/// Replacing the binary.
pub mod upgrade;

/// The socket between master and worker process.
pub mod channel;

/// What they tell each other.
pub mod message;

/// What the worker process may do.
pub mod privileges;

/// The worker process and its control thread.
pub mod worker_process;

/// The worker threads as a whole.
mod worker_pool;

/// One worker thread.
mod worker_thread;

/// How many threads, where, with which sockets.
pub mod threads;

/// The network stack of our own, as the processes pass it on.
mod stack;

/// Which stack of our own: the command line's or the configuration's.
mod stack_choice;

/// Both in one process.
mod single;

/// What a running server tells of itself.
pub mod status;

/// The error log of the master and of the control thread.
pub mod process_log;

#[cfg(test)]
mod scratch;
