//! What a thread of wrk2 records.

use crate::dialect::wrk::recorder::{SocketErrors, responses};
use crate::dialect::wrk::statistics::{Statistics, whole};
use crate::dialect::wrk2::histogram::Recorded;
use crate::failure::Failure;
use crate::record::Record;
use crate::sample::Sample;
use crate::tally::Tally;
use mill_runtime::time::{Duration, Instant};

/// Latencies in microseconds, the rate of each interval, and failures. The first ten seconds only determine the length
/// of an interval.
#[derive(Debug)]
pub(crate) struct Recorder {
    /// From when requests were due.
    pub(crate) latency: Recorded,
    /// From when they were sent.
    pub(crate) uncorrected: Recorded,
    pub(crate) requests: Recorded,
    pub(crate) errors: SocketErrors,
    timeout: Duration,
    /// From the beginning to the calibration.
    calibrate_after: Duration,
    calibrate_at: Instant,
    sampling: Option<Sampling>,
}

/// The result of a thread's calibration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Calibration {
    pub(crate) mean_us: u64,
    /// Between samples of the rate.
    pub(crate) interval_ms: u64,
}

/// The interval whose rate is sampled next.
#[derive(Clone, Copy, Debug)]
struct Sampling {
    interval: Duration,
    from: Instant,
    responses: u64,
}

impl Recorder {
    /// A thread's, with so many connections.
    pub(crate) fn new(timeout: Duration, connections: u32) -> Self {
        let calibrate_after = CALIBRATION + STAGGER.saturating_mul(connections);
        Self {
            latency: Recorded::new(),
            uncorrected: Recorded::new(),
            requests: Recorded::new(),
            errors: SocketErrors::default(),
            timeout,
            calibrate_after,
            calibrate_at: Instant::FAR,
            sampling: None,
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.latency.add(&other.latency);
        self.uncorrected.add(&other.uncorrected);
        self.requests.add(&other.requests);
        self.errors += other.errors;
    }

    /// Chooses the interval from the latency so far, which is then discarded; without any, it is tried again later.
    fn calibrate(&mut self, now: Instant, tally: &Tally) -> Option<Calibration> {
        if self.latency.count() == 0 {
            self.calibrate_at = now + CALIBRATION;
            return None;
        }
        let twice_p90_ms = self.latency.percentile(90.0) as f64 / 1000.0 * 2.0;
        let calibration = Calibration {
            mean_us: whole(self.latency.mean()),
            interval_ms: whole(twice_p90_ms.max(INTERVAL_MIN_MS)),
        };
        self.latency.clear();
        self.uncorrected.clear();
        self.sampling = Some(Sampling {
            interval: Duration::from_millis(calibration.interval_ms),
            from: now,
            responses: responses(tally),
        });
        Some(calibration)
    }
}

impl Record for Recorder {
    type Interval = Option<Calibration>;

    fn on_begin(&mut self, now: Instant) {
        self.calibrate_at = now + self.calibrate_after;
    }

    fn on_sample(&mut self, sample: &Sample) {
        self.latency.record(micros(sample.latency()));
        self.uncorrected.record(micros(sample.service_time()));
        self.errors.timeout += u64::from(sample.service_time() > self.timeout);
    }

    fn on_failure(&mut self, failure: Failure, _now: Instant) {
        self.errors.on_failure(failure);
    }

    fn cut(&mut self, now: Instant, tally: &Tally) -> Option<Calibration> {
        let Some(sampling) = &mut self.sampling else {
            let due = now >= self.calibrate_at;
            return if due {
                self.calibrate(now, tally)
            } else {
                None
            };
        };
        let elapsed = now.since(sampling.from);
        if elapsed >= sampling.interval {
            let responses = responses(tally);
            let since = responses.saturating_sub(sampling.responses);
            let rate = since as f64 / elapsed.as_millis() as f64 * 1000.0;
            self.requests.record(whole(rate));
            (sampling.from, sampling.responses) = (now, responses);
        }
        None
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// How long a thread measures its latency before it counts (wrk2's `CALIBRATE_DELAY_MS`).
const CALIBRATION: Duration = Duration::from_secs(10);

/// Between the openings of a thread's connections (wrk2).
pub(crate) const STAGGER: Duration = Duration::from_millis(5);

/// The shortest interval between samples of the rate (wrk2).
pub(crate) const INTERVAL_MIN_MS: f64 = 10.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn tally(responses: u64) -> Tally {
        Tally {
            statuses: [0, responses, 0, 0, 0],
            ..Tally::default()
        }
    }

    fn sample(intended_ms: u64, sent_ms: u64, done_ms: u64) -> Sample {
        Sample {
            intended: at(intended_ms),
            first_byte: at(done_ms),
            done: at(done_ms),
            ..Sample::example(at(sent_ms))
        }
    }

    #[test]
    fn latency_counts_from_when_the_request_was_due() {
        let mut recorder = Recorder::new(Duration::from_millis(30), 1);
        recorder.on_sample(&sample(100, 140, 150));
        recorder.on_sample(&sample(100, 110, 150));
        assert_eq!(recorder.latency.percentile(100.0), 50_015);
        assert_eq!(recorder.uncorrected.min(), 10_000);
        assert_eq!(recorder.errors.timeout, 1);
    }

    #[test]
    fn calibration_chooses_the_interval_and_forgets_what_came_before() {
        let mut recorder = Recorder::new(Duration::from_secs(2), 20);
        recorder.on_begin(at(0));
        assert_eq!(recorder.cut(at(10_090), &tally(0)), None);
        for _ in 0..9 {
            recorder.on_sample(&sample(0, 0, 10));
        }
        recorder.on_sample(&sample(0, 0, 40));
        let expected = Calibration {
            mean_us: 13_005,
            interval_ms: 20,
        };
        assert_eq!(recorder.cut(at(10_100), &tally(10)), Some(expected));
        assert_eq!(recorder.latency.count(), 0);
        assert_eq!(recorder.cut(at(10_110), &tally(30)), None);
        assert_eq!(recorder.cut(at(10_120), &tally(30)), None);
        // 20 responses in 20 ms; then none, which counts too.
        assert_eq!(recorder.requests.max(), 1000);
        assert_eq!(recorder.cut(at(10_140), &tally(30)), None);
        assert_eq!((recorder.requests.count(), recorder.requests.min()), (2, 0));
    }

    #[test]
    fn without_an_answer_calibration_is_tried_again_ten_seconds_later() {
        let mut recorder = Recorder::new(Duration::from_secs(2), 1);
        recorder.on_begin(at(0));
        assert_eq!(recorder.cut(at(10_005), &tally(0)), None);
        recorder.on_sample(&sample(0, 0, 2));
        assert_eq!(recorder.cut(at(10_010), &tally(1)), None);
        let found = recorder
            .cut(at(20_005), &tally(1))
            .map(|found| found.interval_ms);
        assert_eq!(found, Some(10));
    }
}
