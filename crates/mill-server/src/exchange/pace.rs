//! `limit_rate` and `limit_rate_after`: how many bytes of an answer's content may go out, and when.

use super::SendError;
use super::drain::drain;
use crate::local::Local;
use crate::request::Request;
use mill_config::config::settings::Amount;
use mill_config::config::settings::ConnectionSettings;
use mill_runtime::engine::Engine;
use mill_runtime::stream::Stream;
use mill_runtime::time::{Duration, Instant};
use mill_tls::transport::TransportOf;
use std::future::poll_fn;
use std::task::Poll;

/// The pace of one answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Bytes per second, 0 for no limit.
    rate: u64,
    /// Bytes that are sent before the limit begins.
    after: u64,
    /// When the request began, which the rate is counted from.
    started: Instant,
    /// Bytes sent early to a client that has sent FIN, to learn whether it still exists.
    probes: u8,
}

impl Pace {
    pub(crate) fn of(request: &Request) -> Self {
        let location = &request.location;
        Self {
            rate: request
                .limit_rate
                .unwrap_or(fixed(&location.limit_rate.rate)),
            after: request
                .limit_rate_after
                .unwrap_or(fixed(&location.limit_rate.after)),
            started: request.started,
            probes: 0,
        }
    }

    /// Whether a content of `len` bytes may not go out at once.
    pub(crate) const fn limits(&self, len: u64) -> bool {
        self.rate > 0 && len > self.after.saturating_add(self.rate)
    }

    /// How many bytes may follow `content_bytes`, and when.
    pub(super) fn share(&self, content_bytes: u64) -> (u64, Instant) {
        if self.rate == 0 {
            return (u64::MAX, self.started);
        }
        let at_once = self.after.saturating_add(self.rate);
        if content_bytes < at_once {
            return (at_once - content_bytes, self.started);
        }
        (self.rate, self.due(content_bytes))
    }

    /// When what follows `content_bytes` may be sent.
    fn due(&self, content_bytes: u64) -> Instant {
        let counted = content_bytes.saturating_sub(self.after);
        self.started + Duration::from_millis(counted.saturating_mul(1000) / self.rate)
    }

    /// Waits until more may be sent; returns how many bytes. `content_bytes` were queued until now.
    /// Each time that it has to wait, it calls `meanwhile`.
    pub(super) async fn room<E: Engine>(
        &mut self,
        stream: &TransportOf<E>,
        local: &Local<E>,
        settings: &ConnectionSettings,
        content_bytes: u64,
        mut meanwhile: impl FnMut(),
    ) -> Result<u64, SendError> {
        if self.rate == 0 {
            return Ok(u64::MAX);
        }
        // The bytes before the limit begins, and the first second's share, go out at once.
        let at_once = self.after.saturating_add(self.rate);
        if content_bytes == 0 {
            return Ok(at_once);
        }
        drain(stream, local, settings, 0, &mut meanwhile).await?;
        let mut is_woken = false;
        let due = self.due(content_bytes);
        poll_fn(|_| {
            let is_woken = std::mem::replace(&mut is_woken, true);
            meanwhile();
            self.poll_due(stream, local, due, is_woken)
        })
        .await
        .map(|probe| if probe { 1 } else { self.rate })
    }

    /// Ready at `due`; or when the connection is lost; or, with true, when it may be. A client that has sent FIN may
    /// still read, and only its reaction to a further byte shows that: one is sent early, and another one when
    /// something arrives after it.
    fn poll_due<E: Engine>(
        &mut self,
        stream: &TransportOf<E>,
        local: &Local<E>,
        due: Instant,
        is_woken: bool,
    ) -> Poll<Result<bool, SendError>> {
        if let Poll::Ready(Err(error)) = stream.poll_drained(0) {
            return Poll::Ready(Err(SendError::Lost(error)));
        }
        match (poll_finished(stream)?, self.probes) {
            (true, 0) => {}
            (true, 1..PROBES_MAX) if is_woken => {}
            _ => return local.scheduler.poll_deadline(due).map(|_| Ok(false)),
        }
        self.probes += 1;
        Poll::Ready(Ok(true))
    }
}

/// Whether the client has sent FIN. Other input belongs to later requests, and little of it is read now.
pub(super) fn poll_finished<S: Stream>(stream: &S) -> Result<bool, SendError> {
    loop {
        let unread = stream.read(|bytes| (0, bytes.len()));
        if unread >= UNREAD_MAX {
            return Ok(false);
        }
        match stream.poll_readable(unread + 1) {
            Poll::Ready(Ok(readable)) if readable.finished => return Ok(true),
            Poll::Ready(Ok(_)) => {}
            Poll::Ready(Err(error)) => return Err(SendError::Lost(error)),
            Poll::Pending => return Ok(false),
        }
    }
}

/// The part that does not depend on the request; 0 where an evaluated amount was not evaluated.
const fn fixed(amount: &Amount) -> u64 {
    match amount {
        Amount::Fixed(amount) => *amount,
        Amount::Evaluated(_) => 0,
    }
}

/// Bytes of further requests beyond which a client that waits for `limit_rate` is not read.
const UNREAD_MAX: usize = 64 * 1024;

/// Bytes that an answer may be ahead of `limit_rate`, to find out that a client has left: the first one provokes its
/// RST; where an RST only shows at the next write, the second one fails.
const PROBES_MAX: u8 = 2;
