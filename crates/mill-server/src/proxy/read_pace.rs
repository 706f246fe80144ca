//! `…_limit_rate`: how fast an answer is read from a server.

use crate::local::Local;
use crate::request::{Request, rate};
use mill_config::config::settings::{Amount, PassSettings};
use mill_runtime::engine::Engine;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::time::{Duration, Instant};
use std::task::Poll;

/// The pace of one answer, which counts all that follows its head.
#[derive(Debug)]
pub(super) struct ReadPace {
    /// Bytes a second.
    rate: u64,
    received: u64,
    started: Instant,
    /// Nothing is read before.
    next: Instant,
}

impl ReadPace {
    /// `None` without a limit.
    pub(super) fn of<E: Engine>(
        settings: &PassSettings,
        request: &mut Request,
        local: &Local<E>,
    ) -> Option<Self> {
        let rate = match &settings.limit_rate {
            Amount::Fixed(rate) => *rate,
            Amount::Evaluated(rate) => rate::evaluate(rate, request, local),
        };
        let now = local.scheduler.now();
        (rate > 0).then_some(Self {
            rate,
            received: 0,
            started: now,
            next: now,
        })
    }

    /// Ready with the number of bytes that may be read now.
    pub(super) fn poll_room(&mut self, scheduler: &Scheduler) -> Poll<usize> {
        if scheduler.poll_deadline(self.next).is_pending() {
            return Poll::Pending;
        }
        // nginx counts whole seconds, and gives the share of each at its beginning.
        let seconds = scheduler.now().since(self.started).as_secs() + 1;
        let room = self
            .rate
            .saturating_mul(seconds)
            .saturating_sub(self.received);
        if room == 0 {
            self.next = self.started + Duration::from_secs(seconds);
            return scheduler.poll_deadline(self.next).map(|_| 0);
        }
        Poll::Ready(usize::try_from(room).unwrap_or(usize::MAX))
    }

    /// So many bytes were read: the next ones wait until the rate has covered them.
    pub(super) fn count(&mut self, bytes: usize, now: Instant) {
        self.received += bytes as u64;
        let millis = (bytes as u64).saturating_mul(1000) / self.rate;
        self.next = now + Duration::from_millis(millis);
    }
}
