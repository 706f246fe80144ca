//! Whether a run's rate was steady.
//!
//! Two figures. The spread is the coefficient of variation of the intervals' counts, by which Georges, Buytaert and
//! Eeckhout ("Statistically rigorous Java performance evaluation", OOPSLA 2007) recognise a steady state; counts of
//! independent events vary by the root of their mean anyway (Poisson), which is subtracted, so that a low rate does not
//! count as unsteady. The drift is the distance between the ends of the least-squares line over the whole run, as in
//! the SNIA's solid state storage performance test specification, but as a share of the larger end: relative to the
//! mean, a server that stops early would have lost several times its rate. It counts only if Mann's trend test finds it
//! significant (Mann, "Nonparametric tests against trend", Econometrica 1945), because a few noisy intervals make a
//! line too.

/// The trend of the rate over a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// The fitted line's count of an interval at the beginning of the first one and at the end of the last one.
    /// Negative values become zero.
    pub from: f64,
    pub to: f64,
    /// Its probability without a trend is less than one in twenty.
    pub is_significant: bool,
}

impl Drift {
    /// The distance of the two ends, as a share of the larger one: 0 to 1.
    pub fn change(&self) -> f64 {
        let larger = self.from.max(self.to);
        if larger > 0.0 {
            (self.to - self.from).abs() / larger
        } else {
            0.0
        }
    }
}

/// The coefficient of variation of `counts` beyond that of independent events; `None` if there are too few.
pub fn spread(counts: &[u64]) -> Option<f64> {
    let (mean, count) = mean(counts)?;
    let squares: f64 = counts.iter().map(|&n| (n as f64 - mean).powi(2)).sum();
    let variance = squares / (count - 1.0);
    Some((variance - mean).max(0.0).sqrt() / mean)
}

/// The trend of `counts`; `None` if there are too few.
pub fn drift(counts: &[u64]) -> Option<Drift> {
    let (mean, count) = mean(counts)?;
    let middle = (count - 1.0) / 2.0;
    let places = counts
        .iter()
        .enumerate()
        .map(|(n, &value)| (n as f64 - middle, value as f64));
    let (products, squares) = places.fold((0.0, 0.0), |(products, squares), (place, value)| {
        (products + place * (value - mean), squares + place * place)
    });
    let half_rise = products / squares * count / 2.0;
    Some(Drift {
        from: (mean - half_rise).max(0.0),
        to: (mean + half_rise).max(0.0),
        is_significant: trend(counts).abs() > NORMAL_95,
    })
}

/// Mann's statistic as a standard normal value, with the correction for ties and for continuity. Its time is quadratic,
/// so long runs are merged into [`WINDOWS_MAX`] windows before.
fn trend(counts: &[u64]) -> f64 {
    let width = counts.len().div_ceil(WINDOWS_MAX).max(1);
    let windows: Vec<u64> = counts
        .chunks_exact(width)
        .map(|chunk| chunk.iter().sum())
        .collect();
    let mut score = 0.0_f64;
    for (index, earlier) in windows.iter().enumerate() {
        for later in windows.iter().skip(index + 1) {
            score += match later.cmp(earlier) {
                core::cmp::Ordering::Less => -1.0,
                core::cmp::Ordering::Equal => 0.0,
                core::cmp::Ordering::Greater => 1.0,
            };
        }
    }
    let variance_of = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0) / 18.0;
    let mut sorted = windows.clone();
    sorted.sort_unstable();
    let ties: f64 = sorted
        .chunk_by(|a, b| a == b)
        .map(|tied| variance_of(tied.len() as f64))
        .sum();
    let variance = variance_of(windows.len() as f64) - ties;
    if variance <= 0.0 || score == 0.0 {
        return 0.0;
    }
    (score - score.signum()) / variance.sqrt()
}

fn mean(counts: &[u64]) -> Option<(f64, f64)> {
    let sum: u64 = counts.iter().sum();
    if counts.len() < INTERVALS_MIN || sum == 0 {
        return None;
    }
    let count = counts.len() as f64;
    Some((sum as f64 / count, count))
}

/// The minimum of intervals: the SNIA specification's window has five rounds, and of fewer than five even a perfect
/// rise is not significant.
const INTERVALS_MIN: usize = 5;

/// Windows that the trend test compares pairwise, at most: 5000 pairs.
const WINDOWS_MAX: usize = 100;

/// Two-sided 95 % of the standard normal distribution.
const NORMAL_95: f64 = 1.96;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Random arrivals in each interval, `mean` on average.
    fn poisson(mean: f64, intervals: usize, random: &mut Random) -> Vec<u64> {
        (0..intervals)
            .map(|_| {
                let mut time = random.exponential();
                let mut count = 0;
                while time < mean {
                    count += 1;
                    time += random.exponential();
                }
                count
            })
            .collect()
    }

    #[test]
    fn few_intervals_or_no_answers_have_no_figures() {
        assert_eq!(spread(&[100, 100, 100, 100]), None);
        assert_eq!(drift(&[100, 100, 100, 100]), None);
        assert_eq!(spread(&[0; 10]), None);
        assert_eq!(drift(&[0; 10]), None);
    }

    #[test]
    fn chance_is_no_spread_at_any_rate() {
        let mut random = Random::new(5);
        for mean in [4.0, 20.0, 1000.0] {
            let counts = poisson(mean, 200, &mut random);
            let spread = spread(&counts).unwrap();
            assert!(spread < 0.2, "{mean}: {spread}");
        }
    }

    #[test]
    fn a_second_without_answers_is_spread() {
        let mut counts = [1000; 10];
        assert_eq!(spread(&counts), Some(0.0));
        counts[4] = 0;
        assert!(spread(&counts).unwrap() > 0.3);
    }

    #[test]
    fn a_slope_is_measured_and_a_level_has_none() {
        let slope: Vec<u64> = (0..20).map(|n| 1000 + 10 * n).collect();
        let drift_of = |counts: &[u64]| drift(counts).unwrap();
        let rise = drift_of(&slope);
        assert!((rise.to - rise.from - 200.0).abs() < 1e-9, "{rise:?}");
        assert!((rise.change() - 200.0 / 1195.0).abs() < 1e-9, "{rise:?}");
        assert!(rise.is_significant);
        let fall: Vec<u64> = slope.iter().rev().copied().collect();
        let fall = drift_of(&fall);
        assert!((fall.from - rise.to).abs() < 1e-9 && (fall.to - rise.from).abs() < 1e-9);
        assert!(!drift_of(&[1000; 20]).is_significant);
        assert!(drift_of(&[10, 11, 12, 13, 14]).is_significant);
        assert!(!drift_of(&[10, 11, 12, 14, 13]).is_significant);
    }

    #[test]
    fn a_trend_of_noise_is_found_about_one_time_in_twenty() {
        let mut random = Random::new(11);
        let found = (0..1000)
            .filter(|_| drift(&poisson(200.0, 10, &mut random)).is_some_and(|it| it.is_significant))
            .count();
        assert!((20..80).contains(&found), "{found}");
    }

    #[test]
    fn half_the_rate_in_the_second_half_is_a_trend_also_in_a_long_run() {
        let counts: Vec<u64> = (0..1050).map(|n| if n < 525 { 200 } else { 100 }).collect();
        let drift = drift(&counts).unwrap();
        assert!(drift.is_significant && drift.change() > 0.5, "{drift:?}");
        assert!(drift.to < drift.from, "{drift:?}");
    }

    #[test]
    fn a_drift_is_never_more_than_the_whole() {
        for alive in 1..30 {
            let counts: Vec<u64> = (0..30).map(|n| if n < alive { 1000 } else { 0 }).collect();
            let fall = drift(&counts).unwrap();
            assert!((0.0..=1.0).contains(&fall.change()), "{alive}: {fall:?}");
            assert!(fall.to >= 0.0, "{alive}: {fall:?}");
        }
    }
}
