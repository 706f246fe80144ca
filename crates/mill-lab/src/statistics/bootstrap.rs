//! The interval of a ratio of two samples that are not paired: the percentile bootstrap (Efron and Tibshirani 1993, chapter 13),
//! and of samples that are too small for it what their ranges say.

use super::order::quantile_of_sorted;
use super::{Generator, Interval, median, number};

/// The interval of ln(median of `b` : median of `a`): of values above zero, three at least on each side.
///
/// From five values on each side both samples are resampled. Of fewer, resampled medians are the sample's own extremes, and the
/// interval reaches from the least to the most that single values of both give: equal systems lie outside only if the samples do not
/// overlap at all.
pub fn bootstrap_two(a: &[f64], b: &[f64], seed: u64) -> Option<Interval> {
    let positive = |values: &[f64]| values.iter().all(|v| v.is_finite() && *v > 0.0);
    if a.len() < RANGE_MIN || b.len() < RANGE_MIN || !positive(a) || !positive(b) {
        return None;
    }
    if a.len().min(b.len()) < RESAMPLE_MIN {
        return Some(ranges(a, b));
    }
    let mut generator = Generator::new(seed);
    let mut draw = vec![0.0; a.len().max(b.len())];
    let mut estimates = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        let from = middle_of_resample(a, &mut draw, &mut generator)?;
        let to = middle_of_resample(b, &mut draw, &mut generator)?;
        estimates.push((to / from).ln());
    }
    estimates.sort_by(f64::total_cmp);
    Some(Interval {
        low: quantile_of_sorted(&estimates, LOW)?,
        high: quantile_of_sorted(&estimates, 1.0 - LOW)?,
        covers: 1.0 - 2.0 * LOW,
    })
}

/// From the least of `b` over the most of `a` to the most over the least.
fn ranges(a: &[f64], b: &[f64]) -> Interval {
    let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    // Samples that do not overlap: 2 of all ways to choose which values are whose.
    let ways = (1..=a.len()).fold(1.0, |ways, k| ways * number(b.len() + k) / number(k));
    Interval {
        low: (least(b) / most(a)).ln(),
        high: (most(b) / least(a)).ln(),
        covers: 1.0 - 2.0 / ways,
    }
}

fn middle_of_resample(values: &[f64], draw: &mut [f64], generator: &mut Generator) -> Option<f64> {
    let draw = &mut draw[..values.len()];
    for slot in draw.iter_mut() {
        *slot = values[generator.index_below(values.len())];
    }
    median(draw)
}

/// Resamples of an interval: 10 000 as criterion and scipy's examples take; the interval's own error is then below a fiftieth of its width.
const RESAMPLES: usize = 10_000;

/// What is cut off at each end of a 95 % interval.
const LOW: f64 = 0.025;

/// Values from which there is an interval at all.
const RANGE_MIN: usize = 3;

/// Values on each side from which the percentile bootstrap keeps its promise: it covered equal medians in 94 to 97 % of 300 simulated
/// cases each for 5 to 10 values, and in 90 % for 3.
const RESAMPLE_MIN: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_samples_are_compared_by_their_medians() {
        let a = [100.0, 101.0, 99.0, 100.5, 98.9, 100.2];
        let b: Vec<f64> = a.iter().map(|v| v * 1.1).collect();
        let found = bootstrap_two(&a, &b, 1).unwrap();
        assert!(
            found.low < 1.1_f64.ln() && 1.1_f64.ln() < found.high,
            "{found:?}"
        );
        assert!(found.low > 0.07, "{found:?}");
        assert_eq!(bootstrap_two(&a, &b, 1), Some(found), "the same seed");
        assert_eq!(bootstrap_two(&a, &[1.0, 2.0], 1), None);
        assert_eq!(bootstrap_two(&a, &[1.0, 2.0, 0.0], 1), None);
    }

    #[test]
    fn small_samples_give_their_ranges_and_say_what_those_cover() {
        let check = |a: &[f64], b: &[f64], (low, high): (f64, f64), covers: f64| {
            let found = bootstrap_two(a, b, 1).unwrap();
            let (found_low, found_high) = (found.low.exp(), found.high.exp());
            assert!((found_low - low).abs() < 1e-9, "{found:?}");
            assert!((found_high - high).abs() < 1e-9, "{found:?}");
            assert!((found.covers - covers).abs() < 1e-9, "{found:?}");
        };
        // 6 over 3 are 20 ways, 7 over 3 are 35, 9 over 4 are 126.
        check(&[1.0, 2.0, 4.0], &[2.0, 4.0, 8.0], (0.5, 8.0), 0.9);
        check(&[1.0; 3], &[2.0; 4], (2.0, 2.0), 1.0 - 2.0 / 35.0);
        check(&[1.0; 4], &[2.0; 5], (2.0, 2.0), 1.0 - 2.0 / 126.0);
    }
}
