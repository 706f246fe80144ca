//! The time series of a run: what all threads did, interval by interval.

use crate::nanos;
use crate::native::recorder::Interval;
use core::time::Duration;
use mill_metrics::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Collects the threads' intervals. A period is closed, and its histogram compressed, when all threads have reported
/// it, so that a long run does not keep full histograms.
#[derive(Debug)]
pub struct Series {
    interval: Duration,
    /// Per thread: the number of the interval that it will report next.
    next: Vec<usize>,
    closed: Vec<Period>,
    open: VecDeque<Gathering>,
}

/// One interval of the run, all threads together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Period {
    /// Since the beginning of the measured period.
    #[serde(rename = "begin_ns", with = "nanos")]
    pub begin: Duration,
    #[serde(rename = "end_ns", with = "nanos")]
    pub end: Duration,
    pub started: u64,
    pub answered: u64,
    pub failed: u64,
    pub bytes_received: u64,
    pub connected: u64,
    pub open: u64,
    #[serde(rename = "p50_ns", with = "nanos")]
    pub p50: Duration,
    #[serde(rename = "p90_ns", with = "nanos")]
    pub p90: Duration,
    #[serde(rename = "p99_ns", with = "nanos")]
    pub p99: Duration,
    #[serde(rename = "max_ns", with = "nanos")]
    pub max: Duration,
    /// The latencies as [`Histogram::emit`] makes them.
    pub histogram: String,
}

/// A period that not all threads have reported.
#[derive(Debug)]
struct Gathering {
    /// The latest end that a thread reported.
    end: Option<Duration>,
    sum: Interval,
}

impl Series {
    pub fn new(threads: u32, interval: Duration) -> Self {
        Self {
            interval,
            next: vec![0; threads.max(1) as usize],
            closed: Vec::new(),
            open: VecDeque::new(),
        }
    }

    /// Adds one thread's interval that ended `elapsed` after the beginning; returns the period that this closed.
    pub fn on_interval(
        &mut self,
        thread: u32,
        elapsed: Duration,
        interval: &Interval,
    ) -> Option<&Period> {
        // A thread that skipped an interval reports it with the next one, and never reports one twice.
        let reported = self.number_of(elapsed);
        let next = self.next.get_mut(thread as usize)?;
        let number = reported.max(*next);
        *next = number + 1;
        self.gather(number, elapsed, interval);
        let complete = self.next.iter().copied().min().unwrap_or(0);
        let before = self.closed.len();
        while self.closed.len() < complete || self.open.len() > OPEN_MAX {
            self.close();
        }
        self.closed.get(before..)?.last()
    }

    /// Ends the series with the threads' counts since their last intervals, in the order of threads.
    pub fn finish(mut self, measured: Duration, rests: &[Interval]) -> Vec<Period> {
        let next = self.next.clone();
        let last = next.iter().copied().max().unwrap_or(0);
        for (rest, number) in rests.iter().zip(next) {
            if rest.started + rest.answered + rest.failed > 0 {
                let end = if number == last {
                    measured
                } else {
                    self.end_of(number)
                };
                self.gather(number, end, rest);
            }
        }
        while !self.open.is_empty() {
            self.close();
        }
        self.closed
    }

    /// The periods that are closed.
    pub fn periods(&self) -> &[Period] {
        &self.closed
    }

    /// The number of the interval that ends at about this time.
    fn number_of(&self, elapsed: Duration) -> usize {
        let ratio = elapsed.as_secs_f64() / self.interval.as_secs_f64().max(f64::MIN_POSITIVE);
        let ends =
            Duration::try_from_secs_f64(ratio.round()).map_or(u64::MAX, |ends| ends.as_secs());
        usize::try_from(ends.saturating_sub(1)).unwrap_or(usize::MAX)
    }

    /// When an interval ends.
    fn end_of(&self, number: usize) -> Duration {
        let times = u32::try_from(number).map_or(u32::MAX, |number| number.saturating_add(1));
        self.interval.saturating_mul(times)
    }

    /// Adds to the open period of that number, or to the nearest one that is open or may be opened.
    fn gather(&mut self, number: usize, end: Duration, interval: &Interval) {
        let place = number.saturating_sub(self.closed.len()).min(OPEN_MAX);
        while self.open.len() <= place {
            self.open.push_back(Gathering::new());
        }
        if let Some(open) = self.open.get_mut(place) {
            open.end = open.end.max(Some(end));
            open.sum.add(interval);
        }
    }

    fn close(&mut self) {
        let begin = self.closed.last().map_or(Duration::ZERO, |last| last.end);
        let regular_end = self.end_of(self.closed.len());
        let gathering = self.open.pop_front().unwrap_or_else(Gathering::new);
        self.closed.push(gathering.close(begin, regular_end));
    }
}

impl Period {
    /// How long it was.
    pub fn length(&self) -> Duration {
        self.end.saturating_sub(self.begin)
    }

    /// A count per second of this period.
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of an interval are far below 2^52"
    )]
    pub fn per_second(&self, count: u64) -> f64 {
        let seconds = self.length().as_secs_f64();
        if seconds > 0.0 {
            count as f64 / seconds
        } else {
            0.0
        }
    }
}

impl Gathering {
    fn new() -> Self {
        Self {
            end: None,
            sum: Interval {
                latency: Histogram::new(),
                started: 0,
                answered: 0,
                failed: 0,
                bytes_received: 0,
                connected: 0,
                open: 0,
            },
        }
    }

    /// An unreported period has its regular end, and zero counts.
    fn close(self, begin: Duration, regular_end: Duration) -> Period {
        let Interval {
            latency,
            started,
            answered,
            failed,
            bytes_received,
            connected,
            open,
        } = self.sum;
        let end = self.end.unwrap_or(regular_end).max(begin);
        Period {
            begin,
            end,
            started,
            answered,
            failed,
            bytes_received,
            connected,
            open,
            p50: latency.percentile(50.0),
            p90: latency.percentile(90.0),
            p99: latency.percentile(99.0),
            max: latency.max(),
            histogram: latency.emit(),
        }
    }
}

impl Interval {
    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Self) {
        self.latency.add(&other.latency);
        self.started += other.started;
        self.answered += other.answered;
        self.failed += other.failed;
        self.bytes_received += other.bytes_received;
        self.connected += other.connected;
        self.open += other.open;
    }
}

/// Periods that may be open at a time: threads report the same one within a turn, unless one hangs.
const OPEN_MAX: usize = 64;

#[cfg(test)]
mod tests;
