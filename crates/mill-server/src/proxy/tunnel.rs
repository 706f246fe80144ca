//! What becomes of a connection after 101: bytes in both directions, whatever they mean (RFC 9110 7.8).

use super::connection::UpstreamConnection;
use super::fault::{Fault, Step};
use crate::delivery;
use crate::local::Local;
use crate::log;
use crate::request::Request;
use mill_runtime::engine::Engine;
use mill_runtime::payload::Payload;
use mill_runtime::stream::{Stream, StreamError};
use mill_runtime::time::Duration;
use std::fmt;
use std::future::poll_fn;
use std::task::Poll;

/// The server's end of a tunnel, and the request that opened it: it is logged when the tunnel ends, as in nginx.
///
/// An idle tunnel holds no buffer: bytes go from stream to stream through one of the worker's.
pub(crate) struct Tunnel<E: Engine> {
    far: UpstreamConnection<E>,
    request: Box<Request>,
    /// Ends after so long without a byte: `proxy_read_timeout`.
    timeout: Duration,
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
}

impl<E: Engine> Tunnel<E> {
    pub(crate) fn new(
        far: UpstreamConnection<E>,
        mut request: Box<Request>,
        timeout: Duration,
    ) -> Self {
        request.shrink();
        Self {
            far,
            request,
            timeout,
        }
    }

    /// Carries bytes until the tunnel ends, and logs the request.
    pub(crate) async fn run(mut self: Box<Self>, near: &E::Stream, local: &Local<E>) {
        let mut deadline = local.scheduler.now() + self.timeout;
        let mut carried = 0;
        let (mut upwards, mut downwards) = (Direction::default(), Direction::default());
        let far = self.far.stream();
        let end = poll_fn(|_| {
            if let Err(broken) = upwards.carry(near, far, local) {
                return Poll::Ready(match broken {
                    Broken::From(_) => End::ClientLost,
                    Broken::To(error) => End::ServerLost(error),
                });
            }
            if let Err(broken) = downwards.carry(far, near, local) {
                return Poll::Ready(match broken {
                    Broken::From(error) => End::ServerLost(error),
                    Broken::To(_) => End::ClientLost,
                });
            }
            let is_drained = || near.poll_drained(0).is_ready() && far.poll_drained(0).is_ready();
            if upwards.finished && downwards.finished && is_drained() {
                return Poll::Ready(End::Finished);
            }
            let now_carried = near.sent() + far.sent() + upwards.bytes + downwards.bytes;
            if now_carried > carried {
                carried = now_carried;
                deadline = local.scheduler.now() + self.timeout;
            }
            let expired = local.scheduler.poll_deadline(deadline);
            expired.map(|_| End::TimedOut)
        })
        .await;
        self.conclude(end, upwards.bytes, downwards.bytes, local);
    }

    /// Sizes for the log, and why it ended.
    fn conclude(&mut self, end: End, up_bytes: u64, down_bytes: u64, local: &Local<E>) {
        let request = &mut self.request;
        request.sent.bytes += down_bytes;
        request.sent.content_bytes += down_bytes;
        local.counters.borrow_mut().bytes_sent += down_bytes;
        if let Some(trace) = &request.upstream {
            trace.received(down_bytes, down_bytes);
            trace.ended(None, self.far.sent().max(up_bytes), local.scheduler.now());
        }
        let fault = match end {
            End::Finished => None,
            End::TimedOut => Some(Fault::TimedOut(Step::ReadingUpgraded)),
            End::ServerLost(error) => Some(Fault::Failed(Step::ReadingUpgraded, error)),
            End::ClientLost => None,
        };
        request.sent.complete = fault.is_none();
        if let Some(fault) = fault {
            local.log_error(Some(request), fault.level(), format_args!("{fault}"));
        }
        log::access::write(request, local);
        delivery::remove_content(request, local);
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
    /// the worker get their turn.
    fn carry<E: Engine>(
        &mut self,
        from: &E::Stream,
        to: &E::Stream,
        local: &Local<E>,
    ) -> Result<(), Broken> {
        let share_ends = self.bytes + SHARE_PER_TURN;
        while !self.finished {
            if self.bytes >= share_ends {
                local.scheduler.wake(local.scheduler.current());
                return Ok(());
            }
            match to.poll_drained(QUEUED_MAX) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Err(error)) => return Err(Broken::To(error)),
                Poll::Ready(Ok(())) => {}
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

    fn pass<E: Engine>(&mut self, from: &E::Stream, to: &E::Stream, local: &Local<E>) {
        let mut piece = local.take_buffer();
        from.read(|bytes| {
            let bytes = bytes.get(..PIECE_BYTES).unwrap_or(bytes);
            piece.extend_from_slice(bytes);
            (bytes.len(), ())
        });
        self.bytes += piece.len() as u64;
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
