//! One server at one address, as all workers see it.

use mill_config::Text;
use mill_config::config::upstream::{UpstreamAddress, UpstreamServer};
use mill_runtime::address::Address;
use mill_runtime::time::Instant;
use std::rc::Rc;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

/// One of a group's servers. A server whose name has several addresses is several peers, as in nginx.
///
/// Its figures are atomics, which all workers change; none of them orders anything else, so they are relaxed.
#[derive(Debug)]
pub struct Peer {
    /// `address:port`, or a path behind `unix:`: `$upstream_addr`.
    pub name: Text,
    pub address: UpstreamAddress,
    pub settings: UpstreamServer,
    /// Requests and tunnels that use it now.
    active: AtomicU32,
    /// Failures that count, until a success.
    fails: AtomicU32,
    /// When it was last chosen for a trial after failures, and when it failed last: milliseconds.
    checked_ms: AtomicU64,
    failed_ms: AtomicU64,
    /// Its weight, less what failures have cost it; grows back with each choice.
    effective_weight: AtomicI64,
    pub counters: PeerCounters,
}

/// What a peer did since the start.
#[derive(Debug, Default)]
pub struct PeerCounters {
    /// Times that it was chosen.
    pub requests: AtomicU64,
    /// Answers by the class of their status, from 1xx.
    pub responses: [AtomicU64; 5],
    /// Failed tries.
    pub fails: AtomicU64,
    /// Times that `max_fails` made it unavailable.
    pub unavail: AtomicU64,
    /// Bytes of requests and of answers.
    pub sent: AtomicU64,
    pub received: AtomicU64,
}

impl Peer {
    pub fn new(address: UpstreamAddress, settings: &UpstreamServer) -> Self {
        Self {
            name: Text::from(address.to_string().as_bytes()),
            address,
            active: AtomicU32::new(0),
            fails: AtomicU32::new(0),
            checked_ms: AtomicU64::new(0),
            failed_ms: AtomicU64::new(0),
            effective_weight: AtomicI64::new(settings.weight.into()),
            counters: PeerCounters::default(),
            settings: settings.clone(),
        }
    }

    /// The address to connect to.
    pub fn address(&self) -> Address {
        match &self.address {
            UpstreamAddress::Ip(address) => Address::Ip(*address),
            UpstreamAddress::Unix(path) => Address::Unix(Rc::from(path.as_bytes())),
        }
    }

    /// Requests and tunnels that use it now.
    pub fn active(&self) -> u32 {
        self.active.load(Ordering::Relaxed)
    }

    pub(crate) fn weight(&self) -> i64 {
        self.settings.weight.into()
    }

    /// Whether it may get a request now: it is not down, has not failed too often, and has room.
    pub(crate) fn is_available(&self, now: Instant) -> bool {
        !self.settings.down && self.has_room() && !self.is_failed(now)
    }

    pub(crate) fn has_room(&self) -> bool {
        self.settings.max_conns == 0 || self.active() < self.settings.max_conns
    }

    /// `max_fails` failures, and `fail_timeout` has not passed since the last trial.
    pub fn is_failed(&self, now: Instant) -> bool {
        let max_fails = self.settings.max_fails;
        max_fails > 0 && self.fails.load(Ordering::Relaxed) >= max_fails && !self.is_trial_due(now)
    }

    fn is_trial_due(&self, now: Instant) -> bool {
        let since_ms = millis(now).saturating_sub(self.checked_ms.load(Ordering::Relaxed));
        u128::from(since_ms) > self.settings.fail_timeout.as_millis()
    }

    /// It is chosen, until [`Self::leave`].
    pub(crate) fn enter(&self, now: Instant) {
        if self.is_trial_due(now) {
            self.checked_ms.store(millis(now), Ordering::Relaxed);
        }
        self.active.fetch_add(1, Ordering::Relaxed);
        self.counters.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn leave(&self) {
        self.active.fetch_sub(1, Ordering::Relaxed);
    }

    /// A try has failed. Returns whether the peer is unavailable from now on.
    pub(crate) fn fail(&self, now: Instant) -> bool {
        let fails = self.fails.fetch_add(1, Ordering::Relaxed) + 1;
        self.counters.fails.fetch_add(1, Ordering::Relaxed);
        self.failed_ms.store(millis(now), Ordering::Relaxed);
        self.checked_ms.store(millis(now), Ordering::Relaxed);
        let max_fails = self.settings.max_fails;
        if max_fails == 0 {
            return false;
        }
        let cost = self.weight() / i64::from(max_fails);
        let reduced = |weight: i64| Some((weight - cost).max(0));
        // The closure always returns a weight.
        let _ = self
            .effective_weight
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, reduced);
        if fails == max_fails {
            self.counters.unavail.fetch_add(1, Ordering::Relaxed);
        }
        fails >= max_fails
    }

    /// It has answered. Earlier failures are forgotten if it was chosen for a trial after the last of them.
    pub(crate) fn succeed(&self) {
        let failed_ms = self.failed_ms.load(Ordering::Relaxed);
        if failed_ms < self.checked_ms.load(Ordering::Relaxed) {
            self.fails.store(0, Ordering::Relaxed);
        }
    }

    /// The weight with which it takes part in a choice; then it grows back by one.
    pub(crate) fn take_effective_weight(&self) -> i64 {
        let weight = self.effective_weight.load(Ordering::Relaxed);
        if weight < self.weight() {
            self.effective_weight.store(weight + 1, Ordering::Relaxed);
        }
        weight
    }
}

fn millis(now: Instant) -> u64 {
    now.as_nanos() / 1_000_000
}
