//! wrk's statistics, compared with figures computed by hand.

use super::*;

fn counters(values: &[u64]) -> Counters {
    let mut counters = Counters::up_to(2_000_000);
    for value in values {
        assert!(counters.record(*value));
    }
    counters
}

/// The correction as a simple, slow double loop over all values.
fn corrected_plainly(values: &[u64], interval: u64) -> Vec<u64> {
    let mut all = values.to_vec();
    for value in values {
        let mut lower = value.saturating_sub(interval);
        while *value >= 2 * interval && lower > interval {
            all.push(lower);
            lower -= interval;
        }
    }
    all.sort_unstable();
    all
}

#[test]
fn the_formulas_are_those_of_samples() {
    let counters = counters(&[2, 4, 4, 4, 5, 5, 7, 9]);
    assert_eq!((counters.min(), counters.max()), (2, 9));
    assert!((counters.mean() - 5.0).abs() < 1e-12);
    // The squares of the deviations sum up to 32, over n - 1 = 7.
    assert!((counters.stdev() - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
    // 2 and 9 are further than 2.138 from the mean: 6 of 8 are within.
    assert!((counters.within_stdev() - 75.0).abs() < 1e-12);
    assert_eq!(counters.distinct(), 5);
    assert_eq!(counters.nth(1), Some((4, 3)));
    assert_eq!(counters.nth(5), None);
}

#[test]
fn a_percentile_is_the_value_at_the_rounded_rank() {
    let counters = counters(&[10, 20, 30, 40]);
    let check = |percent, expected| assert_eq!(counters.percentile(percent), expected);
    // Rank round(p * n + 0.5): 2.5 is rounded up to 3, 1.5 to 2, 4.46 to 4; 100 % is rank 5, which does not exist.
    check(50.0, 30);
    check(25.0, 20);
    check(99.0, 40);
    check(100.0, 0);
}

#[test]
fn nothing_counted_has_no_share_within() {
    let none = counters(&[]);
    assert_eq!((none.min(), none.max()), (u64::MAX, 0));
    assert!(none.within_stdev().is_nan());
    assert_eq!((none.percentile(50.0), none.distinct()), (0, 0));
    assert!(none.mean() == 0.0 && none.stdev() == 0.0);
}

#[test]
fn a_value_beyond_the_limit_is_not_counted() {
    let mut counters = Counters::up_to(100);
    assert!(counters.record(100));
    assert!(!counters.record(101));
    assert_eq!(counters.count(), 1);
}

#[test]
fn the_correction_is_that_of_a_plain_double_loop() {
    let check = |values: &[u64], interval| {
        let mut corrected = counters(values);
        corrected.correct(interval);
        let expected = corrected_plainly(values, interval);
        let all: Vec<u64> = corrected
            .nonzero(0, corrected.max())
            .flat_map(|(value, count)| (0..count).map(move |_| value))
            .collect();
        assert_eq!(all, expected, "{values:?} every {interval}");
        assert_eq!(corrected.count(), expected.len() as u64);
    };
    check(&[100], 10);
    check(&[100, 100, 57, 9, 20, 21, 19], 10);
    check(&[1_999_999, 12_288, 8192, 4096, 4097], 4096);
    check(&[30, 29, 31], 10);
    check(&[5, 6, 7], 1);
}

#[test]
fn an_interval_of_less_than_a_microsecond_corrects_nothing() {
    let mut corrected = counters(&[1000, 3]);
    corrected.correct(0);
    assert_eq!(corrected.count(), 2);
}

#[test]
fn values_that_the_correction_adds_below_the_minimum_are_only_in_the_count() {
    let mut corrected = counters(&[50, 100]);
    corrected.correct(15);
    // 50 adds 35, 20; 100 adds 85, 70, 55, 40, 25: of these 35, 20, 40 and 25 are below 50.
    assert_eq!(corrected.count(), 9);
    assert_eq!(corrected.min(), 50);
    assert!((corrected.mean() - (50.0 + 100.0 + 85.0 + 70.0 + 55.0) / 9.0).abs() < 1e-12);
}

#[test]
fn threads_add_up() {
    let mut sum = counters(&[5, 9000]);
    sum.add(&counters(&[1, 9000, 70_000]));
    assert_eq!((sum.min(), sum.max(), sum.count()), (1, 70_000, 5));
    assert_eq!(sum.nth(2), Some((9000, 2)));
}
