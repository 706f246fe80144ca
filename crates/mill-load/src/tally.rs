//! A thread's counters, as plain numbers.

use crate::failure::FailureKind;
use core::ops::AddAssign;
use serde::{Deserialize, Serialize};

/// The counters of one thread, or of all together; older documents lack those with a default. At any time `started = answered + failed() + unfinished()`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Requests that were started, including connecting if necessary.
    pub started: u64,
    /// Requests whose response was complete, whatever its status.
    pub answered: u64,
    /// Failed requests by kind, in the order of [`FailureKind::ALL`].
    #[serde(with = "by_kind")]
    pub failures: [u64; FailureKind::ALL.len()],
    /// Answers by the first digit of their status, 1xx first; statuses beyond 5xx are counted with those.
    pub statuses: [u64; 5],
    /// Answers whose status is above 399: wrk's errors.
    pub statuses_bad: u64,
    /// Answers that were followed by unrequested bytes: their length was wrong.
    pub surplus: u64,
    /// Attempts to connect.
    pub connects: u64,
    /// Connections that were established.
    pub connected: u64,
    /// Handshakes of TLS that were completed.
    #[serde(default)]
    pub handshakes: u64,
    /// Those that resumed a session.
    #[serde(default)]
    pub handshakes_resumed: u64,
    /// Handshakes whose early data the server has taken (0-RTT); they are among the resumed ones.
    #[serde(default)]
    pub early_accepted: u64,
    /// Handshakes whose early data the server has refused, full or resumed: the request was sent again.
    #[serde(default)]
    pub early_rejected: u64,
    /// Requests in early data that were answered 425 (RFC 8470 5.2), and sent again; that answer is not counted elsewhere.
    #[serde(default)]
    pub early_too_early: u64,
    /// Connections that are established now.
    pub open: u64,
    /// The maximum that were established at a time.
    pub open_max: u64,
    /// Source ports in use that were skipped.
    pub ports_taken: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub content_bytes: u64,
    /// Of HTTP/2: bytes of answers' fields as they were received.
    #[serde(default)]
    pub head_bytes: u64,
    /// The same before their coding.
    #[serde(default)]
    pub head_field_bytes: u64,
    /// Requests that started more than 50 µs after they were due.
    pub late_50us: u64,
    /// Requests that started more than 1 ms after they were due.
    pub late_1ms: u64,
    /// Those of them that found no idle connection when they were due: the answers were late, not the thread.
    pub waited_1ms: u64,
    /// Requests that were due and not started when the run ended.
    pub never_started: u64,
    /// Microseconds, of all connections together, in which they could not be served: from the start of a failed request
    /// to that of the next answered one, and the whole waiting time of requests that hang.
    #[serde(default)]
    pub lost_us: u64,
    /// Unfinished requests that had waited for much longer than any answer took: they hang.
    #[serde(default)]
    pub hanging: u64,
}

impl Tally {
    pub fn failed(&self) -> u64 {
        self.failures.iter().sum()
    }

    /// Requests that are in progress, or were when the run ended.
    pub fn unfinished(&self) -> u64 {
        self.started.saturating_sub(self.answered + self.failed())
    }

    pub fn failures_of(&self, kind: FailureKind) -> u64 {
        FailureKind::ALL
            .iter()
            .zip(self.failures)
            .find(|(known, _)| **known == kind)
            .map_or(0, |(_, count)| count)
    }

    pub(crate) fn on_failure(&mut self, kind: FailureKind) {
        for (known, count) in FailureKind::ALL.iter().zip(&mut self.failures) {
            *count += u64::from(*known == kind);
        }
    }

    pub(crate) fn on_status(&mut self, status: u16) {
        let index = usize::from((status / 100).clamp(1, 5) - 1);
        if let Some(count) = self.statuses.get_mut(index) {
            *count += 1;
        }
        self.statuses_bad += u64::from(status > 399);
    }

    /// The answer of this status was none: the request is sent again.
    pub(crate) fn take_back(&mut self, status: u16) {
        let index = usize::from((status / 100).clamp(1, 5) - 1);
        if let Some(count) = self.statuses.get_mut(index) {
            *count = count.saturating_sub(1);
        }
        let bad = u64::from(status > 399);
        self.statuses_bad = self.statuses_bad.saturating_sub(bad);
    }

    /// Handshakes that resumed no session.
    pub const fn handshakes_full(&self) -> u64 {
        self.handshakes.saturating_sub(self.handshakes_resumed)
    }

    /// The difference to `earlier`. Requests in progress count as started again, so that the sums hold; levels (`open`)
    /// are kept.
    pub fn since(&self, earlier: &Self) -> Self {
        let difference = |now: &[u64], before: &[u64], out: &mut [u64]| {
            for ((now, before), out) in now.iter().zip(before).zip(out) {
                *out = now.saturating_sub(*before);
            }
        };
        let (mut since, mut earlier) = (*self, *earlier);
        let unfinished = earlier.unfinished();
        difference(&self.failures, &earlier.failures, &mut since.failures);
        difference(&self.statuses, &earlier.statuses, &mut since.statuses);
        for (value, before) in since.sums().into_iter().zip(earlier.sums()) {
            *value -= (*before).min(*value);
        }
        since.started += unfinished;
        since
    }

    /// Every counter that only grows, except those by kind.
    fn sums(&mut self) -> [&mut u64; 23] {
        [
            &mut self.started,
            &mut self.answered,
            &mut self.statuses_bad,
            &mut self.surplus,
            &mut self.connects,
            &mut self.connected,
            &mut self.handshakes,
            &mut self.handshakes_resumed,
            &mut self.early_accepted,
            &mut self.early_rejected,
            &mut self.early_too_early,
            &mut self.ports_taken,
            &mut self.bytes_sent,
            &mut self.bytes_received,
            &mut self.content_bytes,
            &mut self.head_bytes,
            &mut self.head_field_bytes,
            &mut self.late_50us,
            &mut self.late_1ms,
            &mut self.waited_1ms,
            &mut self.never_started,
            &mut self.lost_us,
            &mut self.hanging,
        ]
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, mut other: Self) {
        for (sum, value) in self.failures.iter_mut().zip(other.failures) {
            *sum += value;
        }
        for (sum, value) in self.statuses.iter_mut().zip(other.statuses) {
            *sum += value;
        }
        for (sum, value) in self.sums().into_iter().zip(other.sums()) {
            *sum += *value;
        }
        self.open += other.open;
        self.open_max += other.open_max;
    }
}

/// The failures in JSON: an object with a field a kind.
mod by_kind {
    use crate::failure::FailureKind;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};
    use std::collections::BTreeMap;

    type Counts = [u64; FailureKind::ALL.len()];

    pub(super) fn serialize<S: Serializer>(counts: &Counts, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(FailureKind::ALL.iter().map(|kind| kind.name()).zip(counts))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Counts, D::Error> {
        let named = BTreeMap::<String, u64>::deserialize(from)?;
        let mut counts = Counts::default();
        for (kind, count) in FailureKind::ALL.iter().zip(&mut counts) {
            let found = named.get(kind.name()).copied();
            // Documents of versions without TLS have no failed handshakes.
            let found = found.or((*kind == FailureKind::Handshake).then_some(0));
            *count = found.ok_or_else(|| D::Error::missing_field(kind.name()))?;
        }
        Ok(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(started: u64, answered: u64, timeouts: u64) -> Tally {
        let mut tally = Tally {
            started,
            answered,
            ..Tally::default()
        };
        for _ in 0..timeouts {
            tally.on_failure(FailureKind::Timeout);
        }
        tally
    }

    #[test]
    fn every_request_is_accounted_for_in_any_period() {
        let before = tally(10, 6, 1);
        let after = tally(25, 20, 2);
        let period = after.since(&before);
        assert_eq!(period.started, 15 + 3);
        assert_eq!(
            period.started,
            period.answered + period.failed() + period.unfinished()
        );
        assert_eq!(period.failures_of(FailureKind::Timeout), 1);
    }

    #[test]
    fn tallies_of_threads_add_up() {
        let mut sum = tally(3, 2, 0);
        sum += tally(4, 1, 2);
        assert_eq!(sum, tally(7, 3, 2));
    }
}
