//! One request on a connection that others share, as a stream of its own.

use crate::Multiplexed;
use mill_http::h2::error::ErrorCode;
use mill_http::h2::frame::StreamId;
use mill_runtime::address::Address;
use mill_runtime::payload::Payload;
use mill_runtime::stream::{
    Readable, Stream, StreamError, StreamOption, TransportInfo, Unsupported,
};
use mill_runtime::tasks::TaskId;
use std::cell::Cell;
use std::fmt;
use std::rc::Rc;
use std::task::Poll;

/// A handle; dropping it ends the request early, if it has not ended.
pub struct Call<S: Stream> {
    connection: Rc<Multiplexed<S>>,
    id: StreamId,
    /// Content that the head has promised and that was not written yet; `None` before the head, or where the end is told by
    /// [`Stream::shutdown`].
    promised: Cell<Option<u64>>,
    has_head: Cell<bool>,
}

impl<S: Stream> Call<S> {
    pub(crate) const fn new(connection: Rc<Multiplexed<S>>, id: StreamId) -> Self {
        Self {
            connection,
            id,
            promised: Cell::new(None),
            has_head: Cell::new(false),
        }
    }

    pub const fn connection(&self) -> &Rc<Multiplexed<S>> {
        &self.connection
    }

    /// Another handle, for a task of its own which sends the content while the request's reads the answer. It is told no more
    /// once the call is over.
    pub fn content_writer(&self) -> ContentWriter<S> {
        ContentWriter {
            connection: Rc::clone(&self.connection),
            id: self.id,
        }
    }

    /// The server has said that it did not begin with the request.
    pub fn is_refused(&self) -> bool {
        let refused = self.connection.with_call(self.id, |call| call.is_refused());
        refused.unwrap_or(false)
    }

    /// The first bytes are the head, whole; content may stand behind it.
    fn write_head(&self, head: &[u8]) {
        self.has_head.set(true);
        let length = field(head, b"content-length");
        let length = length.and_then(|text| str::from_utf8(text).ok()?.parse::<u64>().ok());
        let is_endless = field(head, b"transfer-encoding").is_some();
        let ends = !is_endless && length.unwrap_or(0) == 0;
        self.promised.set(length.filter(|_| !ends));
        let scheme = self.connection.scheme;
        self.connection
            .with_protocol(|protocol| protocol.emit_request(self.id, scheme, head, ends));
        self.connection.with_call(self.id, |call| {
            call.sent = head.len() as u64;
            call.is_head = head.starts_with(b"HEAD ");
            if ends {
                call.finish_with_head();
            }
        });
        self.connection.wake_driver();
    }

    fn write_content(&self, content: &[u8]) {
        let promised = self.promised.get();
        let left = promised.map(|left| left.saturating_sub(content.len() as u64));
        self.promised.set(left);
        self.connection.with_call(self.id, |call| {
            call.write(content);
            if left == Some(0) {
                call.finish();
            }
        });
        self.connection.wake_driver();
    }
}

/// The value of a field of a head that this program has made.
fn field<'a>(head: &'a [u8], wanted: &[u8]) -> Option<&'a [u8]> {
    let mut lines = head.split(|byte| *byte == b'\n').skip(1);
    lines.find_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (name, value) = line.split_at(colon);
        let value = value.get(1..).unwrap_or_default();
        name.eq_ignore_ascii_case(wanted)
            .then_some(value.trim_ascii())
    })
}

impl<S: Stream> Stream for Call<S> {
    type File = S::File;

    fn poll_readable(&self, least: usize) -> Poll<Result<Readable, StreamError>> {
        let current = self.connection.scheduler.current();
        let found = self.connection.with_call(self.id, |call| {
            call.task = current;
            let unread = call.unread().len();
            let finished = call.end() == Some(Ok(()));
            match call.end() {
                _ if unread >= least => Poll::Ready(Ok(Readable { unread, finished })),
                Some(Ok(())) => Poll::Ready(Ok(Readable { unread, finished })),
                Some(Err(error)) => Poll::Ready(Err(error)),
                None => Poll::Pending,
            }
        });
        found.unwrap_or(Poll::Ready(Err(StreamError::Reset)))
    }

    fn read<R>(&self, take: impl FnOnce(&mut [u8]) -> (usize, R)) -> R {
        let mut take = Some(take);
        let read = self.connection.with_call(self.id, |call| {
            let take = take.take()?;
            let (taken, result) = take(call.unread());
            Some((call.take(taken), result))
        });
        match (read.flatten(), take) {
            (Some((credit, result)), _) => {
                if credit > 0 {
                    self.connection.with_protocol(|protocol| {
                        protocol.taken(self.id, credit, self.connection.options.window_bytes_max)
                    });
                    self.connection.wake_driver();
                }
                result
            }
            (None, Some(take)) => take(&mut []).1,
            (None, None) => unreachable!("a call is forgotten only when its handle is dropped"),
        }
    }

    fn is_reset(&self) -> bool {
        let end = self.connection.with_call(self.id, |call| call.end());
        matches!(end, Some(Some(Err(_))))
    }

    fn write(&self, payload: Payload<'_, Self::File>) {
        let (memory, range);
        let bytes = match payload {
            Payload::Copy(bytes) => bytes,
            Payload::Shared(shared, place) => {
                (memory, range) = (shared, place);
                memory.get(range).unwrap_or_default()
            }
            // It says that it sends none.
            Payload::File { .. } => return,
        };
        if self.has_head.get() {
            return self.write_content(bytes);
        }
        let head_len = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let (head, content) = bytes.split_at(head_len.map_or(bytes.len(), |len| len + 4));
        self.write_head(head);
        if !content.is_empty() {
            self.write_content(content);
        }
    }

    fn sends_files(&self) -> bool {
        false
    }

    fn poll_drained(&self, most: u64) -> Poll<Result<(), StreamError>> {
        let drained = self.connection.with_call(self.id, |call| match call.end() {
            Some(Err(error)) => Poll::Ready(Err(error)),
            _ if call.queued() as u64 <= most => Poll::Ready(Ok(())),
            _ => Poll::Pending,
        });
        drained.unwrap_or(Poll::Ready(Err(StreamError::Reset)))
    }

    fn queued(&self) -> u64 {
        let queued = self.connection.with_call(self.id, |call| call.queued());
        queued.unwrap_or(0) as u64
    }

    fn sent(&self) -> u64 {
        let sent = self.connection.with_call(self.id, |call| call.sent);
        sent.unwrap_or(0)
    }

    fn shutdown(&self) {
        self.connection.with_call(self.id, |call| call.finish());
        self.connection.wake_driver();
    }

    fn set_task(&self, task: TaskId) {
        self.connection.with_call(self.id, |call| call.task = task);
    }

    fn set(&self, _: StreamOption) -> Result<(), Unsupported> {
        Err(Unsupported)
    }

    fn peer(&self) -> Address {
        self.connection.stream.peer()
    }

    fn local(&self) -> Address {
        self.connection.stream.local()
    }

    fn info(&self) -> Option<TransportInfo> {
        self.connection.stream.info()
    }
}

impl<S: Stream> Drop for Call<S> {
    fn drop(&mut self) {
        self.connection.forget(self.id);
    }
}

/// Sends the content of a call.
pub struct ContentWriter<S: Stream> {
    connection: Rc<Multiplexed<S>>,
    id: StreamId,
}

impl<S: Stream> ContentWriter<S> {
    pub const fn connection(&self) -> &Rc<Multiplexed<S>> {
        &self.connection
    }

    /// The task that is woken when there is room; [`TaskId::NONE`] for none.
    pub fn set_task(&self, task: TaskId) {
        self.connection
            .with_call(self.id, |call| call.writer = task);
    }

    /// Ready when at most `most` bytes wait; fails when the answer has ended, or the call is over.
    pub fn poll_room(&self, most: usize) -> Poll<Result<(), StreamError>> {
        let room = self.connection.with_call(self.id, |call| match call.end() {
            Some(_) => Poll::Ready(Err(StreamError::Reset)),
            None if call.queued() <= most => Poll::Ready(Ok(())),
            None => Poll::Pending,
        });
        room.unwrap_or(Poll::Ready(Err(StreamError::Reset)))
    }

    /// Adds content.
    pub fn write(&self, content: &[u8]) {
        self.connection
            .with_call(self.id, |call| call.write(content));
        self.connection.wake_driver();
    }

    /// No content follows.
    pub fn finish(&self) {
        self.connection.with_call(self.id, |call| call.finish());
        self.connection.wake_driver();
    }

    /// The content is cut: the server is told so, and the call fails.
    pub fn fail(&self) {
        let connection = &self.connection;
        connection.with_protocol(|protocol| protocol.reset(self.id, ErrorCode::CANCEL));
        connection.with_call(self.id, |call| call.on_lost(StreamError::Reset));
        connection.wake_call(self.id);
        connection.wake_driver();
    }
}

impl<S: Stream> fmt::Debug for Call<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Call({} on {:?})", self.id, self.connection)
    }
}

impl<S: Stream> fmt::Debug for ContentWriter<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ContentWriter({})", self.id)
    }
}
