//! Batch means: seconds of a run depend on each other; means of long enough batches hardly do.

use super::number;

/// Batches whose means are as good as independent.
#[derive(Clone, Debug, PartialEq)]
pub struct Batches {
    pub means: Vec<f64>,
    /// Values in each.
    pub length: usize,
    /// Correlation of each mean with the next.
    pub correlation: f64,
    /// The half-width of the 95 % interval of the mean, as a share of it.
    pub half_width: f64,
}

/// Doubles the batches' length until neighbours correlate no more than 0.2, ten batches at least; none if that is never reached.
pub fn batches(values: &[f64]) -> Option<Batches> {
    let mut length = 1;
    while values.len() / length >= BATCHES_MIN {
        let means: Vec<f64> = values
            .chunks_exact(length)
            .map(|batch| batch.iter().sum::<f64>() / number(length))
            .collect();
        let correlation = neighbours(&means);
        if correlation.abs() <= CORRELATION_MAX {
            let half_width = half_width(&means)?;
            return Some(Batches {
                means,
                length,
                correlation,
                half_width,
            });
        }
        length *= 2;
    }
    None
}

/// Lag-1 autocorrelation; 0 of values that are all equal.
fn neighbours(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / number(values.len());
    let square: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    let product: f64 = values
        .windows(2)
        .map(|pair| (pair[0] - mean) * (pair[1] - mean))
        .sum();
    if square > 0.0 { product / square } else { 0.0 }
}

fn half_width(means: &[f64]) -> Option<f64> {
    let n = number(means.len());
    let mean = means.iter().sum::<f64>() / n;
    let square: f64 = means.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let width = super::student_quantile(0.975, means.len() - 1) * (square / n).sqrt() / mean.abs();
    width.is_finite().then_some(width)
}

/// From which |r1| seconds count as dependent; Student's interval is then some 20 % too narrow.
const CORRELATION_MAX: f64 = 0.2;

/// Batches below which r1 itself is mostly chance (its standard error is 1/√n).
const BATCHES_MIN: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(count: usize) -> Vec<f64> {
        let mut generator = super::super::Generator::new(11);
        (0..count)
            .map(|_| number(generator.index_below(1000)) / 1000.0)
            .collect()
    }

    #[test]
    fn independent_seconds_need_no_batches() {
        let values: Vec<f64> = noise(200).iter().map(|v| 100.0 + v).collect();
        let found = batches(&values).unwrap();
        assert_eq!(found.length, 1);
        assert!(found.half_width < 0.001, "{found:?}");
    }

    #[test]
    fn seconds_that_depend_on_each_other_are_put_together() {
        let mut last = 0.0;
        let values: Vec<f64> = noise(800)
            .iter()
            .map(|v| {
                last = 0.8 * last + v;
                100.0 + last
            })
            .collect();
        let found = batches(&values).unwrap();
        assert!(found.length >= 4, "{}", found.length);
        assert!(found.correlation.abs() <= 0.2);
    }

    #[test]
    fn a_series_that_drifts_has_no_batches() {
        let values: Vec<f64> = (0..100).map(f64::from).collect();
        assert_eq!(batches(&values), None);
    }
}
