//! Access and error logs: whole lines, written by a thread of their own, so that no request waits for a disk.
//!
//! The way of a line: `access` or `error` formats it → `worker_log` gathers the turn's lines, one batch a file →
//! `queue` (bounded; lines that do not fit are dropped and counted) → `writer`'s thread → `store` (buffers, flush
//! times, full disks) → the file. A row of a table goes from `store` to `table`, which has a thread for each table.
//!
//! Invariants:
//! - A line is queued whole or dropped whole; the rest of a partial write goes first in the next one.
//! - A worker holds a lock only for as long as copying takes, and the writer never holds one while it writes.
//! - Every line that is dropped is counted in `log_lines_lost`.

/// One worker's part: the lines of this turn, and their hand-over to the writer.
pub mod worker_log;

/// Where workers send their lines: the writer thread, or memory in tests.
pub mod sender;

/// Access logs: a line for each answer.
pub mod access;

/// Lines of access logs that are begun long before they are written.
pub(crate) mod ahead;

/// Secrets of TLS.
mod keys;

/// Access logs of `stream`.
pub(crate) mod session;

/// Error logs: nginx's format, levels and suffixes.
pub mod error;

/// The texts of Linux's error numbers.
pub mod errno;

/// The thread that owns the files.
pub mod writer;

/// Local time as log lines write it.
pub mod local_time;

/// Between a worker and the writer: bounded, swapped, without waiting.
mod queue;

/// The files, their buffers, and what happens when a write fails.
mod store;

/// Files whose paths have variables (`open_log_file_cache`).
mod evaluated_files;

/// Columns of rows of a table.
mod row;

/// Rows on their way into tables of a database.
mod table;

/// The ways to escape a value in an access log.
mod escape;

pub use errno::Errno;
pub use error::Text;
pub use sender::LogSender;
pub use worker_log::WorkerLog;
pub use writer::{LogFiles, LogWriter};
