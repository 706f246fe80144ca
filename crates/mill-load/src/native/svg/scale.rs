//! From percentiles and latencies to places in the picture.

use super::{BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH};
use crate::native::units;
use core::time::Duration;
use mill_metrics::Histogram;

/// The horizontal scale: log 1/(1-p) up to the last request.
#[derive(Debug)]
pub(super) struct Across {
    /// Nines at the right end.
    nines: f64,
}

/// The vertical scale, in seconds.
#[derive(Debug)]
pub(super) struct Up {
    low: f64,
    high: f64,
    logarithmic: bool,
}

impl Across {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a logarithm of three digits is shown"
    )]
    pub(super) fn new(count: u64) -> Self {
        Self {
            nines: (count as f64).log10().max(1.0),
        }
    }

    /// The place of a quantile; the last request, at 1, is at the right end.
    pub(super) fn place(&self, quantile: f64) -> f64 {
        let nines = if quantile < 1.0 {
            -(1.0 - quantile).log10()
        } else {
            self.nines
        };
        LEFT + (WIDTH - RIGHT - LEFT) * (nines / self.nines).clamp(0.0, 1.0)
    }

    /// 0, 50, 90, 99, … percent, as far as there are requests.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let mut ticks = vec![(0.0, String::from("0 %")), (0.5, String::from("50 %"))];
        let names = ["90 %", "99 %", "99.9 %", "99.99 %", "99.999 %", "99.9999 %"];
        let mut rest = 1.0;
        for (nines, name) in (1_u32..).zip(names) {
            rest /= 10.0;
            if f64::from(nines) <= self.nines + 1e-9 {
                ticks.push((1.0 - rest, String::from(name)));
            }
        }
        ticks
    }
}

impl Up {
    /// Linear from zero, as long as the median can be told from zero: else logarithmic.
    pub(super) fn new(histograms: &[&Histogram]) -> Self {
        let seconds = |duration: Duration| duration.as_secs_f64();
        let medians = histograms.iter().map(|one| seconds(one.percentile(50.0)));
        let longest = histograms
            .iter()
            .map(|one| seconds(one.max()))
            .fold(0.0, f64::max);
        let median = medians.fold(f64::INFINITY, f64::min).max(1e-9);
        let shortest = histograms.iter().map(|one| seconds(one.min()));
        let shortest = shortest.fold(f64::INFINITY, f64::min).max(1e-9);
        // The maximum of a histogram is up to a thousandth above what was measured; a second stays a second.
        let longest = (longest / 1.001).max(2e-9);
        if longest / median < LINEAR_MAX {
            let step = step(longest);
            return Self {
                low: 0.0,
                high: (longest / step).ceil() * step,
                logarithmic: false,
            };
        }
        let decade = |exponent: f64| 10_f64.powf(exponent);
        let low = decade(shortest.log10().floor());
        Self {
            low,
            high: decade(longest.log10().ceil()).max(low * 10.0),
            logarithmic: true,
        }
    }

    pub(super) const fn is_logarithmic(&self) -> bool {
        self.logarithmic
    }

    pub(super) fn place(&self, seconds: f64) -> f64 {
        let share = if self.logarithmic {
            (seconds.max(self.low) / self.low).log10() / (self.high / self.low).log10()
        } else {
            seconds / self.high
        };
        HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * share.clamp(0.0, 1.0)
    }

    /// Round values and what is written beside them.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let mut ticks = Vec::new();
        let step = step(self.high);
        let mut at = self.low;
        while at <= self.high * 1.000_001 && ticks.len() < TICKS_MAX {
            let duration = Duration::try_from_secs_f64(at).unwrap_or_default();
            ticks.push((at, units::tick(duration)));
            at = if self.logarithmic {
                at * 10.0
            } else {
                at + step
            };
        }
        ticks
    }
}

/// 1, 2 or 5 times a power of ten, so that four to ten of them make `high`.
fn step(high: f64) -> f64 {
    let decade = 10_f64.powf((high / 4.0).log10().floor());
    let steps = [5.0, 2.0, 1.0].map(|factor| factor * decade);
    let fitting = steps.into_iter().find(|step| high / step >= 3.999);
    fitting.unwrap_or(decade)
}

/// A median below a fiftieth of the height is not told from the axis.
const LINEAR_MAX: f64 = 50.0;

/// No scale has as many; a bound in case rounding makes a step vanish.
const TICKS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn of(micros: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        for micros in micros {
            histogram.record(Duration::from_micros(*micros));
        }
        histogram
    }

    #[track_caller]
    fn check_labels(ticks: &[(f64, String)], expected: &[&str]) {
        let labels: Vec<&str> = ticks.iter().map(|(_, label)| label.as_str()).collect();
        assert_eq!(labels, expected);
    }

    #[test]
    fn each_nine_has_the_same_width() {
        let across = Across::new(10_000);
        let place = |quantile| across.place(quantile);
        let width = place(0.9) - place(0.0);
        assert!((place(0.99) - place(0.9) - width).abs() < 0.01);
        assert!((place(0.999) - place(0.99) - width).abs() < 0.01);
        assert!((place(1.0) - (WIDTH - RIGHT)).abs() < 0.01);
        check_labels(
            &across.ticks(),
            &["0 %", "50 %", "90 %", "99 %", "99.9 %", "99.99 %"],
        );
        check_labels(&Across::new(1).ticks(), &["0 %", "50 %", "90 %"]);
    }

    #[test]
    fn a_narrow_distribution_stands_on_zero() {
        let up = Up::new(&[&of(&[900, 1000, 3900])]);
        assert!(!up.is_logarithmic());
        check_labels(&up.ticks(), &["0", "1 ms", "2 ms", "3 ms", "4 ms"]);
        assert!((up.place(0.0) - (HEIGHT - BOTTOM)).abs() < 0.01);
        assert!((up.place(0.004) - TOP).abs() < 0.01);
    }

    #[test]
    fn a_long_tail_makes_it_logarithmic() {
        let up = Up::new(&[&of(&[80, 100, 1_000_000])]);
        assert!(up.is_logarithmic());
        check_labels(
            &up.ticks(),
            &["10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s"],
        );
    }

    #[test]
    fn zeros_and_hours_have_a_scale() {
        for histogram in [
            of(&[0]),
            of(&[0, 0, 0, 3_600_000_000]),
            of(&[3_600_000_000]),
        ] {
            let up = Up::new(&[&histogram]);
            assert!((2..=TICKS_MAX).contains(&up.ticks().len()));
            assert!(up.place(histogram.max().as_secs_f64()).is_finite());
        }
    }
}
