//! A connection whose first request goes with the first flight of TLS (0-RTT, RFC 8446 2.3; RFC 8470).
//!
//! All of it lies in boxes of its own: a new connection costs allocations anyway, and idle tasks are many.

use super::{Connection, Opened};
use crate::exchange::{Times, draw, receive};
use crate::failure::Failure;
use crate::record::Record;
use crate::reply::Received;
use crate::request::{Batch, is_safe};
use crate::sample::Sample;
use core::task::Poll;
use mill_multiplex::carrier::Carrier;
use mill_runtime::engine::Engine;
use mill_runtime::payload::Payload;
use mill_runtime::stream::{Stream, StreamError};
use mill_runtime::time::{Duration, Instant};
use mill_tls::facts::{EarlyData, TlsFacts};
use std::future::poll_fn;
use std::rc::Rc;

/// What a connection keeps besides its requests.
pub(super) enum Early {
    /// For the first flight of the connection that is opened next.
    Request(Vec<u8>),
    /// What was agreed on: the stream is closed as soon as a ticket has come.
    TicketDue(Rc<TlsFacts>),
}

impl Early {
    pub(super) fn request(&self) -> Option<&[u8]> {
        match self {
            Self::Request(request) => Some(request),
            Self::TicketDue(_) => None,
        }
    }
}

impl<E: Engine, R: Record> Connection<E, R> {
    /// Whether the first request of a new connection goes with the handshake.
    pub(super) fn offers_early(&self) -> bool {
        let tls = self.local.plan.tls.as_ref();
        tls.is_some_and(|tls| tls.early) && self.local.plan.streams.is_none()
    }

    /// As [`Connection::answer`], on a new connection.
    pub(super) async fn answer_early(
        &mut self,
        intended: Instant,
        started: Instant,
    ) -> Result<Sample, Failure> {
        let deadline = self.deadline(started);
        let mut request = Vec::new();
        let batch = draw(&self.local, &mut request);
        let is_early = batch.responses == 1 && is_safe(&request);
        self.early = is_early.then(|| Box::new(Early::Request(request.clone())));
        let opened = self.establish(deadline).await;
        self.early = None;
        let opened = opened?;
        let facts = opened.facts.clone().unwrap_or_default();
        // What the server has refused was sent again behind the handshake.
        let (mut sent, resent) = match facts.early_data {
            EarlyData::Taken => (opened.connected, false),
            EarlyData::Refused => (opened.at, true),
            EarlyData::None => (opened.at, false),
        };
        if resent {
            self.count_again(&request);
        }
        let connected = opened.at;
        self.take(opened, (!is_early).then_some(request.as_slice()))?;
        let (mut received, mut times) = self.hear(batch, deadline).await?;
        let is_too_early = facts.early_data == EarlyData::Taken && received.status == TOO_EARLY;
        if is_too_early {
            let is_kept = received.keep_alive && !times.is_last;
            sent = self.send_again(&request, is_kept, deadline).await?;
            (received, times) = self.hear(batch, deadline).await?;
        }
        self.end_early(batch, &facts, received.keep_alive && !times.is_last);
        Ok(Sample {
            connection: self.connection(),
            intended,
            started,
            connected: Some(connected),
            sent,
            first_byte: times.first_byte,
            done: times.done,
            status: received.status,
            head_bytes: received.head_bytes,
            content_bytes: received.content_bytes,
            bytes: received.bytes,
            keep_alive: received.keep_alive,
        })
    }

    /// Has the connection carry requests, of which this is the first.
    fn take(&mut self, opened: Opened<E>, request: Option<&[u8]>) -> Result<(), Failure> {
        self.stream = Some(Carrier::Own(opened.stream));
        request.map_or(Ok(()), |request| self.write(request))
    }

    fn write(&self, request: &[u8]) -> Result<(), Failure> {
        let stream = self.stream.as_ref();
        let stream = stream.ok_or(Failure::Stream(StreamError::Reset))?;
        stream.write(Payload::Copy(request));
        Ok(())
    }

    async fn hear(&self, batch: Batch, deadline: Instant) -> Result<(Received, Times), Failure> {
        let stream = self.stream.as_ref();
        let stream = stream.ok_or(Failure::Stream(StreamError::Reset))?;
        receive(&self.local, stream, batch, deadline).await
    }

    /// Sends a request again that was answered 425: behind the handshake, which the answer has seen ended, or on a
    /// connection without early data. Returns when.
    async fn send_again(
        &mut self,
        request: &[u8],
        is_kept: bool,
        deadline: Instant,
    ) -> Result<Instant, Failure> {
        self.count_too_early();
        self.count_again(request);
        if is_kept {
            self.write(request)?;
            return Ok(self.local.engine.now());
        }
        self.close();
        let opened = self.establish(deadline).await?;
        let at = opened.at;
        self.take(opened, Some(request))?;
        Ok(at)
    }

    fn count_too_early(&self) {
        let tally = &mut self.local.memory.borrow_mut().tally;
        tally.early_too_early += 1;
        tally.take_back(TOO_EARLY);
    }

    fn count_again(&self, request: &[u8]) {
        self.local.memory.borrow_mut().tally.bytes_sent += request.len() as u64;
    }

    /// Closes the stream if it is over: where our side ends it, only behind a ticket, without which the next handshake would
    /// be a full one. A server sends that when it has seen the end of the handshake, so behind its early answer.
    fn end_early(&mut self, batch: Batch, facts: &Rc<TlsFacts>, keep_alive: bool) {
        self.left = self.left.map(|left| left.saturating_sub(batch.responses));
        if !keep_alive {
            self.close();
        } else if self.left == Some(0) {
            match facts.early_data {
                EarlyData::Taken => self.early = Some(Box::new(Early::TicketDue(Rc::clone(facts)))),
                EarlyData::None | EarlyData::Refused => self.close(),
            }
        }
    }

    /// Waits for a ticket, or for the end of the connection, and closes it. No request waits for this but the next one of
    /// the connection.
    pub(super) async fn close_behind_ticket(&mut self) {
        let due = self.early.take();
        if let (Some(Early::TicketDue(facts)), Some(stream)) = (due.as_deref(), &self.stream) {
            let ticket = poll_fn(|_| match stream.poll_readable(1) {
                Poll::Pending if facts.tickets.get() == 0 => Poll::Pending,
                _ => Poll::Ready(()),
            });
            let scheduler = &self.local.scheduler;
            // A server need not send any.
            let _ = scheduler.until(scheduler.now() + TICKET_WAIT, ticket).await;
        }
        self.close();
    }
}

/// RFC 8470 5.2.
const TOO_EARLY: u16 = 425;

/// As long as a slow round trip.
const TICKET_WAIT: Duration = Duration::from_millis(300);
