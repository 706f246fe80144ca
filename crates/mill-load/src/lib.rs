//! The load generator: one loop, whose rate, end, connections and requests are values.
//!
//! A command line (wrk's, wrk2's, ab's or our own) becomes a `plan::Plan`, the requests to send and a recorder
//! per thread. A `platform::Platform` gives threads and an engine; each thread runs a `generator::Generator`, in which
//! one task per connection loops: wait for the next start, connect if necessary, send, receive, record. The threads'
//! results become a report in the dialect's form.
//!
//! ```text
//! dialect/, native.rs     arguments to Plan, Requests, and one Record a thread; at the end the report
//! (mill-load-host)        run.rs, thread.rs: one thread a share of the load, a common beginning, turns
//! generator.rs            the turn: release what is due, run the worker, cut intervals, end
//! connection.rs           one task a connection: wait for the start, exchange, record; again
//! exchange.rs             connect, send, receive
//! reply.rs                head_memory.rs if the head equals the last one, else mill-http h1/response.rs
//! record.rs               the trait: wrk counts microseconds, ab keeps samples, native keeps histograms
//! ```
//!
//! An open loop's arrivals (`arrivals.rs`) are taken, never queued: a request that is due and not sent yet needs no
//! memory. Times finer than the timer wheel's millisecond are in `pacer.rs`; a thread stops sleeping shortly before
//! the next one (`Plan::spin`). A request on a kept connection costs two system calls, `send` and `recv`.
//!
//! Invariants:
//! - Generic over the engine: this crate never sees a socket, a clock or a system call.
//! - No allocation, no lock and no shared atomic per request once a run has begun (except in scripts).
//! - `started = answered + failed + unfinished`, in every report of every dialect.
//! - A request's latency counts from when it was due, even if it could not be sent then.
#![forbid(unsafe_code)]

/// The server behind a proxy that is under load.
pub mod origin;
/// The plan of a run, as values.
pub mod plan;
/// What is sent: rendered once, or by a script.
pub mod request;
/// Where connections come from.
pub mod source;
/// URLs: where to connect, what to request.
pub mod target;
/// TLS on connections.
pub mod tls;

/// The times at which requests are due.
mod arrivals;
/// Compares content with the expected content.
mod comparison;
/// One connection's loop.
mod connection;
/// Connect, send, receive.
mod exchange;
/// One thread of a run: its worker, its connections, its turns.
pub mod generator;
/// The last response head.
mod head_memory;
/// The state that the connections of one thread share.
pub mod local;
/// Connections of HTTP/2, each of several tasks.
mod multiplexing;
/// Precise waiting.
mod pacer;
/// Seeded randomness.
mod random;
/// Responses, scanned as they arrive.
mod reply;
/// Limits how many tasks go on in a turn.
mod turnstile;

/// Why a request was not answered.
pub mod failure;
/// Recorders of results.
pub mod record;
/// The data of one answered request.
pub mod sample;
/// When no request was answered.
pub mod silence;
/// A thread's counters.
pub mod tally;

/// Durations in JSON.
mod nanos;
/// What a run needs of the operating system.
pub mod platform;

/// Command lines of other tools: wrk, sephe's wrk, wrk2, ab.
pub mod dialect;
/// Our own command line and its reports.
pub mod native;
/// A server that always gives the same answer, with known delays: for checking generators.
pub mod responder;
/// wrk's Lua scripts.
pub mod script;
