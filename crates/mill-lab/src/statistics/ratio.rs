//! The ratio of pairs of trials: each pair is one block, so that drift of the machine cancels out.

use super::{Interval, median, median_interval, number, paired_student, wilcoxon};

/// The ratio of two systems, from pairs.
#[derive(Clone, Debug, PartialEq)]
pub struct PairedRatio {
    /// ln(to : from) of each pair.
    pub logs: Vec<f64>,
    /// The median of the logarithms.
    pub middle: f64,
    /// Of the median, in logarithms.
    pub interval: Option<Interval>,
    /// (from, to) of the pair in the middle; of an even number the geometric means of the two. `to` : `from` is exactly `middle`,
    /// which medians of all the pairs' sides need not be: their quotient may even point the other way.
    pub in_the_middle: (f64, f64),
    /// Two-sided, not yet corrected for their family: Wilcoxon's of the ranks, and Student's of the logarithms.
    pub p_rank: Option<f64>,
    pub p_student: Option<f64>,
}

/// ln(to : from) of pairs in which both are above zero.
pub fn log_ratios(pairs: &[(f64, f64)]) -> Vec<f64> {
    with_ratio(pairs).map(|(_, log)| log).collect()
}

/// Pairs that have a ratio, and its logarithm.
fn with_ratio(pairs: &[(f64, f64)]) -> impl Iterator<Item = ((f64, f64), f64)> + '_ {
    pairs
        .iter()
        .filter(|(from, to)| *from > 0.0 && *to > 0.0)
        .map(|&(from, to)| ((from, to), (to / from).ln()))
        .filter(|(_, log)| log.is_finite())
}

/// The pair whose ratio is the median; of an even number the geometric means of the two in the middle.
fn in_the_middle(pairs: &[(f64, f64)]) -> Option<(f64, f64)> {
    let mut ordered: Vec<((f64, f64), f64)> = with_ratio(pairs).collect();
    ordered.sort_by(|a, b| a.1.total_cmp(&b.1));
    let last = ordered.len().checked_sub(1)?;
    let ((a_from, a_to), _) = ordered[last / 2];
    let ((b_from, b_to), _) = ordered[last.div_ceil(2)];
    // The root of each, because the product of two large figures may be none.
    Some((a_from.sqrt() * b_from.sqrt(), a_to.sqrt() * b_to.sqrt()))
}

impl PairedRatio {
    /// None if there is no pair with two values above zero.
    pub fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        let logs = log_ratios(pairs);
        Some(Self {
            middle: median(&logs)?,
            interval: median_interval(&logs),
            in_the_middle: in_the_middle(pairs)?,
            p_rank: wilcoxon(&logs).map(|test| test.p_value),
            p_student: paired_student(&logs),
            logs,
        })
    }

    /// The standard deviation of single pairs.
    pub fn deviation(&self) -> Option<f64> {
        if self.logs.len() < 2 {
            return None;
        }
        let n = number(self.logs.len());
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
        let ratio = PairedRatio::of(&pairs).unwrap();
        assert!((ratio.middle.exp() - 1.1).abs() < 1e-12);
        assert!(ratio.deviation().unwrap() < 1e-12);
        assert_eq!(ratio.p_rank, Some(2.0 / 256.0));
    }

    #[test]
    fn the_figures_of_the_middle_pair_have_the_medians_ratio() {
        // The medians of the sides fall from 10 to 5 where the pairs rise.
        let odd = [(1.0, 2.0), (10.0, 5.0), (100.0, 300.0)];
        let even = [(1.0, 2.0), (10.0, 5.0), (100.0, 300.0), (4.0, 3.0)];
        let check = |pairs: &[(f64, f64)], expected: (f64, f64)| {
            let ratio = PairedRatio::of(pairs).unwrap();
            let (from, to) = ratio.in_the_middle;
            assert!((from - expected.0).abs() < 1e-9 && (to - expected.1).abs() < 1e-9);
            assert!(((to / from).ln() - ratio.middle).abs() < 1e-12, "{ratio:?}");
        };
        check(&odd, (1.0, 2.0));
        check(&even, (2.0, 6.0_f64.sqrt()));
        check(&[(1e200, 2e200), (1e-200, 4e-200)], (1.0, 8.0_f64.sqrt()));
    }

    #[test]
    fn a_pair_with_a_zero_says_nothing_of_a_ratio() {
        assert_eq!(log_ratios(&[(0.0, 5.0), (5.0, 0.0), (2.0, 2.0)]), [0.0]);
        assert!(PairedRatio::of(&[(0.0, 1.0)]).is_none());
    }
}
