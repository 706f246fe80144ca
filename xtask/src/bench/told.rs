//! What a client says of one run, in the same words for all.

/// ab's.
pub(super) mod ab;
/// h2load's.
pub(super) mod h2load;
/// Our own.
pub(super) mod native;
/// wrk's.
pub(super) mod wrk;
/// wrk2's.
pub(super) mod wrk2;

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
    /// In the order of [`Latency::NAMES`].
    pub(super) const fn all(&self) -> [Option<f64>; 5] {
        [self.p50, self.p90, self.p99, self.p999, self.max]
    }

    pub(super) const NAMES: [&str; 5] = ["p50", "p90", "p99", "p99.9", "max"];
}

/// The number that stands first behind `name` in a line that begins with it.
fn number_after<T: std::str::FromStr>(text: &str, name: &str) -> Option<T> {
    let after = text.lines().find_map(|line| line.strip_prefix(name))?;
    after.split_whitespace().next()?.parse().ok()
}
