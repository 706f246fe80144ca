//! The HTTP/2 exchange: one stream of a connection.

use super::h1::{Framing, HeadPlan, sent_fields};
use super::pace::Pace;
use super::{ContentError, Exchange, SendError};
use crate::content::{Content, PIECE_BYTES, Pull};
use crate::frang::content::Arriving;
use crate::h2::{Http2, Room, SharedContent, Taken};
use crate::local::FileOf;
use crate::proxy::connection::UpstreamConnection;
use crate::proxy::tunnel::Tunnel;
use crate::proxy::websocket;
use crate::request::Request;
use crate::response::{FieldLine, Response};
use mill_config::config::Location;
use mill_http::h1::emit::{CONTINUE, emit_field, emit_head_end, emit_status_line};
use mill_http::h2::error::ErrorCode;
use mill_http::h2::frame::StreamId;
use mill_http::head::RequestHead;
use mill_http::method::Method;
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use mill_runtime::payload::Payload;
use mill_runtime::race::{Either, race};
use mill_runtime::stream::StreamError;
use mill_runtime::time::Duration;
use std::fmt;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

/// One request of an HTTP/2 connection. Lives in the request's own task.
pub(crate) struct H2Exchange<'c, E: Engine> {
    shared: &'c Rc<Http2<E>>,
    stream: StreamId,
    /// The client expects 100 before it sends its content.
    continue_due: bool,
    /// `http2_chunk_size`.
    frame_bytes: usize,
    /// The head said how much content there is.
    is_measured: bool,
    /// Bytes of content that were taken.
    taken_bytes: u64,
    arriving: Arriving,
    upgraded: Option<Upgraded<E>>,
}

/// A stream that carries another protocol (RFC 8441).
enum Upgraded<E: Engine> {
    /// Once the head of the answer is written.
    Soon(UpstreamConnection<E>, Duration),
    Now(Box<Tunnel<E>>),
}

impl<'c, E: Engine> H2Exchange<'c, E> {
    pub(crate) fn new(shared: &'c Rc<Http2<E>>, stream: StreamId, head: &RequestHead) -> Self {
        Self {
            shared,
            stream,
            continue_due: head.expect_continue,
            frame_bytes: usize::MAX,
            is_measured: head.content_length.is_some(),
            taken_bytes: 0,
            arriving: Arriving::new(),
            upgraded: None,
        }
    }

    /// What is to be carried behind the answer.
    pub(crate) fn into_tunnel(self) -> Option<Box<Tunnel<E>>> {
        match self.upgraded {
            Some(Upgraded::Now(tunnel)) => Some(tunnel),
            _ => None,
        }
    }

    /// The answer that opens a tunnel: 200 in place of 101, whose fields are HTTP/1's.
    fn write_opening(&self, request: &mut Request, mut response: Box<Response<FileOf<E>>>) {
        response.status = Status::OK;
        response.reason = None;
        let is_of_http1 = |name: &[u8]| name.eq_ignore_ascii_case(b"sec-websocket-accept");
        response.fields.retain(|line| !is_of_http1(&line.name));
        let plan = HeadPlan {
            framing: Framing::None,
            keep_alive: true,
        };
        self.write_head(&plan, request, &response, false);
        self.shared.local().put_response(response);
    }

    fn send_continue(&mut self) {
        if std::mem::take(&mut self.continue_due) {
            self.shared
                .write(|protocol| protocol.emit_head(self.stream, CONTINUE, false));
            self.shared.local().counters.borrow_mut().responses_1xx += 1;
        }
    }

    /// Queues the head, from the text of an HTTP/1 head; returns its bytes.
    fn write_head(
        &self,
        plan: &HeadPlan,
        request: &mut Request,
        response: &Response<FileOf<E>>,
        end: bool,
    ) -> u64 {
        let local = self.shared.local();
        let mut text = local.take_buffer();
        plan.emit(request, response, local, &mut text);
        if request.site.mentions.sent_fields {
            request.sent.fields = sent_fields(&text, response);
        }
        let head_bytes = self.shared.write(|protocol| {
            let before = protocol.output().len();
            protocol.emit_head(self.stream, &text, end);
            (protocol.output().len() - before) as u64
        });
        local.put_buffer(text);
        request.sent.status = response.status.0;
        request.sent.bytes = head_bytes;
        head_bytes
    }

    /// Waits until it is this stream's turn, within `send_timeout`; meanwhile lets awaited content arrive.
    async fn room(
        &self,
        location: &Location,
        mut meanwhile: impl FnMut(),
    ) -> Result<usize, SendError> {
        let scheduler = &self.shared.local().scheduler;
        let deadline = scheduler.now() + location.connection.send_timeout;
        poll_fn(|_| match self.shared.room(self.stream) {
            Room::Bytes(bytes) => Poll::Ready(Ok(bytes)),
            Room::Lost(error) => Poll::Ready(Err(SendError::Lost(error))),
            Room::Wait => {
                meanwhile();
                scheduler
                    .poll_deadline(deadline)
                    .map(|_| Err(SendError::TimedOut))
            }
        })
        .await
    }

    /// Sends the content as windows, other streams and `limit_rate` allow, and ends the stream.
    async fn send_content(
        &self,
        content: &mut Content<FileOf<E>>,
        trailers: &[FieldLine],
        request: &mut Request,
        location: &Location,
    ) -> Result<(), SendError> {
        let local = self.shared.local();
        let pace = Pace::of(request);
        let needs_client = content.needs_client();
        let mut ends = false;
        while !content.is_exhausted() {
            let allowed = loop {
                let (most, due) = pace.share(request.sent.content_bytes);
                if due <= local.scheduler.now() {
                    break most;
                }
                let lost = poll_fn(|_| match self.shared.is_reset(self.stream) {
                    true => Poll::Ready(()),
                    false => Poll::Pending,
                });
                if local.scheduler.until(due, lost).await.is_ok() {
                    return Err(SendError::Lost(StreamError::Reset));
                }
            };
            let last = content.only_part().filter(|_| trailers.is_empty());
            let last = last.map(|part| part.len());
            let room = self.room(location, || content.read_ahead(local)).await?;
            let pull = Pull {
                local,
                most: allowed.min(room as u64),
                copies: true,
                read_most: PIECE_BYTES,
            };
            let left = poll_fn(
                |_| match needs_client && self.shared.is_reset(self.stream) {
                    true => Poll::Ready(()),
                    false => Poll::Pending,
                },
            );
            let piece = match race(content.next(&pull), left).await {
                Either::First(piece) => piece?,
                Either::Second(()) => return Err(SendError::Abandoned),
            };
            let Some(piece) = piece else { break };
            let (shared, range);
            let bytes = match piece {
                Payload::Copy(bytes) => bytes,
                Payload::Shared(memory, place) => {
                    (shared, range) = (memory, place);
                    shared.get(range).unwrap_or_default()
                }
                Payload::File { .. } => return Err(SendError::Lost(StreamError::Truncated)),
            };
            ends = last == Some(bytes.len() as u64);
            self.send_piece(bytes, ends, location).await?;
            request.sent.bytes += bytes.len() as u64;
            request.sent.content_bytes += bytes.len() as u64;
            content.put_back_buffer(local);
        }
        if !ends {
            self.end(&content.trailers(), trailers);
        }
        Ok(())
    }

    /// Sends a piece. The windows had room for it when it was asked for; while it was awaited, other streams may have used the
    /// connection's.
    async fn send_piece(
        &self,
        bytes: &[u8],
        end: bool,
        location: &Location,
    ) -> Result<(), SendError> {
        let mut rest = bytes;
        loop {
            let room = self.shared.sendable(self.stream);
            let (piece, behind) = rest.split_at(rest.len().min(room));
            if !piece.is_empty() || rest.is_empty() {
                self.write_content(piece, end && behind.is_empty());
            }
            if behind.is_empty() {
                return Ok(());
            }
            rest = behind;
            self.room(location, || {}).await?;
        }
    }

    fn write_content(&self, bytes: &[u8], end: bool) {
        self.shared
            .write(|protocol| protocol.emit_data(self.stream, bytes, end, self.frame_bytes));
    }

    /// Ends the stream, with the trailers of the origin and our own.
    fn end(&self, of_origin: &[FieldLine], own: &[FieldLine]) {
        if of_origin.is_empty() && own.is_empty() {
            self.shared
                .write(|protocol| protocol.emit_data(self.stream, &[], true, usize::MAX));
            return;
        }
        let local = self.shared.local();
        let mut text = local.take_buffer();
        for line in of_origin.iter().chain(own) {
            emit_field(&line.name, &line.value, &mut text);
        }
        self.shared
            .write(|protocol| protocol.emit_head(self.stream, &text, true));
        local.put_buffer(text);
    }
}

impl<E: Engine> Exchange for H2Exchange<'_, E> {
    type Engine = E;

    async fn content(
        &mut self,
        request: &Request,
        most: usize,
        mut take: impl FnMut(&[u8]),
    ) -> Result<bool, ContentError> {
        let scheduler = &self.shared.local().scheduler;
        let body = &request.location.client_body;
        let deadline = scheduler.now() + body.timeout;
        loop {
            match self.shared.take_content(self.stream, most, &mut take) {
                Taken::Content(len) => {
                    self.taken_bytes += len as u64;
                    request.content_received.set(self.taken_bytes);
                    let is_too_large =
                        !self.is_measured && body.max_size > 0 && self.taken_bytes > body.max_size;
                    self.arriving.take();
                    let unmeasured = if self.is_measured {
                        0
                    } else {
                        self.taken_bytes
                    };
                    if let Some((error, is_reset)) = self.arriving.check(unmeasured, request) {
                        self.end_connection(is_reset);
                        return Err(error);
                    }
                    return if is_too_large {
                        Err(ContentError::TooLarge)
                    } else {
                        Ok(true)
                    };
                }
                Taken::Ended => return Ok(false),
                Taken::Lost(error) => return Err(ContentError::Lost(error)),
                Taken::NeedMore => {}
            }
            self.arriving.wait();
            self.send_continue();
            if scheduler.until(deadline, woken()).await.is_err() {
                return Err(ContentError::TimedOut);
            }
        }
    }

    fn share_content(&mut self, request: &Request) -> Option<SharedContent<E>> {
        let frang = request.site.frang.as_ref();
        let is_counted = frang.is_some_and(|frang| frang.limits.content_pieces > 0);
        if is_counted || request.location.frang.content_bytes > 0 {
            // The exchange itself counts.
            return None;
        }
        self.send_continue();
        let most = request.location.client_body.max_size;
        let is_limited = !self.is_measured && most > 0;
        let left = is_limited.then(|| most.saturating_sub(self.taken_bytes));
        Some(SharedContent::new(
            Rc::clone(self.shared),
            self.stream,
            left,
        ))
    }

    fn interim(&mut self, _: &Request, status: Status, fields: &[FieldLine]) {
        let local = self.shared.local();
        let mut text = local.take_buffer();
        emit_status_line(status, &mut text);
        for line in fields {
            emit_field(&line.name, &line.value, &mut text);
        }
        emit_head_end(&mut text);
        self.shared
            .write(|protocol| protocol.emit_head(self.stream, &text, false));
        local.put_buffer(text);
        local.counters.borrow_mut().responses_1xx += 1;
    }

    /// The end of a request's content is the stream's own: the connection needs none of it.
    fn discard_present(&mut self, _: &Request, _: bool) -> Result<(), ContentError> {
        self.continue_due = false;
        Ok(())
    }

    async fn respond(
        &mut self,
        request: &mut Request,
        mut response: Box<Response<FileOf<E>>>,
    ) -> Result<(), SendError> {
        let location = Arc::clone(&request.location);
        self.frame_bytes = usize::try_from(location.http2.chunk_size).unwrap_or(usize::MAX);
        if self.upgraded.is_some() {
            self.write_opening(request, response);
            return Ok(());
        }
        if websocket::is_asked_on_stream(request) && matches!(response.status.0, 200..=299) {
            // The client would take it for an open tunnel.
            self.abort();
            return Err(SendError::Incomplete);
        }
        let plan = HeadPlan::new(request, &response, true);
        let mut content = std::mem::replace(&mut response.content, Content::absent());
        let trailers = std::mem::take(&mut response.trailers);
        let is_bare = request.message.head.method == Method::Head || plan.framing == Framing::None;
        let is_whole = is_bare || (content.len() == Some(0) && trailers.is_empty());
        if self.shared.is_reset(self.stream) {
            content.release(self.shared.local());
            return Err(SendError::Lost(StreamError::Reset));
        }
        self.write_head(&plan, request, &response, is_whole);
        self.shared.local().put_response(response);
        let mut result = Ok(());
        if !is_whole {
            let sending = self.send_content(&mut content, &trailers, request, &location);
            result = sending.await;
        }
        request.sent.compressed = content.compressed_to();
        content.release(self.shared.local());
        match result {
            Ok(()) => self.shared.after_answer(&location.connection),
            // The client must see that it has less than it should.
            Err(_) => self.abort(),
        }
        result
    }

    /// RFC 9113 8.1: a client that still sends may be asked to stop. Some take that for a failure of the answer, so what
    /// they send is taken for a while first, as with HTTP/1.
    async fn discard_rest(&mut self, request: &Request) -> Result<(), ContentError> {
        if self.upgraded.is_some() {
            return Ok(());
        }
        let scheduler = &self.shared.local().scheduler;
        let settings = &request.location.connection;
        let end = scheduler.now() + settings.lingering_time;
        loop {
            match (self.shared).take_content(self.stream, usize::MAX, &mut |_| ()) {
                Taken::Content(_) => continue,
                Taken::NeedMore => {}
                Taken::Ended | Taken::Lost(_) => break,
            }
            let deadline = end.min(scheduler.now() + settings.lingering_timeout);
            if scheduler.until(deadline, woken()).await.is_err() {
                break;
            }
        }
        // Nothing is reset where the stream has ended.
        self.shared
            .write(|protocol| protocol.reset(self.stream, ErrorCode::NO_ERROR));
        Ok(())
    }

    fn is_abandoned(&self) -> bool {
        self.shared.is_reset(self.stream)
    }

    fn is_reset(&self) -> bool {
        self.shared.is_reset(self.stream)
    }

    fn upgrade(&mut self, far: UpstreamConnection<E>, timeout: Duration) {
        self.upgraded = Some(Upgraded::Soon(far, timeout));
    }

    fn keep_open(&mut self, request: Box<Request>) -> Option<Box<Request>> {
        match self.upgraded.take() {
            Some(Upgraded::Soon(far, timeout)) if request.sent.complete => {
                let tunnel = Tunnel::new(far, request, timeout, self.shared.local());
                self.upgraded = Some(Upgraded::Now(Box::new(tunnel)));
                None
            }
            _ => Some(request),
        }
    }

    fn end_connection(&mut self, at_once: bool) {
        if at_once {
            self.shared.break_off();
        } else {
            self.shared.write(|protocol| protocol.go_away());
        }
    }

    fn abort(&mut self) {
        self.shared
            .write(|protocol| protocol.reset(self.stream, ErrorCode::INTERNAL_ERROR));
    }
}

impl<E: Engine> fmt::Debug for H2Exchange<'_, E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "H2Exchange({})", self.stream)
    }
}

/// Waits until the task is polled again: something of its stream has changed.
async fn woken() {
    let mut is_woken = false;
    poll_fn(|_| match std::mem::replace(&mut is_woken, true) {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
    .await;
}
