//! The server: from a connection's bytes to an answer and a log line, over any engine.
//!
//! The way of a request, top to bottom: `connection` (bytes → head, keep-alive, deadlines) → `hot` (the answer is
//! there already) or `request` (the spine: one line a phase) → `handler`s → `filter`s → `delivery` (compressed, kept,
//! counted) → `exchange` (head and pieces of `content` go out) → `log`.
//!
//! Invariants:
//! - Nothing here knows which engine runs it: no socket, no descriptor, no system call, no clock.
//! - A request keeps the `Site` it began with; a reload gives the connection's next request the new one.
//! - An idle connection's future is at most 128 bytes; a request's state lives in a pooled box.
//! - Whatever a peer sends is answered by a status or a closed connection, never by a panic.
#![forbid(unsafe_code)]

/// One generation of the configuration, shared by all workers.
pub mod site;

/// What the tasks of one worker share.
pub mod local;

/// The run of a worker thread: orders in, turns, reports out.
pub mod worker;

/// What a connection knows of the listener it came in by.
pub mod listener_context;

/// One connection: requests one after the other, until either side has enough.
pub mod connection;

/// Answers that are there already.
pub mod hot;

/// What follows when a request has its answer.
pub mod delivery;

/// A file's content, whole, in memory.
pub mod whole_file;

/// What a request is seen through, whatever HTTP version brought it.
pub mod exchange;

/// A request on its way, and the spine that leads it through its phases.
pub mod request;

/// Variables and templates of a request.
pub mod variables;

/// `error_page`, and the pages that are built in.
pub mod error_page;

/// What this server calls itself.
pub mod product;

/// An answer before it is sent.
pub mod response;

/// The content of an answer.
pub mod content;

/// What a phase or a handler says of a request.
pub mod answer;

/// Files.
pub mod static_file;

/// The file that answers for a directory.
pub mod index;

/// A directory's entries.
pub mod autoindex;

/// The server's counters.
pub mod stub_status;

/// `millstream_metrics`.
pub mod metrics;

/// What is done to every answer before it is sent.
pub mod filter;

/// gzip while an answer is sent.
pub mod gzip;

/// The open-file cache.
pub mod open_files;

/// Access and error logs.
pub mod log;

/// Browsers that the configuration treats specially.
pub mod user_agent;
