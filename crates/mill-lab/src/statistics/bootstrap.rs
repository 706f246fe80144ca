//! Bootstrap intervals: percentile and BCa (Efron 1987; Efron and Tibshirani 1993, chapter 14).

use super::order::quantile_of_sorted;
use super::{Generator, median, normal_cdf, normal_quantile, number};

/// A 95 % interval and how it came about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
    pub kind: IntervalKind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum IntervalKind {
    /// Bias-corrected and accelerated; covers about 95 %.
    Bca,
    /// The percentile bootstrap of a median of so few values is their range: it covers this share only.
    Range { covers: f64 },
    /// The percentile bootstrap of two samples.
    Percentile,
}

/// The interval of a statistic of one sample: BCa from six values on; from three to five the range, which is what the percentile
/// bootstrap of a median gives there; none of fewer.
pub fn bootstrap_interval(
    values: &[f64],
    statistic: impl Fn(&[f64]) -> Option<f64>,
    seed: u64,
) -> Option<Interval> {
    if values.len() < RANGE_MIN || values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    if values.len() < BCA_MIN {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // All values on one side of the median: 2 of 2^n cases.
        let covers = 1.0 - 2.0 * 0.5_f64.powi(i32::try_from(values.len()).ok()?);
        return Some(Interval {
            low,
            high,
            kind: IntervalKind::Range { covers },
        });
    }
    let estimate = statistic(values)?;
    let estimates = resampled(values, &statistic, seed)?;
    let (low, high) = accelerated(values, &statistic, estimate, &estimates)?;
    Some(Interval {
        low: quantile_of_sorted(&estimates, low)?,
        high: quantile_of_sorted(&estimates, high)?,
        kind: IntervalKind::Bca,
    })
}

/// The percentile interval of ln(median of `b` : median of `a`), both samples resampled: of values above zero, three at least on each side.
pub fn bootstrap_two(a: &[f64], b: &[f64], seed: u64) -> Option<Interval> {
    let positive = |values: &[f64]| values.iter().all(|v| v.is_finite() && *v > 0.0);
    if a.len() < RANGE_MIN || b.len() < RANGE_MIN || !positive(a) || !positive(b) {
        return None;
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
        kind: IntervalKind::Percentile,
    })
}

fn middle_of_resample(values: &[f64], draw: &mut [f64], generator: &mut Generator) -> Option<f64> {
    let draw = &mut draw[..values.len()];
    for slot in draw.iter_mut() {
        *slot = values[generator.index_below(values.len())];
    }
    median(draw)
}

/// The statistic of each resample, ascending.
fn resampled(
    values: &[f64],
    statistic: &impl Fn(&[f64]) -> Option<f64>,
    seed: u64,
) -> Option<Vec<f64>> {
    let mut generator = Generator::new(seed);
    let mut draw = vec![0.0; values.len()];
    let mut estimates = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        for slot in &mut draw {
            *slot = values[generator.index_below(values.len())];
        }
        estimates.push(statistic(&draw)?);
    }
    estimates.sort_by(f64::total_cmp);
    Some(estimates)
}

/// The shares of the resamples' distribution at which BCa cuts.
fn accelerated(
    values: &[f64],
    statistic: &impl Fn(&[f64]) -> Option<f64>,
    estimate: f64,
    estimates: &[f64],
) -> Option<(f64, f64)> {
    // Resamples equal to the estimate count half, as in scipy: a median has many of them.
    let below = estimates.partition_point(|e| *e < estimate);
    let not_above = estimates.partition_point(|e| *e <= estimate);
    let share = (number(below) + number(not_above)) / 2.0 / number(estimates.len());
    let bias = normal_quantile(share);
    if !bias.is_finite() {
        return Some((LOW, 1.0 - LOW));
    }
    let acceleration = acceleration(values, statistic)?;
    let cut = |z: f64| {
        let shifted = bias + z;
        normal_cdf(bias + shifted / (1.0 - acceleration * shifted))
    };
    let z = normal_quantile(1.0 - LOW);
    Some((cut(-z), cut(z)))
}

/// Skewness of the jackknife's values over six; 0 if leaving one out changes nothing.
fn acceleration(values: &[f64], statistic: &impl Fn(&[f64]) -> Option<f64>) -> Option<f64> {
    let left_out: Vec<f64> = (0..values.len())
        .map(|without| {
            let mut rest = values.to_vec();
            rest.remove(without);
            statistic(&rest)
        })
        .collect::<Option<_>>()?;
    let mean = left_out.iter().sum::<f64>() / number(left_out.len());
    let square: f64 = left_out.iter().map(|v| (mean - v).powi(2)).sum();
    let cube: f64 = left_out.iter().map(|v| (mean - v).powi(3)).sum();
    let scale = square.powf(1.5);
    Some(if scale > 0.0 {
        cube / (6.0 * scale)
    } else {
        0.0
    })
}

/// Resamples of an interval: 10 000 as criterion and scipy's examples take; the interval's own error is then below a fiftieth of its width.
const RESAMPLES: usize = 10_000;

/// What is cut off at each end of a 95 % interval.
const LOW: f64 = 0.025;

/// Values from which there is an interval at all.
const RANGE_MIN: usize = 3;

/// Values from which the range of a sample covers its median in more than 95 % of cases (1 - 2/2^6 = 96.9 %), so that an
/// interval inside it can hold its promise.
const BCA_MIN: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    const EVEN: [f64; 12] = [
        0.112, 0.098, 0.131, 0.105, 0.121, 0.093, 0.14, 0.117, 0.109, 0.125, 0.088, 0.119,
    ];
    const SKEWED: [f64; 10] = [0.1, 0.2, 0.15, 0.3, 0.9, 0.12, 1.8, 0.25, 0.4, 0.22];

    #[expect(clippy::unnecessary_wraps, reason = "statistics may have no value")]
    fn mean(values: &[f64]) -> Option<f64> {
        Some(values.iter().sum::<f64>() / number(values.len()))
    }

    fn check(
        values: &[f64],
        statistic: impl Fn(&[f64]) -> Option<f64>,
        expected: (f64, f64),
        tolerance: f64,
    ) {
        let found = bootstrap_interval(values, statistic, 7).unwrap();
        assert_eq!(found.kind, IntervalKind::Bca);
        assert!((found.low - expected.0).abs() < tolerance, "{found:?}");
        assert!((found.high - expected.1).abs() < tolerance, "{found:?}");
    }

    #[test]
    fn bca_intervals_are_those_of_scipy() {
        // scipy.stats.bootstrap((x,), numpy.median | numpy.mean, n_resamples=100000, method='BCa', random_state=default_rng(7))
        check(&EVEN, median, (0.1015, 0.123), 0.001_1);
        check(&EVEN, mean, (0.104_833, 0.121_583), 0.000_3);
        check(&SKEWED, median, (0.15, 0.575), 0.03);
        // So far out in a long tail 10 000 resamples place the upper end to some 0.03.
        check(&SKEWED, mean, (0.231, 0.97), 0.04);
    }

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        assert_eq!(
            bootstrap_interval(&SKEWED, median, 3),
            bootstrap_interval(&SKEWED, median, 3)
        );
    }

    #[test]
    fn few_values_give_their_range_and_say_what_it_covers() {
        let found = bootstrap_interval(&[0.1, 0.3, 0.2], median, 1).unwrap();
        assert_eq!((found.low, found.high), (0.1, 0.3));
        assert_eq!(found.kind, IntervalKind::Range { covers: 0.75 });
        assert_eq!(bootstrap_interval(&[0.1, 0.3], median, 1), None);
    }

    #[test]
    fn equal_values_have_an_interval_of_no_width() {
        let found = bootstrap_interval(&[0.5; 8], median, 1).unwrap();
        assert_eq!((found.low, found.high), (0.5, 0.5));
    }

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
        assert_eq!(bootstrap_two(&a, &[1.0, 2.0], 1), None);
        assert_eq!(bootstrap_two(&a, &[1.0, 2.0, 0.0], 1), None);
    }
}
