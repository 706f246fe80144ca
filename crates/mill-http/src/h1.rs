//! HTTP/1.0 and HTTP/1.1 messages, RFC 9112: bytes to values and back.
//!
//! A server reads with `parse` and `body` and writes with `emit`; a client writes with `request`
//! and reads with `response`.

/// The content of a message: length or chunked.
pub mod body;
/// Response heads and chunks to bytes.
pub mod emit;
/// One field line: its name, its value, and where it ends.
mod field_line;
/// Bytes to request head; the hot path.
pub mod parse;
/// Request heads to bytes, for clients.
pub mod request;
/// The request line, from the method to the version.
mod request_line;
/// Responses as a client reads them: bytes to head, and where the content ends.
pub mod response;
/// Eight bytes at a time: where a run of ordinary bytes ends.
pub(crate) mod scan;
