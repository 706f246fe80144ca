//! HTTP/2 connections (RFC 9113).
//!
//! The connection's task, `serve`, reads frames; requests with hot answers are answered there at once. Every other request
//! is a task of its own, which sees an [`Exchange`](crate::exchange::Exchange) as any request does, and waits there for
//! content and for room to send. All of them write into one output, which the connection's task hands over at the end of
//! each turn: so the frames of many streams go out in one call, and under TLS in as few records as hold them.

/// New requests: hot answers, and tasks.
mod arrival;
/// Content that another task takes.
mod shared_content;
/// What the tasks of a connection share.
mod streams;
/// Streams that carry another protocol.
mod tunnel_end;

pub use shared_content::SharedContent;
pub(crate) use streams::{Http2, Room, Taken};

use crate::connection::Connection;
use crate::connection::cycle::Stage;
use mill_config::config::LogLevel;
use mill_http::h2::connection::Event;
use mill_http::h2::error::ErrorCode;
use mill_http::h2::frame::{HEADER_BYTES, PREFACE};
use mill_runtime::engine::Engine;
use mill_runtime::stream::{Stream, StreamError};
use mill_runtime::time::{Duration, Instant};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// Whether a connection in clear begins as HTTP/2 does. A part of the preface decides: nothing else begins so.
pub(crate) fn has_preface(bytes: &[u8]) -> bool {
    let len = bytes.len().min(PREFACE.len());
    len >= DECISIVE_BYTES && bytes.get(..len) == PREFACE.get(..len)
}

/// The rest of a connection's life as HTTP/2.
pub(crate) fn serve<E: Engine>(connection: Connection<E>) -> impl Future<Output = ()> {
    let mut driver = Driver::new(connection);
    poll_fn(move |_| driver.poll())
}

/// The connection's own task.
struct Driver<E: Engine> {
    shared: Rc<Http2<E>>,
    /// Unread bytes that are needed next.
    needed: usize,
    /// When it is closed if nothing is asked for.
    deadline: Instant,
    state: State,
    /// There while a request is handled.
    stage: Option<Stage<E>>,
}

/// How far the connection is from its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// What is queued is sent; then FIN.
    Sending(Instant),
    /// FIN was sent; what still comes is discarded, so that no reset overtakes what was sent.
    Lingering(Instant),
    Over,
}

impl<E: Engine> Driver<E> {
    fn new(connection: Connection<E>) -> Self {
        let now = connection.local.scheduler.now();
        let deadline = now + connection.listener.header_timeout();
        connection.local.counters.borrow_mut().http2_connections += 1;
        Self {
            shared: Http2::new(connection),
            needed: HEADER_BYTES,
            deadline,
            state: State::Open,
            stage: None,
        }
    }

    fn poll(&mut self) -> Poll<()> {
        let shared = Rc::clone(&self.shared);
        shared.is_driver_woken.set(false);
        if self.state == State::Open && shared.is_lost() {
            self.stage = None;
            self.state = State::Over;
        }
        if self.state == State::Open {
            self.read();
        }
        if self.state == State::Open {
            self.mark_stage();
            self.end_if_due();
        }
        shared.flush();
        match self.state {
            State::Open => {
                shared.wake_next_sender();
                Poll::Pending
            }
            State::Sending(until) => self.poll_sent(until),
            State::Lingering(until) => self.poll_end(until),
            State::Over => Poll::Ready(()),
        }
    }

    /// Handles what has arrived.
    fn read(&mut self) {
        let shared = Rc::clone(&self.shared);
        let stream = shared.stream();
        for _ in 0..EVENTS_PER_TURN {
            if shared.queued() > OUTPUT_MAX {
                // A client that does not take what it asks for is not asked what else it wants.
                shared.flush();
                match stream.poll_drained(OUTPUT_MAX) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(error)) => return self.lose(error),
                    Poll::Pending => return,
                }
            }
            match stream.poll_readable(self.needed) {
                Poll::Pending => return,
                Poll::Ready(Err(error)) => return self.lose(error),
                Poll::Ready(Ok(readable)) if readable.unread < self.needed => {
                    return self.lose(StreamError::Reset);
                }
                Poll::Ready(Ok(_)) => {}
            }
            match shared.next_event() {
                Event::NeedMore(needed) => self.needed = needed,
                event => {
                    self.needed = HEADER_BYTES;
                    self.on_event(event);
                    if self.state != State::Open {
                        return;
                    }
                    if shared.is_lost() {
                        return self.lose(StreamError::Reset);
                    }
                }
            }
        }
        let scheduler = &shared.local().scheduler;
        scheduler.wake(scheduler.current());
    }

    fn on_event(&mut self, event: Event) {
        let shared = &self.shared;
        match event {
            Event::Head { stream, end, facts } => {
                self.deadline = Instant::FAR;
                shared.on_head(stream, end, facts);
            }
            Event::Data { stream, .. } | Event::End { stream } => shared.wake_stream(stream),
            Event::Reset {
                stream,
                code,
                fault,
            } => {
                match fault {
                    None => shared.local().counters.borrow_mut().http2_resets += 1,
                    Some(fault) => shared.on_stream_fault(stream, code, fault),
                }
                shared.on_reset(stream);
            }
            Event::Ended { code, fault } => {
                let mut counters = shared.local().counters.borrow_mut();
                counters.http2_connection_errors += 1;
                counters.http2_calmed += u64::from(code == ErrorCode::ENHANCE_YOUR_CALM);
                drop(counters);
                shared.log(
                    LogLevel::Info,
                    format_args!(
                        "client sent {} ({code:?}) while processing HTTP/2 connection",
                        fault.0
                    ),
                );
                shared.lose(StreamError::Reset);
                self.close();
            }
            // A waiting stream is woken at the end of the poll.
            Event::Sendable | Event::Handled | Event::Goaway { .. } | Event::NeedMore(_) => {}
            // A client's side has them.
            Event::Answer { .. } | Event::Trailers { .. } => {}
        }
    }

    /// The client is gone: those that answer it learn that.
    fn lose(&mut self, error: StreamError) {
        self.shared.lose(error);
        self.stage = None;
        self.state = State::Over;
    }

    fn close(&mut self) {
        self.stage = None;
        let until = self.shared.local().scheduler.now() + CLOSING;
        self.state = State::Sending(until);
    }

    /// Counts the connection as one that writes while it has requests, and begins the idle time behind the last one.
    fn mark_stage(&mut self) {
        let is_idle = self.shared.is_idle();
        match (&self.stage, is_idle) {
            (None, false) => {
                let mut stage = Stage::reading(self.shared.local_rc());
                stage.write();
                self.stage = Some(stage);
            }
            (Some(_), true) => self.stage = None,
            _ => {}
        }
        if is_idle && self.deadline == Instant::FAR {
            let now = self.shared.local().scheduler.now();
            self.deadline = now + self.shared.idle_timeout.get();
        }
    }

    /// Begins the end of the connection where it is due.
    fn end_if_due(&mut self) {
        let shared = Rc::clone(&self.shared);
        let local = shared.local();
        if local.draining.get() || shared.connection.listener.is_gone() {
            shared.go_away();
        }
        if !shared.is_idle() {
            return;
        }
        let is_due = shared.is_going_away()
            || local.is_asked_for_room()
            || match local.scheduler.poll_deadline(self.deadline) {
                Poll::Pending => false,
                Poll::Ready(_) => {
                    let mut counters = local.counters.borrow_mut();
                    if shared.requests.get() > 0 {
                        counters.timeout_keepalive += 1;
                    } else {
                        counters.timeout_header += 1;
                    }
                    true
                }
            };
        if is_due {
            shared.go_away();
            self.close();
        }
    }

    fn poll_sent(&mut self, until: Instant) -> Poll<()> {
        let shared = Rc::clone(&self.shared);
        match shared.stream().poll_drained(0) {
            Poll::Pending => shared.local().scheduler.poll_deadline(until).map(|_| ()),
            Poll::Ready(Err(_)) => Poll::Ready(()),
            Poll::Ready(Ok(())) => {
                shared.stream().shutdown();
                self.state = State::Lingering(until);
                self.poll_end(until)
            }
        }
    }

    fn poll_end(&self, until: Instant) -> Poll<()> {
        let stream = self.shared.stream();
        loop {
            match stream.poll_readable(1) {
                Poll::Ready(Ok(readable)) if readable.unread > 0 => {
                    stream.read(|bytes| (bytes.len(), ()));
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => {
                    return self
                        .shared
                        .local()
                        .scheduler
                        .poll_deadline(until)
                        .map(|_| ());
                }
            }
        }
    }
}

/// `PRI`: no method of HTTP/1 is longer and begins so.
const DECISIVE_BYTES: usize = 3;

/// Frames that are handled before other connections get their turn.
const EVENTS_PER_TURN: usize = 256;

/// With more than this many bytes waiting to be sent, no further frames are read.
const OUTPUT_MAX: u64 = 256 * 1024;

/// How long the end of a connection may take: nginx's default of `lingering_timeout`.
const CLOSING: Duration = Duration::from_secs(5);
