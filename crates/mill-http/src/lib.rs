//! HTTP without sockets: bytes in, values out, and back.
//!
//! The server's connection hands bytes in and gets a request head, a body's events and answers to
//! questions of semantics (is it modified? which ranges?); it hands values in and gets bytes.
//!
//! Invariants: no I/O, no clock, no randomness: time and boundaries are arguments. Bytes from the
//! network never panic and never allocate without bound. What two readers could understand
//! differently is refused.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

/// Field names and values, comma lists.
pub mod field;
/// HTTP/1 messages: parse and emit.
pub mod h1;
/// The host of a request.
pub mod host;
/// Every limit and setting, with unit, default and directive.
pub mod limits;
/// Request methods.
pub mod method;
/// A place in a buffer, as offsets: it stays true when the buffer moves.
pub mod span;
/// Status codes and nginx's reason phrases.
pub mod status;
/// The HTTP version of a request.
pub mod version;
