//! Round numbers along a scale.

/// Multiples of 1, 2 or 5 × 10ⁿ from the last at or below `low` to the first at or above `high`, about `wanted` of them. Both are finite and `low < high`.
pub(super) fn linear(low: f64, high: f64, wanted: usize) -> Vec<f64> {
    let step = step((high - low) / count(wanted.max(1)));
    let first = (low / step + SLACK).floor();
    let last = (high / step - SLACK).ceil();
    let mut out = Vec::new();
    let mut multiple = first;
    // The step is at least a fifth of the wanted one, so this ends; the limit is for spans that a double can't divide.
    while multiple <= last && out.len() < TICKS_MAX {
        out.push(multiple * step);
        multiple += 1.0;
    }
    out
}

/// Powers of ten with 2 and 5 between them, from the last at or below `low` to the first at or above `high`: the ends of a scale. Both are positive.
pub(super) fn logarithmic(low: f64, high: f64) -> Vec<f64> {
    let (first, last) = (low.log10().floor(), high.log10().ceil());
    let stride = ((last - first) / DECADES_MAX).ceil().max(1.0);
    let mut all = Vec::new();
    let mut exponent = first;
    while exponent <= last && all.len() < TICKS_MAX {
        all.extend([1.0, 2.0, 5.0].map(|part| part * 10_f64.powf(exponent)));
        exponent += stride;
    }
    let start = all
        .iter()
        .rposition(|tick| *tick <= low * (1.0 + SLACK))
        .unwrap_or(0);
    let end = all
        .iter()
        .position(|tick| *tick >= high * (1.0 - SLACK))
        .unwrap_or(all.len() - 1);
    all[start..=end.max(start)].to_vec()
}

/// Whether one of those is a power of ten; over many decades only these are labelled.
pub(super) fn is_decade(tick: f64) -> bool {
    let power = tick.log10();
    (power - power.round()).abs() < 1e-6
}

/// Shares that a percentile scale names, up to `highest`.
pub(super) fn complement(highest: f64) -> Vec<f64> {
    let mut out = vec![0.0, 0.5, 0.9];
    let mut rest = 0.01;
    while 1.0 - rest <= highest + SLACK * rest && out.len() < 9 {
        out.push(1.0 - rest);
        rest /= 10.0;
    }
    out
}

/// How far a sum of doubles may be off a tick and still count as on it, as a share.
const SLACK: f64 = 1e-9;

/// Far more than a scale has room for.
const TICKS_MAX: usize = 64;

/// Powers of ten that have room beside each other.
const DECADES_MAX: f64 = 8.0;

/// The smallest 1, 2 or 5 × 10ⁿ that is not below `least`.
fn step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|factor| factor * power >= least * (1.0 - SLACK))
        .unwrap_or(10.0);
    let step = factor * power;
    if step.is_finite() && step > 0.0 {
        step
    } else {
        1.0
    }
}

fn count(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::MAX, f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(actual: &[f64], expected: &[f64]) {
        let same = actual.len() == expected.len()
            && actual
                .iter()
                .zip(expected)
                .all(|(one, other)| (one - other).abs() <= 1e-9 * other.abs().max(1e-12));
        assert!(same, "{actual:?}, expected {expected:?}");
    }

    #[test]
    fn linear_ticks_are_round_and_hold_the_span() {
        close(&linear(0.0, 9.7, 5), &[0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        close(&linear(0.0, 10.0, 5), &[0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        close(&linear(-3.0, 4.0, 4), &[-4.0, -2.0, 0.0, 2.0, 4.0]);
        close(&linear(0.0, 0.3, 3), &[0.0, 0.1, 0.2, 0.3]);
        assert!(linear(1e15, 1e15 + 0.001, 5).len() <= TICKS_MAX);
    }

    #[test]
    fn logarithmic_ticks_end_at_the_nearest_around_the_values() {
        close(&logarithmic(3.0, 40.0), &[2.0, 5.0, 10.0, 20.0, 50.0]);
        let decades: Vec<f64> = logarithmic(1e-6, 1.015)
            .into_iter()
            .filter(|tick| is_decade(*tick))
            .collect();
        close(&decades, &[1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0]);
        assert_eq!(logarithmic(1e-6, 1.015).last(), Some(&2.0));
        close(&logarithmic(1.0, 10.0), &[1.0, 2.0, 5.0, 10.0]);
    }

    #[test]
    fn percentiles_have_nines() {
        close(&complement(0.999), &[0.0, 0.5, 0.9, 0.99, 0.999]);
        close(&complement(0.5), &[0.0, 0.5, 0.9]);
    }
}
