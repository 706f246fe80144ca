//! Clients of HTTP/2: one connection carries many requests, over any engine's `Stream`.
//!
//! A request sees a [`Call`], which is a stream like any other: it writes the head and the content of HTTP/1 there, and reads
//! the same back. What passes on the connection are the frames of HTTP/2: the head is spelled as fields, and the answer's
//! fields become a head again, with chunks around content whose length it does not tell, so that trailers have their place.
//! The connection's own task reads frames for all calls, and hands over what they have written once a turn.

//!
//! Invariants:
//! - No I/O: a stream is the engine's, and the connection's task is the caller's scheduler's.
//! - What a server sends is bounded by the windows of its streams, by the limits of `mill_http::h2`, and by the number of calls.
#![forbid(unsafe_code)]

/// One request on a connection.
pub mod call;
/// The state of a call.
mod call_state;
/// What carries a request.
pub mod carrier;

use call::Call;
use call_state::CallState;
use mill_http::h2::connection::{Connection as Protocol, Event, HeadBytes};
use mill_http::h2::error::ErrorCode;
use mill_http::h2::frame::{HEADER_BYTES, StreamId};
use mill_http::h2::limits::Limits;
use mill_http::h2::settings::Settings;
use mill_runtime::payload::Payload;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::spawned::Purpose;
use mill_runtime::stream::{Stream, StreamError};
use mill_runtime::tasks::TaskId;
use mill_runtime::time::{Duration, Instant};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// A connection to a server, shared by its own task and those of its requests.
pub struct Multiplexed<S: Stream> {
    scheduler: Rc<Scheduler>,
    stream: S,
    /// `https` or `http`.
    scheme: &'static [u8],
    protocol: RefCell<Protocol>,
    calls: RefCell<Vec<CallState>>,
    driver: Cell<TaskId>,
    is_driver_woken: Cell<bool>,
    lost: Cell<Option<StreamError>>,
    passed: Cell<Passed>,
    /// The task that waits for the server's SETTINGS.
    settings_task: Cell<TaskId>,
    /// Unread bytes that are needed next.
    needed: Cell<usize>,
    options: Options,
    idle_since: Cell<Instant>,
    is_begun: Cell<bool>,
}

impl<S: Stream> Multiplexed<S> {
    /// Takes an established connection over: a task of its own serves it from now on, and closes it when it has carried no
    /// request for `idle_timeout`. `None`: there can be no more tasks.
    pub fn start(
        stream: S,
        scheme: &'static [u8],
        options: &Options,
        scheduler: &Rc<Scheduler>,
    ) -> Option<Rc<Self>> {
        let settings = Settings {
            initial_window_size: options.window_bytes,
            ..Settings::default()
        };
        let this = Rc::new(Self {
            scheme,
            stream,
            protocol: RefCell::new(Protocol::client(settings, Limits::default())),
            calls: RefCell::default(),
            driver: Cell::new(TaskId::NONE),
            is_driver_woken: Cell::new(false),
            lost: Cell::new(None),
            passed: Cell::default(),
            settings_task: Cell::new(TaskId::NONE),
            needed: Cell::new(HEADER_BYTES),
            options: *options,
            idle_since: Cell::new(scheduler.now()),
            is_begun: Cell::new(false),
            scheduler: Rc::clone(scheduler),
        });
        let shared = Rc::clone(&this);
        let task = poll_fn(move |_| shared.poll());
        // Requests are waited for by their own tasks.
        let task = scheduler.spawn(Purpose::Background, task).ok()?;
        this.driver.set(task);
        this.stream.set_task(task);
        this.wake_driver();
        Some(this)
    }

    /// Begins a request; `None`: the connection takes none now.
    pub fn open(self: &Rc<Self>) -> Option<Call<S>> {
        if self.lost.get().is_some() || self.calls.borrow().len() >= self.calls_max() {
            return None;
        }
        let id = self.protocol.borrow_mut().open()?;
        let task = self.scheduler.current();
        self.calls.borrow_mut().push(CallState::new(id, task));
        self.is_begun.set(true);
        Some(Call::new(Rc::clone(self), id))
    }

    /// Ready when the server has said how many requests it allows at once, or the connection is lost.
    pub fn poll_settled(&self) -> Poll<()> {
        if self.lost.get().is_some() || self.protocol.borrow().has_settings() {
            return Poll::Ready(());
        }
        self.settings_task.set(self.scheduler.current());
        Poll::Pending
    }

    fn wake_settled(&self) {
        let task = self.settings_task.replace(TaskId::NONE);
        if task != TaskId::NONE {
            self.scheduler.wake_soon(task);
        }
    }

    /// Bytes of frames that have passed since the last call.
    pub fn take_passed(&self) -> Passed {
        let heads = self.protocol.borrow_mut().take_heads();
        Passed {
            heads,
            ..self.passed.take()
        }
    }

    /// Whether it has carried a request.
    pub fn is_begun(&self) -> bool {
        self.is_begun.get()
    }

    /// Whether it may carry another request at some time.
    pub fn is_open(&self) -> bool {
        self.lost.get().is_none() && self.protocol.borrow().may_open()
    }

    /// Until SETTINGS have come, a number that RFC 9113 6.5.2 recommends to allow.
    fn calls_max(&self) -> usize {
        let protocol = self.protocol.borrow();
        let most = match protocol.has_settings() {
            true => protocol.streams_max(),
            false => CALLS_AT_FIRST_MAX,
        };
        most.min(self.options.calls_max)
    }

    fn with_protocol<R>(&self, use_protocol: impl FnOnce(&mut Protocol) -> R) -> R {
        use_protocol(&mut self.protocol.borrow_mut())
    }

    fn with_call<R>(&self, id: StreamId, use_call: impl FnOnce(&mut CallState) -> R) -> Option<R> {
        let mut calls = self.calls.borrow_mut();
        let call = calls.iter_mut().find(|call| call.id == id);
        call.map(use_call)
    }

    fn wake_driver(&self) {
        if !self.is_driver_woken.replace(true) {
            self.scheduler.wake_soon(self.driver.get());
        }
    }

    fn poll(&self) -> Poll<()> {
        self.is_driver_woken.set(false);
        if let Err(error) = self.read() {
            self.lose(error);
        }
        if self.lost.get().is_some() {
            self.flush();
            return Poll::Ready(());
        }
        self.send_content();
        self.flush();
        if self.calls.borrow().is_empty() {
            let deadline = self.idle_since.get() + self.options.idle_timeout;
            let is_over = !self.is_open() || self.scheduler.poll_deadline(deadline).is_ready();
            if is_over {
                self.with_protocol(Protocol::go_away);
                self.flush();
                self.lose(StreamError::Reset);
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }

    /// Handles what has arrived.
    fn read(&self) -> Result<(), StreamError> {
        for _ in 0..EVENTS_PER_TURN {
            let needed = self.needed.get();
            match self.stream.poll_readable(needed) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(readable)) if readable.unread < needed => {
                    return Err(StreamError::Reset);
                }
                Poll::Ready(readable) => readable?,
            };
            match self.next_event() {
                Event::NeedMore(needed) => self.needed.set(needed),
                Event::Ended { .. } => return Err(StreamError::Reset),
                event => {
                    self.needed.set(HEADER_BYTES);
                    self.on_event(event);
                }
            }
        }
        let scheduler = &self.scheduler;
        scheduler.wake(scheduler.current());
        Ok(())
    }

    /// Takes the next frame from the unread bytes; content goes to its call.
    fn next_event(&self) -> Event {
        let now_seconds = self.scheduler.now().as_nanos() / 1_000_000_000;
        self.stream.read(|bytes| {
            let (consumed, event) =
                self.with_protocol(|protocol| protocol.on_bytes(bytes, now_seconds));
            if let Event::Data { stream, range, end } = &event {
                let content = bytes.get(range.clone()).unwrap_or_default();
                let is_wanted = self.with_call(*stream, |call| call.on_content(content, *end));
                if is_wanted.is_none() {
                    self.with_protocol(|protocol| protocol.taken(*stream, content.len(), 0));
                }
            }
            let mut passed = self.passed.get();
            passed.received += consumed as u64;
            self.passed.set(passed);
            (consumed, event)
        })
    }

    fn on_event(&self, event: Event) {
        let id = match event {
            Event::Answer {
                stream,
                status,
                end,
            } => {
                let mut protocol = self.protocol.borrow_mut();
                let promised =
                    self.with_call(stream, |call| call.on_head(protocol.head(), status, end));
                if let Some(length) = promised.flatten().filter(|_| !end) {
                    // The stream is open, so there is nothing to refuse yet.
                    let _ = protocol.promise(stream, length);
                }
                stream
            }
            Event::Trailers { stream } => {
                let protocol = self.protocol.borrow();
                self.with_call(stream, |call| call.on_end(protocol.head()));
                stream
            }
            Event::End { stream } => {
                self.with_call(stream, |call| call.on_end(b""));
                stream
            }
            Event::Data { stream, .. } => stream,
            Event::Reset { stream, code, .. } => {
                self.with_call(stream, |call| {
                    call.on_reset(code == ErrorCode::REFUSED_STREAM);
                });
                stream
            }
            Event::Goaway { last } => return self.on_goaway(last),
            Event::Sendable => return self.wake_settled(),
            Event::Handled | Event::Head { .. } | Event::NeedMore(_) | Event::Ended { .. } => {
                return;
            }
        };
        self.wake_call(id);
    }

    /// Requests behind the last one that the server will answer were not begun: they may go to another connection.
    fn on_goaway(&self, last: StreamId) {
        let mut calls = self.calls.borrow_mut();
        for call in calls.iter_mut().filter(|call| call.id > last) {
            call.on_reset(true);
            self.scheduler.wake_soon(call.task);
        }
    }

    fn wake_call(&self, id: StreamId) {
        let scheduler = &self.scheduler;
        self.with_call(id, |call| {
            scheduler.wake_soon(call.task);
            if call.writer != TaskId::NONE {
                scheduler.wake_soon(call.writer);
            }
        });
    }

    /// Moves what calls have written into frames, as the windows allow; those whose content was moved may write on.
    fn send_content(&self) {
        let mut calls = self.calls.borrow_mut();
        let mut queued = self.stream.queued();
        for call in calls.iter_mut().filter(|call| call.has_to_send()) {
            if queued >= QUEUED_MAX {
                // The task is reported when the transport has taken more.
                if self.stream.poll_drained(QUEUED_MAX / 2).is_ready() {
                    self.wake_driver();
                }
                return;
            }
            let sent = self.with_protocol(|protocol| call.send(protocol));
            queued += sent as u64;
            if sent > 0 {
                // Each call has a share; what is left of it comes in the next round.
                if call.has_to_send() {
                    self.wake_driver();
                }
                let waiting = [call.task, call.writer];
                for task in waiting.into_iter().filter(|task| *task != TaskId::NONE) {
                    self.scheduler.wake_soon(task);
                }
            }
        }
    }

    /// Hands over what was written.
    fn flush(&self) {
        let mut protocol = self.protocol.borrow_mut();
        let output = protocol.output();
        if !output.is_empty() {
            let mut passed = self.passed.get();
            passed.sent += output.len() as u64;
            self.passed.set(passed);
            self.stream.write(Payload::Copy(output));
            output.clear();
            output.shrink_to(OUTPUT_KEPT);
        }
    }

    /// The connection is gone: calls that are not over fail.
    fn lose(&self, error: StreamError) {
        self.lost.set(Some(error));
        self.wake_settled();
        self.stream.shutdown();
        for call in &mut *self.calls.borrow_mut() {
            call.on_lost(error);
            self.scheduler.wake_soon(call.task);
            if call.writer != TaskId::NONE {
                self.scheduler.wake_soon(call.writer);
            }
        }
    }

    /// A call is over. A stream that has not ended is reset.
    fn forget(&self, id: StreamId) {
        self.calls.borrow_mut().retain(|call| call.id != id);
        self.idle_since.set(self.scheduler.now());
        self.with_protocol(|protocol| protocol.reset(id, ErrorCode::CANCEL));
        self.wake_driver();
    }
}

impl<S: Stream> fmt::Debug for Multiplexed<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calls = self.calls.borrow().len();
        write!(
            formatter,
            "Multiplexed({:?}, {calls} calls)",
            self.stream.peer()
        )
    }
}

/// Bytes of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    pub received: u64,
    pub sent: u64,
    /// Of what was received.
    pub heads: HeadBytes,
}

/// How a connection is used.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Requests at once; more go to another connection.
    pub calls_max: usize,
    /// The window of a stream at first, in bytes; it grows where its reader is faster.
    pub window_bytes: u32,
    /// How far it grows.
    pub window_bytes_max: u32,
    /// How long the connection waits for another request.
    pub idle_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            calls_max: 128,
            window_bytes: 64 * 1024,
            window_bytes_max: 1024 * 1024,
            idle_timeout: Duration::from_secs(60),
        }
    }
}

/// Requests at once until the server has said what it allows.
const CALLS_AT_FIRST_MAX: usize = 100;

/// Bytes of memory that are kept for the next turn's output.
const OUTPUT_KEPT: usize = 64 * 1024;

/// Frames that are handled before other connections get their turn.
const EVENTS_PER_TURN: u32 = 128;

/// Bytes that wait below the calls.
const QUEUED_MAX: u64 = 128 * 1024;
