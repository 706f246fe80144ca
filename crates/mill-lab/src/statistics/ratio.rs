//! What pairs of trials say of a ratio: each pair is one block, so that what drifts on the machine drops out.

use super::{Interval, bootstrap_interval, median, wilcoxon};

/// The ratio of two systems, from pairs.
#[derive(Clone, Debug, PartialEq)]
pub struct PairedRatio {
    /// ln(to : from) of each pair.
    pub logs: Vec<f64>,
    /// The median of the logarithms.
    pub middle: f64,
    /// Of the median, in logarithms.
    pub interval: Option<Interval>,
    /// Wilcoxon's, two-sided, not yet corrected for its family.
    pub p_value: Option<f64>,
}

/// ln(to : from) of pairs in which both are above zero.
pub fn log_ratios(pairs: &[(f64, f64)]) -> Vec<f64> {
    pairs
        .iter()
        .filter(|(from, to)| *from > 0.0 && *to > 0.0)
        .map(|(from, to)| (to / from).ln())
        .filter(|log| log.is_finite())
        .collect()
}

impl PairedRatio {
    /// None if there is no pair with two values above zero.
    pub fn of(pairs: &[(f64, f64)], seed: u64) -> Option<Self> {
        let logs = log_ratios(pairs);
        Some(Self {
            middle: median(&logs)?,
            interval: bootstrap_interval(&logs, median, seed),
            p_value: wilcoxon(&logs).map(|test| test.p_value),
            logs,
        })
    }

    /// The standard deviation of single pairs.
    pub fn deviation(&self) -> Option<f64> {
        if self.logs.len() < 2 {
            return None;
        }
        let n = super::number(self.logs.len());
        let mean = self.logs.iter().sum::<f64>() / n;
        let squares: f64 = self.logs.iter().map(|log| (log - mean).powi(2)).sum();
        Some((squares / (n - 1.0)).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drift_that_hits_both_sides_of_a_pair_drops_out() {
        let pairs: Vec<(f64, f64)> = (1..=8)
            .map(|block| (1000.0 * f64::from(block), 1100.0 * f64::from(block)))
            .collect();
        let ratio = PairedRatio::of(&pairs, 1).unwrap();
        assert!((ratio.middle.exp() - 1.1).abs() < 1e-12);
        assert!(ratio.deviation().unwrap() < 1e-12);
        assert_eq!(ratio.p_value, Some(2.0 / 256.0));
    }

    #[test]
    fn a_pair_with_a_zero_says_nothing_of_a_ratio() {
        assert_eq!(log_ratios(&[(0.0, 5.0), (5.0, 0.0), (2.0, 2.0)]), [0.0]);
        assert!(PairedRatio::of(&[(0.0, 1.0)], 1).is_none());
    }
}
