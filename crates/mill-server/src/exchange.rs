//! What a request is seen through, whatever HTTP version brought it: its content comes in, an answer goes out.

use crate::local::ResponseOf;
use crate::request::Request;
use crate::response::FieldLine;
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use mill_runtime::stream::StreamError;

/// Waiting until the transport has taken what was written.
pub(crate) mod drain;

/// `limit_rate`.
pub(crate) mod pace;

/// The HTTP/1 exchange: framing by Content-Length, chunks or the end of the connection.
pub mod h1;

/// One request and its answer on a connection. HTTP/1 has one at a time on a connection, HTTP/2 and HTTP/3 many.
///
/// It is made when the head has been read. A handler may read content and send interim answers; what no handler has
/// read is passed over, in two steps: what is there before the answer, so that bad framing can still be refused, and the
/// rest behind it.
pub trait Exchange {
    type Engine: Engine;

    /// Waits for the next piece of the request's content, of `most` bytes (at least 1) at the most, and lends it;
    /// `Ok(false)` at its end, without a piece. Asks a client that waits for it to go on (100). Between two pieces `client_body_timeout`
    /// holds; content without a length is counted against `client_max_body_size`.
    fn content(
        &mut self,
        request: &Request,
        most: usize,
        take: impl FnMut(&[u8]),
    ) -> impl Future<Output = Result<bool, ContentError>>;

    /// Sends an interim answer (RFC 9110 15.2) at once. HTTP/1.0 knows none: nothing is sent then.
    fn interim(&mut self, request: &Request, status: Status, fields: &[FieldLine]);

    /// Passes over the content that has come and that no handler has read, and asks for the rest if the client waits to
    /// be asked. Called once, before `respond`, when it is known which location answers. Where the connection `closes`
    /// behind the answer anyway, nothing is looked at or asked for.
    fn discard_present(&mut self, request: &Request, closes: bool) -> Result<(), ContentError>;

    /// Sends the answer, whole, within `send_timeout` between two writes; fills in `request.sent`.
    fn respond(
        &mut self,
        request: &mut Request,
        response: ResponseOf<Self::Engine>,
    ) -> impl Future<Output = Result<(), SendError>>;

    /// Sees to the content that is left behind the answer: HTTP/1 takes it, for `lingering_time` at most and
    /// `lingering_timeout` between two pieces, if the connection is to go on. Called once.
    fn discard_rest(&mut self, request: &Request)
    -> impl Future<Output = Result<(), ContentError>>;

    /// The client must not take the end of the connection for the end of the content: it is reset.
    fn abort(&mut self);
}

/// Why no more content comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentError {
    /// The framing is broken: answer 400 and close.
    Malformed,
    /// More than `client_max_body_size`: 413.
    TooLarge,
    /// `client_body_timeout`, `lingering_timeout` or `lingering_time`: 408 where a handler reads it.
    TimedOut,
    /// The client is gone.
    Lost(StreamError),
}

/// Why an answer was not sent whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// `send_timeout`.
    TimedOut,
    /// The client is gone, or a file got shorter while it was sent.
    Lost(StreamError),
}
