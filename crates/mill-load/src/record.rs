//! Recorders of results: one value per thread, chosen by the dialect.

use crate::failure::Failure;
use crate::sample::Sample;
use crate::tally::Tally;
use mill_runtime::time::Instant;
use mill_tls::facts::TlsFacts;

/// Records a thread's requests. wrk counts microseconds, ab keeps every sample, the native command keeps histograms;
/// the loop is the same. Called once per request: it must not allocate or lock.
pub trait Record: Send + 'static {
    /// The data of each interval, for live output and time series.
    type Interval: Send;

    /// The measured period begins; earlier records belong to the warm-up and are discarded.
    fn on_begin(&mut self, now: Instant) {
        let _ = now;
    }

    /// A request was answered.
    fn on_sample(&mut self, sample: &Sample);

    /// A request failed at `now`.
    fn on_failure(&mut self, failure: Failure, now: Instant) {
        let _ = (failure, now);
    }

    /// A connection was established; `took` includes only the handshake.
    fn on_connected(&mut self, now: Instant, took: core::time::Duration) {
        let _ = (now, took);
    }

    /// A handshake of TLS was completed, which took so long behind connecting.
    fn on_secured(&mut self, took: core::time::Duration, facts: &TlsFacts) {
        let _ = (took, facts);
    }

    /// Whether [`Record::on_head`] is to be called.
    fn wants_head(&self) -> bool {
        false
    }

    /// A response's head is complete: `bytes` are the received bytes, the head's `head_len` first.
    fn on_head(&mut self, bytes: &[u8], head_len: usize) {
        let _ = (bytes, head_len);
    }

    /// An interval has passed; `tally` is the thread's count since the measured period began.
    fn cut(&mut self, now: Instant, tally: &Tally) -> Self::Interval;
}
