//! The steps of an exchange on one stream: connect, send, receive.

use crate::failure::Failure;
use crate::local::{Abort, Local, Memory};
use crate::record::Record;
use crate::reply::{Fault, Observe, Received, Reply, Step};
use crate::request::Batch;
use crate::target::Endpoint;
use mill_multiplex::carrier::Carrier;
use mill_runtime::address::Address;
use mill_runtime::engine::{ConnectOptions, Engine};
use mill_runtime::payload::Payload;
use mill_runtime::stream::{Stream, StreamError};
use mill_runtime::time::Instant;
use mill_tls::facts::TlsFacts;
use mill_tls::transport::{Transport, TransportOf};
use std::rc::Rc;

/// The times of a response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) first_byte: Instant,
    pub(crate) done: Instant,
    /// The server has announced that the connection closes.
    pub(crate) is_last: bool,
}

/// Establishes connection `number` of the plan. A source port in use is skipped; other connections get their turn in
/// between, since there may be tens of thousands of such ports.
pub(crate) async fn connect<E: Engine, R: Record>(
    local: &Local<E, R>,
    number: u32,
    deadline: Instant,
) -> Result<TransportOf<E>, Failure> {
    let mut attempts = local.sources.borrow().ports_per_address();
    loop {
        local.memory.borrow_mut().tally.connects += 1;
        let attempted = attempt(local, number, deadline).await;
        attempts = attempts.saturating_sub(1);
        match attempted {
            Err(Failure::NoPort) if attempts > 0 => {
                local.memory.borrow_mut().tally.ports_taken += 1;
                if attempts.is_multiple_of(PORTS_PER_TURN) {
                    local.scheduler.yield_now().await;
                }
                if local.scheduler.now() >= deadline {
                    return Err(Failure::ConnectTimeout);
                }
            }
            attempted => return attempted,
        }
    }
}

async fn attempt<E: Engine, R: Record>(
    local: &Local<E, R>,
    number: u32,
    deadline: Instant,
) -> Result<TransportOf<E>, Failure> {
    let stream = open(local, number)?;
    match local.scheduler.until(deadline, stream.drained(0)).await {
        Ok(Ok(())) => Ok(stream),
        Ok(Err(error)) => Err(Failure::of_connect(error)),
        Err(_) => Err(Failure::ConnectTimeout),
    }
}

/// Shakes hands on a connection that is established, with early data or without; returns what was agreed on.
pub(crate) async fn secure<E: Engine, R: Record>(
    local: &Local<E, R>,
    stream: &TransportOf<E>,
    (early, deadline): (Option<&[u8]>, Instant),
) -> Result<Rc<TlsFacts>, Failure> {
    match early {
        Some(early) => stream.begin_tls_with(early),
        None => stream.begin_tls(),
    }
    match local.scheduler.until(deadline, stream.drained(0)).await {
        Ok(Ok(())) => stream.tls_facts().ok_or(Failure::Handshake),
        Ok(Err(_)) => Err(Failure::Handshake),
        Err(_) => Err(Failure::ConnectTimeout),
    }
}

/// Begins a connection. Apart from what waits for it, so that the options take no room in the task.
fn open<E: Engine, R: Record>(local: &Local<E, R>, number: u32) -> Result<TransportOf<E>, Failure> {
    let Some(endpoint) = local.plan.endpoint(local.share.thread, number) else {
        return Err(Failure::Connect(StreamError::Unreachable));
    };
    let (target, source) = match endpoint {
        Endpoint::Ip(_) if local.sources.borrow().lacks_ports() => return Err(Failure::NoPort),
        Endpoint::Ip(address) => {
            let source = local.sources.borrow_mut().next(number, *address);
            (Address::Ip(*address), source)
        }
        Endpoint::Unix(path) => (Address::Unix(Rc::from(&**path)), None),
    };
    let options = ConnectOptions {
        source: source.map(Address::Ip),
        nodelay: local.plan.nodelay,
        ..ConnectOptions::default()
    };
    let task = local.scheduler.current();
    let opened = local.engine.connect(&target, &options, task);
    let stream = opened.map_err(Failure::of_connect)?;
    Ok(match &local.plan.tls {
        None => Transport::Tcp(stream),
        Some(tls) => {
            let (config, name) = tls
                .context
                .for_server(&tls.name, local.plan.streams.is_some());
            Transport::client(stream, config, name, local.tls.clone())
        }
    })
}

/// Queues the next request on the stream; a script that fails ends the run, and nothing is sent.
pub(crate) fn send<E: Engine, R: Record>(
    local: &Local<E, R>,
    stream: &Carrier<TransportOf<E>>,
) -> Batch {
    take_next(local, |payload| stream.write(payload))
}

/// The next request, for a connection that is not there yet.
pub(crate) fn draw<E: Engine, R: Record>(local: &Local<E, R>, into: &mut Vec<u8>) -> Batch {
    take_next(local, |payload: Payload<'_, ()>| match payload {
        Payload::Copy(bytes) => into.extend_from_slice(bytes),
        Payload::Shared(bytes, range) => {
            into.extend_from_slice(bytes.get(range).unwrap_or_default());
        }
        // Requests are in memory.
        Payload::File { .. } => {}
    })
}

fn take_next<E: Engine, R: Record, File>(
    local: &Local<E, R>,
    write: impl FnOnce(Payload<'_, File>),
) -> Batch {
    let random = &mut local.schedules.borrow_mut().random;
    let mut requests = local.requests.borrow_mut();
    let sent = requests.next(random, write);
    if requests.script().is_some_and(|script| script.has_stopped()) {
        local.abort(Abort::Stopped);
    }
    match sent {
        Ok((batch, bytes)) => {
            // The frames of HTTP/2 are counted by their connection.
            if local.plan.streams.is_none() {
                local.memory.borrow_mut().tally.bytes_sent += bytes;
            }
            batch
        }
        Err(error) => {
            local.abort(Abort::Script(error.0));
            Batch::ONE
        }
    }
}

/// Receives what answers `batch`.
#[expect(
    clippy::manual_async_fn,
    reason = "an async fn has room for its parameters twice, in every idle connection"
)]
pub(crate) fn receive<E: Engine, R: Record>(
    local: &Local<E, R>,
    stream: &Carrier<TransportOf<E>>,
    batch: Batch,
    deadline: Instant,
) -> impl Future<Output = Result<(Received, Times), Failure>> {
    async move {
        let keep = local
            .requests
            .borrow_mut()
            .script()
            .is_some_and(|script| script.wants_responses());
        let mut reply = Reply::new(batch, local.plan.ending, keep);
        let mut first_byte = Instant::FAR;
        let mut least = 1;
        let mut share = RECEIVED_PER_TURN;
        loop {
            if share == 0 {
                // A server that sends faster than this thread reads would otherwise occupy it beyond the end of the
                // run.
                local.scheduler.yield_now().await;
                if local.scheduler.now() >= deadline {
                    return Err(Failure::Timeout);
                }
                share = RECEIVED_PER_TURN;
            }
            let readable = local
                .scheduler
                .until(deadline, stream.readable(least))
                .await
                .map_err(|_| Failure::Timeout)?
                .map_err(Failure::Stream)?;
            let received_at = stream.received_at();
            let now = received_at.unwrap_or_else(|| local.engine.now());
            if readable.unread > 0 {
                first_byte = first_byte.min(now);
            }
            let (mut taken, step) = stream.read(|bytes| take(local, &mut reply, bytes))?;
            let step = match step {
                Step::More if readable.finished => {
                    let unread_bytes = readable.unread.saturating_sub(taken);
                    taken = readable.unread;
                    end(local, &mut reply, unread_bytes)?
                }
                step => step,
            };
            if step == Step::Complete {
                if taken < readable.unread {
                    // The unread bytes belong to no request.
                    local.memory.borrow_mut().tally.surplus += 1;
                    reply.received.keep_alive = false;
                }
                return Ok((
                    reply.received,
                    Times {
                        first_byte: first_byte.min(now),
                        done: now,
                        is_last: readable.finished,
                    },
                ));
            }
            share = share.saturating_sub(taken.max(1));
            least = readable.unread.saturating_sub(taken) + 1;
        }
    }
}

/// Scans received bytes; returns how many were consumed.
fn take<E: Engine, R: Record>(
    local: &Local<E, R>,
    reply: &mut Reply,
    bytes: &[u8],
) -> (usize, Result<(usize, Step), Failure>) {
    let mut memory = local.memory.borrow_mut();
    let mut requests = local.requests.borrow_mut();
    let content_before = reply.received.content_bytes;
    let heads = &mut local.heads.borrow_mut();
    let scanned = reply.on_bytes(bytes, heads, &mut *memory, requests.script());
    if let Ok((taken, _)) = &scanned {
        if local.plan.streams.is_none() {
            memory.tally.bytes_received += *taken as u64;
        }
        memory.tally.content_bytes += reply.received.content_bytes - content_before;
    }
    if requests.script().is_some_and(|script| script.has_stopped()) {
        local.abort(Abort::Stopped);
    }
    match scanned {
        Ok((taken, step)) => (taken, Ok((taken, step))),
        Err(fault) => (bytes.len(), Err(failure(local, fault))),
    }
}

fn end<E: Engine, R: Record>(
    local: &Local<E, R>,
    reply: &mut Reply,
    unread_bytes: usize,
) -> Result<Step, Failure> {
    let mut memory = local.memory.borrow_mut();
    let mut requests = local.requests.borrow_mut();
    match reply.on_end(unread_bytes, &mut *memory, requests.script()) {
        Ok(()) => {
            memory.tally.bytes_received += unread_bytes as u64;
            Ok(Step::Complete)
        }
        Err(fault) => Err(failure(local, fault)),
    }
}

/// A script's error ends the run; the request then counts as unfinished.
fn failure<E: Engine, R: Record>(local: &Local<E, R>, fault: Fault) -> Failure {
    match fault {
        Fault::Failure(failure) => failure,
        Fault::Script(error) => {
            local.abort(Abort::Script(error.0));
            Failure::EndedEarly
        }
    }
}

impl<R: Record> Observe for Memory<R> {
    fn on_head(&mut self, bytes: &[u8], head_len: usize) {
        if self.measuring && self.recorder.wants_head() {
            self.recorder.on_head(bytes, head_len);
        }
    }

    fn on_response(&mut self, status: u16) {
        self.tally.on_status(status);
    }

    fn expected(&self) -> Option<&[u8]> {
        self.expected.as_deref()
    }
}

/// Bytes that one connection may receive before others get their turn: some ten receives, a tenth of a millisecond.
const RECEIVED_PER_TURN: usize = 512 << 10;

/// Source ports in use that one connection may try before others get their turn: each costs some microseconds.
const PORTS_PER_TURN: u32 = 8;
