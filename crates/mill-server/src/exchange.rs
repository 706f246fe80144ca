//! A request and its answer, independent of the HTTP version: the content comes in, an answer goes out.

use crate::frang::limit::FrangLimit;
use crate::h2::SharedContent;
use crate::local::ResponseOf;
use crate::proxy::connection::UpstreamConnection;
use crate::request::Request;
use crate::response::FieldLine;
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use mill_runtime::files::FileError;
use mill_runtime::received::Received;
use mill_runtime::stream::StreamError;
use mill_runtime::time::Duration;

/// Waiting until the transport has taken what was written.
pub(crate) mod drain;

/// `limit_rate`.
pub(crate) mod pace;

/// The HTTP/1 exchange: framing by Content-Length, chunks or the end of the connection.
pub mod h1;

/// The HTTP/2 exchange: one stream of a connection.
pub(crate) mod h2;

/// One request and its answer on a connection. HTTP/1 has one at a time on a connection, HTTP/2 and HTTP/3 many.
///
/// It is made when the head has been read. A handler may read content and send interim answers; content that no handler
/// has read is discarded in two steps: what has arrived before the answer, so that bad framing can still be refused,
/// and the rest after it.
pub trait Exchange {
    type Engine: Engine;

    /// Waits for the next piece of the request's content, of at most `most` bytes (at least 1), and lends it;
    /// `Ok(false)` at its end, without a piece. Sends 100 to a client that expects it. `client_body_timeout` limits the
    /// time between two pieces; content without a length is counted against `client_max_body_size`.
    fn content(
        &mut self,
        request: &Request,
        most: usize,
        take: impl FnMut(&[u8]),
    ) -> impl Future<Output = Result<bool, ContentError>>;

    /// As `content`; pieces that are large may come with the memory that they were received in.
    fn content_pieces(
        &mut self,
        request: &Request,
        most: usize,
        mut take: impl FnMut(ContentPiece<'_>),
    ) -> impl Future<Output = Result<bool, ContentError>> {
        self.content(request, most, move |bytes| take(ContentPiece::Lent(bytes)))
    }

    /// The content, to be taken by another task from now on, while the answer is sent; `None` where only the exchange itself can
    /// take it.
    fn share_content(&mut self, request: &Request) -> Option<SharedContent<Self::Engine>> {
        let _ = request;
        None
    }

    /// Sends an interim answer (RFC 9110 15.2) at once. HTTP/1.0 has none: nothing is sent then.
    fn interim(&mut self, request: &Request, status: Status, fields: &[FieldLine]);

    /// Discards the content that has arrived and that no handler has read, and sends 100 for the rest if the client
    /// expects it. Called once, before `respond`, when the answering location is known. If the connection `closes`
    /// after the answer anyway, it does nothing.
    fn discard_present(&mut self, request: &Request, closes: bool) -> Result<(), ContentError>;

    /// Sends the answer, whole, within `send_timeout` between two writes; fills in `request.sent`.
    fn respond(
        &mut self,
        request: &mut Request,
        response: Box<ResponseOf<Self::Engine>>,
    ) -> impl Future<Output = Result<(), SendError>>;

    /// Discards the rest of the content after the answer: HTTP/1 reads it, for at most `lingering_time` and
    /// `lingering_timeout` between two pieces, if the connection stays open. Called once.
    fn discard_rest(&mut self, request: &Request)
    -> impl Future<Output = Result<(), ContentError>>;

    /// Whether the client has closed its connection, or sent FIN, so that nothing more of it will come. Never waits; the
    /// task is woken when that changes.
    fn is_abandoned(&self) -> bool;

    /// Whether the client has reset its connection. FIN does not count: a client may send it behind its content and read
    /// on. Never waits; the task is woken when that changes.
    fn is_reset(&self) -> bool;

    /// After the answer, which is 101, the connection carries bytes to and from a server, and no more requests.
    fn upgrade(&mut self, far: UpstreamConnection<Self::Engine>, timeout: Duration);

    /// Takes the request that is not over with its answer: the exchange is upgraded. It is given back otherwise.
    fn keep_open(&mut self, request: Box<Request>) -> Option<Box<Request>>;

    /// The connection carries no more requests: it is reset `at_once`, or ends behind the answer.
    fn end_connection(&mut self, at_once: bool);

    /// Resets the connection, so that the client does not take its end for the end of the content.
    fn abort(&mut self);
}

/// A piece of a request's content.
#[derive(Debug)]
pub enum ContentPiece<'a> {
    Lent(&'a [u8]),
    Given(Received),
}

/// Which limit of `frang` the content exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Excess {
    pub limit: FrangLimit,
    pub value: u64,
    pub most: u64,
}

/// Why there is no more content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentError {
    /// The framing is broken: answer 400 and close.
    Malformed,
    /// More than `client_max_body_size`: 413.
    TooLarge,
    /// More than `frang` allows.
    Limited(Excess),
    /// `client_body_timeout`, `lingering_timeout` or `lingering_time`: 408 where a handler reads it.
    TimedOut,
    /// The connection is lost.
    Lost(StreamError),
}

/// Why an answer was not sent whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// `send_timeout`.
    TimedOut,
    /// The connection is lost, or a file became shorter while it was sent.
    Lost(StreamError),
    /// A file cannot be read any further.
    Unreadable(FileError),
    /// The content that is awaited has ended early.
    Incomplete,
    /// The client has left while the content was awaited.
    Abandoned,
}
