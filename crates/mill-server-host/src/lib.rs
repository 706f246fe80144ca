//! The master and the worker process: started, signalled, reloaded, upgraded and ended as nginx's are.
//!
//! Place in the walk: the command line makes a [`launch::Launch`]; the master reads the configuration, opens sockets
//! and logs, forks the worker process and hands it everything; the worker process has a thread per core, each of which
//! runs `mill_server::worker` over an engine of its own.
//!
//! Invariants: the master forks, so it has one thread; the worker process opens nothing that needs privileges; no
//! listening socket that a configuration still names is ever closed; a bad configuration changes nothing.
#![forbid(unsafe_code)]

/// From a command line to a running server.
pub mod launch;

/// Reading a configuration from where it is.
pub mod configuration;

/// A configuration with everything that is held open for it.
pub mod cycle;

/// The network stack's device, handed from an old binary to a new one.
mod inherited_device;

/// The listening sockets, from one configuration to the next.
pub mod listening;

/// All locations of a configuration.
pub mod locations;

/// The log files that a configuration names.
pub mod log_files;

/// The directories of temporary files.
pub mod temporary_directories;

/// The pid file.
pub mod pid_file;

/// Marks of netfilter, where a configuration asks for them.
mod packet_marks;

/// Going to the background.
pub mod daemon;

/// What the master decides.
pub mod master;

/// The master process: carries out those decisions.
pub mod supervisor;

/// Replacing the binary.
pub mod upgrade;

/// The socket between master and worker process.
pub mod channel;

/// The messages between them.
pub mod message;

/// The privileges and the environment of the worker process.
pub mod privileges;

/// The worker process and its control thread.
pub mod worker_process;

/// All worker threads of a process.
mod worker_pool;

/// One worker thread.
mod worker_thread;

/// How many threads, where, with which sockets.
pub mod threads;

/// The network stack of our own, passed from process to process.
mod stack;

/// Which stack of our own: the command line's or the configuration's.
mod stack_choice;

/// Master and worker in one process.
mod single;

/// What a running server reports about itself.
pub mod status;

/// The error log of the master and of the control thread.
pub mod process_log;

#[cfg(test)]
mod scratch;
