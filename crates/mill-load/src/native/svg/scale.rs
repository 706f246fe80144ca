//! From percentiles, times and latencies to coordinates.

use super::area::Area;
use crate::native::units;
use core::time::Duration;
use mill_metrics::Histogram;

/// The horizontal scale of percentiles: log 1/(1-p) up to the last request, so that each nine has the same width.
#[derive(Debug)]
pub(super) struct Across {
    area: Area,
    /// Nines at the right end.
    nines: f64,
}

/// A vertical scale.
#[derive(Debug)]
pub(super) struct Up {
    area: Area,
    low: f64,
    high: f64,
    logarithmic: bool,
}

impl Across {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a logarithm of three digits is shown"
    )]
    pub(super) fn new(area: Area, count: u64) -> Self {
        Self {
            area,
            nines: (count as f64).log10().max(1.0),
        }
    }

    /// The coordinate of a quantile; the last request, at 1, is at the right end.
    pub(super) fn place(&self, quantile: f64) -> f64 {
        let nines = if quantile < 1.0 {
            -(1.0 - quantile).log10()
        } else {
            self.nines
        };
        self.area.left + self.area.width() * (nines / self.nines).clamp(0.0, 1.0)
    }

    /// The quantile at a coordinate.
    pub(super) fn quantile(&self, x: f64) -> f64 {
        let nines = (x - self.area.left) / self.area.width() * self.nines;
        1.0 - 10_f64.powf(-nines.clamp(0.0, self.nines))
    }

    /// 0, 50, 90, 99, … percent, as far as there are requests.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let mut ticks = vec![(0.0, String::from("0 %")), (0.5, String::from("50 %"))];
        let names = [
            "90 %",
            "99 %",
            "99.9 %",
            "99.99 %",
            "99.999 %",
            "99.9999 %",
            "99.99999 %",
        ];
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
    /// From zero to somewhat more than `highest`.
    pub(super) fn linear(area: Area, highest: f64) -> Self {
        let high = highest.max(NANOSECOND) / (1.0 - head_share(area));
        Self {
            area,
            low: 0.0,
            high,
            logarithmic: false,
        }
    }

    /// Latencies in seconds: from zero as long as the usual one is visible, else logarithmic.
    pub(super) fn latencies(area: Area, lowest: f64, usual: f64, highest: f64) -> Self {
        let lowest = lowest.max(NANOSECOND);
        let highest = highest.max(NANOSECOND);
        if highest / usual.max(NANOSECOND) < LINEAR_MAX {
            return Self::linear(area, highest);
        }
        let low = round_below(lowest * 0.9);
        Self {
            area,
            low,
            high: low * (highest / low).powf(1.0 / (1.0 - head_share(area))),
            logarithmic: true,
        }
    }

    /// The latencies of these curves.
    pub(super) fn of(area: Area, histograms: &[&Histogram]) -> Self {
        let seconds = |value: fn(&Histogram) -> Duration| {
            histograms
                .iter()
                .map(move |one| value(one).as_secs_f64())
                .fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), value| {
                    (low.min(value), high.max(value))
                })
        };
        let (lowest, _) = seconds(Histogram::min);
        let (usual, _) = seconds(|one| one.percentile(50.0));
        let (_, highest) = seconds(Histogram::max);
        Self::latencies(area, lowest, usual, highest)
    }

    pub(super) const fn is_logarithmic(&self) -> bool {
        self.logarithmic
    }

    pub(super) fn place(&self, value: f64) -> f64 {
        let share = if self.logarithmic {
            (value.max(self.low) / self.low).log10() / (self.high / self.low).log10()
        } else {
            value / self.high
        };
        self.area.bottom - self.area.height() * share.clamp(0.0, 1.0)
    }

    /// Round values, with room for their labels.
    pub(super) fn ticks(&self) -> Vec<f64> {
        let most = most_ticks(self.area);
        if !self.logarithmic {
            return multiples(step(self.high, most), self.high);
        }
        let decades = (self.high / self.low).log10();
        let round = |exponent: i32| {
            let decade = 10_f64.powi(exponent);
            [decade, 2.0 * decade, 5.0 * decade]
        };
        let seen = |value: &f64| (self.low * 0.999..=self.high * 1.001).contains(value);
        let rounds = DECADES.flat_map(round).filter(seen);
        if decades * 3.0 <= most {
            return rounds.collect();
        }
        let stride = usize::try_from(whole(decades / most)).unwrap_or(usize::MAX);
        let decades = DECADES.map(|exponent| 10_f64.powi(exponent)).filter(seen);
        decades.step_by(stride.max(1)).collect()
    }
}

/// The label of a latency.
pub(super) fn latency_label(seconds: f64) -> String {
    units::tick(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

/// 0, `step`, 2 `step`, … `high`.
pub(super) fn multiples(step: f64, high: f64) -> Vec<f64> {
    (0..TICKS_MAX)
        .map(|times| f64::from(times) * step)
        .take_while(|value| *value <= high * 1.000_001)
        .collect()
}

/// The smallest of 1, 2 or 5 times a power of ten that fits at most `most` times into `high`.
pub(super) fn step(high: f64, most: f64) -> f64 {
    round_above(high / most.max(1.0))
}

/// 1, 2 or 5 times a power of ten, not below `value`.
fn round_above(value: f64) -> f64 {
    let decade = 10_f64.powf(value.log10().floor());
    let rounds = [1.0, 2.0, 5.0].map(|factor| factor * decade);
    let found = rounds.into_iter().find(|round| *round >= value * 0.999_999);
    found.unwrap_or(10.0 * decade)
}

/// The same, not above.
fn round_below(value: f64) -> f64 {
    let decade = 10_f64.powf(value.log10().floor());
    let rounds = [5.0, 2.0].map(|factor| factor * decade);
    let found = rounds.into_iter().find(|round| *round <= value * 1.000_001);
    found.unwrap_or(decade)
}

fn whole(number: f64) -> u64 {
    Duration::try_from_secs_f64(number.ceil()).map_or(1, |whole| whole.as_secs())
}

/// How many ticks fit beside a plot.
fn most_ticks(area: Area) -> f64 {
    (area.height() / TICK_ROOM).floor().max(3.0)
}

/// The share of a plot above its highest value: a tall one has a label there.
fn head_share(area: Area) -> f64 {
    let room = if area.height() > TALL {
        LABEL_ROOM
    } else {
        6.0
    };
    room / area.height()
}

/// A usual latency below a fiftieth of the height is not visible above the axis.
const LINEAR_MAX: f64 = 50.0;

/// The resolution of histograms, in seconds.
const NANOSECOND: f64 = 1e-9;

/// Exponents of ten from a nanosecond to some hours, in seconds.
const DECADES: core::ops::Range<i32> = -9..6;

/// The minimum distance between two ticks.
const TICK_ROOM: f64 = 36.0;

/// Height of a label above its dot.
const LABEL_ROOM: f64 = 28.0;

/// Plots above this height have labels at their curves.
const TALL: f64 = 200.0;

/// An upper bound in case rounding makes a step vanish.
const TICKS_MAX: u32 = 64;

#[cfg(test)]
mod tests;
