//! TLS over a stream of the engine.
//!
//! Invariants:
//! - Nothing is kept outside the engine's buffers but up to a record's plaintext that was written during the handshake.
//!   A record is opened where it lies, and its plaintext lent from there.
//! - The peer is told a whole end (`close_notify`) only where our side has ended as intended: after a reset, an alert or a
//!   failure it is not sent.

/// Opening records, and what they say beside application data.
mod reading;

/// Sealing records.
mod writing;

/// The handshake, driven by the task which waits for the stream.
mod securing;

/// Requests before the handshake is over.
mod early;

use crate::facts::TlsFacts;
use crate::handshake::{Fault, Handshake, Secured, Updates};
use crate::protection::{Opener, Sealer, Version};
use crate::server_context::ServerChoice;
use crate::worker::{Admission, TlsWorker};
use early::Early;
use mill_runtime::address::Address;
use mill_runtime::payload::Payload;
use mill_runtime::received::Received;
use mill_runtime::stream::{
    Readable, Stream, StreamError, StreamOption, TransportInfo, Unsupported,
};
use mill_runtime::tasks::TaskId;
use mill_runtime::time::Instant;
use reading::Unread;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

/// A connection that is, or is to be, under TLS.
pub struct TlsStream<S: Stream> {
    stream: S,
    worker: TlsWorker,
    state: RefCell<State>,
    /// The connection is to end by a reset.
    resets: Cell<bool>,
    /// Our side has ended.
    is_shut: Cell<bool>,
}

/// How far it has come.
enum State {
    /// Bytes pass in clear; with a handshake that is to begin, or what the peer sent instead of one.
    Clear(Result<Handshake, Fault>),
    Handshaking {
        handshake: Handshake,
        /// Unread bytes that the handshake needs.
        needed: usize,
        admission: Admission,
        /// What was written meanwhile.
        held: Vec<u8>,
    },
    /// The handshake is not over, and a request is there.
    Early(Box<Early>),
    Established(Box<Established>),
    Failed(StreamError, Fault),
}

/// After the handshake.
struct Established {
    opener: Opener,
    sealer: Sealer,
    updates: Updates,
    version: Version,
    facts: Rc<TlsFacts>,
    unread: Unread,
    /// What came before the end of the handshake and was not taken; it is lent before `unread`.
    early: Vec<u8>,
    /// The peer sends nothing any more, and has said so.
    is_closed: bool,
    has_sent_close: bool,
    /// Plaintext that was sealed, up to the bound at which records become long.
    sealed_bytes: usize,
    /// Plaintext of a record, at most.
    record_bytes_max: usize,
}

impl<S: Stream> TlsStream<S> {
    pub(crate) fn server(stream: S, choice: Rc<dyn ServerChoice>, worker: TlsWorker) -> Self {
        Self::new(stream, Handshake::server(choice), worker)
    }

    pub(crate) fn client(
        stream: S,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
        worker: TlsWorker,
    ) -> Self {
        Self::new(stream, Handshake::client(config, name), worker)
    }

    fn new(stream: S, handshake: Handshake, worker: TlsWorker) -> Self {
        Self {
            stream,
            worker,
            state: RefCell::new(State::Clear(Ok(handshake))),
            resets: Cell::new(false),
            is_shut: Cell::new(false),
        }
    }

    pub(crate) fn begin(&self) {
        let mut state = self.state.borrow_mut();
        let before = std::mem::replace(&mut *state, State::Clear(Err(Fault::Closed)));
        *state = match before {
            State::Clear(Ok(handshake)) => State::Handshaking {
                handshake,
                needed: 0,
                admission: Admission::Unasked,
                held: Vec::new(),
            },
            other => other,
        };
    }

    /// As [`Self::begin`], with bytes for the first flight.
    pub(crate) fn begin_with(&self, early: &[u8]) {
        if let State::Clear(Ok(handshake)) = &mut *self.state.borrow_mut() {
            handshake.offer(early.to_vec());
        }
        self.begin();
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        matches!(&*self.state.borrow(), State::Handshaking { .. })
    }

    fn holds_early(&self) -> bool {
        matches!(&*self.state.borrow(), State::Early(early) if early.held_bytes() > 0)
    }

    pub(crate) fn is_early(&self) -> bool {
        matches!(&*self.state.borrow(), State::Early(_))
    }

    pub(crate) fn facts(&self) -> Option<Rc<TlsFacts>> {
        match &*self.state.borrow() {
            State::Established(established) => Some(Rc::clone(&established.facts)),
            State::Early(early) => Some(early.facts()),
            _ => None,
        }
    }

    pub(crate) fn fault(&self) -> Option<Fault> {
        match &*self.state.borrow() {
            State::Failed(_, fault) | State::Clear(Err(fault)) => Some(fault.clone()),
            _ => None,
        }
    }

    pub(crate) fn is_clear_where_tls_was_due(&self) -> bool {
        matches!(&*self.state.borrow(), State::Clear(Err(Fault::NotTls)))
    }

    /// Bytes pass as they are.
    fn is_clear(&self) -> bool {
        matches!(&*self.state.borrow(), State::Clear(_))
    }
}

impl Established {
    fn new(secured: Secured) -> Self {
        Self {
            opener: secured.opener,
            sealer: secured.sealer,
            updates: secured.updates,
            version: secured.version,
            facts: Rc::new(secured.facts),
            unread: Unread::default(),
            early: secured.early,
            is_closed: false,
            has_sent_close: false,
            sealed_bytes: 0,
            record_bytes_max: secured.record_bytes_max,
        }
    }
}

impl<S: Stream> Stream for TlsStream<S> {
    type File = S::File;

    fn poll_readable(&self, least: usize) -> Poll<Result<Readable, StreamError>> {
        if self.is_clear() {
            return self.stream.poll_readable(least);
        }
        match self.poll_secured() {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending => return Poll::Pending,
        }
        self.poll_plain(least)
    }

    fn read<R>(&self, take: impl FnOnce(&mut [u8]) -> (usize, R)) -> R {
        match &mut *self.state.borrow_mut() {
            State::Clear(_) => self.stream.read(take),
            State::Established(established) if established.early.is_empty() => {
                (self.stream).read(|bytes| established.unread.lend(bytes, take))
            }
            State::Established(established) => early::lend(&mut established.early, take),
            State::Early(early) => early.lend(take),
            State::Handshaking { .. } | State::Failed(..) => take(&mut []).1,
        }
    }

    fn take_received(&self, lengths: RangeInclusive<usize>) -> Option<Received> {
        self.is_clear()
            .then(|| self.stream.take_received(lengths))
            .flatten()
    }

    fn received_at(&self) -> Option<Instant> {
        self.stream.received_at()
    }

    fn is_reset(&self) -> bool {
        self.stream.is_reset()
    }

    fn write(&self, payload: Payload<'_, Self::File>) {
        if self.is_clear() {
            return self.stream.write(payload);
        }
        match payload {
            Payload::Copy(bytes) => self.write_plain(bytes),
            Payload::Shared(bytes, range) => {
                self.write_plain(bytes.get(range).unwrap_or_default());
            }
            // Callers ask `sends_files` first. The length is promised: the peer must see that it was cut.
            Payload::File { .. } => self.cut(),
        }
    }

    fn write_some(&self, bytes: &[u8]) -> usize {
        if self.is_clear() {
            return self.stream.write_some(bytes);
        }
        let some = bytes.get(..WRITE_SOME_BYTES).unwrap_or(bytes);
        self.write_plain(some);
        some.len()
    }

    fn sends_files(&self) -> bool {
        self.is_clear() && self.stream.sends_files()
    }

    fn poll_drained(&self, most: u64) -> Poll<Result<(), StreamError>> {
        match self.poll_secured() {
            Poll::Ready(Ok(())) => {}
            other => return other,
        }
        // What is held goes out when the handshake goes on.
        while self.holds_early() {
            if self.poll_step().is_pending() {
                return Poll::Pending;
            }
        }
        self.stream.poll_drained(most)
    }

    fn queued(&self) -> u64 {
        let held = match &*self.state.borrow() {
            State::Handshaking { held, .. } => held.len() as u64,
            State::Early(early) => early.held_bytes(),
            _ => 0,
        };
        held + self.stream.queued()
    }

    fn sent(&self) -> u64 {
        self.stream.sent()
    }

    fn shutdown(&self) {
        self.send_close();
        self.is_shut.set(true);
        self.stream.shutdown();
    }

    fn set_task(&self, task: TaskId) {
        self.stream.set_task(task);
    }

    fn set(&self, option: StreamOption) -> Result<(), Unsupported> {
        if option == StreamOption::ResetOnClose {
            self.resets.set(true);
        }
        self.stream.set(option)
    }

    fn peer(&self) -> Address {
        self.stream.peer()
    }

    fn local(&self) -> Address {
        self.stream.local()
    }

    fn mark(&self) -> Option<u32> {
        self.stream.mark()
    }

    fn info(&self) -> Option<TransportInfo> {
        self.stream.info()
    }
}

impl<S: Stream> Drop for TlsStream<S> {
    fn drop(&mut self) {
        if matches!(
            &*self.state.borrow(),
            State::Handshaking { .. } | State::Early(_)
        ) {
            // Our side has given up: no time was left for it.
            self.worker
                .count(|counters| counters.handshakes_failed += 1);
        }
        self.send_close();
    }
}

impl<S: Stream> fmt::Debug for TlsStream<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &*self.state.borrow() {
            State::Clear(_) => "in clear",
            State::Handshaking { .. } => "in its handshake",
            State::Early(_) => "early",
            State::Established(_) => "established",
            State::Failed(..) => "failed",
        };
        write!(formatter, "TlsStream({state})")
    }
}

/// Plaintext that one call of `write_some` takes: what the worker's buffer holds as records.
const WRITE_SOME_BYTES: usize = 4 * crate::record::PLAIN_BYTES_MAX;
