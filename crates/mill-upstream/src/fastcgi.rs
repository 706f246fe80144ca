//! FastCGI 1.0: a request in records, and its answer.
//!
//! A record: version 1, type, the request's id in two bytes, the content's length in two, the padding's in one, one byte
//! unused; then content and padding. Numbers have their greatest byte first. One request is on a connection at a time,
//! with the id 1, as in nginx.
//!
//! Order of calls:
//! 1. `emit_param` for each parameter, then `emit_head` with all of them. Content goes out as records of standard input:
//!    `emit_stdin_begin`, up to `STDIN_CONTENT_BYTES_MAX` bytes, `stdin_padding`; behind the last one `STDIN_END`.
//! 2. `AnswerHead::on_bytes` with the bytes that arrive, until it returns a head: that of CGI, in standard output.
//! 3. `AnswerHead::into_body`, then `AnswerBody::on_bytes` until it is complete, or `AnswerBody::on_end_of_stream`.

/// The answer: its head, then its content.
mod answer;
/// Why an answer can't be read.
mod fault;
/// Bytes to what records carry.
mod record;
/// The request.
mod request;

pub use answer::{AnswerBody, AnswerHead};
pub use fault::FastcgiFault;
pub use record::{EndRequest, RecordEvent, Records};
pub use request::{
    STDIN_CONTENT_BYTES_MAX, STDIN_END, emit_head, emit_param, emit_stdin_begin, stdin_padding,
};

/// Types of records, FastCGI 1.0 8.
const BEGIN_REQUEST: u8 = 1;
const END_REQUEST: u8 = 3;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;
const STDERR: u8 = 7;

/// Bytes before the content of a record.
const HEADER_LEN: usize = 8;

#[cfg(test)]
mod tests;
