//! Bytes both ways, until a side ends the session.

mod direction;

use super::session::Session;
use crate::local::Local;
use crate::log::Errno;
use crate::proxy::fault::number;
use crate::variables::session as variables;
use direction::{Broken, Direction, Limits};
use mill_config::config::LogLevel;
use mill_config::config::settings::Amount;
use mill_runtime::engine::Engine;
use mill_runtime::stream::{Stream, StreamError};
use mill_runtime::time::{Duration, Instant};
use std::sync::Arc;
use std::task::Poll;

/// The two directions of a session. It holds no buffer: bytes go from stream to stream through one of the worker.
#[derive(Debug)]
pub(super) struct Relay {
    upwards: Direction,
    downwards: Direction,
    half_close: bool,
    /// Ends after so long without a byte: `proxy_timeout`.
    timeout: Duration,
    deadline: Instant,
    /// Bytes that both sides have taken and given, when `deadline` was set.
    moved: u64,
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The client, or the server, has ended it.
    Client,
    Server,
    TimedOut,
    ClientLost(StreamError),
    ServerLost(StreamError),
}

/// Bytes that were carried.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carried {
    pub(super) from_client: u64,
    pub(super) to_client: u64,
}

impl End {
    pub(super) const fn is_of_server(self) -> bool {
        matches!(self, Self::Server | Self::ServerLost(_))
    }

    /// What the error log says of a lost stream.
    pub(super) fn fault(self) -> Option<(LogLevel, String)> {
        let (level, side, error) = match self {
            Self::ClientLost(error) => (LogLevel::Info, "client", error),
            Self::ServerLost(error) => (LogLevel::Error, "upstream", error),
            Self::Client | Self::Server | Self::TimedOut => return None,
        };
        let error = Errno(number(error));
        let text = format!("recv() failed ({error}) while proxying and reading from {side}");
        Some((level, text))
    }
}

impl Relay {
    pub(super) fn new<E: Engine>(session: &mut Session, local: &Local<E>) -> Self {
        let server = Arc::clone(&session.server);
        let settings = &server.settings.stream;
        let now = local.scheduler.now();
        let mut limits = |rate: &Amount| Limits {
            buffer: settings.buffer_size.max(1),
            rate: match rate {
                Amount::Fixed(rate) => *rate,
                Amount::Evaluated(template) => {
                    let text = variables::evaluate(template, session, local);
                    mill_config::value::size(&text).unwrap_or(0)
                }
            },
            since: now,
        };
        Self {
            upwards: Direction::new(limits(&settings.upload_rate)),
            downwards: Direction::new(limits(&settings.download_rate)),
            half_close: settings.half_close,
            timeout: settings.timeout,
            deadline: now + settings.timeout,
            moved: 0,
        }
    }

    pub(super) const fn carried(&self) -> Carried {
        Carried {
            from_client: self.upwards.bytes,
            to_client: self.downwards.bytes,
        }
    }

    /// When the first byte of the server came.
    pub(super) const fn first_byte(&self) -> Option<Instant> {
        self.downwards.first_byte
    }

    /// Carries bytes; ready once the session is over.
    pub(super) fn poll<E: Engine>(
        &mut self,
        near: &impl Stream,
        far: &impl Stream,
        local: &Local<E>,
    ) -> Poll<End> {
        loop {
            let up = self.upwards.carry(near, far, local);
            let down = self.downwards.carry(far, near, local);
            if let Some(end) = lost(up, down) {
                return Poll::Ready(end);
            }
            if let Some(end) = self.end(near, far) {
                return Poll::Ready(end);
            }
            let now = local.scheduler.now();
            let moved = near.sent() + far.sent() + self.upwards.bytes + self.downwards.bytes;
            let resumes = self.upwards.resumes.into_iter();
            let resumes = resumes.chain(self.downwards.resumes).min();
            if moved > self.moved || resumes.is_some() {
                self.moved = moved;
                self.deadline = now + self.timeout;
            }
            let until = resumes.map_or(self.deadline, |at| at.min(self.deadline));
            if local.scheduler.poll_deadline(until).is_pending() {
                return Poll::Pending;
            }
            if resumes.is_none() {
                return Poll::Ready(End::TimedOut);
            }
        }
    }

    /// Passes on the ends of directions. A session is over when one direction is, with all that it has carried; with
    /// `proxy_half_close` when both are.
    fn end(&mut self, near: &impl Stream, far: &impl Stream) -> Option<End> {
        let (up, down) = (self.upwards.finished, self.downwards.finished);
        let is_taken = |stream: &dyn Fn() -> Poll<Result<(), StreamError>>| stream().is_ready();
        let far_taken = up && is_taken(&|| far.poll_drained(0));
        let near_taken = down && is_taken(&|| near.poll_drained(0));
        if !self.half_close {
            return match (far_taken, near_taken) {
                (_, true) => Some(End::Server),
                (true, false) => Some(End::Client),
                (false, false) => None,
            };
        }
        if up && !self.upwards.passed_on {
            far.shutdown();
            self.upwards.passed_on = true;
        }
        if down && !self.downwards.passed_on {
            near.shutdown();
            self.downwards.passed_on = true;
            // The client's end comes last.
            return (far_taken && near_taken).then_some(End::Server);
        }
        (far_taken && near_taken).then_some(End::Client)
    }
}

fn lost(up: Result<(), Broken>, down: Result<(), Broken>) -> Option<End> {
    match (up, down) {
        (Ok(()), Ok(())) => None,
        (Err(Broken::From(error)), _) | (_, Err(Broken::To(error))) => Some(End::ClientLost(error)),
        (Err(Broken::To(error)), _) | (_, Err(Broken::From(error))) => Some(End::ServerLost(error)),
    }
}
