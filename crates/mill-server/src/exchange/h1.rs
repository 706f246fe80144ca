//! The HTTP/1 exchange: framing by Content-Length, chunks or the end of the connection.

/// The answer's head: its field lines in nginx's order.
mod head;

/// The answer's content: memory, files, compressed files.
mod content;

/// Whether the connection stays open.
pub(crate) mod persistence;

pub use head::{Framing, HeadPlan};

use super::{ContentError, Exchange, SendError};
use crate::local::{FileOf, Local};
use crate::request::Request;
use crate::response::{Content, Response};
use mill_http::h1::body::{BodyKind, ChunkedBody, ChunkedEvent, LengthBody};
use mill_http::h1::emit::CONTINUE;
use mill_http::limits::ChunkedRules;
use mill_http::method::Method;
use mill_http::version::Version;
use mill_runtime::engine::Engine;
use mill_runtime::payload::Payload;
use mill_runtime::stream::Stream;
use mill_runtime::time::Duration;
use std::fmt;

/// One request of an HTTP/1 connection. Lives as long as the request; the connection's stream is lent to it.
pub struct H1Exchange<'c, E: Engine> {
    stream: &'c E::Stream,
    local: &'c Local<E>,
    incoming: Incoming,
    /// The client waits for 100 before it sends its content.
    continue_due: bool,
    /// `client_max_body_size`, of chunked content; 0 is no limit.
    content_bytes_max: u64,
    content_timeout: Duration,
    /// What `Connection` will say, and whether the connection goes on.
    keep_alive: bool,
}

/// What is left of the request's content.
#[derive(Debug)]
enum Incoming {
    Length(LengthBody),
    Chunked(ChunkedBody),
    Ended,
}

/// What a look at the unread bytes came to.
enum Taken {
    Content,
    NeedMore,
    Ended,
    Malformed,
}

impl<'c, E: Engine> H1Exchange<'c, E> {
    /// An exchange for a request whose head was read.
    pub fn new(stream: &'c E::Stream, local: &'c Local<E>, request: &Request) -> Self {
        let head = &request.message.head;
        let incoming = match BodyKind::of(head) {
            BodyKind::Empty => Incoming::Ended,
            BodyKind::Length(length) => Incoming::Length(LengthBody::new(length)),
            BodyKind::Chunked => Incoming::Chunked(ChunkedBody::new(ChunkedRules::default())),
        };
        Self {
            stream,
            local,
            incoming,
            continue_due: head.expect_continue,
            content_bytes_max: request.location.client_max_body_size,
            content_timeout: request.location.client_body_timeout,
            keep_alive: true,
        }
    }

    /// Says whether the connection is to go on after the answer; what the answer says may still end it.
    pub fn set_keep_alive(&mut self, keep_alive: bool) {
        self.keep_alive = keep_alive;
    }

    pub fn keeps_alive(&self) -> bool {
        self.keep_alive
    }

    /// All of the request's content was taken.
    pub fn content_ended(&self) -> bool {
        matches!(self.incoming, Incoming::Ended)
    }

    /// The rest of the content is not wanted: its length bothers no one any more, and each wait for it is as long as
    /// this at most.
    pub fn begin_to_discard(&mut self, timeout: Duration) {
        self.content_bytes_max = 0;
        self.content_timeout = timeout;
    }

    /// The client is not asked for content any more: the final answer says what there is to say.
    pub fn forget_continue(&mut self) {
        self.continue_due = false;
    }

    /// Takes the content that has come already, and asks for the rest if the client waits to be asked.
    pub fn discard_present(&mut self) -> Result<(), ContentError> {
        loop {
            match self.take_unread(&mut |_| ()) {
                Taken::Content => {}
                Taken::Malformed => return Err(ContentError::Malformed),
                Taken::Ended => {
                    self.incoming = Incoming::Ended;
                    return Ok(());
                }
                Taken::NeedMore => {
                    self.send_continue();
                    return Ok(());
                }
            }
        }
    }

    fn send_continue(&mut self) {
        if std::mem::take(&mut self.continue_due) {
            self.stream.write(Payload::Copy(CONTINUE));
            self.local.counters.borrow_mut().responses_1xx += 1;
        }
    }

    /// Looks at what is unread, giving content to `take`.
    fn take_unread(&mut self, take: &mut impl FnMut(&[u8])) -> Taken {
        let incoming = &mut self.incoming;
        self.stream.read(|bytes| match incoming {
            Incoming::Ended => (0, Taken::Ended),
            Incoming::Length(body) => {
                let content = body.on_bytes(bytes);
                take(content);
                let taken = match (body.is_complete(), content.is_empty()) {
                    (true, _) => Taken::Ended,
                    (false, true) => Taken::NeedMore,
                    (false, false) => Taken::Content,
                };
                (content.len(), taken)
            }
            Incoming::Chunked(body) => {
                let (consumed, event) = body.on_bytes(bytes);
                let taken = match event {
                    ChunkedEvent::Content(content) => {
                        take(content);
                        Taken::Content
                    }
                    ChunkedEvent::NeedMore => Taken::NeedMore,
                    ChunkedEvent::End => Taken::Ended,
                    ChunkedEvent::Invalid => Taken::Malformed,
                };
                (consumed, taken)
            }
        })
    }

    fn is_too_large(&self) -> bool {
        match &self.incoming {
            Incoming::Chunked(body) if self.content_bytes_max > 0 => {
                body.content_bytes() > self.content_bytes_max
            }
            _ => false,
        }
    }

    /// Waits for more of the request.
    async fn wait_for_content(&mut self) -> Result<(), ContentError> {
        self.send_continue();
        let unread = self.stream.read(|bytes| (0, bytes.len()));
        let deadline = self.local.scheduler.now() + self.content_timeout;
        let readable = self.stream.readable(unread + 1);
        match self.local.scheduler.until(deadline, readable).await {
            Err(_) => Err(ContentError::TimedOut),
            Ok(Err(error)) => Err(ContentError::Lost(error)),
            Ok(Ok(readable)) if readable.unread <= unread => {
                Err(ContentError::Lost(mill_runtime::stream::StreamError::Reset))
            }
            Ok(Ok(_)) => Ok(()),
        }
    }
}

impl<E: Engine> Exchange for H1Exchange<'_, E> {
    type File = FileOf<E>;

    async fn content(&mut self, mut take: impl FnMut(&[u8])) -> Result<bool, ContentError> {
        loop {
            match self.take_unread(&mut take) {
                Taken::Malformed => return Err(ContentError::Malformed),
                Taken::Ended => {
                    self.incoming = Incoming::Ended;
                    return Ok(false);
                }
                _ if self.is_too_large() => return Err(ContentError::TooLarge),
                Taken::Content => return Ok(true),
                Taken::NeedMore => self.wait_for_content().await?,
            }
        }
    }

    async fn respond(
        &mut self,
        request: &mut Request,
        response: Response<FileOf<E>>,
    ) -> Result<(), SendError> {
        let plan = HeadPlan::new(request, &response, self.keep_alive);
        self.keep_alive = plan.keep_alive;
        let mut head = self.local.take_buffer();
        plan.emit(request, &response, self.local, &mut head);
        if request.site.mentions.sent_fields {
            request.sent.fields = head::fields(&head, &response);
        }
        let before = self.stream.sent() + self.stream.queued();
        self.stream.write(Payload::Copy(&head));
        request.sent.status = response.status.0;
        request.sent.bytes = head.len() as u64;
        let head_bytes = request.sent.bytes;
        self.local.put_buffer(head);
        let result = if request.message.head.method == Method::Head {
            content::wait_until_sent(self.stream, self.local, request).await
        } else {
            content::send(self.stream, self.local, request, response, plan.framing).await
        };
        if result.is_err() {
            // What was handed over did not all go out.
            request.sent.bytes = self.stream.sent().saturating_sub(before);
            request.sent.content_bytes = request.sent.bytes.saturating_sub(head_bytes);
        }
        result
    }
}

impl<E: Engine> fmt::Debug for H1Exchange<'_, E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "H1Exchange({:?})", self.incoming)
    }
}

/// Whether the answer can be framed by chunks.
fn may_chunk(request: &Request) -> bool {
    request.message.head.version == Version::Http11 && request.location.chunked_transfer_encoding
}

/// The answer has no content, whatever it is made of: not even a Content-Length of it is told.
fn has_no_content<File>(response: &Response<File>) -> bool {
    response.status.has_no_content() || matches!(response.content, Content::Absent)
}
