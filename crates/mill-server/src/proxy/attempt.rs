//! One try at one server: connect, send the request, read the head of the answer.

use super::answer::AnswerHead;
use super::body::AnswerBody;
use super::connection::UpstreamConnection;
use super::content::{PieceFraming, RequestContent};
use super::fault::{Fault, Step};
use super::scan::HeadScan;
use super::trace::UpstreamTrace;
use crate::exchange::Exchange;
use crate::local::Local;
use crate::request::Request;
use mill_config::config::settings::PassSettings;
use mill_http::h1::response::{RequestKind, ResponseHead};
use mill_runtime::engine::Engine;
use mill_runtime::payload::Payload;
use mill_runtime::race::{Either, race};
use mill_runtime::stream::Stream;
use mill_runtime::time::Instant;
use std::future::poll_fn;
use std::task::Poll;

/// What all tries of a request have in common.
pub(super) struct Attempt<'a, E: Engine> {
    pub(super) local: &'a Local<E>,
    pub(super) settings: &'a PassSettings,
    pub(super) trace: &'a UpstreamTrace,
    pub(super) kind: RequestKind,
    pub(super) pieces: PieceFraming,
}

impl<E: Engine> Attempt<'_, E> {
    /// Waits until a new connection is established.
    pub(super) async fn establish(&self, stream: &E::Stream) -> Result<(), Fault> {
        let scheduler = &self.local.scheduler;
        let deadline = scheduler.now() + self.settings.connect_timeout;
        match scheduler.until(deadline, stream.drained(0)).await {
            Err(_) => Err(Fault::TimedOut(Step::Connecting)),
            Ok(Err(error)) => Err(Fault::Failed(Step::Connecting, error)),
            Ok(Ok(())) => Ok(()),
        }
    }

    /// Sends the request and waits for the head of its answer. The answer may come before the request was sent whole:
    /// then the rest is not sent, and the connection not kept.
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
        let mut reading = HeadReading {
            attempt: self,
            scan,
        };
        let is_sent_whole = {
            let sending = self.send_content(connection, content, exchange, request);
            match race(sending, reading.wait(connection)).await {
                Either::First(sent) => {
                    sent?;
                    true
                }
                Either::Second(()) => false,
            }
        };
        let deadline_from = self.local.scheduler.now();
        let answer = reading
            .read(connection, exchange, request, deadline_from)
            .await?;
        connection.may_be_kept =
            is_sent_whole && answer.head.keep_alive && connection.stream().queued() == 0;
        Ok(answer)
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
        loop {
            let more = content
                .send_piece(stream, self.local, exchange, request, self.pieces)
                .await?;
            if !more {
                return Ok(());
            }
            self.drain(stream, content.queued_bytes_max()).await?;
        }
    }

    /// Waits until the server has taken all but `most` bytes, as long as it takes something every `proxy_send_timeout`.
    async fn drain(&self, stream: &E::Stream, most: u64) -> Result<(), Fault> {
        let scheduler = &self.local.scheduler;
        let timeout = self.settings.send_timeout;
        let (mut taken, mut deadline) = (stream.sent(), scheduler.now() + timeout);
        poll_fn(|_| match stream.poll_drained(most) {
            Poll::Ready(result) => {
                Poll::Ready(result.map_err(|error| Fault::Failed(Step::Sending, error)))
            }
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
struct HeadReading<'a, E: Engine> {
    attempt: &'a Attempt<'a, E>,
    scan: HeadScan,
}

impl<E: Engine> HeadReading<'_, E> {
    /// Ready when something of the answer, or an end, is there.
    async fn wait(&self, connection: &UpstreamConnection<E>) {
        // The error itself is found by `read`.
        let _ = connection.stream().readable(1).await;
    }

    /// Reads the head of the final answer; interim ones before it are passed over.
    async fn read<X: Exchange<Engine = E>>(
        &mut self,
        connection: &UpstreamConnection<E>,
        exchange: &X,
        request: &Request,
        since: Instant,
    ) -> Result<AnswerHead, Fault> {
        let attempt = self.attempt;
        let scheduler = &attempt.local.scheduler;
        let mut deadline = since + attempt.settings.read_timeout;
        let mut unread = 0;
        let mut bytes = attempt.local.take_buffer();
        poll_fn(|_| {
            loop {
                match connection.stream().poll_readable(unread + 1) {
                    Poll::Ready(Ok(readable)) if readable.unread > unread => {
                        deadline = scheduler.now() + attempt.settings.read_timeout;
                        match self.take(connection, request, &mut bytes) {
                            Ok((_, Some(head))) if head.is_interim() => {
                                if let Err(fault) = self.scan.restart() {
                                    return Poll::Ready(Err(fault));
                                }
                                (unread, _) = (0, bytes.clear());
                            }
                            Ok((_, Some(head))) => return Poll::Ready(Ok(head)),
                            Ok((taken, None)) => unread = readable.unread.saturating_sub(taken),
                            Err(fault) => return Poll::Ready(Err(fault)),
                        }
                    }
                    Poll::Ready(Ok(_)) => {
                        return Poll::Ready(Err(Fault::ClosedEarly(Step::ReadingHead)));
                    }
                    Poll::Ready(Err(error)) => {
                        return Poll::Ready(Err(Fault::Failed(Step::ReadingHead, error)));
                    }
                    Poll::Pending => break,
                }
            }
            if !attempt.settings.ignore_client_abort && exchange.is_abandoned() {
                return Poll::Ready(Err(Fault::ClientGone(Step::ReadingHead)));
            }
            let expired = scheduler.poll_deadline(deadline);
            expired.map(|_| Err(Fault::TimedOut(Step::ReadingHead)))
        })
        .await
        .map(|head| AnswerHead {
            body: AnswerBody::new(&self.scan, &head),
            head,
            bytes,
        })
    }

    /// Looks at what has arrived; what belongs to the head is taken off the stream. Returns how many bytes that were,
    /// and the head once it is whole.
    fn take(
        &mut self,
        connection: &UpstreamConnection<E>,
        request: &Request,
        into: &mut Vec<u8>,
    ) -> Result<(usize, Option<ResponseHead>), Fault> {
        let (scan, local) = (&mut self.scan, self.attempt.local);
        let mut is_caught = false;
        let (taken, found) = connection.stream().read(|bytes| {
            let (taken, found) = scan.take(bytes, into, |notice| {
                is_caught |= notice.is_caught(request);
                local.log_error(Some(request), notice.level(), format_args!("{notice}"));
            });
            (taken, (taken, found))
        });
        self.attempt.trace.received(taken as u64, 0);
        let head = found?;
        if is_caught {
            return Err(Fault::Logged);
        }
        Ok((taken, head))
    }
}
