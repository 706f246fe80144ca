//! From values to places along a line, and the labels beside it.

use super::ticks;
use crate::findings::Scale;
use crate::metric::Unit;
use crate::report::number::{HUGE, Prefix, grouped, significant};

/// A scale with an extent: maps each value to its place between the ends.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    pub(super) title: String,
    pub(super) ticks: Vec<Tick>,
    kind: Kind,
    /// Ends, as `Kind` transforms values.
    low: f64,
    high: f64,
}

/// A labelled place, from 0 to 1 along the axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) at: f64,
    pub(super) label: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Linear,
    Logarithmic,
    /// A share p at -log₁₀(1 - p); 1 itself would be infinitely far and lies at `cap`. Values are multiplied by `factor` first (percent).
    Complement {
        factor: f64,
        cap: f64,
    },
}

impl Kind {
    fn place(self, value: f64) -> Option<f64> {
        let place = match self {
            Self::Linear => value,
            Self::Logarithmic if value > 0.0 => value.log10(),
            Self::Logarithmic => return None,
            Self::Complement { factor, cap } => {
                let rest = 1.0 - value * factor;
                if rest > 1.0 + 1e-9 {
                    return None;
                }
                if rest > 0.0 {
                    (-rest.log10()).min(cap)
                } else {
                    cap
                }
            }
        };
        place.is_finite().then_some(place)
    }
}

impl Axis {
    /// Upwards: where it is linear it begins at zero, because a cut axis makes small differences large.
    pub(super) fn upward(scale: &Scale, values: &[f64]) -> Self {
        let mut values = values.to_vec();
        if !scale.logarithmic && !scale.complement {
            values.push(0.0);
        }
        Self::of(scale, &values, 5, false)
    }

    /// Like `upward`, with round ends around the values wherever they lie.
    pub(super) fn around(scale: &Scale, values: &[f64]) -> Self {
        Self::of(scale, values, 5, false)
    }

    /// Along: few values are ticks themselves (1, 2, 4, 8 workers), and zero is there if it is near.
    pub(super) fn along(scale: &Scale, values: &[f64]) -> Self {
        Self::of(scale, values, 8, true)
    }

    fn of(scale: &Scale, values: &[f64], wanted: usize, own_ticks: bool) -> Self {
        let kind = if scale.complement {
            complement_kind(scale, values)
        } else if scale.logarithmic {
            Kind::Logarithmic
        } else {
            Kind::Linear
        };
        let mut drawable: Vec<f64> = values
            .iter()
            .copied()
            .filter(|value| value.is_finite() && kind.place(*value).is_some())
            .collect();
        drawable.sort_by(f64::total_cmp);
        drawable.dedup();
        let (ticks, low, high) = match kind {
            Kind::Complement { cap, .. } => (complement_ticks(kind, &drawable), 0.0, cap),
            Kind::Linear | Kind::Logarithmic => {
                round_ticks(kind, &drawable, scale.unit, wanted, own_ticks)
            }
        };
        let span = high - low;
        Self {
            title: scale.title.clone(),
            ticks: ticks
                .into_iter()
                .map(|(label, place)| Tick {
                    at: (place - low) / span,
                    label,
                })
                .filter(|tick| (-1e-9..=1.0 + 1e-9).contains(&tick.at))
                .collect(),
            kind,
            low,
            high,
        }
    }

    /// The place of a value, 0 to 1 within the axis; none if the scale has no place for it (zero on a logarithmic
    /// one).
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        let place = self.kind.place(value)?;
        let share = (place - self.low) / (self.high - self.low);
        share.is_finite().then_some(share)
    }
}

/// Labels with their places, and the ends of the axis, which hold all values.
fn round_ticks(
    kind: Kind,
    sorted: &[f64],
    unit: Unit,
    wanted: usize,
    along: bool,
) -> (Vec<(String, f64)>, f64, f64) {
    let (low, high) = extent(kind, sorted, along);
    let at = |ticks: &[f64]| -> Vec<(f64, f64)> {
        let places = ticks.iter().map(|tick| Some((*tick, kind.place(*tick)?)));
        places.flatten().collect()
    };
    let label = |(value, place)| (short(value, unit), place);
    if along && !sorted.is_empty() && sorted.len() <= OWN_TICKS_MAX {
        return (at(sorted).into_iter().map(label).collect(), low, high);
    }
    if kind == Kind::Logarithmic {
        let ticks = at(&ticks::logarithmic(10_f64.powf(low), 10_f64.powf(high)));
        let first = ticks.first().map_or(low, |(_, place)| *place);
        let last = ticks.last().map_or(high, |(_, place)| *place);
        let few = last - first <= LABELLED_DECADES;
        let labelled = ticks
            .into_iter()
            .filter(|(value, _)| few || ticks::is_decade(*value));
        return (labelled.map(label).collect(), first, last);
    }
    let ticks = ticks::linear(low, high, wanted);
    // Along, the ends stay where the values end; upwards the last tick closes the frame.
    let (low, high) = match (along, ticks.first(), ticks.last()) {
        (false, Some(first), Some(last)) => (*first, *last),
        _ => (low, high),
    };
    let labels = linear_labels(&ticks, unit);
    (labels.into_iter().zip(ticks).collect(), low, high)
}

/// Over more powers of ten the 2s and 5s between them are not labelled.
const LABELLED_DECADES: f64 = 2.0;

/// Up to so many different values along an axis are its ticks.
const OWN_TICKS_MAX: usize = 12;

/// The ends, as places; they always differ.
fn extent(kind: Kind, sorted: &[f64], along: bool) -> (f64, f64) {
    let place = |value: Option<&f64>| value.and_then(|value| kind.place(*value));
    let (Some(low), Some(high)) = (place(sorted.first()), place(sorted.last())) else {
        return (0.0, 1.0);
    };
    match kind {
        Kind::Linear if along && low >= 0.0 && low <= high * NEAR_ZERO && high > 0.0 => (0.0, high),
        Kind::Linear if low < high => (low, high),
        Kind::Linear if low == 0.0 => (0.0, 1.0),
        Kind::Linear => (low - low.abs() / 2.0, low + low.abs() / 2.0),
        Kind::Logarithmic if low < high => {
            // Marks at the ends keep a distance from the frame.
            let pad = if along { (high - low) * 0.02 } else { 0.0 };
            (low - pad, high + pad)
        }
        // A factor of two each way.
        Kind::Logarithmic | Kind::Complement { .. } => (low - 0.301, low + 0.301),
    }
}

/// A smallest value below this share of the largest brings zero onto the axis.
const NEAR_ZERO: f64 = 0.3;

fn complement_kind(scale: &Scale, values: &[f64]) -> Kind {
    let factor = if scale.unit == Unit::Percent {
        0.01
    } else {
        1.0
    };
    let highest = values
        .iter()
        .map(|value| value * factor)
        .filter(|share| *share < 1.0)
        .fold(0.9, f64::max);
    let whole = values.iter().any(|value| value * factor >= 1.0);
    let place = -(1.0 - highest).log10();
    Kind::Complement {
        factor,
        // The maximum lies at some distance from the last percentile.
        cap: if whole { place + 0.5 } else { place },
    }
}

fn complement_ticks(kind: Kind, sorted: &[f64]) -> Vec<(String, f64)> {
    let Kind::Complement { factor, cap } = kind else {
        return Vec::new();
    };
    let shares = sorted.iter().map(|value| value * factor);
    let highest = shares
        .clone()
        .filter(|share| *share < 1.0)
        .fold(0.9, f64::max);
    let plain = Kind::Complement { factor: 1.0, cap };
    let mut out: Vec<(String, f64)> = ticks::complement(highest)
        .into_iter()
        .filter_map(|share| Some((format!("{} %", trimmed(share * 100.0)), plain.place(share)?)))
        .collect();
    out.retain(|(_, place)| *place <= cap);
    if shares.clone().any(|share| share >= 1.0) {
        out.push((String::from("max"), cap));
    }
    out
}

/// One prefix and one number of decimals for all, so that they can be compared at a glance.
fn linear_labels(ticks: &[f64], unit: Unit) -> Vec<String> {
    let largest = ticks
        .iter()
        .fold(0.0, |most: f64, tick| most.max(tick.abs()));
    let prefix = Prefix::of(largest, unit);
    if largest / prefix.divisor >= HUGE {
        return ticks.iter().map(|tick| short(*tick, unit)).collect();
    }
    let scaled: Vec<f64> = ticks.iter().map(|tick| tick / prefix.divisor).collect();
    let step = scaled
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .fold(f64::INFINITY, f64::min);
    let exact = |decimals: &usize| {
        let power = 10_f64.powi(i32::try_from(*decimals).unwrap_or(0));
        let off = |value: &f64| (value * power).round() / power - value;
        scaled.iter().all(|value| off(value).abs() < step * 1e-3)
    };
    let decimals = (0..=6).find(exact).unwrap_or(6);
    scaled
        .iter()
        .map(|value| {
            if *value == 0.0 {
                return String::from("0");
            }
            let number = grouped(&format!("{value:.decimals$}"));
            format!("{number}{}", prefix.suffix)
        })
        .collect()
}

/// One value with the prefix that fits it, without zeros at its end.
pub(super) fn short(value: f64, unit: Unit) -> String {
    // 1600 connections and 9000 ports are read as such.
    let plain = matches!(unit, Unit::Count | Unit::PerSecond) && value.abs() < 10_000.0;
    let prefix = if plain {
        Prefix {
            divisor: 1.0,
            suffix: "",
        }
    } else {
        Prefix::of(value.abs(), unit)
    };
    format!("{}{}", trimmed(value / prefix.divisor), prefix.suffix)
}

/// Up to seven significant digits, no zeros behind the point.
fn trimmed(value: f64) -> String {
    let text = significant(value, 7);
    if text.contains('.') && !text.contains('e') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale(unit: Unit, logarithmic: bool, complement: bool) -> Scale {
        Scale {
            title: String::new(),
            unit,
            logarithmic,
            complement,
        }
    }

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn labels_have_the_unit_that_fits() {
        let upward = |unit, values: &[f64]| Axis::upward(&scale(unit, false, false), values);
        assert_eq!(
            labels(&upward(Unit::PerSecond, &[36_120.0, 143_000.0])),
            ["0", "50k", "100k", "150k"]
        );
        assert_eq!(
            labels(&upward(Unit::Seconds, &[0.002_9])),
            ["0", "1 ms", "2 ms", "3 ms"]
        );
        assert_eq!(
            labels(&upward(Unit::Share, &[0.004])),
            ["0", "0.1 %", "0.2 %", "0.3 %", "0.4 %"]
        );
    }

    #[test]
    fn few_values_along_are_ticks_themselves() {
        let values = [1.0, 2.0, 4.0, 8.0, 16.0, 28.0];
        let linear = Axis::along(&scale(Unit::Count, false, false), &values);
        assert_eq!(labels(&linear), ["1", "2", "4", "8", "16", "28"]);
        assert_eq!(linear.place(28.0), Some(1.0));
        assert_eq!(linear.place(0.0), Some(0.0));
        let logarithmic = Axis::along(&scale(Unit::Count, true, false), &[1000.0, 50_000.0]);
        assert_eq!(labels(&logarithmic), ["1,000", "50k"]);
    }

    #[test]
    fn percentiles_spread_towards_the_maximum() {
        let axis = Axis::along(
            &scale(Unit::Percent, false, true),
            &[50.0, 99.0, 99.9, 100.0],
        );
        assert_eq!(
            labels(&axis),
            ["0 %", "50 %", "90 %", "99 %", "99.9 %", "max"]
        );
        assert_eq!(axis.place(100.0), Some(1.0));
        let nines = |percent| axis.place(percent).expect("a place");
        let (one, two) = (nines(99.0) - nines(90.0), nines(99.9) - nines(99.0));
        assert!((one - two).abs() < 1e-9, "{one} {two}");
    }

    #[test]
    fn any_values_make_an_axis_with_all_ticks_on_it() {
        let values: [&[f64]; 8] = [
            &[],
            &[0.0],
            &[5.0],
            &[-3.0],
            &[f64::NAN, f64::INFINITY],
            &[1e-300, 1e300],
            &[0.0, 0.0, 1e-12],
            &[1e15, 1e15 + 1.0],
        ];
        for values in values {
            for (logarithmic, complement) in [(false, false), (true, false), (false, true)] {
                let scale = scale(Unit::Seconds, logarithmic, complement);
                for axis in [Axis::upward(&scale, values), Axis::along(&scale, values)] {
                    assert!(!axis.ticks.is_empty(), "{values:?}");
                    for tick in &axis.ticks {
                        assert!((-0.001..=1.001).contains(&tick.at), "{values:?}: {tick:?}");
                    }
                }
            }
        }
    }
}
