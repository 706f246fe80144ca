//! Gunther's universal scalability law: X(N) = λN / (1 + σ(N-1) + κN(N-1)).
//!
//! λ is what one worker does, σ the share that waits for its turn, κ what each pair costs in keeping agreed. The law is fitted with relative
//! errors (a point of 2 million must not drown one of 30 thousand). With a = 1/λ, b = σ/λ, c = κ/λ the inverse
//! N/X = a + b(N-1) + cN(N-1) is linear: its solution is the start of Gauss-Newton steps on the errors themselves. Bounds (σ, κ ≥ 0) hold by
//! fitting with each of b and c free or zero, and taking the best fit that keeps them.

use super::order::quantile_of_sorted;
use super::order::sorted;
use super::{Generator, median, number};

/// Rates measured with N workers.
#[derive(Clone, Debug, PartialEq)]
pub struct ScalingPoint {
    pub n: f64,
    /// One of each trial.
    pub rates: Vec<f64>,
    /// What was the limit, if it was known and not the server: "client-bound".
    pub other_limit: Option<String>,
}

/// A fitted law; intervals are 95 %, from resampled trials, where each point has three.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaling {
    pub lambda: f64,
    pub sigma: f64,
    pub kappa: f64,
    pub sigma_interval: Option<(f64, f64)>,
    pub kappa_interval: Option<(f64, f64)>,
    /// The number of workers with the highest rate, if the law has a peak at all.
    pub peak_n: Option<f64>,
}

/// Why there is no fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScalingError {
    #[error("a fit of the scalability law needs {POINTS_MIN} different numbers, there are {0}")]
    TooFew(usize),
    #[error(
        "no fit of the scalability law: at {n} the run was {limit}, so the curve is not the server's"
    )]
    NotTheServer { n: String, limit: String },
    #[error("no fit of the scalability law: these rates follow no such curve")]
    NoSolution,
}

impl Scaling {
    pub fn rate(&self, n: f64) -> f64 {
        self.lambda * n / (1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0))
    }
}

/// Fits the law, or returns why not.
pub fn fit_scaling(points: &[ScalingPoint], seed: u64) -> Result<Scaling, ScalingError> {
    let mut points: Vec<&ScalingPoint> = points
        .iter()
        .filter(|p| p.n >= 1.0 && p.rates.iter().any(|rate| *rate > 0.0))
        .collect();
    points.sort_by(|a, b| a.n.total_cmp(&b.n));
    points.dedup_by(|a, b| a.n == b.n);
    if points.len() < POINTS_MIN {
        return Err(ScalingError::TooFew(points.len()));
    }
    for point in &points[points.len() - TOP..] {
        if let Some(limit) = &point.other_limit {
            return Err(ScalingError::NotTheServer {
                n: point.n.to_string(),
                limit: limit.clone(),
            });
        }
    }
    let medians: Vec<(f64, f64)> = points
        .iter()
        .map(|p| (p.n, median(&p.rates).unwrap_or_default()))
        .collect();
    let inverse = best(&medians).ok_or(ScalingError::NoSolution)?;
    let intervals = intervals(&points, seed);
    let [a, b, c] = inverse;
    let (sigma, kappa) = (b / a, c / a);
    Ok(Scaling {
        lambda: 1.0 / a,
        sigma,
        kappa,
        sigma_interval: intervals.map(|(sigma, _)| sigma),
        kappa_interval: intervals.map(|(_, kappa)| kappa),
        // Without agreement to keep (κ below what any machine could show) more workers never harm.
        peak_n: (kappa > KAPPA_MIN).then(|| ((1.0 - sigma).max(0.0) / kappa).sqrt().max(1.0)),
    })
}

/// a, b, c of the inverse law.
type Inverse = [f64; 3];

/// The best fit over which of b and c are free.
fn best(points: &[(f64, f64)]) -> Option<Inverse> {
    let fits = [
        [true, true, true],
        [true, true, false],
        [true, false, true],
        [true, false, false],
    ];
    fits.into_iter()
        .filter_map(|free| fit(points, free))
        .min_by(|x, y| error(points, x).total_cmp(&error(points, y)))
}

fn terms(n: f64) -> Inverse {
    [1.0, n - 1.0, n * (n - 1.0)]
}

fn dot(x: &Inverse, y: &Inverse) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// The squared relative errors.
fn error(points: &[(f64, f64)], inverse: &Inverse) -> f64 {
    points
        .iter()
        .map(|(n, rate)| (n / dot(inverse, &terms(*n)) / rate - 1.0).powi(2))
        .sum()
}

fn fit(points: &[(f64, f64)], free: [bool; 3]) -> Option<Inverse> {
    // The inverse law, each row multiplied by X/N so that its error is relative: (X/N)·(a + …) = 1.
    let rows = points
        .iter()
        .map(|(n, rate)| (terms(*n).map(|term| term * rate / n), 1.0));
    let mut inverse = solve(rows, free)?;
    for _ in 0..STEPS_MAX {
        let rows = points.iter().map(|(n, rate)| {
            let denominator = dot(&inverse, &terms(*n));
            let value = n / denominator / rate;
            (
                terms(*n).map(|term| -value / denominator * term),
                1.0 - value,
            )
        });
        let step = solve(rows, free)?;
        let before = error(points, &inverse);
        let mut share = 1.0;
        let next = loop {
            let next: Inverse = std::array::from_fn(|i| inverse[i] + share * step[i]);
            let possible = points.iter().all(|(n, _)| dot(&next, &terms(*n)) > 0.0);
            if possible && error(points, &next) <= before {
                break next;
            }
            share /= 2.0;
            if share < 1e-9 {
                break inverse;
            }
        };
        let moved = (0..3).any(|i| (next[i] - inverse[i]).abs() > 1e-12 * inverse[0].abs());
        inverse = next;
        if !moved {
            break;
        }
    }
    let allowed = inverse[0] > 0.0 && inverse[1] >= 0.0 && inverse[2] >= 0.0;
    (allowed && error(points, &inverse).is_finite()).then_some(inverse)
}

/// Least squares of rows (coefficients, right side) by normal equations and elimination; columns that are not free stay 0.
fn solve(rows: impl Iterator<Item = (Inverse, f64)>, free: [bool; 3]) -> Option<Inverse> {
    let mut matrix = [[0.0; 4]; 3];
    for (row, right) in rows {
        for i in 0..3 {
            for j in 0..3 {
                matrix[i][j] += row[i] * row[j];
            }
            matrix[i][3] += row[i] * right;
        }
    }
    for i in (0..3).filter(|i| !free[*i]) {
        for row in &mut matrix {
            row[i] = 0.0;
        }
        matrix[i] = [0.0; 4];
        matrix[i][i] = 1.0;
    }
    // Columns differ by the square of N: scaled to a diagonal of ones first.
    let scale: [f64; 3] = std::array::from_fn(|i| matrix[i][i].sqrt());
    if scale.iter().any(|s| !s.is_finite() || *s <= 0.0) {
        return None;
    }
    for i in 0..3 {
        for j in 0..3 {
            matrix[i][j] /= scale[i] * scale[j];
        }
        matrix[i][3] /= scale[i];
    }
    let solution = eliminate(matrix)?;
    Some(std::array::from_fn(|i| solution[i] / scale[i]))
}

fn eliminate(mut matrix: [[f64; 4]; 3]) -> Option<Inverse> {
    for column in 0..3 {
        let pivot = (column..3).max_by(|x, y| {
            matrix[*x][column]
                .abs()
                .total_cmp(&matrix[*y][column].abs())
        })?;
        matrix.swap(column, pivot);
        if matrix[column][column].abs() < 1e-12 {
            return None;
        }
        for row in (0..3).filter(|row| *row != column) {
            let factor = matrix[row][column] / matrix[column][column];
            let above = matrix[column];
            for (value, above) in matrix[row].iter_mut().zip(above) {
                *value -= factor * above;
            }
        }
    }
    Some(std::array::from_fn(|i| matrix[i][3] / matrix[i][i]))
}

type Span = (f64, f64);

/// 95 % of σ and κ over fits of resampled trials.
fn intervals(points: &[&ScalingPoint], seed: u64) -> Option<(Span, Span)> {
    if points.iter().any(|p| p.rates.len() < TRIALS_MIN) {
        return None;
    }
    let mut generator = Generator::new(seed);
    let (mut sigmas, mut kappas) = (Vec::new(), Vec::new());
    for _ in 0..RESAMPLES {
        let resample: Vec<(f64, f64)> = points
            .iter()
            .map(|p| {
                let draw: Vec<f64> = (0..p.rates.len())
                    .map(|_| p.rates[generator.index_below(p.rates.len())])
                    .collect();
                (p.n, median(&draw).unwrap_or_default())
            })
            .collect();
        if let Some([a, b, c]) = best(&resample) {
            sigmas.push(b / a);
            kappas.push(c / a);
        }
    }
    // Fits that mostly fail have no distribution worth an interval.
    if number(sigmas.len()) < 0.9 * number(RESAMPLES) {
        return None;
    }
    let span = |values: &[f64]| {
        let values = sorted(values);
        Some((
            quantile_of_sorted(&values, 0.025)?,
            quantile_of_sorted(&values, 0.975)?,
        ))
    };
    Some((span(&sigmas)?, span(&kappas)?))
}

/// Numbers of workers needed for three parameters (Gunther's own advice).
const POINTS_MIN: usize = 6;

/// The highest points, which decide σ and κ: there the server has to be the limit.
const TOP: usize = 2;

/// The least trials of each point for resampling them.
const TRIALS_MIN: usize = 3;

/// Refits for an interval.
const RESAMPLES: usize = 1000;

/// Gauss-Newton steps; from the inverse's start three or four do.
const STEPS_MAX: usize = 50;

/// κ below which the peak would lie beyond 3000 workers.
const KAPPA_MIN: f64 = 1e-7;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::assert_contains;

    const WORKERS: [f64; 6] = [1.0, 2.0, 4.0, 8.0, 16.0, 28.0];

    fn points(rates: [f64; 6]) -> Vec<ScalingPoint> {
        WORKERS
            .into_iter()
            .zip(rates)
            .map(|(n, rate)| ScalingPoint {
                n,
                rates: vec![rate],
                other_limit: None,
            })
            .collect()
    }

    /// Seed 001, Table 2: TPS at 25G.
    const KERNEL: [f64; 6] = [
        35_890.7, 73_226.1, 128_555.0, 209_513.0, 278_366.0, 288_632.0,
    ];
    const ONLOAD: [f64; 6] = [
        126_007.0,
        198_366.0,
        404_713.0,
        755_081.0,
        1_454_320.0,
        2_334_780.0,
    ];

    #[test]
    fn the_kernels_curve_of_seed_001_peaks_at_22_workers() {
        // scipy.optimize.curve_fit(usl, N, X, sigma=X, bounds=([0,0,0],[inf,1,1])):
        // λ 36956.0025, σ 0.0431722, κ 0.00190216, N* 22.4281
        let found = fit_scaling(&points(KERNEL), 1).unwrap();
        assert!((found.lambda - 36_956.0).abs() < 5.0, "{found:?}");
        assert!((found.sigma - 0.043_172).abs() < 1e-4, "{found:?}");
        assert!((found.kappa - 0.001_902_2).abs() < 1e-5, "{found:?}");
        assert!((found.peak_n.unwrap() - 22.43).abs() < 0.05, "{found:?}");
        assert_eq!(found.sigma_interval, None);
    }

    #[test]
    fn a_curve_without_agreement_has_no_peak() {
        // The same fit of the user-space stack: λ 107243.4, σ 0.0118302, κ at its bound 0.
        let found = fit_scaling(&points(ONLOAD), 1).unwrap();
        assert!((found.lambda - 107_243.0).abs() < 20.0, "{found:?}");
        assert!((found.sigma - 0.011_830).abs() < 1e-4, "{found:?}");
        assert_eq!((found.kappa, found.peak_n), (0.0, None));
    }

    #[test]
    fn an_exact_curve_is_found_again() {
        let law = Scaling {
            lambda: 1000.0,
            sigma: 0.1,
            kappa: 0.01,
            sigma_interval: None,
            kappa_interval: None,
            peak_n: None,
        };
        let found = fit_scaling(&points(WORKERS.map(|n| law.rate(n))), 1).unwrap();
        assert!(
            (found.sigma - 0.1).abs() < 1e-9 && (found.kappa - 0.01).abs() < 1e-9,
            "{found:?}"
        );
    }

    #[test]
    fn five_points_are_too_few_and_the_error_has_the_number_needed() {
        let error = fit_scaling(&points(KERNEL)[..5], 1).unwrap_err();
        assert_eq!(error, ScalingError::TooFew(5));
        assert!(
            error
                .to_string()
                .contains("needs 6 different numbers, there are 5")
        );
    }

    #[test]
    fn a_link_bound_plateau_is_not_a_curve_of_the_server() {
        // Seed 001, Table 6: 100 KB at 25G, the link's rate from two workers on.
        let mut table = points([27_083.3, 29_723.5, 29_584.0, 29_577.6, 29_574.2, 29_571.4]);
        for point in &mut table[1..] {
            point.other_limit = Some(String::from("link-bound"));
        }
        let error = fit_scaling(&table, 1).unwrap_err();
        assert_contains(&error.to_string(), "at 16 the run was link-bound");
    }

    #[test]
    fn trials_that_differ_give_an_interval_around_the_fit() {
        let spread: Vec<ScalingPoint> = points(KERNEL)
            .into_iter()
            .map(|mut point| {
                let rate = point.rates[0];
                point.rates = [0.98, 0.99, 1.0, 1.01, 1.02]
                    .map(|share| share * rate)
                    .to_vec();
                point
            })
            .collect();
        let found = fit_scaling(&spread, 1).unwrap();
        let (low, high) = found.kappa_interval.unwrap();
        assert!(low < found.kappa && found.kappa < high, "{found:?}");
        assert!(high - low < found.kappa, "{found:?}");
    }
}
