//! One thread's records of a run: histograms, the kinds of answers, an example of each failure.

use crate::failure::{Failure, FailureKind};
use crate::native::answers::Answers;
use crate::native::measures::Measures;
use crate::record::Record;
use crate::sample::Sample;
use crate::tally::Tally;
use core::time::Duration;
use mill_metrics::Histogram;
use mill_runtime::time::Instant;
use mill_tls::facts::TlsFacts;

/// The native command's [`Record`]. All its memory is allocated when it is made, so a request costs only some
/// additions.
#[derive(Debug)]
pub struct Recorder {
    /// Complete after a cut.
    pub measures: Measures,
    pub answers: Answers,
    /// The first failure of each kind, in the order of [`FailureKind::ALL`]: its message is more precise than its kind.
    pub examples: [Option<Failure>; FailureKind::ALL.len()],
    /// Latencies since the last cut: of requests whose other durations are the same, and of all others. Most answers
    /// arrive in one piece, for requests that were sent when they were started, and one count is cheaper than four.
    alike: Histogram,
    other: Histogram,
    /// The tally at the last cut.
    cut_at: Tally,
}

/// The data of one thread in one interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    pub latency: Histogram,
    pub started: u64,
    pub answered: u64,
    pub failed: u64,
    pub bytes_received: u64,
    /// Connections that were established in it.
    pub connected: u64,
    /// Connections that are established at its end.
    pub open: u64,
}

impl Recorder {
    pub fn new(open_loop: bool) -> Self {
        Self {
            measures: Measures::new(open_loop),
            answers: Answers::default(),
            examples: [None; FailureKind::ALL.len()],
            alike: Histogram::new(),
            other: Histogram::new(),
            cut_at: Tally::default(),
        }
    }
}

impl Record for Recorder {
    type Interval = Interval;

    fn on_sample(&mut self, sample: &Sample) {
        if self.measures.are_alike(sample) {
            self.alike.record(sample.latency());
        } else {
            self.measures.on_sample(sample);
            self.other.record(sample.latency());
        }
        self.answers.on_answer(sample.status, sample.content_bytes);
    }

    fn on_failure(&mut self, failure: Failure, _now: Instant) {
        let kind = failure.kind();
        for (known, example) in FailureKind::ALL.iter().zip(&mut self.examples) {
            if *known == kind {
                example.get_or_insert(failure);
            }
        }
    }

    fn on_connected(&mut self, _now: Instant, took: Duration) {
        self.measures.on_connected(took);
    }

    fn on_secured(&mut self, took: Duration, _: &TlsFacts) {
        self.measures.on_secured(took);
    }

    /// Copies the interval's histogram, which is the one allocation after the start: one per interval.
    fn cut(&mut self, _now: Instant, tally: &Tally) -> Interval {
        let before = core::mem::replace(&mut self.cut_at, *tally);
        self.measures.add_latencies(&self.alike, &self.other);
        let mut latency = self.other.clone();
        latency.add(&self.alike);
        let interval = Interval {
            latency,
            started: tally.started.saturating_sub(before.started),
            answered: tally.answered.saturating_sub(before.answered),
            failed: tally.failed().saturating_sub(before.failed()),
            bytes_received: tally.bytes_received.saturating_sub(before.bytes_received),
            connected: tally.connected.saturating_sub(before.connected),
            open: tally.open,
        };
        self.alike.clear();
        self.other.clear();
        interval
    }
}

#[cfg(test)]
mod tests;
