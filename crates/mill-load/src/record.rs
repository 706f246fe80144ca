//! Who keeps what is measured: one value per thread, chosen by the dialect.

use crate::failure::Failure;
use crate::sample::Sample;
use crate::tally::Tally;
use mill_runtime::time::Instant;

/// A thread's memory of its requests. wrk counts microseconds, ab keeps every sample, the native
/// command keeps histograms; the loop is the same. Called once per request: no allocation, no lock in there.
pub trait Record: Send + 'static {
    /// What is handed over at each interval, for live output and time series.
    type Interval: Send;

    /// The measured period begins; what came before was warm-up and is forgotten.
    fn on_begin(&mut self, now: Instant) {
        let _ = now;
    }

    /// A request was answered.
    fn on_sample(&mut self, sample: &Sample);

    /// A request failed at `now`.
    fn on_failure(&mut self, failure: Failure, now: Instant) {
        let _ = (failure, now);
    }

    /// A connection was established; `took` includes nothing but the handshake.
    fn on_connected(&mut self, now: Instant, took: core::time::Duration) {
        let _ = (now, took);
    }

    /// Whether [`Record::on_head`] wants to be called.
    fn wants_head(&self) -> bool {
        false
    }

    /// A response's head is complete: `bytes` are what has come of it, the head's `head_len` first.
    fn on_head(&mut self, bytes: &[u8], head_len: usize) {
        let _ = (bytes, head_len);
    }

    /// An interval has passed; `tally` is what the thread counted since the measured period began.
    fn cut(&mut self, now: Instant, tally: &Tally) -> Self::Interval;
}
