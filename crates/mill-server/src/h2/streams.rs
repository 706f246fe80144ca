//! The streams of one HTTP/2 connection, as its own task and those of its requests share them.

use crate::connection::Connection;
use crate::local::Local;
use crate::request::ConnectionFacts;
use mill_config::config::LogLevel;
use mill_http::h2::connection::{Connection as Protocol, Event, Malformed};
use mill_http::h2::error::ErrorCode;
use mill_http::h2::frame::StreamId;
use mill_http::h2::limits::Limits;
use mill_runtime::engine::Engine;
use mill_runtime::payload::Payload;
use mill_runtime::stream::{Readable, Stream, StreamError};
use mill_runtime::tasks::TaskId;
use mill_runtime::time::Duration;
use mill_tls::transport::TransportOf;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::task::Poll;

/// One connection, shared by its own task and those of its requests.
pub(crate) struct Http2<E: Engine> {
    pub(crate) connection: Connection<E>,
    pub(crate) facts: Rc<ConnectionFacts>,
    protocol: RefCell<Protocol>,
    /// Requests that are being handled.
    streams: RefCell<Vec<StreamState>>,
    driver: TaskId,
    pub(super) is_driver_woken: Cell<bool>,
    /// The client is gone.
    lost: Cell<Option<StreamError>>,
    pub(super) requests: Cell<u64>,
    /// `keepalive_timeout` of the location that answered last.
    pub(crate) idle_timeout: Cell<Duration>,
}

/// A request's side of its stream.
struct StreamState {
    id: StreamId,
    task: TaskId,
    /// The task that takes the content, if it is another one.
    content_task: TaskId,
    /// Content that has arrived and was not taken: bounded by the stream's window.
    content: Vec<u8>,
    taken: usize,
    has_ended: bool,
    /// Either side has reset the stream.
    is_reset: bool,
}

/// The result of taking content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    Content(usize),
    Ended,
    NeedMore,
    /// The client has reset the stream, or is gone.
    Lost(StreamError),
}

/// Whether a stream may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// So many bytes, at least 1.
    Bytes(usize),
    /// The task is woken when it is its turn.
    Wait,
    Lost(StreamError),
}

impl<E: Engine> Http2<E> {
    pub(super) fn new(mut connection: Connection<E>) -> Rc<Self> {
        let facts = connection.facts(true);
        let driver = connection.local.scheduler.current();
        let settings = connection.listener.http2_settings();
        Rc::new(Self {
            idle_timeout: Cell::new(connection.listener.header_timeout()),
            connection,
            facts,
            protocol: RefCell::new(Protocol::server(settings, Limits::default())),
            streams: RefCell::default(),
            driver,
            is_driver_woken: Cell::new(false),
            lost: Cell::new(None),
            requests: Cell::new(0),
        })
    }

    pub(crate) fn stream(&self) -> &TransportOf<E> {
        self.connection.stream()
    }

    pub(crate) fn local(&self) -> &Local<E> {
        &self.connection.local
    }

    pub(super) fn local_rc(&self) -> &Rc<Local<E>> {
        &self.connection.local
    }

    /// Uses the protocol's state. Its output is in one of the worker's buffers, which the connection holds no longer than
    /// until it is flushed.
    pub(crate) fn with_protocol<R>(&self, use_protocol: impl FnOnce(&mut Protocol) -> R) -> R {
        let mut protocol = self.protocol.borrow_mut();
        if protocol.output().capacity() == 0 {
            *protocol.output() = self.local().take_buffer();
        }
        use_protocol(&mut protocol)
    }

    /// The same, from a request's task: what it writes is handed over in this turn.
    pub(crate) fn write<R>(&self, use_protocol: impl FnOnce(&mut Protocol) -> R) -> R {
        let result = self.with_protocol(use_protocol);
        if self.queued() > FLUSH_BYTES {
            self.flush();
        }
        self.wake_driver();
        result
    }

    fn wake_driver(&self) {
        if !self.is_driver_woken.replace(true) {
            self.local().scheduler.wake_soon(self.driver);
        }
    }

    /// Takes the next frame from the unread bytes.
    pub(super) fn next_event(&self) -> Event {
        let now_seconds = self.local().scheduler.now().as_nanos() / 1_000_000_000;
        self.stream().read(|bytes| {
            let (consumed, event) =
                self.with_protocol(|protocol| protocol.on_bytes(bytes, now_seconds));
            if let Event::Data { stream, range, end } = &event {
                let content = bytes.get(range.clone()).unwrap_or_default();
                self.keep_content(*stream, content, *end);
            } else if let Event::End { stream } = &event {
                self.keep_content(*stream, &[], true);
            }
            (consumed, event)
        })
    }

    fn keep_content(&self, stream: StreamId, content: &[u8], end: bool) {
        let is_wanted = self.with_stream(stream, |state| {
            state.content.extend_from_slice(content);
            state.has_ended |= end;
        });
        if is_wanted.is_none() {
            // The request is over; the client learns that by the reset which follows its answer.
            self.with_protocol(|protocol| protocol.taken(stream, content.len(), 0));
        }
    }

    fn with_stream<R>(
        &self,
        stream: StreamId,
        use_state: impl FnOnce(&mut StreamState) -> R,
    ) -> Option<R> {
        let mut streams = self.streams.borrow_mut();
        let state = streams.iter_mut().find(|state| state.id == stream);
        state.map(use_state)
    }

    /// A request's task begins.
    pub(super) fn begin(&self, stream: StreamId, has_ended: bool) {
        self.streams.borrow_mut().push(StreamState {
            id: stream,
            task: TaskId::NONE,
            content_task: TaskId::NONE,
            content: Vec::new(),
            taken: 0,
            has_ended,
            is_reset: false,
        });
    }

    pub(super) fn set_content_task(&self, stream: StreamId, task: TaskId) {
        self.with_stream(stream, |state| state.content_task = task);
    }

    pub(super) fn set_task(&self, stream: StreamId, task: TaskId) {
        self.with_stream(stream, |state| state.task = task);
    }

    /// A request is over. A stream that was not ended by its answer is reset.
    pub(super) fn end(&self, stream: StreamId) {
        let mut streams = self.streams.borrow_mut();
        streams.retain(|state| state.id != stream);
        drop(streams);
        self.write(|protocol| protocol.reset(stream, ErrorCode::INTERNAL_ERROR));
    }

    /// Takes at most `most` bytes of content that have arrived.
    pub(crate) fn take_content(
        &self,
        stream: StreamId,
        most: usize,
        take: &mut impl FnMut(&[u8]),
    ) -> Taken {
        if let Some(error) = self.lost.get() {
            return Taken::Lost(error);
        }
        let taken = self.with_stream(stream, |state| {
            let rest = state.content.get(state.taken..).unwrap_or_default();
            let piece = rest.get(..most).unwrap_or(rest);
            if !piece.is_empty() {
                take(piece);
                let len = piece.len();
                state.taken += len;
                if state.taken == state.content.len() {
                    state.content.clear();
                    state.taken = 0;
                }
                return Taken::Content(len);
            }
            match (state.is_reset, state.has_ended) {
                (true, _) => Taken::Lost(StreamError::Reset),
                (false, true) => Taken::Ended,
                (false, false) => Taken::NeedMore,
            }
        });
        let taken = taken.unwrap_or(Taken::Lost(StreamError::Reset));
        if let Taken::Content(len) = taken {
            self.write(|protocol| protocol.taken(stream, len, WINDOW_BYTES_MAX));
        }
        taken
    }

    /// What has arrived and was not taken.
    pub(super) fn unread(&self, stream: StreamId) -> Result<Readable, StreamError> {
        if let Some(error) = self.lost.get() {
            return Err(error);
        }
        let known = self.with_stream(stream, |state| match state.is_reset {
            true => Err(StreamError::Reset),
            false => Ok(Readable {
                unread: state.content.len() - state.taken,
                finished: state.has_ended,
            }),
        });
        known.unwrap_or(Err(StreamError::Reset))
    }

    /// Passes all of that to `take`, which returns how much of it it has taken.
    pub(super) fn read<R>(
        &self,
        stream: StreamId,
        take: impl FnOnce(&mut [u8]) -> (usize, R),
    ) -> R {
        let mut streams = self.streams.borrow_mut();
        let state = streams.iter_mut().find(|state| state.id == stream);
        let Some(state) = state else {
            drop(streams);
            return take(&mut []).1;
        };
        let (len, result) = take(state.content.get_mut(state.taken..).unwrap_or_default());
        state.taken += len;
        if state.taken >= state.content.len() {
            // A tunnel is idle for most of its time.
            state.content = Vec::new();
            state.taken = 0;
        }
        drop(streams);
        self.write(|protocol| protocol.taken(stream, len, WINDOW_BYTES_MAX));
        result
    }

    /// Whether nothing more of the request will come.
    pub(crate) fn is_reset(&self, stream: StreamId) -> bool {
        self.lost.get().is_some()
            || self
                .with_stream(stream, |state| state.is_reset)
                .unwrap_or(true)
    }

    /// How much of its content a stream may send now.
    pub(crate) fn room(&self, stream: StreamId) -> Room {
        if let Some(error) = self.lost.get() {
            return Room::Lost(error);
        }
        if self.is_reset(stream) {
            return Room::Lost(StreamError::Reset);
        }
        let queued = self.queued();
        let (room, next) = self.with_protocol(|protocol| {
            protocol.set_waiting(stream, true);
            if queued >= QUEUED_MAX {
                return (Room::Wait, None);
            }
            let next = protocol.next_sender();
            if next != Some(stream) {
                return (Room::Wait, next);
            }
            protocol.set_waiting(stream, false);
            let most = usize::try_from(QUEUED_MAX - queued).unwrap_or(usize::MAX);
            (Room::Bytes(protocol.sendable(stream).min(most)), None)
        });
        match (room, next) {
            (_, Some(next)) => self.wake_stream(next),
            // The connection's task learns when the transport has taken more.
            (Room::Wait, None) => self.wake_driver(),
            _ => {}
        }
        room
    }

    /// How much of its content a stream may send by the windows.
    pub(crate) fn sendable(&self, stream: StreamId) -> usize {
        self.with_protocol(|protocol| protocol.sendable(stream))
    }

    /// Wakes the stream whose turn it is to send, if there is room for it.
    pub(super) fn wake_next_sender(&self) {
        let Some(next) = self.protocol.borrow().next_sender() else {
            return;
        };
        if let Poll::Ready(Ok(())) = self.stream().poll_drained(QUEUED_MAX / 2) {
            self.wake_stream(next);
        }
    }

    pub(super) fn wake_stream(&self, stream: StreamId) {
        let tasks = self.with_stream(stream, |state| [state.task, state.content_task]);
        let tasks = tasks.into_iter().flatten();
        for task in tasks.filter(|task| *task != TaskId::NONE) {
            self.local().scheduler.wake_soon(task);
        }
    }

    /// Counts and logs that a stream was reset for what the client has sent.
    pub(super) fn on_stream_fault(&self, stream: StreamId, code: ErrorCode, fault: Malformed) {
        self.local().counters.borrow_mut().http2_stream_errors += 1;
        self.log(
            LogLevel::Info,
            format_args!(
                "client sent {} on stream {stream} ({code:?}) while processing HTTP/2 connection",
                fault.0
            ),
        );
    }

    /// A stream was reset.
    pub(super) fn on_reset(&self, stream: StreamId) {
        self.with_stream(stream, |state| state.is_reset = true);
        self.wake_stream(stream);
    }

    /// The client is gone.
    pub(super) fn lose(&self, error: StreamError) {
        self.lost.set(Some(error));
        for state in &*self.streams.borrow() {
            for task in [state.task, state.content_task] {
                if task != TaskId::NONE {
                    self.local().scheduler.wake_soon(task);
                }
            }
        }
    }

    /// Ends the connection at once, whatever is on its way.
    pub(crate) fn break_off(&self) {
        self.connection.reset_on_close();
        self.lose(StreamError::Reset);
        self.wake_driver();
    }

    /// The client is gone, or was given up.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.get().is_some()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.streams.borrow().is_empty()
    }

    pub(crate) fn go_away(&self) {
        self.with_protocol(Protocol::go_away);
    }

    pub(super) fn is_going_away(&self) -> bool {
        self.protocol.borrow().is_going_away()
    }

    /// Bytes that the client has not been given yet.
    pub(crate) fn queued(&self) -> u64 {
        self.stream().queued() + self.protocol.borrow_mut().output().len() as u64
    }

    /// Hands over what was written.
    pub(crate) fn flush(&self) {
        let output = std::mem::take(self.protocol.borrow_mut().output());
        if !output.is_empty() {
            self.stream().write(Payload::Copy(&output));
        }
        if output.capacity() > 0 {
            self.local().put_buffer(output);
        }
    }

    pub(super) fn log(&self, level: LogLevel, message: fmt::Arguments<'_>) {
        self.connection.log_error(level, message);
    }
}

impl<E: Engine> fmt::Debug for Http2<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let streams = self.streams.borrow().len();
        write!(formatter, "Http2({:?}, {streams} streams)", self.connection)
    }
}

/// How far a stream's window grows where its reader is faster than the client's round trips.
const WINDOW_BYTES_MAX: u32 = 1024 * 1024;

/// Bytes that wait below the streams: more of them would undo priorities.
const QUEUED_MAX: u64 = 128 * 1024;

/// Bytes of output that are handed over within a turn.
const FLUSH_BYTES: u64 = 64 * 1024;
