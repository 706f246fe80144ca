//! Wilcoxon's signed-rank test of paired differences, and the Hodges-Lehmann estimate that belongs to it.

use super::{median, normal_cdf, number};

/// The result of the test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignedRank {
    /// Two-sided.
    pub p_value: f64,
    /// Summed ranks of differences above zero.
    pub positive: f64,
    /// Differences that are not zero: those the test uses.
    pub count: usize,
    /// The median of all pairwise means (Hodges and Lehmann 1963), zeros among them.
    pub shift: f64,
    /// Counted out over all signs, else by the normal approximation with correction for ties and continuity.
    pub exact: bool,
}

/// Tests whether differences lie around zero. Zeros are left out as Wilcoxon did; equal sizes share their rank, and the exact
/// distribution is that of the shared ranks. None if no difference is left.
pub fn wilcoxon(differences: &[f64]) -> Option<SignedRank> {
    let kept: Vec<f64> = differences
        .iter()
        .copied()
        .filter(|d| d.is_finite() && *d != 0.0)
        .collect();
    if kept.is_empty() {
        return None;
    }
    let sizes: Vec<f64> = kept.iter().map(|d| d.abs()).collect();
    let doubled = doubled_ranks(&sizes);
    let positive: usize = kept
        .iter()
        .zip(&doubled)
        .filter(|(d, _)| **d > 0.0)
        .map(|(_, r)| r)
        .sum();
    let exact = kept.len() <= EXACT_MAX;
    let p_value = if exact {
        counted_out(&doubled, positive)
    } else {
        approximated(&sizes, number(positive) / 2.0)
    };
    Some(SignedRank {
        p_value,
        positive: number(positive) / 2.0,
        count: kept.len(),
        shift: hodges_lehmann(differences)?,
        exact,
    })
}

/// Twice the rank of each value among all, from 1: shared ranks are halves, so that twice is whole.
pub(super) fn doubled_ranks(values: &[f64]) -> Vec<usize> {
    values
        .iter()
        .map(|value| {
            let below = values.iter().filter(|other| *other < value).count();
            let equal = values.iter().filter(|other| *other == value).count();
            2 * below + equal + 1
        })
        .collect()
}

/// Σ (t³ - t) over groups of equal values.
pub(super) fn tie_sum(values: &[f64]) -> f64 {
    // Each of t equal values adds t² - 1.
    values
        .iter()
        .map(|value| number(values.iter().filter(|other| *other == value).count()).powi(2) - 1.0)
        .sum()
}

/// The share of all 2^n signs whose rank sum is as far from the middle.
fn counted_out(doubled: &[usize], positive: usize) -> f64 {
    let total: usize = doubled.iter().sum();
    let mut ways = vec![0.0_f64; total + 1];
    ways[0] = 1.0;
    for &rank in doubled {
        for sum in (rank..=total).rev() {
            ways[sum] += ways[sum - rank];
        }
    }
    // Twice the distance from the middle, to stay with whole numbers.
    let distance = (2 * positive).abs_diff(total);
    let far: f64 = ways
        .iter()
        .enumerate()
        .filter(|(sum, _)| (2 * sum).abs_diff(total) >= distance)
        .map(|(_, ways)| ways)
        .sum();
    far / ways.iter().sum::<f64>()
}

fn approximated(sizes: &[f64], positive: f64) -> f64 {
    let n = number(sizes.len());
    let mean = n * (n + 1.0) / 4.0;
    let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - tie_sum(sizes) / 48.0;
    let distance = ((positive - mean).abs() - 0.5).max(0.0);
    if variance <= 0.0 {
        1.0
    } else {
        (2.0 * normal_cdf(-distance / variance.sqrt())).min(1.0)
    }
}

fn hodges_lehmann(values: &[f64]) -> Option<f64> {
    let mut means = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
    for (index, a) in values.iter().enumerate() {
        means.extend(values[index..].iter().map(|b| (a + b) / 2.0));
    }
    median(&means)
}

/// Differences up to which all signs are counted out; beyond, the normal approximation is within 0.001 of it.
const EXACT_MAX: usize = 25;

#[cfg(test)]
mod tests {
    use super::*;

    fn check(differences: &[f64], p_value: f64, positive: f64) {
        let found = wilcoxon(differences).unwrap();
        assert!((found.p_value - p_value).abs() < 1e-9, "{found:?}");
        assert!((found.positive - positive).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn p_values_of_few_pairs_are_exact_and_those_of_scipy() {
        // scipy.stats.wilcoxon(x, mode='exact')
        let ten = [0.8, 1.2, -0.3, 2.1, 1.7, 0.4, -0.6, 1.1, 0.9, 1.5];
        check(&ten, 0.013_671_875, 51.0);
        check(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.0625, 15.0);
        let shift = wilcoxon(&ten).unwrap().shift;
        assert!((shift - 0.95).abs() < 1e-12, "{shift}");
    }

    #[test]
    fn equal_sizes_share_ranks_and_zeros_are_left_out() {
        // All 2^9 signs counted out with itertools over scipy.stats.rankdata's ranks: W = 33.5, p = 0.21484375.
        check(
            &[1.0, 1.0, 2.0, -2.0, 3.0, 3.0, 3.0, -4.0, 5.0, 0.0],
            0.214_843_75,
            33.5,
        );
        assert_eq!(wilcoxon(&[0.0, 0.0]), None);
    }

    #[test]
    fn p_values_of_many_pairs_are_approximated_as_scipy_does() {
        let many = [
            0.65, 1.12, 0.63, -1.0, 1.21, 0.75, -0.24, 0.88, 0.66, 0.59, 0.33, 0.85, -0.44, 0.14,
            -0.18, 0.9, 0.34, 0.01, -0.48, 0.04, 0.31, 0.02, 1.59, 1.31, -2.41, -1.59, 0.13, -0.12,
            0.51, 0.52, 2.42, -0.81, -0.08, 2.34, 0.95, 0.96, -0.21, -1.35, 0.47, 0.41,
        ];
        // scipy.stats.wilcoxon(x, mode='approx', correction=True): statistic 234.5 is the smaller sum, 820 - 234.5 the other.
        let found = wilcoxon(&many).unwrap();
        assert!(!found.exact);
        assert!(
            (found.p_value - 0.018_660_048_536).abs() < 1e-9,
            "{found:?}"
        );
        assert!((found.positive - 585.5).abs() < 1e-9, "{found:?}");
    }
}
