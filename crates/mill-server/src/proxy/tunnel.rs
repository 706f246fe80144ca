//! What becomes of a connection after 101: bytes in both directions, whatever they mean (RFC 9110 7.8).

/// What is logged at its end.
mod record;

use super::connection::UpstreamConnection;
use super::fault::{Fault, Step};
use crate::local::Local;
use crate::request::Request;
use mill_runtime::engine::Engine;
use mill_runtime::payload::Payload;
use mill_runtime::stream::{Stream, StreamError};
use mill_runtime::time::{Duration, Instant};
use record::{Carried, Record};
use std::fmt;
use std::task::Poll;

/// The server's end of a tunnel, and what is logged of the request that opened it: at the end of the tunnel, as in nginx.
///
/// An idle tunnel holds neither a buffer nor its request: bytes go from stream to stream through a buffer of the worker.
pub(crate) struct Tunnel<E: Engine> {
    far: UpstreamConnection<E>,
    record: Record,
    upwards: Direction,
    downwards: Direction,
    /// Ends after so long without a byte: `proxy_tunnel_timeout`, else `proxy_read_timeout`.
    timeout: Duration,
    deadline: Instant,
    /// Bytes that both sides have taken and given, when `deadline` was set.
    moved: u64,
}

/// How a tunnel ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Both sides have sent FIN.
    Finished,
    TimedOut,
    /// The stream to the client, or to the server, has failed.
    ClientLost,
    ServerLost(StreamError),
}

/// One direction.
#[derive(Clone, Copy, Debug, Default)]
struct Direction {
    bytes: u64,
    /// FIN was passed on.
    finished: bool,
    /// The other side has more to take before there is more to read.
    held: bool,
}

impl<E: Engine> Tunnel<E> {
    /// Lets go of the request.
    pub(crate) fn new(
        far: UpstreamConnection<E>,
        request: Box<Request>,
        timeout: Duration,
        local: &Local<E>,
    ) -> Self {
        Self {
            far,
            record: Record::of(request, local),
            upwards: Direction::default(),
            downwards: Direction::default(),
            timeout,
            deadline: local.scheduler.now() + timeout,
            moved: 0,
        }
    }

    /// Carries bytes; ready once, when the tunnel has ended and its request is logged.
    pub(crate) fn poll(&mut self, near: &impl Stream, local: &Local<E>) -> Poll<()> {
        self.poll_end(near, local)
            .map(|end| self.conclude(end, local))
    }

    fn poll_end(&mut self, near: &impl Stream, local: &Local<E>) -> Poll<End> {
        let far = self.far.stream();
        let (upwards, downwards) = (&mut self.upwards, &mut self.downwards);
        if let Err(broken) = upwards.carry(near, far, downwards.finished, local) {
            return Poll::Ready(match broken {
                Broken::From(_) => End::ClientLost,
                Broken::To(error) => End::ServerLost(error),
            });
        }
        if let Err(broken) = downwards.carry(far, near, upwards.finished, local) {
            return Poll::Ready(match broken {
                Broken::From(error) => End::ServerLost(error),
                Broken::To(_) => End::ClientLost,
            });
        }
        let is_drained = || near.poll_drained(0).is_ready() && far.poll_drained(0).is_ready();
        if upwards.finished && downwards.finished && is_drained() {
            return Poll::Ready(End::Finished);
        }
        let moved = near.sent() + far.sent() + upwards.bytes + downwards.bytes;
        if moved > self.moved {
            self.moved = moved;
            self.deadline = local.scheduler.now() + self.timeout;
        }
        let expired = local.scheduler.poll_deadline(self.deadline);
        expired.map(|_| End::TimedOut)
    }

    /// Counts and logs what went through, and why it ended.
    fn conclude(&mut self, end: End, local: &Local<E>) {
        let carried = Carried {
            to_client: self.downwards.bytes,
            to_server: self.far.sent().max(self.upwards.bytes),
        };
        local.counters.borrow_mut().bytes_sent += carried.to_client;
        let fault = match end {
            End::Finished | End::ClientLost => None,
            End::TimedOut => Some(Fault::TimedOut(Step::ReadingUpgraded)),
            End::ServerLost(error) => Some(Fault::Failed(Step::ReadingUpgraded, error)),
        };
        let peer = self.far.selected().peer();
        self.record.log(carried, fault, peer, local);
    }
}

/// Why a direction cannot go on.
#[derive(Clone, Copy, Debug)]
enum Broken {
    From(StreamError),
    To(StreamError),
}

impl Direction {
    /// Passes on what has arrived, as fast as the other side takes it, but not more than a share: other connections of
    /// the worker get their turn. `is_last`: the opposite direction is finished, and so does not look after `to`.
    fn carry<E: Engine>(
        &mut self,
        from: &impl Stream,
        to: &impl Stream,
        is_last: bool,
        local: &Local<E>,
    ) -> Result<(), Broken> {
        let share_ends = self.bytes + SHARE_PER_TURN;
        self.held |= is_last;
        while !self.finished {
            if self.bytes >= share_ends {
                local.scheduler.wake(local.scheduler.current());
                return Ok(());
            }
            if self.held {
                match to.poll_drained(QUEUED_MAX) {
                    Poll::Pending => return Ok(()),
                    Poll::Ready(Err(error)) => return Err(Broken::To(error)),
                    Poll::Ready(Ok(())) => self.held = false,
                }
            }
            match from.poll_readable(1) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Err(error)) => return Err(Broken::From(error)),
                Poll::Ready(Ok(readable)) if readable.unread == 0 => {
                    to.shutdown();
                    self.finished = true;
                }
                Poll::Ready(Ok(_)) => self.pass(from, to, local),
            }
        }
        Ok(())
    }

    fn pass<E: Engine>(&mut self, from: &impl Stream, to: &impl Stream, local: &Local<E>) {
        let mut piece = local.take_buffer();
        from.read(|bytes| {
            let bytes = bytes.get(..PIECE_BYTES).unwrap_or(bytes);
            piece.extend_from_slice(bytes);
            (bytes.len(), ())
        });
        self.bytes += piece.len() as u64;
        self.held = true;
        to.write(Payload::Copy(&piece));
        local.put_buffer(piece);
    }
}

impl<E: Engine> fmt::Debug for Tunnel<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Tunnel({:?})", self.far)
    }
}

/// Bytes that one direction carries before other connections get their turn.
const SHARE_PER_TURN: u64 = 2 * 1024 * 1024;

/// Bytes that are passed on at once, and that may wait for one side before the other one is read from again.
const PIECE_BYTES: usize = 64 * 1024;
const QUEUED_MAX: u64 = PIECE_BYTES as u64;
