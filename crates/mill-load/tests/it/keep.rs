//! A recorder that keeps every sample.

use mill_load::failure::Failure;
use mill_load::record::Record;
use mill_load::sample::Sample;
use mill_load::tally::Tally;
use mill_runtime::time::{Duration, Instant};

#[derive(Debug, Default)]
pub(crate) struct Keep {
    pub(crate) samples: Vec<Sample>,
    pub(crate) failures: Vec<Failure>,
    pub(crate) began: Option<Instant>,
    pub(crate) connects: Vec<Duration>,
    pub(crate) heads: Vec<Vec<u8>>,
}

impl Record for Keep {
    type Interval = Tally;

    fn on_begin(&mut self, now: Instant) {
        assert_eq!(self.began, None, "the measured period begins once");
        self.began = Some(now);
    }

    fn on_sample(&mut self, sample: &Sample) {
        self.samples.push(*sample);
    }

    fn on_failure(&mut self, failure: Failure, _now: Instant) {
        self.failures.push(failure);
    }

    fn on_connected(&mut self, _now: Instant, took: Duration) {
        self.connects.push(took);
    }

    fn wants_head(&self) -> bool {
        true
    }

    fn on_head(&mut self, bytes: &[u8], head_len: usize) {
        let head = bytes.get(..head_len).unwrap_or_default();
        self.heads.push(head.to_vec());
    }

    fn cut(&mut self, _now: Instant, tally: &Tally) -> Tally {
        *tally
    }
}
