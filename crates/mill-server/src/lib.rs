//! The server: from a connection's bytes to an answer and a log line, over any engine.
//!
//! The way of a request, top to bottom: `connection` (bytes → head, keep-alive, deadlines) → `hot` (the answer is
//! there already) or `request` (the spine: one line a phase) → `handler`s → `filter`s → `exchange` (the answer goes
//! out) → `log`.
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

/// What a request is seen through, whatever HTTP version brought it.
pub mod exchange;

/// A request on its way, and the spine that leads it through its phases.
pub mod request;

/// An answer before it is sent.
pub mod response;

/// What a phase or a handler says of a request.
pub mod answer;

/// Access and error logs.
pub mod log;
