//! How much a system differs from itself: the noise floor, and the smallest detectable difference.
//!
//! In each block the first system runs twice. The true ratio of those A/A pairs is known (1), so all their
//! differences are noise: σ² is the mean square of their ln ratios, n of them. The median of k such pairs is then, by
//! chance alone, within
//!
//! ```text
//! floor(k) = t(0.975, n) · σ · √(π/2 / k)
//! ```
//!
//! of 1 in 95 % of cases (√(π/2): the efficiency that a median loses against a mean). A comparison of k pairs whose
//! median is inside is "no difference". The difference that k pairs detect in four of five cases is wider: (1.960 +
//! 0.842) · σ · √(π/2 / k).

use super::{normal_quantile, number, student_quantile};

/// Noise of single pairs, in logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoiseFloor {
    /// σ: root of the mean square of ln(A : A).
    pub deviation: f64,
    /// The widest |ln(A : A)|.
    pub widest: f64,
    pub pairs: usize,
}

impl NoiseFloor {
    /// From ln ratios of a system to itself; none of fewer than two.
    pub fn of(logs: &[f64]) -> Option<Self> {
        if logs.len() < 2 {
            return None;
        }
        let square = logs.iter().map(|log| log * log).sum::<f64>() / number(logs.len());
        Some(Self {
            deviation: square.sqrt(),
            widest: logs.iter().map(|log| log.abs()).fold(0.0, f64::max),
            pairs: logs.len(),
        })
    }

    /// |ln ratio| that the median of `pairs` pairs of equals exceeds in one of twenty cases.
    pub fn floor(&self, pairs: usize) -> f64 {
        student_quantile(0.975, self.pairs) * self.deviation * median_error(pairs)
    }

    /// |ln ratio| that `pairs` pairs find in four of five cases.
    pub fn detectable(&self, pairs: usize) -> f64 {
        detectable(self.deviation, pairs)
    }
}

/// The same of any deviation of single pairs.
pub(crate) fn detectable(deviation: f64, pairs: usize) -> f64 {
    (normal_quantile(0.975) + normal_quantile(0.8)) * deviation * median_error(pairs)
}

/// The standard error of a median of `pairs` normal values, in deviations.
pub(crate) fn median_error(pairs: usize) -> f64 {
    (std::f64::consts::FRAC_PI_2 / number(pairs.max(1))).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_falls_with_the_root_of_the_pairs() {
        let noise = NoiseFloor::of(&[0.02, -0.02, 0.02, -0.02]).unwrap();
        assert!((noise.deviation - 0.02).abs() < 1e-12);
        // t(0.975, 4) · 0.02 · √(1.5708 / 4)
        assert!((noise.floor(4) - 2.776_445 * 0.02 * 0.626_657).abs() < 1e-6);
        assert!((noise.floor(16) * 2.0 - noise.floor(4)).abs() < 1e-12);
        assert!((noise.detectable(4) - 2.801_585 * 0.02 * 0.626_657).abs() < 1e-6);
    }

    #[test]
    fn one_pair_is_no_floor() {
        assert_eq!(NoiseFloor::of(&[0.01]), None);
    }

    #[test]
    fn equals_stay_below_the_floor_in_nineteen_of_twenty_cases() {
        // Pairs drawn from a normal distribution: the promise of the formula, tried out.
        let mut generator = super::super::Generator::new(5);
        let mut draw = || {
            let share = (number(generator.index_below(1_000_000)) + 0.5) / 1e6;
            normal_quantile(share) * 0.03
        };
        let mut above = 0;
        for _ in 0..2000 {
            let known: Vec<f64> = (0..6).map(|_| draw()).collect();
            let tried: Vec<f64> = (0..6).map(|_| draw()).collect();
            let floor = NoiseFloor::of(&known).unwrap().floor(6);
            above += u32::from(super::super::median(&tried).unwrap().abs() > floor);
        }
        assert!((50..150).contains(&above), "{above} of 2000");
    }
}
