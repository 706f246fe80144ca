//! How two servers compare: the geometric mean of the ratios of neighbouring blocks, with the
//! interval in which it lies with 95 % confidence.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ratio {
    pub(super) mean: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) pairs: usize,
}

/// What a ratio says about a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Met,
    Missed,
    /// The limit lies inside the interval.
    Open,
}

impl Ratio {
    /// From pairs of positive values (of, to). By Student's t on the logarithms, so that a ratio and
    /// its inverse are treated alike. One pair has no interval.
    pub(super) fn of_pairs(pairs: &[(f64, f64)]) -> Option<Self> {
        if pairs.is_empty() || pairs.iter().any(|(a, b)| *a <= 0.0 || *b <= 0.0) {
            return None;
        }
        let logarithms: Vec<f64> = pairs.iter().map(|(of, to)| (of / to).ln()).collect();
        let count = logarithms.len() as f64;
        let mean = logarithms.iter().sum::<f64>() / count;
        let squares: f64 = logarithms.iter().map(|value| (value - mean).powi(2)).sum();
        let half_width = match T_QUANTILES.get(pairs.len().saturating_sub(2)) {
            _ if pairs.len() == 1 => f64::INFINITY,
            Some(t) => t * (squares / (count - 1.0) / count).sqrt(),
            None => T_QUANTILE_OF_MANY * (squares / (count - 1.0) / count).sqrt(),
        };
        Some(Self {
            mean: mean.exp(),
            low: (mean - half_width).exp(),
            high: (mean + half_width).exp(),
            pairs: pairs.len(),
        })
    }

    pub(super) fn at_least(self, limit: f64) -> Verdict {
        if self.low >= limit {
            Verdict::Met
        } else if self.high < limit {
            Verdict::Missed
        } else {
            Verdict::Open
        }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            mean, low, high, ..
        } = self;
        write!(formatter, "{mean:.3} [{low:.3}, {high:.3}]")
    }
}

impl Verdict {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "missed",
            Self::Open => "open",
        }
    }
}

/// Student's t, 97.5 %, for 1, 2, … degrees of freedom.
const T_QUANTILES: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// For more than 30 degrees of freedom: that of 30, a little wide.
const T_QUANTILE_OF_MANY: f64 = 2.042;

#[cfg(test)]
mod tests {
    use super::{Ratio, Verdict};

    fn check(pairs: &[(f64, f64)], expected: Option<(f64, f64, f64)>) {
        let ratio = Ratio::of_pairs(pairs);
        assert_eq!(ratio.is_some(), expected.is_some());
        if let (Some(ratio), Some((mean, low, high))) = (ratio, expected) {
            for (value, expected) in [(ratio.mean, mean), (ratio.low, low), (ratio.high, high)] {
                assert!((value - expected).abs() < 1e-3, "{pairs:?}: {ratio:?}");
            }
        }
    }

    #[test]
    fn the_mean_is_geometric_and_the_interval_is_students() {
        check(
            &[(2.0, 1.0), (1.0, 2.0), (1.0, 1.0)],
            Some((1.0, 0.1787, 5.5966)),
        );
        check(&[(3.0, 2.0), (3.0, 2.0)], Some((1.5, 1.5, 1.5)));
    }

    #[test]
    fn one_pair_tells_nothing_about_its_accuracy() {
        let ratio = Ratio::of_pairs(&[(2.0, 1.0)]).unwrap();
        assert_eq!((ratio.low, ratio.high), (0.0, f64::INFINITY));
        check(&[], None);
        check(&[(0.0, 1.0)], None);
    }

    #[test]
    fn the_interval_stands_in_brackets() {
        let ratio = Ratio::of_pairs(&[(2.0, 1.0)]).unwrap();
        assert_eq!(ratio.to_string(), "2.000 [0.000, inf]");
    }

    #[test]
    fn a_limit_is_met_missed_or_open() {
        let ratio = Ratio {
            mean: 0.9,
            low: 0.8,
            high: 1.0,
            pairs: 6,
        };
        for (limit, at_least) in [
            (0.7, Verdict::Met),
            (0.9, Verdict::Open),
            (1.0, Verdict::Open),
            (1.1, Verdict::Missed),
        ] {
            assert_eq!(ratio.at_least(limit), at_least, "{limit}");
        }
    }
}
