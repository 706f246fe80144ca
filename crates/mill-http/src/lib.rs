//! HTTP without sockets: bytes in, values out, and back.
//!
//! The server's connection passes bytes in and gets a request head, a body's events and answers to questions of
//! semantics (is it modified? which ranges?); it passes values in and gets bytes. A client passes a request in and gets
//! bytes, passes bytes in and gets where each answer ends.
//!
//! Invariants: no I/O, no clock, no randomness: time and boundaries are arguments. Bytes from the network never panic
//! and never allocate without bound. Whatever two readers could understand differently is refused.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

/// Whether a client accepts gzip.
pub mod accept_encoding;
/// The authority of a request: host and port.
pub mod authority;
/// The rules of caching: RFC 9111, and nginx's.
pub mod caching;
/// Conditional requests: 304 and 412.
pub mod conditional;
/// Dates: IMF-fixdate, the three formats that are read, and the access log's two.
pub mod date;
/// Numbers as text, without allocation.
pub mod decimal;
/// Escaping for URIs and for HTML pages.
pub mod escape;
/// Entity tags and lists of them.
pub mod etag;
/// Field names and values, comma lists.
pub mod field;
/// What the known fields of a request mean for the message.
mod field_meaning;
/// HTTP/1 messages: parse and emit.
pub mod h1;
/// HTTP/2 connections.
pub mod h2;
/// The head of a request as a value, independent of the HTTP version.
pub mod head;
/// Whether a connection stays open after an answer.
pub mod keep_alive;
/// Every limit and setting, with unit, default and directive.
pub mod limits;
/// Request methods.
pub mod method;
/// Answers of several ranges.
pub mod multipart;
/// Byte ranges: 206 and 416.
pub mod range;
/// Why a request is refused: status and log text.
pub mod refusal;
/// A place in a buffer, as offsets: it stays true when the buffer moves.
pub mod span;
/// Status codes and nginx's reason phrases.
pub mod status;
/// The request path as a server compares it: decoded, without dot segments.
pub mod target;
/// The HTTP version of a request.
pub mod version;
