//! What a thread of wrk records.

use crate::dialect::wrk::statistics::{Counters, whole};
use crate::failure::{Failure, FailureKind};
use crate::generator::Part;
use crate::local::Abort;
use crate::record::Record;
use crate::sample::Sample;
use crate::tally::Tally;
use core::ops::AddAssign;
use mill_runtime::stream::StreamError;
use mill_runtime::time::{Duration, Instant};

/// Latencies in microseconds, the rate of each interval, and failures in wrk's categories.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub(crate) latency: Counters,
    pub(crate) requests: Counters,
    pub(crate) errors: SocketErrors,
    rate: RateSampling,
    begin: Instant,
}

/// The columns of wrk's line of socket errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SocketErrors {
    pub(crate) connect: u64,
    pub(crate) read: u64,
    pub(crate) write: u64,
    pub(crate) timeout: u64,
}

/// When the current interval of the rate's samples began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RateSampling {
    from: Instant,
    responses: u64,
}

impl Recorder {
    /// `timeout` is the longest latency that is kept.
    pub(crate) fn new(timeout: Duration) -> Self {
        let micros = u64::try_from(timeout.as_micros()).unwrap_or(u64::MAX);
        Self {
            latency: Counters::up_to(micros),
            requests: Counters::up_to(RATE_MAX),
            errors: SocketErrors::default(),
            rate: RateSampling::default(),
            begin: Instant::default(),
        }
    }

    /// The sum of all threads' records, each with the rest of its last interval.
    pub(crate) fn sum(timeout: Duration, parts: &mut [Part<Self>]) -> Self {
        let mut sum = Self::new(timeout);
        for part in parts {
            let recorder = &mut part.recorder;
            if part.aborted != Some(Abort::Stopped) {
                // A thread that was stopped takes no further sample.
                recorder.sample_rate(recorder.begin + part.measured, &part.tally);
            }
            sum.latency.add(&recorder.latency);
            sum.requests.add(&recorder.requests);
            sum.errors += recorder.errors;
        }
        sum
    }

    fn sample_rate(&mut self, now: Instant, tally: &Tally) {
        if let Some(rate) = self.rate.sample(now, tally) {
            self.requests.record(rate);
        }
    }
}

impl Record for Recorder {
    type Interval = ();

    fn on_begin(&mut self, now: Instant) {
        self.rate = RateSampling::from(now);
        self.begin = now;
    }

    /// wrk's latency begins with sending: it never includes a handshake.
    fn on_sample(&mut self, sample: &Sample) {
        let micros = u64::try_from(sample.service_time().as_micros()).unwrap_or(u64::MAX);
        if !self.latency.record(micros) {
            self.errors.timeout += 1;
        }
    }

    fn on_failure(&mut self, failure: Failure, _now: Instant) {
        self.errors.on_failure(failure);
    }

    fn cut(&mut self, now: Instant, tally: &Tally) {
        self.sample_rate(now, tally);
    }
}

impl SocketErrors {
    /// Counts a failure in wrk's category. A connection that this machine can't open is a connect error. wrk notices a
    /// refused handshake only when it writes, so it counts as a write error.
    pub(crate) fn on_failure(&mut self, failure: Failure) {
        let counter = match failure.kind() {
            FailureKind::NoDescriptor | FailureKind::NoPort | FailureKind::Handshake => {
                &mut self.connect
            }
            FailureKind::Connect if failure == Failure::Connect(StreamError::Unreachable) => {
                &mut self.connect
            }
            FailureKind::Connect | FailureKind::ConnectTimeout => &mut self.write,
            FailureKind::Reset
            | FailureKind::EndedEarly
            | FailureKind::Garbage
            | FailureKind::WrongContent => &mut self.read,
            FailureKind::Timeout => &mut self.timeout,
        };
        *counter += 1;
    }

    pub(crate) fn any(&self) -> bool {
        *self != Self::default()
    }
}

impl AddAssign for SocketErrors {
    fn add_assign(&mut self, other: Self) {
        self.connect += other.connect;
        self.read += other.read;
        self.write += other.write;
        self.timeout += other.timeout;
    }
}

impl RateSampling {
    pub(crate) fn from(now: Instant) -> Self {
        Self {
            from: now,
            responses: 0,
        }
    }

    /// Requests per second since the last sample; none without a response, and then the interval goes on: so wrk's
    /// average hides idle time.
    pub(crate) fn sample(&mut self, now: Instant, tally: &Tally) -> Option<u64> {
        let responses = responses(tally);
        let elapsed_ms = now.since(self.from).as_millis();
        if responses == self.responses || elapsed_ms == 0 {
            return None;
        }
        let rate = (responses - self.responses) as f64 / elapsed_ms as f64 * 1000.0;
        *self = Self {
            from: now,
            responses,
        };
        Some(whole(rate))
    }
}

/// Responses, not batches of them: wrk's "requests".
pub(crate) fn responses(tally: &Tally) -> u64 {
    tally.statuses.iter().sum()
}

/// The highest rate of a thread that wrk keeps, per second.
const RATE_MAX: u64 = 10_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::wrk::statistics::Statistics;

    const MS: Duration = Duration::from_millis(1);

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn tally(responses: u64) -> Tally {
        Tally {
            statuses: [0, responses, 0, 0, 0],
            ..Tally::default()
        }
    }

    fn sample(sent_us: u64, done_us: u64) -> Sample {
        let at = |us: u64| Instant::from_nanos(us * 1000);
        Sample {
            connected: Some(at(sent_us)),
            sent: at(sent_us),
            first_byte: at(done_us),
            done: at(done_us),
            ..Sample::example(at(0))
        }
    }

    #[test]
    fn latency_begins_with_the_sending_and_what_exceeds_the_timeout_is_a_timeout() {
        let mut recorder = Recorder::new(2 * MS);
        recorder.on_sample(&sample(500, 1000));
        recorder.on_sample(&sample(500, 2500));
        recorder.on_sample(&sample(500, 2501));
        assert_eq!((recorder.latency.count(), recorder.errors.timeout), (2, 1));
        assert_eq!(
            (recorder.latency.min(), recorder.latency.max()),
            (500, 2000)
        );
    }

    #[test]
    fn an_interval_without_a_response_is_no_sample_and_lengthens_the_next() {
        let mut recorder = Recorder::new(MS);
        recorder.on_begin(at(1000));
        recorder.cut(at(1100), &tally(50));
        recorder.cut(at(1200), &tally(50));
        recorder.cut(at(1300), &tally(90));
        // 50 in 100 ms, then 40 in 200 ms.
        assert_eq!(recorder.requests.nth(0), Some((200, 1)));
        assert_eq!(recorder.requests.nth(1), Some((500, 1)));
        assert_eq!(recorder.requests.count(), 2);
    }

    #[test]
    fn failures_are_counted_where_wrk_counts_them() {
        let check = |failure, expected: [u64; 4]| {
            let mut errors = SocketErrors::default();
            errors.on_failure(failure);
            let SocketErrors {
                connect,
                read,
                write,
                timeout,
            } = errors;
            assert_eq!([connect, read, write, timeout], expected, "{failure}");
        };
        check(Failure::NoDescriptor, [1, 0, 0, 0]);
        check(Failure::NoPort, [1, 0, 0, 0]);
        check(Failure::Connect(StreamError::Unreachable), [1, 0, 0, 0]);
        check(Failure::Connect(StreamError::Refused), [0, 0, 1, 0]);
        check(Failure::EndedEarly, [0, 1, 0, 0]);
        check(Failure::Stream(StreamError::Reset), [0, 1, 0, 0]);
        check(Failure::Timeout, [0, 0, 0, 1]);
    }
}
