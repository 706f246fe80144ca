//! Student's test of means, of pairs and of two samples (Welch 1947), for samples too small for a test of ranks.

use super::number;

/// The two-sided p of pairs' differences lying around zero; None of fewer than two. Differences without any scatter leave no doubt: 0, or
/// 1 if they are all zero.
pub fn paired_student(differences: &[f64]) -> Option<f64> {
    let (mean, variance) = moments(differences)?;
    let error = (variance / number(differences.len())).sqrt();
    Some(two_sided(mean, error, number(differences.len() - 1)))
}

/// The two-sided p of two samples having one mean, whatever their variances; None of fewer than two values on a side.
pub fn welch(a: &[f64], b: &[f64]) -> Option<f64> {
    let ((a_mean, a_variance), (b_mean, b_variance)) = (moments(a)?, moments(b)?);
    let (of_a, of_b) = (a_variance / number(a.len()), b_variance / number(b.len()));
    let both = of_a + of_b;
    // Welch and Satterthwaite's degrees of freedom.
    let spread = of_a.powi(2) / number(a.len() - 1) + of_b.powi(2) / number(b.len() - 1);
    let freedom = if spread > 0.0 {
        both.powi(2) / spread
    } else {
        1.0
    };
    Some(two_sided(b_mean - a_mean, both.sqrt(), freedom))
}

/// The share of Student's distribution with `freedom` degrees that is further out than ±`t`.
pub fn student_tails(t: f64, freedom: f64) -> f64 {
    if !t.is_finite() {
        return 0.0;
    }
    let share = freedom / (freedom + t * t);
    incomplete_beta(freedom / 2.0, 0.5, share).clamp(0.0, 1.0)
}

fn two_sided(mean: f64, error: f64, freedom: f64) -> f64 {
    match (mean == 0.0, error > 0.0) {
        (true, _) => 1.0,
        (false, true) => student_tails(mean / error, freedom),
        (false, false) => 0.0,
    }
}

/// Mean and variance of a sample.
fn moments(values: &[f64]) -> Option<(f64, f64)> {
    if values.len() < 2 || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let n = number(values.len());
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((mean, squares / (n - 1.0)))
}

/// I_x(a, b), by its continued fraction (Abramowitz and Stegun 26.5.8, evaluated as Lentz did), on the side where that converges.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return if x <= 0.0 { 0.0 } else { 1.0 };
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let front = a * x.ln() + b * (-x).ln_1p() - ln_beta(a, b);
    let keep = |value: f64| if value.abs() < TINY { TINY } else { value };
    let (mut c, mut d) = (1.0, 1.0 / keep(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for step in 1..=STEPS_MAX {
        let m = number(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for term in [even, odd] {
            d = 1.0 / keep(1.0 + term * d);
            c = keep(1.0 + term / c);
            change = c * d;
            fraction *= change;
        }
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    front.exp() * fraction / a
}

fn ln_beta(a: f64, b: f64) -> f64 {
    ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b)
}

/// ln Γ(x) for x > 0: Stirling's series, from where it has 14 digits downward by Γ(x + 1) = x Γ(x).
fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut shift) = (x, 0.0);
    while x < STIRLING_MIN {
        shift -= x.ln();
        x += 1.0;
    }
    let square = x * x;
    let series = (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / (1260.0 * square)) / square) / x;
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series + shift
}

/// Replaces zero in a denominator.
const TINY: f64 = 1e-300;

/// The fraction has its digits after some √max(a, b) steps.
const STEPS_MAX: usize = 300;

/// The series' next term is below 1e-14 from here on.
const STIRLING_MIN: f64 = 40.0;

#[cfg(test)]
mod tests {
    use super::super::{normal_cdf, student_quantile};
    use super::*;

    #[test]
    fn tails_are_those_of_the_closed_forms() {
        // One degree is Cauchy's distribution, two have a closed form, many are the normal one.
        for t in [0.1_f64, 1.0, 3.0, 25.0] {
            let cauchy = 1.0 - 2.0 / std::f64::consts::PI * t.atan();
            assert!((student_tails(t, 1.0) - cauchy).abs() < 1e-12, "{t}");
            let two = 1.0 - t / (2.0 + t * t).sqrt();
            assert!((student_tails(t, 2.0) - two).abs() < 1e-12, "{t}");
            let normal = 2.0 * normal_cdf(-t);
            assert!((student_tails(t, 1e7) - normal).abs() < 1e-6, "{t}");
        }
    }

    #[test]
    fn tails_and_quantiles_undo_each_other() {
        for freedom in [1_usize, 2, 4, 11, 30] {
            let t = student_quantile(0.975, freedom);
            let tails = student_tails(t, number(freedom));
            assert!((tails - 0.05).abs() < 1e-5, "{freedom}: {tails}");
        }
    }

    #[test]
    fn three_pairs_can_decide_where_a_test_of_ranks_can_not() {
        // Student's t is 11/√(1/3): t² = 363, and of two degrees 1 - √(363/365).
        let p = paired_student(&[10.0, 11.0, 12.0]).unwrap();
        assert!(
            (p - (1.0 - (363.0_f64 / 365.0).sqrt())).abs() < 1e-12,
            "{p}"
        );
        assert_eq!(paired_student(&[0.5; 4]), Some(0.0));
        assert_eq!(paired_student(&[0.0; 4]), Some(1.0));
        assert_eq!(paired_student(&[0.5]), None);
    }

    #[test]
    fn samples_of_equal_size_and_scatter_have_the_pooled_tests_freedom() {
        // Means 2 and 5, variances 1, three each: t = 3/√(2/3), four degrees.
        let p = welch(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]).unwrap();
        let expected = student_tails(3.0 / (2.0_f64 / 3.0).sqrt(), 4.0);
        assert!((p - expected).abs() < 1e-12, "{p} {expected}");
        assert_eq!(welch(&[1.0], &[1.0, 2.0]), None);
    }
}
