//! Durations by their frequency: an HDR histogram in nanoseconds, of fixed bounds.

use crate::base64;
use core::time::Duration;
use hdrhistogram::Histogram as Counts;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use std::fmt;

/// Counts durations from 1 ns to an hour with three significant digits: any figure read from it is at most 0.1 % off.
///
/// Recording costs a few nanoseconds and never allocates. A longer duration counts as an hour and is
/// [`Histogram::overflowed`] besides. All histograms have the same bounds, so that any two add up. Takes 264 KiB.
#[derive(Clone, PartialEq)]
pub struct Histogram {
    counts: Counts<u64>,
    overflowed: u64,
}

/// A step of the curve that [`Histogram::steps`] gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    pub value: Duration,
    /// The share of all durations that are not longer, 0 to 1.
    pub quantile: f64,
    /// Durations of about this length.
    pub count: u64,
}

/// Why a text is not a valid histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistogramError {
    NotBase64,
    /// Not the V2 form, deflated or not.
    NotHistogram,
    /// It has durations beyond our bounds.
    OutOfBounds,
}

impl Histogram {
    pub fn new() -> Self {
        let counts = Counts::new_with_bounds(1, HIGHEST_NS, SIGNIFICANT_DIGITS)
            .expect("the bounds are constants that hdrhistogram takes");
        Self {
            counts,
            overflowed: 0,
        }
    }

    /// Counts one duration. O(1), no allocation.
    pub fn record(&mut self, duration: Duration) {
        let nanos = duration.as_nanos();
        let value = u64::try_from(nanos).unwrap_or(u64::MAX);
        self.overflowed += u64::from(value > HIGHEST_NS);
        self.counts.saturating_record(value.min(HIGHEST_NS));
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// How many of them were longer than an hour.
    pub const fn overflowed(&self) -> u64 {
        self.overflowed
    }

    /// The duration that `percent` of all are not longer than; zero if there are none.
    pub fn percentile(&self, percent: f64) -> Duration {
        Duration::from_nanos(self.counts.value_at_percentile(percent))
    }

    pub fn min(&self) -> Duration {
        Duration::from_nanos(self.counts.min())
    }

    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.counts.max())
    }

    pub fn mean(&self) -> Duration {
        from_nanos(self.counts.mean())
    }

    /// The standard deviation of the population.
    pub fn stdev(&self) -> Duration {
        from_nanos(self.counts.stdev())
    }

    /// How many were longer than `limit`, to three digits of `limit`.
    pub fn count_above(&self, limit: Duration) -> u64 {
        let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        if limit >= HIGHEST_NS {
            return self.overflowed;
        }
        let next = self.counts.next_non_equivalent(limit);
        self.counts.count_between(next, HIGHEST_NS)
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Self) {
        self.counts
            .add(&other.counts)
            .expect("all histograms have the same bounds");
        self.overflowed += other.overflowed;
    }

    /// Resets all counts; keeps the memory.
    pub fn clear(&mut self) {
        self.counts.reset();
        self.overflowed = 0;
    }

    /// The cumulative curve: one step per counted length, growing.
    pub fn steps(&self) -> impl Iterator<Item = Step> + '_ {
        self.counts.iter_recorded().map(|value| Step {
            value: Duration::from_nanos(value.value_iterated_to()),
            quantile: value.quantile(),
            count: value.count_at_value(),
        })
    }

    /// The V2 form, deflated, in base64: HdrHistogram's tools of all languages read it. It does not contain how many
    /// were longer than an hour.
    pub fn emit(&self) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.counts, &mut bytes)
            .expect("writing to memory succeeds");
        base64::encode(&bytes)
    }

    /// Reads the output of [`Histogram::emit`] or of another HdrHistogram with nanoseconds.
    pub fn parse(text: &str) -> Result<Self, HistogramError> {
        let bytes = base64::decode(text).ok_or(HistogramError::NotBase64)?;
        let read: Counts<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|_| HistogramError::NotHistogram)?;
        let mut histogram = Self::new();
        histogram
            .counts
            .add(&read)
            .map_err(|_| HistogramError::OutOfBounds)?;
        Ok(histogram)
    }

    /// The same, with `overflowed` durations longer than an hour; for a format that keeps that number separately.
    #[must_use]
    pub const fn with_overflowed(mut self, overflowed: u64) -> Self {
        self.overflowed = overflowed;
        self
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Histogram")
            .field("count", &self.count())
            .field("p50", &self.percentile(50.0))
            .field("max", &self.max())
            .finish_non_exhaustive()
    }
}

impl fmt::Display for HistogramError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NotBase64 => "the histogram is not in base64",
            Self::NotHistogram => "the histogram is not in HdrHistogram's V2 form",
            Self::OutOfBounds => "the histogram has values of more than an hour",
        })
    }
}

impl std::error::Error for HistogramError {}

fn from_nanos(nanos: f64) -> Duration {
    Duration::try_from_secs_f64(nanos / 1e9).unwrap_or_default()
}

/// An hour, in nanoseconds: longer than any client waits for an answer.
const HIGHEST_NS: u64 = 3_600_000_000_000;

/// Decimal digits: neighbouring values differ by less than 0.1 %.
const SIGNIFICANT_DIGITS: u8 = 3;

#[cfg(test)]
mod tests;
