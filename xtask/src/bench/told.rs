//! What a client says of one run, in the same words for all.

/// Our own.
pub(super) mod native;
/// wrk's.
pub(super) mod wrk;

use std::time::Duration;

/// The figures of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Told {
    /// Answered.
    pub(super) requests: u64,
    pub(super) duration: Duration,
    /// With heads; what unfinished answers brought may be in it.
    pub(super) bytes: u64,
    /// Failed connects, reads and writes, time-outs, answers of 400 and above.
    pub(super) errors: u64,
    pub(super) latency: Latency,
}

/// In milliseconds; `None` where the client does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Latency {
    pub(super) p50: Option<f64>,
    pub(super) p90: Option<f64>,
    pub(super) p99: Option<f64>,
    pub(super) p999: Option<f64>,
    pub(super) max: Option<f64>,
}

impl Latency {
    /// p50, p90, p99, p99.9 and the longest.
    pub(super) const fn all(&self) -> [Option<f64>; 5] {
        [self.p50, self.p90, self.p99, self.p999, self.max]
    }
}
