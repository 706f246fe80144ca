//! wrk2's histogram: an HDR histogram, read as the C library of its time does.

use crate::dialect::wrk::statistics::{Statistics, whole};
use hdrhistogram::Histogram;

/// Values from 1 µs to a day, to three digits.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    histogram: Histogram<u64>,
}

/// A line of the table of percentiles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tick {
    pub(crate) value: u64,
    /// 0 to 1.
    pub(crate) share: f64,
    /// Values up to this one.
    pub(crate) count: u64,
}

impl Recorded {
    pub(crate) fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, VALUE_MAX, DIGITS)
            .expect("the bounds and digits are constants that fit");
        Self { histogram }
    }

    /// Counts a value; one beyond the greatest is dropped, as in wrk2.
    pub(crate) fn record(&mut self, value: u64) {
        if value <= VALUE_MAX {
            self.histogram.saturating_record(value);
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.histogram
            .add(&other.histogram)
            .expect("both have the same bounds and digits");
    }

    pub(crate) fn clear(&mut self) {
        self.histogram.reset();
    }

    pub(crate) fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The ticks of a table of percentiles: from one to the next at most a fifth of the step that halves the distance
    /// to 100 %.
    pub(crate) fn ticks(&self) -> Vec<Tick> {
        let total = self.count();
        let (mut ticks, mut goal, mut count, mut value) = (Vec::new(), 0.0_f64, 0, 0);
        for (lowest, added) in self.buckets() {
            count += added;
            value = self.histogram.highest_equivalent(lowest);
            let reached = 100.0 * count as f64 / total as f64;
            while goal <= reached {
                ticks.push(Tick {
                    value,
                    share: goal / 100.0,
                    count,
                });
                let halvings = whole((100.0 / (100.0 - goal)).ln() / 2.0_f64.ln()) + 1;
                goal += 100.0 / (TICKS_PER_HALF * 2.0_f64.powf(halvings as f64));
                if count == total {
                    break;
                }
            }
        }
        ticks.push(Tick {
            value,
            share: 1.0,
            count,
        });
        ticks
    }

    /// The least value of each bucket that has any, ascending, and how many.
    fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.histogram.iter_recorded().map(|value| {
            let lowest = self.histogram.lowest_equivalent(value.value_iterated_to());
            (lowest, value.count_at_value())
        })
    }
}

impl Statistics for Recorded {
    fn min(&self) -> u64 {
        self.buckets().next().map_or(0, |(lowest, _)| lowest)
    }

    fn max(&self) -> u64 {
        self.buckets().last().map_or(0, |(lowest, _)| lowest)
    }

    fn mean(&self) -> f64 {
        let sum: u128 = self
            .buckets()
            .map(|(value, count)| {
                u128::from(self.histogram.median_equivalent(value)) * u128::from(count)
            })
            .sum();
        sum as f64 / self.count() as f64
    }

    fn stdev(&self) -> f64 {
        let mean = self.mean();
        let sum: f64 = self
            .buckets()
            .map(|(value, count)| {
                let deviation = self.histogram.median_equivalent(value) as f64 - mean;
                deviation * deviation * count as f64
            })
            .sum();
        (sum / self.count() as f64).sqrt()
    }

    fn percentile(&self, percent: f64) -> u64 {
        let rank = whole(percent.min(100.0) / 100.0 * self.count() as f64 + 0.5).max(1);
        let mut total = 0;
        for (value, count) in self.buckets() {
            total += count;
            if total >= rank {
                return self.histogram.highest_equivalent(value);
            }
        }
        0
    }

    /// All values, not the different ones, as in wrk2.
    fn distinct(&self) -> u64 {
        self.count()
    }

    /// The value at the percentile that `index` is of all values.
    fn nth(&self, index: u64) -> Option<(u64, u64)> {
        let count = self.count();
        (index < count).then(|| {
            (
                self.percentile(100.0 * (index + 1) as f64 / count as f64),
                1,
            )
        })
    }

    fn within_stdev(&self) -> f64 {
        if self.count() == 0 {
            return 0.0;
        }
        let (mean, stdev) = (self.mean(), self.stdev());
        let (low, high) = (whole(mean - stdev), whole(mean + stdev));
        // wrk2 takes the bucket that the upper bound lies in, or begins, as a whole.
        let high = self.histogram.highest_equivalent(high + 1);
        let within: u64 = self
            .buckets()
            .filter(|(value, _)| (low..=high).contains(value))
            .map(|(_, count)| count)
            .sum();
        100.0 * within as f64 / self.count() as f64
    }
}

/// A day in microseconds (wrk2's `MAX_LATENCY`).
const VALUE_MAX: u64 = 24 * 60 * 60 * 1_000_000;

/// Decimal digits that are kept of each value (wrk2).
const DIGITS: u8 = 3;

/// Lines of the table per halving of the distance to 100 % (wrk2).
const TICKS_PER_HALF: f64 = 5.0;

/// The C library's parameters of a histogram with these bounds: the number of sub-buckets is the power of two above
/// twice a thousand, that of buckets the doublings up to a day.
pub(crate) const SUB_BUCKETS: u32 = 2048;
pub(crate) const BUCKETS: u32 = 27;

const _: () = assert!((SUB_BUCKETS as u64) << (BUCKETS - 1) > VALUE_MAX);
const _: () = assert!((SUB_BUCKETS as u64) << (BUCKETS - 2) <= VALUE_MAX);

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(values: impl IntoIterator<Item = u64>) -> Recorded {
        let mut recorded = Recorded::new();
        for value in values {
            recorded.record(value);
        }
        recorded
    }

    #[test]
    fn the_formulas_are_those_of_the_c_library() {
        let recorded = recorded([2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!((recorded.min(), recorded.max()), (2, 9));
        assert!((recorded.mean() - 5.0).abs() < 1e-12);
        // Over n here, not n - 1: 32 / 8.
        assert!((recorded.stdev() - 2.0).abs() < 1e-12);
        // From 3 to 7, and wrk2 takes the bucket after the bound too, of which there is none.
        assert!((recorded.within_stdev() - 75.0).abs() < 1e-12);
        let check = |percent, expected| assert_eq!(recorded.percentile(percent), expected);
        check(50.0, 4);
        check(75.0, 5);
        check(99.0, 9);
        check(100.0, 9);
        assert_eq!(recorded.nth(7), Some((9, 1)));
        assert_eq!(recorded.nth(8), None);
    }

    #[test]
    fn the_bucket_after_the_upper_bound_counts_as_within() {
        // Mean 5, deviation 5: from 0 to 10; then 3 and 3: from 0 to 6, where 7 would count.
        let recorded = recorded([0, 0, 0, 0, 0, 0, 7, 7]);
        // Mean 1.75, deviation 3.03: up to 4, and 5 is taken too; 7 is not.
        assert!((recorded.within_stdev() - 75.0).abs() < 1e-12);
        let mut near = Recorded::new();
        for value in [1, 1, 3] {
            near.record(value);
        }
        // Mean 1.67, deviation 0.94: up to 2, and 3 is taken too.
        assert!((near.within_stdev() - 100.0).abs() < 1e-12);
    }

    #[test]
    fn a_value_is_kept_to_three_digits() {
        let recorded = recorded([123_456]);
        assert_eq!(
            (recorded.min(), recorded.max()),
            (123_456 / 64 * 64, 123_456 / 64 * 64)
        );
        assert_eq!(recorded.percentile(50.0), 123_456 / 64 * 64 + 63);
    }

    #[test]
    fn ticks_come_closer_as_the_distance_to_the_whole_halves() {
        let shares: Vec<f64> = recorded(1..=1000)
            .ticks()
            .iter()
            .map(|tick| tick.share)
            .collect();
        let expected = [
            0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.775,
        ];
        for (share, expected) in shares.iter().zip(expected) {
            assert!((share - expected).abs() < 1e-9, "{share} {expected}");
        }
        let ticks = recorded([7]).ticks();
        let expected = |share| Tick {
            value: 7,
            share,
            count: 1,
        };
        assert_eq!(ticks, [expected(0.0), expected(1.0)]);
        let none = Tick {
            value: 0,
            share: 1.0,
            count: 0,
        };
        assert_eq!(recorded([]).ticks(), [none]);
    }
}
