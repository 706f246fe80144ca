//! The steady part of a series: clients begin and end one by one, and samples meanwhile are of fewer connections.

use std::ops::Range;

/// The part of a series of rates without its ramps: at both ends, values below four fifths of the usual are cut. The
/// usual is the median of the busier half, so that ramps may be up to half of the series. The whole series if there
/// was no traffic.
pub fn steady_part(rates: &[f64]) -> Range<usize> {
    let mut sorted: Vec<f64> = rates.iter().copied().filter(|rate| *rate > 0.0).collect();
    sorted.sort_by(f64::total_cmp);
    let busier = &sorted[sorted.len() / 2..];
    let Some(usual) = busier.get(busier.len() / 2) else {
        return 0..rates.len();
    };
    let full = |rate: &f64| *rate >= usual * FULL_SHARE;
    let first = rates.iter().position(full).unwrap_or(0);
    let last = rates.iter().rposition(full).unwrap_or(0);
    first..last + 1
}

/// Share of the usual rate: rates of steady loads vary by a tenth and more from one second to the next (in seed 003
/// by ± 1 of 5 Gbit/s), and ramps begin near zero.
const FULL_SHARE: f64 = 0.8;

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rates: &[f64], expected: Range<usize>) {
        assert_eq!(steady_part(rates), expected, "{rates:?}");
    }

    #[test]
    fn ramps_are_cut_and_dips_are_kept() {
        check(&[0.0, 3.0, 90.0, 100.0, 20.0, 98.0, 101.0, 50.0], 2..7);
        check(&[100.0; 4], 0..4);
        check(&[1.0], 0..1);
    }

    #[test]
    fn nothing_is_cut_where_nothing_moved() {
        check(&[0.0; 3], 0..3);
        check(&[], 0..0);
    }

    #[test]
    fn ramps_may_be_half_of_it() {
        check(&[1.0, 2.0, 3.0, 100.0, 101.0, 99.0], 3..6);
    }
}
