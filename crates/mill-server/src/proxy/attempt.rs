//! One try at one server: connect, send the request, read the head of the answer.

use super::answer::AnswerHead;
use super::body::AnswerBody;
use super::connection::UpstreamConnection;
use super::content::{PieceFraming, RequestContent};
use super::fault::{Fault, Step};
use super::hints;
use super::pump::Pump;
use super::scan::HeadScan;
use super::trace::{HeadMemory, UpstreamTrace};
use crate::exchange::{ContentError, Exchange};
use crate::local::Local;
use crate::request::Request;
use mill_config::config::settings::PassSettings;
use mill_http::field::Field;
use mill_http::h1::response::{RequestKind, ResponseHead};
use mill_http::status::Status;
use mill_multiplex::call::Call;
use mill_multiplex::carrier::Carrier;
use mill_runtime::engine::Engine;
use mill_runtime::payload::Payload;
use mill_runtime::race::{Either, race};
use mill_runtime::stream::Stream;
use mill_runtime::time::Duration;
use mill_tls::transport::TransportOf;
use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// What all tries of a request have in common.
pub(super) struct Attempt<'a, E: Engine> {
    pub(super) local: &'a Local<E>,
    pub(super) settings: &'a PassSettings,
    pub(super) trace: &'a UpstreamTrace,
    pub(super) kind: RequestKind,
    pub(super) pieces: PieceFraming,
    /// The client gets 103 of the server.
    pub(super) passes_hints: bool,
    /// The client may go meanwhile: the try ends then (`proxy_ignore_client_abort off`).
    pub(super) needs_client: bool,
}

impl<'a, E: Engine> Attempt<'a, E> {
    /// Waits until a new connection is established, as long as the client has not left.
    pub(super) async fn establish(
        &self,
        stream: &TransportOf<E>,
        has_left: impl Fn() -> bool,
    ) -> Result<(), Fault> {
        let scheduler = &self.local.scheduler;
        let deadline = scheduler.now() + self.settings.connect_timeout;
        poll_fn(|_| match stream.poll_drained(0) {
            Poll::Ready(result) => {
                Poll::Ready(result.map_err(|error| Fault::Failed(Step::Connecting, error)))
            }
            Poll::Pending if has_left() => Poll::Ready(Err(Fault::ClientGone(Step::Connecting))),
            Poll::Pending => {
                let expired = scheduler.poll_deadline(deadline);
                expired.map(|_| Err(Fault::TimedOut(Step::Connecting)))
            }
        })
        .await
    }

    /// Sends the request and waits for the head of its answer. The final answer may come before the request was
    /// sent whole: then the rest is not sent, and the connection not kept.
    pub(super) async fn exchange<X: Exchange<Engine = E>>(
        &self,
        connection: &mut UpstreamConnection<E>,
        head: &[u8],
        content: &mut RequestContent<E>,
        exchange: &mut X,
        scan: HeadScan,
        request: &Request,
    ) -> Result<AnswerHead, Fault> {
        connection.stream().write(Payload::Copy(head));
        let mut reading = HeadReading::new(self.local, self.trace, scan);
        reading.hints = self.passes_hints.then(Vec::new);
        if let Carrier::Call(call) = connection.stream()
            && let Some(fault) = self.pump(call, content, exchange, request)
        {
            let found = self.wait(&mut reading, connection, exchange, request).await;
            let found = found.map_err(|other| fault.get().map_or(other, Fault::Content));
            self.pass_hints(&mut reading, exchange, request);
            return Ok(reading.into_answer(found?));
        }
        let sending = self.send_content(connection, content, exchange, request);
        let answering = poll_fn(|_| reading.poll_head(connection.stream(), request));
        let (found, is_sent_whole) = match race(sending, answering).await {
            // The server may have answered, and then closed while it was still sent to.
            Either::First(Err(fault @ Fault::Failed(Step::Sending, _))) => {
                match reading.poll_head(connection.stream(), request) {
                    Poll::Ready(Ok(head)) => (Ok(head), false),
                    _ => (Err(fault), false),
                }
            }
            Either::First(sent) => {
                sent?;
                let found = self.wait(&mut reading, connection, exchange, request).await;
                (found, true)
            }
            Either::Second(found) => (found, false),
        };
        self.pass_hints(&mut reading, exchange, request);
        let answer = reading.into_answer(found?);
        connection.may_be_kept =
            is_sent_whole && answer.head.keep_alive && connection.stream().queued() == 0;
        Ok(answer)
    }

    /// Has the content follow in a task of its own, while the answer comes, if it is passed on as it arrives and the client's
    /// side can be shared; then there will be what ends it early. `None`: it is sent before the answer is read on.
    fn pump<X: Exchange<Engine = E>>(
        &self,
        call: &Call<TransportOf<E>>,
        content: &mut RequestContent<E>,
        exchange: &mut X,
        request: &Request,
    ) -> Option<Rc<Cell<Option<ContentError>>>> {
        if self.pieces != PieceFraming::UntilEnd {
            return None;
        }
        let first = content.take_first()?;
        match exchange.share_content(request) {
            Some(shared) => {
                if !first.is_empty() {
                    call.write(Payload::Copy(&first));
                }
                Pump::start(shared, call, request, self.local)
            }
            None => {
                content.put_first(first);
                None
            }
        }
    }

    /// Waits for the head, as long as something of it comes every `proxy_read_timeout`, and the client is there.
    async fn wait<X: Exchange<Engine = E>>(
        &self,
        reading: &mut HeadReading<'a, E>,
        connection: &UpstreamConnection<E>,
        exchange: &mut X,
        request: &Request,
    ) -> Result<ResponseHead, Fault> {
        let (scheduler, timeout) = (&self.local.scheduler, self.settings.read_timeout);
        let begun = scheduler.now();
        let mut deadline = begun + timeout;
        // An engine may have to begin watching a new connection, which is in vain if it is closed behind this answer.
        let mut watch_from = begun;
        if request.connection_requests == 1 {
            watch_from = begun + CLIENT_UNWATCHED;
        }
        poll_fn(|_| {
            let before = reading.arrivals;
            if let Poll::Ready(found) = reading.poll_head(connection.stream(), request) {
                return Poll::Ready(found);
            }
            self.pass_hints(reading, exchange, request);
            if reading.arrivals != before {
                deadline = scheduler.now() + timeout;
            }
            if self.needs_client
                && watch_from < deadline
                && scheduler.poll_deadline(watch_from).is_pending()
            {
                return Poll::Pending;
            }
            if self.needs_client && exchange.is_abandoned() {
                // In nginx's words the request is being sent until something comes back.
                let step = match reading.arrivals {
                    0 => Step::Sending,
                    _ => Step::ReadingHead,
                };
                return Poll::Ready(Err(Fault::ClientGone(step)));
            }
            let expired = scheduler.poll_deadline(deadline);
            expired.map(|_| Err(Fault::TimedOut(Step::ReadingHead)))
        })
        .await
    }

    /// Sends the client the 103 that have come.
    fn pass_hints<X: Exchange<Engine = E>>(
        &self,
        reading: &mut HeadReading<'a, E>,
        exchange: &mut X,
        request: &Request,
    ) {
        for (bytes, fields) in reading.hints.iter_mut().flat_map(|hints| hints.drain(..)) {
            let lines = hints::lines(&fields, &bytes, self.settings);
            exchange.interim(request, Status::EARLY_HINTS, &lines);
        }
    }

    /// Sends the request's content, piece by piece, as the server takes it.
    async fn send_content<X: Exchange<Engine = E>>(
        &self,
        connection: &UpstreamConnection<E>,
        content: &mut RequestContent<E>,
        exchange: &mut X,
        request: &Request,
    ) -> Result<(), Fault> {
        let stream = connection.stream();
        content.rewind();
        let mut share_ends = stream.sent() + SHARE_PER_TURN;
        loop {
            let more = content
                .send_piece(stream, self.local, exchange, request, self.pieces)
                .await?;
            if !more {
                return Ok(());
            }
            // A client whose content is passed on as it comes may send FIN behind it: that is seen once it was read.
            let is_streamed = content.is_streamed();
            let has_left = || match (self.needs_client, is_streamed) {
                (false, _) => false,
                (true, true) => exchange.is_reset(),
                (true, false) => exchange.is_abandoned(),
            };
            self.drain(stream, content.queued_bytes_max(), has_left)
                .await?;
            // A server that takes all at once makes nothing wait.
            if stream.sent() >= share_ends {
                self.local.scheduler.yield_now().await;
                share_ends = stream.sent() + SHARE_PER_TURN;
            }
        }
    }

    /// Waits until the server has taken all but `most` bytes, as long as it takes something every `proxy_send_timeout`
    /// and the client has not left.
    pub(super) async fn drain(
        &self,
        stream: &impl Stream,
        most: u64,
        has_left: impl Fn() -> bool,
    ) -> Result<(), Fault> {
        let scheduler = &self.local.scheduler;
        let timeout = self.settings.send_timeout;
        let (mut taken, mut deadline) = (stream.sent(), scheduler.now() + timeout);
        poll_fn(|_| match stream.poll_drained(most) {
            Poll::Ready(result) => {
                Poll::Ready(result.map_err(|error| Fault::Failed(Step::Sending, error)))
            }
            Poll::Pending if has_left() => Poll::Ready(Err(Fault::ClientGone(Step::Sending))),
            Poll::Pending => {
                if stream.sent() > taken {
                    (taken, deadline) = (stream.sent(), scheduler.now() + timeout);
                }
                let expired = scheduler.poll_deadline(deadline);
                expired.map(|_| Err(Fault::TimedOut(Step::Sending)))
            }
        })
        .await
    }
}

/// The head of an answer while it arrives.
pub(super) struct HeadReading<'a, E: Engine> {
    local: &'a Local<E>,
    trace: &'a UpstreamTrace,
    scan: HeadScan,
    /// Bytes of the stream that were looked at, and do not complete a head.
    unread: usize,
    /// How often something has arrived.
    arrivals: u64,
    /// Interim answers before the final one.
    interims: u32,
    memory: HeadMemory,
    /// Heads of 103 for the client; `None` where it gets none.
    hints: Option<Vec<(Vec<u8>, Vec<Field>)>>,
}

impl<'a, E: Engine> HeadReading<'a, E> {
    pub(super) fn new(local: &'a Local<E>, trace: &'a UpstreamTrace, scan: HeadScan) -> Self {
        Self {
            local,
            trace,
            scan,
            unread: 0,
            arrivals: 0,
            interims: 0,
            memory: trace.lend_head(),
            hints: None,
        }
    }

    /// Ready with the head of the final answer; interim ones before it are passed over.
    pub(super) fn poll_head(
        &mut self,
        stream: &impl Stream,
        request: &Request,
    ) -> Poll<Result<ResponseHead, Fault>> {
        let mut share_left = SHARE_PER_TURN;
        loop {
            let unread = self.unread;
            match stream.poll_readable(unread + 1) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(readable)) if readable.unread > unread => {}
                Poll::Ready(Ok(_)) => {
                    return Poll::Ready(Err(Fault::ClosedEarly(Step::ReadingHead)));
                }
                Poll::Ready(Err(error)) => {
                    return Poll::Ready(Err(Fault::Failed(Step::ReadingHead, error)));
                }
            }
            if share_left == 0 {
                // A program that writes to standard error without end leaves other requests their turns.
                self.local.scheduler.wake(self.local.scheduler.current());
                return Poll::Pending;
            }
            self.arrivals += 1;
            let (looked_at, taken, head) = self.take(stream, request)?;
            share_left = share_left.saturating_sub(taken as u64);
            match head {
                Some(head) if head.is_interim() => {
                    self.interims += 1;
                    if self.interims > INTERIMS_MAX {
                        self.local.counters.borrow_mut().limit_upstream_interims += 1;
                        return Poll::Ready(Err(Fault::TooManyInterims));
                    }
                    if let Some(hints) = &mut self.hints
                        && Status(head.status) == Status::EARLY_HINTS
                    {
                        let HeadMemory { bytes, fields, .. } = &self.memory;
                        hints.push((bytes.to_vec(), fields.clone()));
                    }
                    self.scan.restart()?;
                    self.unread = 0;
                    self.memory.bytes.clear();
                    self.memory.fields.clear();
                }
                Some(head) => return Poll::Ready(Ok(head)),
                None => self.unread = looked_at.saturating_sub(taken),
            }
        }
    }

    pub(super) fn into_answer(self, head: ResponseHead) -> AnswerHead {
        AnswerHead {
            body: AnswerBody::new(&self.scan, &head),
            head,
            bytes: self.trace.keep_head(self.memory),
        }
    }

    /// Looks at what has arrived; what belongs to the head is taken off the stream. Returns how many bytes it has looked
    /// at and taken, and the head once it is whole.
    fn take(
        &mut self,
        stream: &impl Stream,
        request: &Request,
    ) -> Result<(usize, usize, Option<ResponseHead>), Fault> {
        let (scan, into, local) = (&mut self.scan, &mut self.memory, self.local);
        let mut is_caught = false;
        let most = self.unread + LOOK_BYTES;
        let (looked_at, taken, found) = stream.read(|bytes| {
            let bytes = bytes.get(..most).unwrap_or(bytes);
            let (taken, found) = scan.take(bytes, into, |notice| {
                is_caught |= notice.is_caught(request);
                local.log_error(Some(request), notice.level(), format_args!("{notice}"));
            });
            (taken, (bytes.len(), taken, found))
        });
        self.trace.received(taken as u64, 0);
        let head = found?;
        if is_caught {
            return Err(Fault::Logged);
        }
        Ok((looked_at, taken, head))
    }
}

/// Interim answers (RFC 9110 15.2) that a server may send before its final one: a few 100, 102 and 103 are usual.
const INTERIMS_MAX: u32 = 16;

/// For how long a new client is not watched while the server prepares its answer: most answer sooner.
const CLIENT_UNWATCHED: Duration = Duration::from_millis(10);

/// Bytes that are looked at at once, beyond those that did not complete a head.
const LOOK_BYTES: usize = 64 * 1024;

/// Bytes of a request's content that one server takes, or of what it sends without a head, before other connections get
/// their turn.
const SHARE_PER_TURN: u64 = 2 * 1024 * 1024;
