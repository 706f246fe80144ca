//! What a perfect client must find: latencies computed from rate, delay and stall.

/// Requests that are due evenly, and a server that answers each after `delay` but nothing in its
/// stall.
#[derive(Clone, Copy, Debug)]
pub(super) struct Situation {
    /// Per second.
    pub(super) rate: f64,
    pub(super) seconds: f64,
    pub(super) connections: u32,
    pub(super) delay_ms: f64,
    /// From the first request.
    pub(super) stall_at_ms: f64,
    pub(super) stall_lasts_ms: f64,
}

impl Situation {
    /// The latency of each request from the time at which it was due, sorted, in milliseconds. A
    /// request waits for a free connection; what would be answered in the stall is answered at its
    /// end.
    pub(super) fn latencies_ms(&self) -> Vec<f64> {
        let gap_ms = 1000.0 / self.rate;
        let stall_ends_ms = self.stall_at_ms + self.stall_lasts_ms;
        let mut free_at_ms = vec![0.0_f64; self.connections as usize];
        let mut latencies = Vec::new();
        let mut due_ms = 0.0;
        while due_ms < self.seconds * 1000.0 {
            let Some(free) = free_at_ms.iter_mut().min_by(|a, b| a.total_cmp(b)) else {
                break;
            };
            let mut done_ms = free.max(due_ms) + self.delay_ms;
            if done_ms >= self.stall_at_ms {
                done_ms = done_ms.max(stall_ends_ms);
            }
            *free = done_ms;
            latencies.push(done_ms - due_ms);
            due_ms += gap_ms;
        }
        latencies.sort_by(f64::total_cmp);
        latencies
    }
}

/// The value that `percent` of all are not longer than; of sorted values.
pub(super) fn percentile(sorted: &[f64], percent: f64) -> Option<f64> {
    let rank = (percent / 100.0 * sorted.len() as f64).ceil();
    let index = sorted.iter().enumerate().map(|(index, _)| index);
    let index = index.take_while(|index| (*index as f64) < rank).last();
    sorted.get(index.unwrap_or(0)).copied()
}

#[cfg(test)]
mod tests {
    use super::{Situation, percentile};

    const QUIET: Situation = Situation {
        rate: 1000.0,
        seconds: 4.0,
        connections: 64,
        delay_ms: 1.0,
        stall_at_ms: 1e9,
        stall_lasts_ms: 0.0,
    };

    fn check(situation: Situation, percent: f64, expected_ms: f64) {
        let latencies = situation.latencies_ms();
        assert_eq!(latencies.len(), 4000);
        let found = percentile(&latencies, percent).unwrap();
        let close = (found - expected_ms).abs() <= 0.01 * expected_ms;
        assert!(close, "p{percent}: {found}, not {expected_ms}");
    }

    #[test]
    fn without_a_stall_every_latency_is_the_delay() {
        for percent in [0.0, 50.0, 99.9, 100.0] {
            check(QUIET, percent, 1.0);
        }
    }

    #[test]
    fn who_is_due_in_a_stall_waits_for_its_end() {
        let stalled = Situation {
            connections: 4000,
            stall_at_ms: 1500.0,
            stall_lasts_ms: 1000.0,
            ..QUIET
        };
        // A quarter of all is due in the stall: of those 60 % wait 400 ms and more.
        check(stalled, 50.0, 1.0);
        check(stalled, 90.0, 601.0);
        check(stalled, 99.0, 961.0);
        check(stalled, 100.0, 1001.0);
    }

    #[test]
    fn who_finds_no_connection_waits_for_one() {
        let narrow = Situation {
            connections: 10,
            stall_at_ms: 1500.0,
            stall_lasts_ms: 1000.0,
            ..QUIET
        };
        // Ten connections answer 10 requests a millisecond, one comes: 400 are before the one due at 400 ms.
        check(narrow, 90.0, 601.0 + 40.0);
        check(narrow, 100.0, 1001.0);
    }

    #[test]
    fn a_percentile_is_a_value_that_is_there() {
        let values = [1.0, 2.0, 3.0, 4.0];
        for (percent, expected) in [
            (0.0, 1.0),
            (25.0, 1.0),
            (26.0, 2.0),
            (75.0, 3.0),
            (100.0, 4.0),
        ] {
            assert_eq!(percentile(&values, percent), Some(expected), "{percent}");
        }
        assert_eq!(percentile(&[], 50.0), None);
    }
}
