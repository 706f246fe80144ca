//! Limits of kinds of clients, by their fingerprints: `tls_fingerprint`, `http_fingerprint`.

use super::limit::{Exceeded, FrangLimit};
use super::window::Window;
use mill_config::config::frang::FingerprintLimit;
use mill_runtime::time::Instant;
use std::sync::{Mutex, PoisonError};

/// What was counted of the kinds that have limits, for all worker threads.
#[derive(Debug)]
pub(crate) struct Kinds(Vec<(FingerprintLimit, Mutex<Counts>)>);

#[derive(Debug, Default)]
struct Counts {
    connections: Window,
    requests: Window,
    /// The second in which a violation was last logged.
    told_second: u64,
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Connection,
    Request,
}

impl Kinds {
    pub(super) fn new(limits: &[FingerprintLimit]) -> Self {
        let each = limits.iter().map(|limit| (*limit, Mutex::default()));
        Self(each.collect())
    }

    pub(super) fn has_limits(&self, limits: &[FingerprintLimit]) -> bool {
        self.0.iter().map(|(limit, _)| limit).eq(limits)
    }

    /// Counts an event of the kind with this fingerprint, if it has a limit. A limit of 0 lets none in.
    pub(crate) fn count(
        &self,
        limit: FrangLimit,
        fingerprint: u64,
        event: Event,
        now: Instant,
    ) -> Result<(), Exceeded> {
        let mut all = self.0.iter();
        let found = all.find(|(limit, _)| limit.fingerprint == fingerprint);
        let Some((limits, counts)) = found else {
            return Ok(());
        };
        let counts = &mut *counts.lock().unwrap_or_else(PoisonError::into_inner);
        let (window, most) = match event {
            Event::Connection => (&mut counts.connections, limits.connections),
            Event::Request => (&mut counts.requests, limits.requests),
        };
        let total = window.add(now, 1).total;
        if total <= u32::from(most) {
            return Ok(());
        }
        let second = now.as_nanos() / 1_000_000_000 + 1;
        let is_told = std::mem::replace(&mut counts.told_second, second) != second;
        Err(Exceeded {
            limit,
            value: total.into(),
            most: most.into(),
            is_told,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_has_so_many_connections_and_requests_a_second() {
        let limit = |fingerprint, connections, requests| FingerprintLimit {
            fingerprint,
            connections,
            requests,
        };
        let kinds = Kinds::new(&[limit(1, 2, 3), limit(2, 0, 0)]);
        let count = |fingerprint, event, ms: u64| {
            let now = Instant::from_nanos(ms * 1_000_000);
            let counted = kinds.count(FrangLimit::TlsFingerprint, fingerprint, event, now);
            counted
                .err()
                .map(|exceeded| (exceeded.value, exceeded.is_told))
        };
        assert_eq!(count(1, Event::Connection, 0), None);
        assert_eq!(count(1, Event::Connection, 0), None);
        assert_eq!(count(1, Event::Connection, 0), Some((3, true)));
        assert_eq!(count(1, Event::Connection, 999), Some((4, false)));
        for _ in 0..3 {
            assert_eq!(count(1, Event::Request, 0), None);
        }
        assert_eq!(count(1, Event::Request, 0), Some((4, false)));
        assert_eq!(count(1, Event::Connection, 2000), None);
        assert_eq!(
            count(2, Event::Request, 0),
            Some((1, true)),
            "0 lets none in"
        );
        assert_eq!(count(3, Event::Request, 0), None, "it has no limit");
    }
}
