//! One direction of a session.

use crate::local::Local;
use mill_runtime::engine::Engine;
use mill_runtime::payload::Payload;
use mill_runtime::stream::{Stream, StreamError};
use mill_runtime::time::{Duration, Instant};
use std::task::Poll;

#[derive(Debug)]
pub(super) struct Direction {
    pub(super) bytes: u64,
    /// When the first of them came.
    pub(super) first_byte: Option<Instant>,
    /// The side that is read has sent FIN, and all before it was read.
    pub(super) finished: bool,
    /// That was passed on.
    pub(super) passed_on: bool,
    /// When more may be read, if its rate is what it waits for.
    pub(super) resumes: Option<Instant>,
    limits: Limits,
}

/// How much of a direction may be under way, and how fast.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Bytes that are read at once, and that may wait to be taken before more are read.
    pub(super) buffer: u64,
    /// Bytes a second; 0 is no limit.
    pub(super) rate: u64,
    /// Since when they are counted.
    pub(super) since: Instant,
}

/// Why a direction cannot go on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Broken {
    From(StreamError),
    To(StreamError),
}

impl Direction {
    pub(super) const fn new(limits: Limits) -> Self {
        Self {
            bytes: 0,
            first_byte: None,
            finished: false,
            passed_on: false,
            resumes: None,
            limits,
        }
    }

    /// Passes on what has arrived, as fast as the other side takes it and the rate allows, but not more than a share: other
    /// connections of the worker get their turn.
    pub(super) fn carry<E: Engine>(
        &mut self,
        from: &impl Stream,
        to: &impl Stream,
        local: &Local<E>,
    ) -> Result<(), Broken> {
        let share_ends = self.bytes + SHARE_PER_TURN;
        self.resumes = None;
        while !self.finished {
            if self.bytes >= share_ends {
                local.scheduler.wake(local.scheduler.current());
                return Ok(());
            }
            match to.poll_drained(self.limits.buffer) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Err(error)) => return Err(Broken::To(error)),
                Poll::Ready(Ok(())) => {}
            }
            let now = local.scheduler.now();
            let room = match self.limits.room(self.bytes, now) {
                Ok(room) => room,
                Err(at) => {
                    self.resumes = Some(at);
                    return Ok(());
                }
            };
            match from.poll_readable(1) {
                Poll::Pending => return Ok(()),
                // FIN without the `close_notify` of TLS ends a direction as FIN does, as in nginx.
                Poll::Ready(Err(StreamError::Unfinished)) => self.finished = true,
                Poll::Ready(Err(error)) => return Err(Broken::From(error)),
                Poll::Ready(Ok(readable)) if readable.unread == 0 => self.finished = true,
                Poll::Ready(Ok(_)) => {
                    self.first_byte.get_or_insert(now);
                    self.pass(from, to, room, local);
                }
            }
        }
        Ok(())
    }

    fn pass<E: Engine>(
        &mut self,
        from: &impl Stream,
        to: &impl Stream,
        room: u64,
        local: &Local<E>,
    ) {
        let most = usize::try_from(room)
            .unwrap_or(usize::MAX)
            .min(PIECE_BYTES_MAX);
        let mut piece = local.take_buffer();
        from.read(|bytes| {
            let bytes = bytes.get(..most).unwrap_or(bytes);
            piece.extend_from_slice(bytes);
            (bytes.len(), ())
        });
        self.bytes += piece.len() as u64;
        to.write(Payload::Copy(&piece));
        local.put_buffer(piece);
    }
}

impl Limits {
    /// How many bytes may be read behind `bytes` earlier ones; or when.
    fn room(&self, bytes: u64, now: Instant) -> Result<u64, Instant> {
        if self.rate == 0 {
            return Ok(self.buffer);
        }
        // The first second's share at once.
        let elapsed = u64::try_from(now.since(self.since).as_millis()).unwrap_or(u64::MAX);
        let allowed = self
            .rate
            .saturating_add(self.rate.saturating_mul(elapsed) / 1000);
        if allowed > bytes {
            return Ok((allowed - bytes).min(self.buffer));
        }
        let behind = bytes.saturating_sub(self.rate).saturating_add(1);
        let due = behind.saturating_mul(1000).div_ceil(self.rate);
        let due = self.since + Duration::from_millis(due);
        Err(due.max(now + Duration::from_millis(1)))
    }
}

/// Bytes that one direction carries before other connections get their turn.
const SHARE_PER_TURN: u64 = 2 * 1024 * 1024;

/// Bytes that are passed on at once, whatever `proxy_buffer_size` says: the size of a worker's buffer.
const PIECE_BYTES_MAX: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_gives_its_first_second_at_once_and_then_as_time_passes() {
        let since = Instant::from_nanos(0);
        let limits = Limits {
            buffer: 1000,
            rate: 100,
            since,
        };
        let at = |ms| since + Duration::from_millis(ms);
        let check = |bytes, ms, expected| assert_eq!(limits.room(bytes, at(ms)), expected);
        check(0, 0, Ok(100));
        check(60, 0, Ok(40));
        check(100, 0, Err(at(10)));
        check(100, 9, Err(at(10)));
        check(100, 10, Ok(1));
        check(100, 1000, Ok(100));
        check(0, 60_000, Ok(1000));
        let unlimited = Limits { rate: 0, ..limits };
        assert_eq!(unlimited.room(u64::MAX, at(0)), Ok(1000));
    }
}
