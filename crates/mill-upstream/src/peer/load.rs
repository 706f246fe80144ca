//! What holds of a peer for the whole machine: counted once, by all workers, in atomics.
//!
//! Each value stands alone, so all accesses are relaxed.

use super::Health;
use mill_config::config::upstream::{ResponseTime, UpstreamServer};
use mill_metrics::{Latency, LatencyCounts, StatusCounts};
use mill_runtime::time::{Duration, Instant};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

/// What probes have found.
mod health_checks;

/// What answers to clients say of its health.
mod failover;

use failover::Failovers;
pub use health_checks::HealthCheckCounts;
use health_checks::HealthChecks;
use mill_config::config::Failover;

/// The counts of a peer. They survive other settings and reloads.
#[derive(Debug, Default)]
pub struct Load {
    active: AtomicU32,
    /// Failed attempts since the last success after `fail_timeout`.
    fails: AtomicU32,
    /// The second of the last failure.
    accessed: AtomicU64,
    /// The second of the last failure, or of the attempt which tried it again.
    checked: AtomicU64,
    /// By how much failures lower the weight at present.
    penalty: AtomicU32,
    /// When it got requests again, in nanoseconds; 0 if it always did.
    recovered: AtomicU64,
    /// When it last became unavailable or unhealthy, in nanoseconds; 0 if it is neither.
    down_since: AtomicU64,
    health: AtomicU8,
    health_checks: HealthChecks,
    failovers: Failovers,
    /// Averages, in nanoseconds.
    header_time: AtomicU64,
    last_byte_time: AtomicU64,
    header_latency: Latency,
    last_byte_latency: Latency,
    /// Attempts that the time of `least_time … inflight` still runs for, and the sum of their starts in microseconds.
    waiting: AtomicU32,
    waiting_since: AtomicU64,
    selected: AtomicU64,
    requests: AtomicU64,
    answers: StatusCounts,
    sent: AtomicU64,
    received: AtomicU64,
    failures: AtomicU64,
    unavailable: AtomicU64,
    downtime: AtomicU64,
}

/// A copy of what was counted since the peer exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerCounts {
    pub requests: u64,
    /// By class: 1xx to 5xx.
    pub answers: [u64; 5],
    pub sent_bytes: u64,
    pub received_bytes: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// How many times it became unavailable.
    pub unavailable: u64,
    /// How long it was unavailable or unhealthy.
    pub downtime: Duration,
    /// When it last became unavailable or unhealthy, if it still is.
    pub down_since: Option<Instant>,
    /// When it last got a request.
    pub selected: Option<Instant>,
    pub health_checks: HealthCheckCounts,
}

impl Load {
    /// Requests under way.
    pub fn active(&self) -> u32 {
        self.active.load(Relaxed)
    }

    /// What health checks say.
    pub fn health(&self) -> Health {
        match self.health.load(Relaxed) {
            CHECKING => Health::Checking,
            UNHEALTHY => Health::Unhealthy,
            _ => Health::Healthy,
        }
    }

    /// A health check has another result: a peer that gets healthy starts slowly, if it has `slow_start`.
    pub fn set_health(&self, health: Health, now: Instant) {
        let (value, is_down) = match health {
            Health::Healthy => (HEALTHY, false),
            Health::Checking => (CHECKING, true),
            Health::Unhealthy => (UNHEALTHY, true),
        };
        if self.health.swap(value, Relaxed) == value {
            return;
        }
        if health == Health::Unhealthy {
            self.health_checks.count_unhealthy();
        }
        if is_down {
            self.goes_down(now);
        } else {
            self.fails.store(0, Relaxed);
            self.recovers(now);
        }
    }

    /// What makes it unhealthy until a probe passes, from now on.
    pub fn set_failovers<'a>(&self, rules: impl Iterator<Item = &'a Failover>) {
        self.failovers.set(rules);
    }

    /// A new peer gets no requests before a health check has passed.
    pub(crate) fn await_health_check(&self) {
        self.health.store(CHECKING, Relaxed);
    }

    /// A probe has ended; what follows from it is said by [`Self::set_health`].
    pub fn count_health_check(&self, has_passed: bool) {
        self.health_checks.count(has_passed);
    }

    /// The average until the head or the last byte of an answer; zero before the first.
    pub fn response_time(&self, time: ResponseTime) -> Duration {
        Duration::from_nanos(self.average(time).load(Relaxed))
    }

    /// All counters.
    pub fn counts(&self, now: Instant) -> PeerCounts {
        let at = |nanos: u64| (nanos != 0).then(|| Instant::from_nanos(nanos));
        let down_since = at(self.down_since.load(Relaxed));
        let since = down_since.map_or(Duration::ZERO, |since| now.since(since));
        PeerCounts {
            requests: self.requests.load(Relaxed),
            answers: self.answers.by_class(),
            sent_bytes: self.sent.load(Relaxed),
            received_bytes: self.received.load(Relaxed),
            failures: self.failures.load(Relaxed),
            unavailable: self.unavailable.load(Relaxed),
            downtime: Duration::from_nanos(self.downtime.load(Relaxed)) + since,
            down_since,
            selected: at(self.selected.load(Relaxed)),
            health_checks: self.health_checks.counts(),
        }
    }

    /// How long it took until the head or the last byte of answers.
    pub fn latency(&self, time: ResponseTime) -> LatencyCounts {
        self.latency_of(time).counts()
    }

    /// How many answers had a status, for each that there was.
    pub fn answers_by_status(&self) -> impl Iterator<Item = (u16, u64)> {
        self.answers.iter()
    }

    /// Counts from zero again. What is under way, its state and its averages stay.
    pub fn reset_counts(&self) {
        let counters = [
            &self.requests,
            &self.sent,
            &self.received,
            &self.failures,
            &self.unavailable,
            &self.downtime,
        ];
        counters
            .iter()
            .for_each(|counter| counter.store(0, Relaxed));
        self.answers.reset();
        self.header_latency.reset();
        self.last_byte_latency.reset();
        self.health_checks.reset();
    }

    /// Counts one more request under way, unless `max` (0 is no limit) are.
    pub(crate) fn begin(&self, max: u32, now: Instant) -> bool {
        let more = |active: u32| (max == 0 || active < max).then_some(active + 1);
        let begun = self.active.fetch_update(Relaxed, Relaxed, more).is_ok();
        if begun {
            self.requests.fetch_add(1, Relaxed);
            self.selected.store(now.as_nanos(), Relaxed);
        }
        begun
    }

    /// The opposite of [`Self::begin`].
    pub(crate) fn end(&self) {
        self.active.fetch_sub(1, Relaxed);
    }

    /// Whether so many attempts failed that it is left alone for now. nginx counts in whole seconds.
    pub(crate) fn is_unavailable(&self, server: &UpstreamServer, now: Instant) -> bool {
        server.max_fails != 0
            && self.fails.load(Relaxed) >= server.max_fails
            && !self.is_check_due(server, now)
    }

    /// An attempt begins: if the last failure is long enough ago, its result decides.
    pub(crate) fn check(&self, server: &UpstreamServer, now: Instant) {
        if self.is_check_due(server, now) {
            self.checked.store(seconds(now), Relaxed);
        }
    }

    fn is_check_due(&self, server: &UpstreamServer, now: Instant) -> bool {
        let elapsed = seconds(now).saturating_sub(self.checked.load(Relaxed));
        elapsed > server.fail_timeout.as_secs()
    }

    /// An attempt failed. Returns whether the peer is unavailable from now on.
    pub(crate) fn failed(&self, server: &UpstreamServer, now: Instant) -> bool {
        self.failures.fetch_add(1, Relaxed);
        let fails = self.fails.fetch_add(1, Relaxed) + 1;
        self.accessed.store(seconds(now), Relaxed);
        self.checked.store(seconds(now), Relaxed);
        if server.max_fails == 0 {
            return false;
        }
        let (weight, lost) = (server.weight, server.weight / server.max_fails);
        let more = |penalty: u32| Some(penalty.saturating_add(lost).min(weight));
        let _ = self.penalty.fetch_update(Relaxed, Relaxed, more);
        if fails == server.max_fails {
            self.unavailable.fetch_add(1, Relaxed);
            self.goes_down(now);
        }
        fails >= server.max_fails
    }

    /// An attempt failed at a group's only peer, which is never unavailable.
    pub(crate) fn failed_alone(&self) {
        self.failures.fetch_add(1, Relaxed);
    }

    /// An attempt did not fail: if it was the one that tried the peer again, the failures are forgotten.
    pub(crate) fn passed(&self, server: &UpstreamServer, now: Instant) {
        if self.accessed.load(Relaxed) < self.checked.load(Relaxed) {
            let fails = self.fails.swap(0, Relaxed);
            if server.max_fails != 0 && fails >= server.max_fails {
                self.recovers(now);
            }
        }
    }

    /// Returns whether it is unhealthy from now on because of its answers.
    pub(crate) fn answered(&self, status: u16, now: Instant) -> bool {
        self.answers.count(status);
        let fails = self.failovers.on_answer(status, now) && self.health() == Health::Healthy;
        if fails {
            self.set_health(Health::Unhealthy, now);
        }
        fails
    }

    /// Bytes of a request and of its answer.
    pub fn count_bytes(&self, sent: u64, received: u64) {
        self.sent.fetch_add(sent, Relaxed);
        self.received.fetch_add(received, Relaxed);
    }

    /// One more time of an answer: the average moves by an eighth, as TCP's SRTT does (RFC 6298 2.3).
    pub(crate) fn measured(&self, of: ResponseTime, time: Duration) {
        let sample = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let next = |average: u64| match average {
            0 => Some(sample),
            _ => Some(average - average / 8 + sample / 8),
        };
        let _ = self.average(of).fetch_update(Relaxed, Relaxed, next);
        self.latency_of(of).count(time);
    }

    const fn latency_of(&self, of: ResponseTime) -> &Latency {
        match of {
            ResponseTime::Header => &self.header_latency,
            ResponseTime::LastByte => &self.last_byte_latency,
        }
    }

    fn average(&self, of: ResponseTime) -> &AtomicU64 {
        match of {
            ResponseTime::Header => &self.header_time,
            ResponseTime::LastByte => &self.last_byte_time,
        }
    }

    pub(crate) fn begin_waiting(&self, start: Instant) {
        self.waiting_since.fetch_add(micros(start), Relaxed);
        self.waiting.fetch_add(1, Relaxed);
    }

    pub(crate) fn end_waiting(&self, start: Instant) {
        self.waiting.fetch_sub(1, Relaxed);
        self.waiting_since.fetch_sub(micros(start), Relaxed);
    }

    /// For how long, on average, the attempts wait that are not answered.
    pub(crate) fn waited(&self, now: Instant) -> Duration {
        let waiting = u64::from(self.waiting.load(Relaxed));
        let since = self.waiting_since.load(Relaxed).checked_div(waiting);
        since.map_or(Duration::ZERO, |since| {
            Duration::from_micros(micros(now).saturating_sub(since))
        })
    }

    /// How much failures lower the weight.
    pub(crate) fn penalty(&self) -> u32 {
        self.penalty.load(Relaxed)
    }

    /// Gives back 1 of the weight that failures took: each selection does.
    pub(crate) fn forgive(&self) {
        if self.penalty() != 0 {
            let less = |penalty: u32| penalty.checked_sub(1);
            let _ = self.penalty.fetch_update(Relaxed, Relaxed, less);
        }
    }

    /// When it got requests again after it had been down.
    pub(crate) fn recovered_at(&self) -> Option<Instant> {
        let recovered = self.recovered.load(Relaxed);
        (recovered != 0).then(|| Instant::from_nanos(recovered))
    }

    fn goes_down(&self, now: Instant) {
        let since = now.as_nanos();
        let _ = self.down_since.compare_exchange(0, since, Relaxed, Relaxed);
    }

    /// It gets requests again: the slow start begins.
    pub(crate) fn recovers(&self, now: Instant) {
        self.recovered.store(now.as_nanos(), Relaxed);
        let since = self.down_since.swap(0, Relaxed);
        if since != 0 {
            let down = now.as_nanos().saturating_sub(since);
            self.downtime.fetch_add(down, Relaxed);
        }
    }
}

const HEALTHY: u8 = 0;
const CHECKING: u8 = 1;
const UNHEALTHY: u8 = 2;

fn seconds(at: Instant) -> u64 {
    at.as_nanos() / 1_000_000_000
}

fn micros(at: Instant) -> u64 {
    at.as_nanos() / 1000
}
