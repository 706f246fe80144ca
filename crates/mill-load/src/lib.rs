//! The load generator: one loop, whose rate, end, connections and requests are values.
//!
//! A command line (wrk's, wrk2's, ab's or our own) becomes a `plan::Plan`, the requests to send and a recorder
//! per thread. A `platform::Platform` gives threads and an engine; each thread runs a `generator::Generator`, in which
//! one task per connection goes round: wait for the next start, connect if need be, send, receive, record. What the
//! threads bring home becomes a report in the dialect's form.
//!
//! ```text
//! dialect/, native.rs     arguments to Plan, Requests, and one Record a thread; at the end the report
//! (mill-load-host)        run.rs, thread.rs: one thread a share of the load, a common beginning, turns
//! generator.rs            the turn: release what is due, run the worker, cut intervals, end
//! connection.rs           one task a connection: wait for the start, exchange, record; again
//! exchange.rs             connect, send, receive
//! reply.rs                head_memory.rs if the head is the last one again, else mill-http h1/response.rs
//! record.rs               the trait: wrk counts microseconds, ab keeps samples, native keeps histograms
//! ```
//!
//! An open loop's arrivals (`arrivals.rs`) are taken, never queued: a request that is due and not sent yet needs no
//! memory. Moments finer than the timer wheel's millisecond lie in `pacer.rs`; a thread stops sleeping shortly before
//! the next one (`Plan::spin`). A request on a kept connection costs two system calls, `send` and `recv`.
//!
//! Invariants:
//! - Generic over the engine: this crate never sees a socket, a clock or a system call.
//! - No allocation, no lock and no shared atomic per request once a run is under way (scripts apart).
//! - `started = answered + failed + unfinished`, in every report of every dialect.
//! - A request's latency counts from when it was due, also when we could not send it then.
#![forbid(unsafe_code)]

/// What is to be done, as values.
pub mod plan;
/// What is sent: rendered once, or by a script.
pub mod request;
/// Where connections come from.
pub mod source;
/// What a URL names: where to connect, what to ask for.
pub mod target;

/// The times at which things are due.
mod arrivals;
/// Content against the content that was expected.
mod comparison;
/// One connection's life.
mod connection;
/// Connect, send, receive.
mod exchange;
/// One thread of a run: its worker, its connections, its turns.
pub mod generator;
/// The last response head.
mod head_memory;
/// What the connections of one thread share.
pub mod local;
/// Precise moments.
mod pacer;
/// Seeded randomness.
mod random;
/// Responses, scanned as they come.
mod reply;
/// So many tasks a turn.
mod turnstile;

/// Why a request was not answered.
pub mod failure;
/// Who keeps what is measured.
pub mod record;
/// What is known of one answered request.
pub mod sample;
/// When nobody was answered.
pub mod silence;
/// What a thread counts.
pub mod tally;

/// What a run needs of the machine.
pub mod platform;

/// Command lines of others: wrk, sephe's wrk, wrk2, ab.
pub mod dialect;
/// Our own command line and everything behind it.
pub mod native;
/// A server that answers always the same, with known delays: what generators are measured against.
pub mod responder;
/// wrk's Lua scripts.
pub mod script;
