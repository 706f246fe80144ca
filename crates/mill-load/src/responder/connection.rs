//! One connection: requests in, answers out.

use super::Conduct;
use super::content::{Fault, RenderedAnswers};
use super::head::{Connection, Reader, Request, Scanned};
use super::law::Law;
use super::served::Served;
use crate::pacer::Pacer;
use crate::random::Random;
use core::cell::{Cell, RefCell};
use mill_runtime::engine::Engine;
use mill_runtime::payload::Payload;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::stream::{Stream, StreamOption};
use mill_runtime::time::{Duration, Instant};
use std::rc::Rc;

/// The state that the connections of one thread share. Never borrowed across an await.
#[derive(Debug)]
pub(crate) struct Local<E> {
    pub(super) engine: E,
    pub(super) scheduler: Rc<Scheduler>,
    pub(super) pacer: Pacer,
    pub(super) spin: Duration,
    pub(super) served: RefCell<Served>,
    law: Law,
    fault: Option<Fault>,
    answers: RenderedAnswers,
    reader: RefCell<Reader>,
    random: RefCell<Random>,
    /// When the first request of all arrived.
    first: Cell<Option<Instant>>,
}

impl<E: Engine> Local<E> {
    pub(crate) fn new(engine: E, scheduler: Rc<Scheduler>, conduct: &Conduct) -> Self {
        Self {
            engine,
            scheduler,
            pacer: Pacer::default(),
            spin: conduct.spin,
            served: RefCell::default(),
            law: conduct.law.clone(),
            fault: conduct.fault,
            answers: RenderedAnswers::new(conduct.content_bytes, conduct.fault),
            reader: RefCell::default(),
            random: RefCell::new(Random::new(conduct.seed)),
            first: Cell::new(None),
        }
    }

    /// Waits for the delay.
    async fn delay(&self) {
        let arrival = self.engine.now();
        let first = self.first.get().unwrap_or(arrival);
        self.first.set(Some(first));
        let due = self.law.due(arrival, first, &mut self.random.borrow_mut());
        self.pacer.until(&self.scheduler, due).await;
        let now = self.engine.now();
        let mut served = self.served.borrow_mut();
        served.given.record(now.since(arrival));
        served.late.record(now.since(due));
    }
}

/// Answers the requests of a stream, until either side closes it.
pub(crate) async fn serve<E: Engine>(local: Rc<Local<E>>, stream: E::Stream) {
    local.served.borrow_mut().connections += 1;
    let mut least = 1;
    loop {
        let Ok(readable) = stream.readable(least).await else {
            return;
        };
        let scanned = stream.read(|bytes| {
            let scanned = local.reader.borrow_mut().scan(bytes);
            let taken = match scanned {
                Scanned::Request(request) => request.head_bytes,
                Scanned::More | Scanned::TooLong => 0,
            };
            (taken, scanned)
        });
        match scanned {
            Scanned::Request(request) => {
                least = 1;
                let goes_on = skip(&stream, request.content_bytes).await
                    && answer(&local, &stream, request).await;
                if !goes_on {
                    return;
                }
            }
            Scanned::More if !readable.finished => least = readable.unread + 1,
            Scanned::More | Scanned::TooLong => return,
        }
    }
}

/// Discards content; false if the connection ended within it.
async fn skip<S: Stream>(stream: &S, content_bytes: u64) -> bool {
    let mut left = content_bytes;
    while left > 0 {
        let Ok(readable) = stream.readable(1).await else {
            return false;
        };
        if readable.unread == 0 && readable.finished {
            return false;
        }
        left -= stream.read(|bytes| {
            let taken = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
            (taken, taken as u64)
        });
    }
    true
}

/// Answers one request; returns whether the connection stays open.
async fn answer<E: Engine>(local: &Local<E>, stream: &E::Stream, request: Request) -> bool {
    if !local.law.is_none() {
        local.delay().await;
    }
    match local.fault {
        Some(Fault::Silence) => {
            local.served.borrow_mut().unanswered += 1;
            return true;
        }
        Some(Fault::Reset) => {
            local.served.borrow_mut().unanswered += 1;
            // An engine without resets closes, which is no answer either.
            let _ = stream.set(StreamOption::ResetOnClose);
            return false;
        }
        _ => {}
    }
    let (bytes, range) = local.answers.pick(request.connection, request.is_head);
    {
        let mut served = local.served.borrow_mut();
        served.answered += 1;
        served.bytes += range.len() as u64;
    }
    stream.write(Payload::Shared(bytes, range));
    let closes = matches!(local.fault, Some(Fault::CloseAfter(_) | Fault::Garbage));
    if closes || request.connection == Connection::Close {
        return close(stream).await;
    }
    // A client that sends without reading has to read first.
    stream.queued() <= QUEUE_BYTES_MAX || stream.drained(0).await.is_ok()
}

/// Sends the queue and waits for the peer's FIN: closing with unread bytes would reset the connection (RFC 9112 9.6).
async fn close<S: Stream>(stream: &S) -> bool {
    if stream.drained(0).await.is_err() {
        return false;
    }
    stream.shutdown();
    false
}

/// Bytes of answers that may wait for a client that does not read.
const QUEUE_BYTES_MAX: u64 = 256 * 1024;
