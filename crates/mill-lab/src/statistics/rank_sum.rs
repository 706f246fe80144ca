//! Mann-Whitney's test of two samples that are not paired, and the Hodges-Lehmann shift between them.

use super::signed_rank::{doubled_ranks, tie_sum};
use super::{median, normal_cdf, number};

/// The result of the test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankSum {
    /// Two-sided.
    pub p_value: f64,
    /// U of the first sample.
    pub u: f64,
    /// The median of all differences, first minus second.
    pub shift: f64,
    pub exact: bool,
}

/// Tests whether two samples come from one distribution. None if one is empty.
pub fn mann_whitney(a: &[f64], b: &[f64]) -> Option<RankSum> {
    let all: Vec<f64> = a.iter().chain(b).copied().collect();
    if a.is_empty() || b.is_empty() || all.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let doubled = doubled_ranks(&all);
    let sum: usize = doubled[..a.len()].iter().sum();
    let exact = all.len() <= EXACT_MAX;
    let p_value = if exact {
        counted_out(&doubled, a.len(), sum)
    } else {
        approximated(&all, a.len(), number(sum) / 2.0)
    };
    let differences: Vec<f64> = a
        .iter()
        .flat_map(|x| b.iter().map(move |y| x - y))
        .collect();
    let (na, sum) = (number(a.len()), number(sum) / 2.0);
    Some(RankSum {
        p_value,
        u: sum - na * (na + 1.0) / 2.0,
        shift: median(&differences)?,
        exact,
    })
}

/// The share of all choices of `chosen` ranks whose sum is as far from the middle.
fn counted_out(doubled: &[usize], chosen: usize, sum: usize) -> f64 {
    let total: usize = doubled.iter().sum();
    // ways[k][s]: how many sets of k ranks have the sum s.
    let mut ways = vec![vec![0.0_f64; total + 1]; chosen + 1];
    ways[0][0] = 1.0;
    for &rank in doubled {
        for k in (1..=chosen).rev() {
            for s in (rank..=total).rev() {
                ways[k][s] += ways[k - 1][s - rank];
            }
        }
    }
    // The mean of the doubled sum is chosen · total / n; compared multiplied by n, to stay with whole numbers.
    let n = doubled.len();
    let distance = (n * sum).abs_diff(chosen * total);
    let far: f64 = ways[chosen]
        .iter()
        .enumerate()
        .filter(|(s, _)| (n * s).abs_diff(chosen * total) >= distance)
        .map(|(_, ways)| ways)
        .sum();
    far / ways[chosen].iter().sum::<f64>()
}

fn approximated(all: &[f64], chosen: usize, sum: f64) -> f64 {
    let (n, na) = (number(all.len()), number(chosen));
    let nb = n - na;
    let mean = na * (n + 1.0) / 2.0;
    let variance = na * nb / 12.0 * (n + 1.0 - tie_sum(all) / (n * (n - 1.0)));
    let distance = ((sum - mean).abs() - 0.5).max(0.0);
    if variance <= 0.0 {
        1.0
    } else {
        (2.0 * normal_cdf(-distance / variance.sqrt())).min(1.0)
    }
}

/// Values on both sides together up to which all choices are counted out.
const EXACT_MAX: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_samples_are_tested_exactly_as_scipy_does() {
        // scipy.stats.mannwhitneyu([19,22,16,29,24], [20,11,17,12], method='exact')
        let found =
            mann_whitney(&[19.0, 22.0, 16.0, 29.0, 24.0], &[20.0, 11.0, 17.0, 12.0]).unwrap();
        assert!((found.u - 17.0).abs() < 1e-12);
        assert!((found.p_value - 1.0 / 9.0).abs() < 1e-12, "{found:?}");
        assert!(found.exact);
    }

    #[test]
    fn equal_values_share_ranks() {
        // All 6435 choices counted out with itertools over scipy.stats.rankdata's ranks: 422 lie as far; numpy's median of differences.
        let a = [1.0, 2.0, 2.0, 3.0, 5.0, 7.0, 8.0];
        let b = [2.0, 4.0, 6.0, 6.0, 9.0, 10.0, 11.0, 12.0];
        let found = mann_whitney(&a, &b).unwrap();
        assert!((found.p_value - 422.0 / 6435.0).abs() < 1e-12, "{found:?}");
        assert!((found.shift + 4.0).abs() < 1e-12);
        // scipy.stats.mannwhitneyu(a, b, method='asymptotic')
        let all: Vec<f64> = a.iter().chain(&b).copied().collect();
        let sum = 12.0 + 7.0 * 8.0 / 2.0;
        let normal = approximated(&all, a.len(), sum);
        assert!((normal - 0.071_570_834_126_489).abs() < 1e-12, "{normal}");
    }

    #[test]
    fn an_empty_sample_has_no_test() {
        assert_eq!(mann_whitney(&[], &[1.0]), None);
    }
}
