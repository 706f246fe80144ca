//! Where the steady part of a series begins, and whether it still has a trend.

use super::{normal_cdf, number};

/// The number of values to cut from the front so that the rest is steady: MSER-5 (White 1997; Spratt 1998). The series is averaged in
/// fives, and the cut is where the remaining fives' squared error of the mean is least, looked for in the first half (the least of a few
/// last fives is chance). None if it is the half itself: the series never became steady; or if there are fewer than four fives.
pub fn mser5(values: &[f64]) -> Option<usize> {
    let means: Vec<f64> = values
        .chunks_exact(BATCH)
        .map(|batch| batch.iter().sum::<f64>() / number(BATCH))
        .collect();
    if means.len() < BATCHES_MIN || means.iter().any(|mean| !mean.is_finite()) {
        return None;
    }
    let mut best = (f64::INFINITY, 0);
    let half = means.len() / 2;
    for cut in 0..=half {
        let rest = &means[cut..];
        let n = number(rest.len());
        let mean = rest.iter().sum::<f64>() / n;
        let error = rest.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / (n * n);
        if error < best.0 {
            best = (error, cut);
        }
    }
    (best.1 < half).then_some(best.1 * BATCH)
}

/// Mann-Kendall's test for a trend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// Rises minus falls, over all pairs of values.
    pub s: i64,
    /// Two-sided; a small one means that the series rises or falls.
    pub p_value: f64,
}

/// None of fewer than four values.
pub fn mann_kendall(values: &[f64]) -> Option<Trend> {
    if values.len() < 4 || values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let mut s = 0_i64;
    for (index, earlier) in values.iter().enumerate() {
        for later in &values[index + 1..] {
            s += i64::from(later > earlier) - i64::from(later < earlier);
        }
    }
    let n = number(values.len());
    // Each of t equal values adds (t - 1)(2t + 5).
    let ties: f64 = values
        .iter()
        .map(|value| {
            let equal = number(values.iter().filter(|other| *other == value).count());
            (equal - 1.0) * (2.0 * equal + 5.0)
        })
        .sum();
    let variance = (n * (n - 1.0) * (2.0 * n + 5.0) - ties) / 18.0;
    let distance = number(usize::try_from(s.unsigned_abs()).ok()?.saturating_sub(1));
    let p_value = if variance > 0.0 {
        (2.0 * normal_cdf(-distance / variance.sqrt())).min(1.0)
    } else {
        1.0
    };
    Some(Trend { s, p_value })
}

/// Values in a batch: the 5 of MSER-5.
const BATCH: usize = 5;

/// Batches below which the least error is a matter of chance.
const BATCHES_MIN: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ramp_at_the_front_is_cut_and_nothing_else() {
        let wave = |i: u32| 100.0 + f64::from(i * 7 % 5);
        let steady: Vec<f64> = (0..60).map(wave).collect();
        assert_eq!(mser5(&steady), Some(0));
        let ramp: Vec<f64> = (0..10)
            .map(|i| f64::from(i) * 9.0)
            .chain((0..60).map(wave))
            .collect();
        assert_eq!(mser5(&ramp), Some(10));
    }

    #[test]
    fn a_series_that_only_rises_is_never_steady() {
        let rising: Vec<f64> = (0..60).map(f64::from).collect();
        assert_eq!(mser5(&rising), None);
        assert_eq!(mser5(&[1.0; 19]), None);
    }

    #[test]
    fn the_ramps_of_a_published_rate_monitor_are_cut() {
        // Seed 003, R2 in outline: lines a second of DOWN Mb/s at 50k users, the ramp first.
        let mut lines = vec![12.0, 310.0, 1480.0, 2900.0, 3600.0];
        lines.extend((0..30_u32).map(|i| 4200.0 + f64::from(i * 37 % 11 % 7) * 40.0));
        assert_eq!(mser5(&lines), Some(5));
    }

    #[test]
    fn trends_are_those_of_mann_kendall() {
        // S, variance and the normal tail computed with numpy: S = 41, p = 0.000310141; S = 2, p = 0.927062.
        let rises = [1.0, 2.0, 2.0, 3.0, 5.0, 4.0, 6.0, 7.0, 7.0, 9.0];
        let found = mann_kendall(&rises).unwrap();
        assert_eq!(found.s, 41);
        assert!(
            (found.p_value - 0.000_310_141_489).abs() < 1e-9,
            "{found:?}"
        );
        let flat = [5.0, 3.0, 6.0, 2.0, 7.0, 4.0, 5.0, 6.0, 3.0, 5.0];
        let found = mann_kendall(&flat).unwrap();
        assert_eq!(found.s, 2);
        assert!(
            (found.p_value - 0.927_062_149_951).abs() < 1e-9,
            "{found:?}"
        );
        assert_eq!(mann_kendall(&[1.0, 2.0, 3.0]), None);
    }
}
