//! Reading the head of a request; and the logged part of one that never became complete.

use super::{Connection, QUEUED_MAX};
use crate::frang::limit::Exceeded;
use crate::request::Message;
use mill_http::h1::parse::{Parsed, parse_request};
use mill_http::refusal::Refusal;
use mill_http::span::Span;
use mill_runtime::engine::Engine;
use mill_runtime::scheduler::Expired;
use mill_runtime::stream::Stream;

/// The result of reading a head.
pub(super) enum Head {
    Complete,
    Refused(Refusal),
    /// A part arrived, then the time was up.
    TimedOut,
    /// A part arrived, then the client sent FIN or was gone.
    BrokenOff,
    /// It came in more pieces than `http_header_chunk_cnt` of `frang` allows.
    TooManyPieces(Exceeded),
    /// No byte of it was looked at: the client does not take earlier answers, or is gone.
    NotBegun,
}

/// Reads until the head is complete, within `client_header_timeout` from its first byte. `message` has the result, and
/// the request line as far as it arrived.
pub(super) async fn read<E: Engine>(connection: &Connection<E>, message: &mut Message) -> Head {
    let (local, stream) = (&connection.local, &connection.stream);
    let deadline = local.scheduler.now() + connection.listener.header_timeout();
    let drained = stream.drained(QUEUED_MAX);
    match local.scheduler.until(deadline, drained).await {
        Ok(Ok(())) => {}
        Ok(Err(_)) => return Head::NotBegun,
        Err(Expired) => {
            local.counters.borrow_mut().timeout_send += 1;
            return Head::NotBegun;
        }
    }
    let rules = connection.listener.rules();
    let mut least = 1;
    let mut pieces = 0;
    loop {
        let readable = stream.readable(least);
        let readable = match local.scheduler.until(deadline, readable).await {
            Ok(Ok(readable)) => readable,
            Ok(Err(_)) => return keep_part(connection, message, Head::BrokenOff),
            Err(Expired) => {
                local.counters.borrow_mut().timeout_header += 1;
                return keep_part(connection, message, Head::TimedOut);
            }
        };
        let parsed = stream.read(|bytes| {
            let parsed = parse_request(bytes, &mut message.head, &rules);
            let consumed = match parsed {
                Parsed::Complete { consumed } => consumed,
                Parsed::Partial => 0,
                Parsed::Refused(_) => bytes.len(),
            };
            let whole = bytes.get(..consumed).unwrap_or_default();
            message.bytes.extend_from_slice(whole);
            least = bytes.len() + 1;
            (consumed, parsed)
        });
        pieces += 1;
        if let Some(exceeded) = connection.exceeded_pieces(pieces) {
            return keep_part(connection, message, Head::TooManyPieces(exceeded));
        }
        match parsed {
            Parsed::Complete { .. } => return Head::Complete,
            Parsed::Refused(refusal) => {
                find_request_line(message);
                return Head::Refused(refusal);
            }
            Parsed::Partial if readable.finished => {
                return keep_part(connection, message, Head::BrokenOff);
            }
            Parsed::Partial => {}
        }
    }
}

/// Keeps the part of a head that will never be complete, for the logs.
fn keep_part<E: Engine>(connection: &Connection<E>, message: &mut Message, head: Head) -> Head {
    connection.stream.read(|bytes| {
        message.bytes.extend_from_slice(bytes);
        (bytes.len(), ())
    });
    if message.bytes.is_empty() {
        return Head::NotBegun;
    }
    if !message.head.is_whole {
        message.head.give_up();
    }
    head
}

/// Takes the first line as the request line where the parser has found none: logs show it as it is.
pub(super) fn find_request_line(message: &mut Message) {
    if !message.head.request_line.is_empty() {
        return;
    }
    let is_line_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let bytes = message.bytes.as_slice();
    let start = bytes.iter().position(|byte| !is_line_end(byte));
    let start = start.unwrap_or(bytes.len());
    let line = bytes.get(start..).unwrap_or_default();
    let len = line.iter().position(is_line_end).unwrap_or(line.len());
    message.head.request_line = Span::between(start, start + len);
}
