//! The server: from a connection's bytes to an answer and a log line, over any engine.
//!
//! The way of a request, top to bottom: `connection` (bytes → head, keep-alive, deadlines) → `hot` (kept answers) or
//! `request` (the spine: one line a phase) → `handler`s → `filter`s → `delivery` (compressed, kept, counted) →
//! `exchange` (head and pieces of `content` are sent) → `log`.
//!
//! Invariants:
//! - Nothing here knows which engine runs it: no socket, no descriptor, no system call, no clock.
//! - A request keeps the `Site` it began with; a reload gives the connection's next request the new one.
//! - An idle connection's future is at most 128 bytes; a request's state lives in a pooled box.
//! - Whatever a peer sends is answered by a status or a closed connection, never by a panic.
#![forbid(unsafe_code)]

/// Certificates from authorities.
pub mod acme;

/// Requests that no client has asked for.
mod own_request;

/// One generation of the configuration, shared by all workers.
pub mod site;

/// Requests counted by server and location.
pub mod zones;

/// What the tasks of one worker share.
pub mod local;

/// The run of a worker thread: orders in, turns, reports out.
pub mod worker;

/// Waking tasks of a worker from other threads.
pub mod wakes;

/// The listener that a connection was accepted by.
pub mod listener_context;

/// One connection: requests one after the other, until either side ends it.
pub mod connection;

/// Limits against attacks.
pub mod frang;

/// Fingerprints of kinds of clients.
mod fingerprint;

/// What clients show before they are served.
pub mod challenge;

/// Kept answers.
pub mod hot;

/// HTTP/2 connections.
pub mod h2;

/// The last phase of a request: sending, counting, logging, keeping its answer.
pub mod delivery;

/// A whole file's content in memory.
pub mod whole_file;

/// Temporary files.
pub(crate) mod temporary_file;

/// A request and its answer, independent of the HTTP version.
pub mod exchange;

/// A request, and the spine that leads it through its phases.
pub mod request;

/// Variables and templates of a request.
pub mod variables;

/// `error_page`, and the built-in pages.
pub mod error_page;

/// The server's name and version.
pub mod product;

/// An answer before it is sent.
pub mod response;

/// The content of an answer.
pub mod content;

/// The result of a phase or a handler.
pub mod answer;

/// `proxy_pass`.
pub mod proxy;

/// Answers of servers that are kept.
pub mod cache;

/// Connections that are passed on as they are.
pub mod stream;

/// `limit_req` and `limit_conn`: how much there may be of a key.
pub mod limits;

/// What handshakes of TLS are answered with.
pub mod tls;

/// A worker's connections to upstream servers.
pub mod upstreams;

/// A worker's resolvers of names.
pub mod resolvers;

/// Files.
pub mod static_file;

/// The file that answers for a directory.
pub mod index;

/// A directory's entries.
pub mod autoindex;

/// The server's counters.
pub mod stub_status;

/// `millstream_api`.
pub(crate) mod api;

/// `millstream_metrics`.
pub mod metrics;

/// The filters that every answer passes before it is sent.
pub mod filter;

/// gzip while an answer is sent.
pub mod gzip;

/// The open-file cache.
pub mod open_files;

/// Access and error logs.
pub mod log;

/// Browsers that directives treat specially.
pub mod user_agent;
