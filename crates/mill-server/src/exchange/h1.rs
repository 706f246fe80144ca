//! The HTTP/1 exchange: framing by Content-Length, chunks or the end of the connection.

/// The answer's head: its field lines in nginx's order.
mod head;

/// The rest of a request's content.
mod incoming;

/// The answer's content on the stream.
mod outgoing;

/// Whether the connection stays open.
pub(crate) mod persistence;

pub(super) use head::fields as sent_fields;
pub use head::{Framing, HeadPlan};

use super::drain::drain;
use super::pace::{self, Pace};
use super::{ContentError, ContentPiece, Exchange, SendError};
use crate::content::{Content, LONG_PIECE_BYTES, PIECE_BYTES, Pull};
use crate::frang::content::Arriving;
use crate::listener_context::ListenerContext;
use crate::local::{FileOf, Local};
use crate::proxy::connection::UpstreamConnection;
use crate::proxy::tunnel::Tunnel;
use crate::request::Request;
use crate::response::{FieldLine, Response};
use incoming::{Incoming, Taken};
use mill_config::config::Location;
use mill_http::h1::emit::{CONTINUE, emit_field, emit_head_end, emit_status_line};
use mill_http::head::RequestHead;
use mill_http::method::Method;
use mill_http::status::Status;
use mill_http::version::Version;
use mill_runtime::engine::Engine;
use mill_runtime::payload::Payload;
use mill_runtime::race::{Either, race};
use mill_runtime::stream::{Stream, StreamError, StreamOption};
use mill_runtime::time::{Duration, Instant};
use mill_tls::transport::TransportOf;
use outgoing::Outgoing;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

/// One request of an HTTP/1 connection. Lives as long as the request; it borrows the connection's stream.
pub struct H1Exchange<'c, E: Engine> {
    stream: &'c TransportOf<E>,
    listener: &'c ListenerContext,
    local: &'c Local<E>,
    incoming: Incoming,
    arriving: Arriving,
    /// The head was refused: the start of the next request is uncertain.
    is_refused: bool,
    /// Its content did not come in time: no more of it is waited for.
    has_timed_out: bool,
    /// The value of `Connection`, and whether the connection stays open.
    keep_alive: bool,
    /// The location that answered, once its answer was sent whole.
    answered: Option<Arc<Location>>,
    upgraded: Option<Upgraded<E>>,
}

/// What the connection becomes behind an answer of 101.
enum Upgraded<E: Engine> {
    /// The answer is being sent.
    Soon(UpstreamConnection<E>, Duration),
    Now(Box<Tunnel<E>>),
}

/// The fate of a connection after a request.
pub(crate) enum Fate<E: Engine> {
    /// It stays open for the next request, with this location's settings.
    Kept(Arc<Location>),
    /// The queue is sent, the client is read from for a while, and the connection is closed.
    Finished {
        location: Arc<Location>,
        /// Content was not read to its end: the client may still be sending.
        expects_more: bool,
    },
    /// It carries bytes to and from a server from now on.
    Tunnel(Box<Tunnel<E>>),
    /// It is closed at once.
    Dropped,
}

impl<'c, E: Engine> H1Exchange<'c, E> {
    /// For a request whose head was read.
    pub fn new(
        stream: &'c TransportOf<E>,
        listener: &'c ListenerContext,
        local: &'c Local<E>,
        head: &RequestHead,
    ) -> Self {
        Self {
            incoming: Incoming::of(head),
            is_refused: false,
            ..Self::of_refused(stream, listener, local)
        }
    }

    /// For a request whose head was refused: nothing follows it on the connection.
    pub fn of_refused(
        stream: &'c TransportOf<E>,
        listener: &'c ListenerContext,
        local: &'c Local<E>,
    ) -> Self {
        Self {
            stream,
            listener,
            local,
            incoming: Incoming::unknown(),
            arriving: Arriving::new(),
            is_refused: true,
            has_timed_out: false,
            keep_alive: false,
            answered: None,
            upgraded: None,
        }
    }

    pub(crate) fn into_fate(self) -> Fate<E> {
        if let Some(Upgraded::Now(tunnel)) = self.upgraded {
            return Fate::Tunnel(tunnel);
        }
        let has_ended = self.incoming.has_ended();
        match self.answered {
            None => Fate::Dropped,
            Some(location) if !self.keep_alive => Fate::Finished {
                location,
                expects_more: self.is_refused || !has_ended && !self.has_timed_out,
            },
            Some(location) if has_ended => Fate::Kept(location),
            Some(_) => Fate::Dropped,
        }
    }

    fn send_continue(&mut self) {
        if std::mem::take(&mut self.incoming.continue_due) {
            self.stream.write(Payload::Copy(CONTINUE));
            self.local.counters.borrow_mut().responses_1xx += 1;
        }
    }

    /// Passes at most `most` bytes of content that have arrived to `take`; whether there were some, or none follow. `None`
    /// if more must arrive.
    fn take_content(
        &mut self,
        request: &Request,
        most: usize,
        take: &mut impl FnMut(&[u8]),
    ) -> Result<Option<bool>, ContentError> {
        let bytes_max = request.location.client_body.max_size;
        let taken = self.incoming.take(self.stream, most, take);
        request.content_received.set(self.incoming.taken_bytes);
        let chunked_bytes = self.incoming.chunked_bytes();
        let is_too_large = bytes_max > 0 && chunked_bytes > bytes_max;
        if taken == Taken::Content {
            self.arriving.take();
        }
        match taken {
            Taken::Malformed => Err(ContentError::Malformed),
            _ if is_too_large => Err(ContentError::TooLarge),
            Taken::Content if request.site.frang.is_some() => {
                self.check_arriving(chunked_bytes, request)?;
                Ok(Some(true))
            }
            Taken::Ended => Ok(Some(false)),
            Taken::Content => Ok(Some(true)),
            Taken::NeedMore => Ok(None),
        }
    }

    /// The limits of `frang`.
    fn check_arriving(&mut self, bytes: u64, request: &Request) -> Result<(), ContentError> {
        let Some((error, is_reset)) = self.arriving.check(bytes, request) else {
            return Ok(());
        };
        if is_reset {
            self.abort();
        }
        Err(error)
    }

    /// Waits for more of the request.
    async fn wait_for_content(&mut self, deadline: Instant) -> Result<(), ContentError> {
        self.send_continue();
        self.arriving.wait();
        let unread = self.stream.read(|bytes| (0, bytes.len()));
        let readable = self.stream.readable(unread + 1);
        match self.local.scheduler.until(deadline, readable).await {
            Err(_) => {
                self.has_timed_out = true;
                Err(ContentError::TimedOut)
            }
            Ok(Err(error)) => Err(ContentError::Lost(error)),
            Ok(Ok(readable)) if readable.unread <= unread => {
                Err(ContentError::Lost(StreamError::Reset))
            }
            Ok(Ok(_)) => Ok(()),
        }
    }

    fn after(&self, timeout: Duration) -> Instant {
        self.local.scheduler.now() + timeout
    }

    /// Queues the head; returns its bytes.
    fn write_head(
        &self,
        plan: &HeadPlan,
        request: &mut Request,
        response: &Response<FileOf<E>>,
    ) -> u64 {
        let mut head = self.local.take_buffer();
        plan.emit(request, response, self.local, &mut head);
        if request.site.mentions.sent_fields {
            request.sent.fields = head::fields(&head, response);
        }
        self.stream.write(Payload::Copy(&head));
        let head_bytes = head.len() as u64;
        request.sent.status = response.status.0;
        request.sent.bytes = head_bytes;
        self.local.put_buffer(head);
        head_bytes
    }

    /// Sends the content piece by piece, as fast as the client takes it and `limit_rate` allows, and its end.
    async fn send_content(
        &self,
        content: &mut Content<FileOf<E>>,
        trailers: &[FieldLine],
        chunked: bool,
        request: &mut Request,
        location: &Location,
    ) -> Result<(), SendError> {
        let mut pace = Pace::of(request);
        let (stream, local) = (self.stream, self.local);
        let mut outgoing: Outgoing<'_, E> = Outgoing {
            stream,
            local,
            sent: &mut request.sent,
            chunked,
        };
        let mut share_ends = outgoing.sent.content_bytes + SHARE_PER_TURN;
        let needs_client = content.needs_client();
        let mut read_most = PIECE_BYTES;
        loop {
            let handed_over = outgoing.sent.content_bytes;
            let most = pace
                .room(stream, local, &location.connection, handed_over, || {
                    content.read_ahead(local)
                })
                .await?;
            let pull = Pull {
                local,
                most,
                copies: !location.files.sendfile || !self.stream.sends_files(),
                read_most,
            };
            let left = poll_fn(|_| match needs_client && has_left(stream) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            });
            let piece = match race(content.next(&pull), left).await {
                Either::First(piece) => piece?,
                Either::Second(()) => return Err(SendError::Abandoned),
            };
            let Some(piece) = piece else { break };
            outgoing.write(piece);
            read_most = match stream.queued() {
                0 => (2 * read_most).min(LONG_PIECE_BYTES),
                _ => PIECE_BYTES,
            };
            // No buffer is held while waiting for a slow client.
            content.put_back_buffer(local);
            // The end goes out with the last piece, not a turn later.
            if content.is_exhausted() {
                break;
            }
            // Waiting flushes the queue: small parts are gathered first.
            if stream.queued() > PIECE_BYTES {
                let ahead = || content.read_ahead(local);
                drain(stream, local, &location.connection, PIECE_BYTES, ahead).await?;
            }
            // A network that takes all at once makes nothing wait.
            if outgoing.sent.content_bytes >= share_ends {
                local.scheduler.yield_now().await;
                share_ends = outgoing.sent.content_bytes + SHARE_PER_TURN;
            }
        }
        outgoing.end(&content.trailers(), trailers);
        Ok(())
    }
}

impl<E: Engine> Exchange for H1Exchange<'_, E> {
    type Engine = E;

    async fn content(
        &mut self,
        request: &Request,
        most: usize,
        mut take: impl FnMut(&[u8]),
    ) -> Result<bool, ContentError> {
        loop {
            if let Some(more) = self.take_content(request, most, &mut take)? {
                return Ok(more);
            }
            let deadline = self.after(request.location.client_body.timeout);
            self.wait_for_content(deadline).await?;
        }
    }

    async fn content_pieces(
        &mut self,
        request: &Request,
        most: usize,
        mut take: impl FnMut(ContentPiece<'_>),
    ) -> Result<bool, ContentError> {
        loop {
            if let Some(given) = self.incoming.take_given(self.stream, most) {
                request.content_received.set(self.incoming.taken_bytes);
                self.arriving.take();
                self.check_arriving(0, request)?;
                take(ContentPiece::Given(given));
                return Ok(true);
            }
            let mut lend = |bytes: &[u8]| take(ContentPiece::Lent(bytes));
            if let Some(more) = self.take_content(request, most, &mut lend)? {
                return Ok(more);
            }
            let deadline = self.after(request.location.client_body.timeout);
            self.wait_for_content(deadline).await?;
        }
    }

    fn interim(&mut self, request: &Request, status: Status, fields: &[FieldLine]) {
        if request.message.head.version != Version::Http11 {
            return;
        }
        let mut head = self.local.take_buffer();
        emit_status_line(status, &mut head);
        for line in fields {
            emit_field(&line.name, &line.value, &mut head);
        }
        emit_head_end(&mut head);
        self.stream.write(Payload::Copy(&head));
        self.local.put_buffer(head);
        self.local.counters.borrow_mut().responses_1xx += 1;
    }

    fn discard_present(&mut self, request: &Request, closes: bool) -> Result<(), ContentError> {
        self.keep_alive =
            !closes && !self.is_refused && persistence::is_kept(request, self.listener, self.local);
        if !self.keep_alive {
            // The final answer makes 100 unnecessary.
            self.incoming.continue_due = false;
            return Ok(());
        }
        loop {
            match self.incoming.take(self.stream, usize::MAX, &mut |_| ()) {
                Taken::Content => {}
                Taken::Malformed => {
                    self.keep_alive = false;
                    return Err(ContentError::Malformed);
                }
                Taken::Ended => return Ok(()),
                Taken::NeedMore => {
                    self.send_continue();
                    return Ok(());
                }
            }
        }
    }

    async fn respond(
        &mut self,
        request: &mut Request,
        mut response: Box<Response<FileOf<E>>>,
    ) -> Result<(), SendError> {
        let location = Arc::clone(&request.location);
        let plan = HeadPlan::new(request, &response, self.keep_alive);
        self.keep_alive = plan.keep_alive;
        let before = self.stream.sent() + self.stream.queued();
        let head_bytes = self.write_head(&plan, request, &response);
        let mut content = std::mem::replace(&mut response.content, Content::absent());
        let trailers = std::mem::take(&mut response.trailers);
        self.local.put_response(response);
        let is_bare = request.message.head.method == Method::Head || plan.framing == Framing::None;
        let mut result = Ok(());
        if !is_bare {
            let chunked = plan.framing == Framing::Chunked;
            let sending = self.send_content(&mut content, &trailers, chunked, request, &location);
            result = sending.await;
        }
        if result.is_ok() {
            result = drain(self.stream, self.local, &location.connection, 0, || ()).await;
        }
        request.sent.compressed = content.compressed_to();
        content.release(self.local);
        if result.is_err() {
            // Not everything that was queued has gone out, unless the content alone has failed.
            let is_sent = result == Err(SendError::Incomplete);
            let queued = if is_sent { self.stream.queued() } else { 0 };
            request.sent.bytes = (self.stream.sent() + queued).saturating_sub(before);
            request.sent.content_bytes = request.sent.bytes.saturating_sub(head_bytes);
        } else {
            self.answered = Some(location);
        }
        // Where chunks or a length frame the content, the client sees that some of it is missing. One that has sent FIN
        // may still read.
        let is_short = matches!(result, Err(SendError::Incomplete | SendError::Abandoned));
        if is_short && plan.framing == Framing::Close {
            self.abort();
        }
        result
    }

    async fn discard_rest(&mut self, request: &Request) -> Result<(), ContentError> {
        if !self.keep_alive {
            return Ok(());
        }
        let end = self.after(request.location.connection.lingering_time);
        loop {
            match self.incoming.take(self.stream, usize::MAX, &mut |_| ()) {
                Taken::Malformed => return Err(ContentError::Malformed),
                Taken::Ended => return Ok(()),
                Taken::Content => {}
                Taken::NeedMore => {
                    let deadline = self.after(request.location.connection.lingering_timeout);
                    self.wait_for_content(deadline.min(end)).await?;
                }
            }
        }
    }

    fn is_abandoned(&self) -> bool {
        has_left(self.stream)
    }

    fn is_reset(&self) -> bool {
        self.stream.is_reset()
    }

    fn upgrade(&mut self, far: UpstreamConnection<E>, timeout: Duration) {
        self.upgraded = Some(Upgraded::Soon(far, timeout));
    }

    fn keep_open(&mut self, request: Box<Request>) -> Option<Box<Request>> {
        match self.upgraded.take() {
            Some(Upgraded::Soon(far, timeout)) if self.answered.is_some() => {
                let tunnel = Tunnel::new(far, request, timeout, self.local);
                self.upgraded = Some(Upgraded::Now(Box::new(tunnel)));
                None
            }
            _ => Some(request),
        }
    }

    fn end_connection(&mut self, at_once: bool) {
        if at_once {
            self.abort();
        }
    }

    fn abort(&mut self) {
        // A stream without the option is closed early, so the client misses bytes too.
        let _ = self.stream.set(StreamOption::ResetOnClose);
    }
}

impl<E: Engine> fmt::Debug for H1Exchange<'_, E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "H1Exchange({:?})", self.incoming)
    }
}

/// Whether the client has closed its connection, or sent FIN.
fn has_left<S: Stream>(stream: &S) -> bool {
    pace::poll_finished(stream).unwrap_or(true)
}

/// Whether the answer can be framed by chunks.
fn may_chunk(request: &Request) -> bool {
    request.message.head.version != Version::Http10
        && request.location.headers.chunked_transfer_encoding
}

/// The answer has no content, and not even a Content-Length is sent.
fn has_no_content<File>(response: &Response<File>) -> bool {
    response.status.has_no_content() || response.content.is_absent()
}

/// Bytes of an answer's content that are handed over to the engine before other connections get their turn: nginx's
/// `sendfile_max_chunk`.
const SHARE_PER_TURN: u64 = 2 * 1024 * 1024;
