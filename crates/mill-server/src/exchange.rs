//! What a request is seen through, whatever HTTP version brought it: its content comes in, an answer goes out.

use crate::request::Request;
use crate::response::Response;
use mill_runtime::stream::StreamError;

/// Waiting until the transport has taken what was written.
pub(crate) mod drain;

/// The HTTP/1 exchange: framing by Content-Length, chunks or the end of the connection.
pub mod h1;

/// One request and its answer on a connection. HTTP/1 has one at a time on a connection, HTTP/2 and HTTP/3 many.
pub trait Exchange {
    type File;

    /// Waits for the next piece of the request's content and lends it; `Ok(false)` at its end. Asks the client to
    /// go on (100) if it waits for that.
    fn content(
        &mut self,
        take: impl FnMut(&[u8]),
    ) -> impl Future<Output = Result<bool, ContentError>>;

    /// Sends the answer, whole, within `send_timeout` between two writes; fills in `request.sent`.
    fn respond(
        &mut self,
        request: &mut Request,
        response: Response<Self::File>,
    ) -> impl Future<Output = Result<(), SendError>>;
}

/// Why no more content comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentError {
    /// The framing is broken: answer 400 and close.
    Malformed,
    /// More than `client_max_body_size`: 413.
    TooLarge,
    /// `client_body_timeout`: 408.
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
