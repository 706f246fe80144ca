//! Order statistics: medians, quantiles, and intervals that assume no distribution.

use super::{normal_quantile, number};

/// The middle value, or the mean of the two; none of an empty sample. Values that are no numbers are left out.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The value below which `share` of the sample is, by linear interpolation between order statistics (R's type 7,
/// numpy's default).
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    quantile_of_sorted(&sorted(values), share)
}

/// Order statistics between which the quantile lies with at least `level`, whatever the distribution: the smallest
/// symmetric pair of ranks around n·share whose binomial probability reaches it. None if even the whole range does not (n too small).
pub fn quantile_interval(values: &[f64], share: f64, level: f64) -> Option<(f64, f64)> {
    let values = sorted(values);
    let (low, high) = ranks(values.len(), share, level)?;
    Some((*values.get(low)?, *values.get(high)?))
}

/// Bounds of a median, and how sure they are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
    /// The share of cases in which such an interval has the true value inside: 0.95 or more, and less of a few values only.
    pub covers: f64,
}

impl Interval {
    /// Whether it may be called one of 95 %.
    pub fn is_sure(&self) -> bool {
        self.covers >= LEVEL
    }
}

/// The interval of a median: order statistics, which assume no distribution and cover 95 % or, because ranks are whole, more; from three
/// to five values, which can't give 95 %, their range. None of fewer than three.
pub fn median_interval(values: &[f64]) -> Option<Interval> {
    let ordered = sorted(values);
    let last = ordered.len().checked_sub(1)?;
    if ordered.len() < RANGE_MIN {
        return None;
    }
    let (low, high) = ranks(ordered.len(), 0.5, LEVEL).unwrap_or((0, last));
    let covers = if ordered.len() > EXACT_MAX {
        LEVEL
    } else {
        covered(ordered.len(), 0.5, low, high)
    };
    Some(Interval {
        low: *ordered.get(low)?,
        high: *ordered.get(high)?,
        covers,
    })
}

/// What an interval should cover.
const LEVEL: f64 = 0.95;

/// Ascending, without what is no number.
pub(super) fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    values
}

pub(super) fn quantile_of_sorted(values: &[f64], share: f64) -> Option<f64> {
    let last = values.len().checked_sub(1)?;
    let place = share.clamp(0.0, 1.0) * number(last);
    let below = floor_index(place).min(last);
    let above = (below + 1).min(last);
    let (low, high) = (values[below], values[above]);
    Some(low + (high - low) * (place - number(below)))
}

/// The whole part of a number that is not negative, as an index.
pub(super) fn floor_index(place: f64) -> usize {
    debug_assert!(place >= 0.0, "an index is not negative: {place}");
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "places are not negative and below the sample's length; the fraction is cut on purpose"
    )]
    let index = place.floor() as usize;
    index
}

/// Ranks (from 0) of the two order statistics.
fn ranks(count: usize, share: f64, level: f64) -> Option<(usize, usize)> {
    if count == 0 || !(0.0..=1.0).contains(&share) {
        return None;
    }
    // Large samples: the normal approximation, n·p ± z·√(n·p·(1-p)), whose ranks differ from the exact ones by at most one.
    if count > EXACT_MAX {
        let middle = number(count) * share;
        let reach =
            normal_quantile(0.5 + level / 2.0) * (number(count) * share * (1.0 - share)).sqrt();
        let (low, high) = (middle - reach, middle + reach);
        return (low >= 0.0 && high.ceil() < number(count))
            .then(|| (floor_index(low), floor_index(high.ceil())));
    }
    let last = count - 1;
    let middle = number(last) * share;
    for reach in 0..count {
        let low = floor_index(middle).saturating_sub(reach);
        let high = (floor_index(middle.ceil()) + reach).min(last);
        if covered(count, share, low, high) >= level {
            return Some((low, high));
        }
        if low == 0 && high == last {
            return None;
        }
    }
    None
}

/// The probability that the quantile lies between the order statistics of ranks `low` and `high` (from 0): that at least
/// low + 1 and at most `high` values lie below it.
fn covered(count: usize, share: f64, low: usize, high: usize) -> f64 {
    // Binomial terms one from the other; counts are at most EXACT_MAX, so the first term does not underflow to a false zero unless
    // the share is extreme, where the interval is refused anyway.
    let mut term = (1.0 - share).powi(i32::try_from(count).unwrap_or(i32::MAX));
    let mut sum = 0.0;
    for below in 0..=count {
        if (low + 1..=high).contains(&below) {
            sum += term;
        }
        if share >= 1.0 {
            break;
        }
        term *= number(count - below) / number(below + 1) * share / (1.0 - share);
    }
    sum
}

/// Values from which a range is shown as an interval. Two values say next to nothing (the range covers the median half of the time).
const RANGE_MIN: usize = 3;

/// Values up to which binomial probabilities are summed exactly; 0.5^1000 is still a normal number.
const EXACT_MAX: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_numpy() {
        // numpy.quantile([3,1,4,1,5,9,2,6], [.1,.25,.5,.9])
        let values = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0];
        for (share, expected) in [(0.1, 1.0), (0.25, 1.75), (0.5, 3.5), (0.9, 6.9)] {
            let found = quantile(&values, share).unwrap();
            assert!((found - expected).abs() < 1e-12, "{share}: {found}");
        }
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[f64::NAN, 2.0]), Some(2.0));
    }

    /// Ranks from 1, as tables of the sign test print them.
    fn check(count: usize, share: f64, expected: Option<(usize, usize)>) {
        let found = ranks(count, share, 0.95).map(|(low, high)| (low + 1, high + 1));
        assert_eq!(found, expected, "{count} values at {share}");
    }

    #[test]
    fn five_values_give_no_95_percent_interval_of_the_median_and_six_give_their_range() {
        check(5, 0.5, None);
        check(6, 0.5, Some((1, 6)));
        // Tables of the sign test: 9 -> 2..8, 10 -> 2..9, 12 -> 3..10, 20 -> 6..15.
        check(9, 0.5, Some((2, 8)));
        check(10, 0.5, Some((2, 9)));
        check(12, 0.5, Some((3, 10)));
        check(20, 0.5, Some((6, 15)));
    }

    #[test]
    fn the_99th_percentile_of_few_values_has_no_interval() {
        check(100, 0.99, None);
        let many: Vec<f64> = (0..10_000).map(f64::from).collect();
        let (low, high) = quantile_interval(&many, 0.99, 0.95).unwrap();
        // 9900 ± 1.96 √99 = 9880.5 … 9919.5
        assert_eq!((low, high), (9880.0, 9920.0));
    }

    #[test]
    fn a_table_shows_the_range_of_three_values_and_nothing_of_two() {
        assert_eq!(median_interval(&[1.0, 2.0]), None);
        let check = |count: u32, bounds: (f64, f64), covers: f64| {
            let values: Vec<f64> = (1..=count).map(f64::from).collect();
            let found = median_interval(&values).unwrap();
            assert_eq!((found.low, found.high), bounds, "{count}");
            assert!((found.covers - covers).abs() < 1e-9, "{found:?}");
            assert_eq!(found.is_sure(), count >= 6, "{found:?}");
        };
        check(3, (1.0, 3.0), 0.75);
        check(5, (1.0, 5.0), 0.9375);
        check(6, (1.0, 6.0), 0.968_75);
        check(9, (2.0, 8.0), 1.0 - 20.0 / 512.0);
    }
}
