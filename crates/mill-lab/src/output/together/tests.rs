//! Sums, worst cases and merged histograms.

use super::*;
use mill_metrics::Histogram;
use std::time::Duration;

fn part(figures: &[(&str, f64)], percentiles: &[(f64, f64)]) -> Printed {
    Printed {
        figures: figures
            .iter()
            .map(|(name, value)| (String::from(*name), *value))
            .collect(),
        percentiles: percentiles.to_vec(),
        ..Printed::default()
    }
}

#[track_caller]
fn check(whole: &Printed, expected: &[(&str, f64)]) {
    for (name, value) in expected {
        let read = whole.figures.get(*name).copied();
        let close = read.is_some_and(|read| (read - value).abs() < 1e-9);
        assert!(close, "{name} is {read:?}, not {value}");
    }
}

#[test]
fn rates_are_added_and_the_worst_percentile_is_taken() {
    let one = part(
        &[
            ("requests", 100.0),
            ("requests_per_s", 50.0),
            ("seconds", 2.0),
            ("latency_s.mean", 0.001),
            ("latency_s.stdev", 0.0),
            ("latency_s.max", 0.5),
            ("latency_s.min", 0.0001),
            ("latency_s.p99", 0.2),
            ("errors.all", 10.0),
            ("failed_share", 0.1),
            ("transfer_bytes_per_s", 1e9),
            ("bytes_per_response", 800.0),
        ],
        &[(50.0, 0.001), (99.0, 0.2)],
    );
    let other = part(
        &[
            ("requests", 300.0),
            ("requests_per_s", 150.0),
            ("seconds", 2.1),
            ("latency_s.mean", 0.003),
            ("latency_s.stdev", 0.0),
            ("latency_s.max", 0.4),
            ("latency_s.min", 0.0002),
            ("latency_s.p99", 0.3),
            ("errors.all", 0.0),
            ("failed_share", 0.0),
            ("transfer_bytes_per_s", 1e9),
            ("bytes_per_response", 1200.0),
        ],
        &[(50.0, 0.003), (90.0, 0.01), (99.0, 0.3)],
    );
    let whole = together(&[one, other]);
    check(
        &whole,
        &[
            ("requests", 400.0),
            ("requests_per_s", 200.0),
            ("seconds", 2.1),
            ("latency_s.mean", 0.0025),
            // Means 0.001 (100 times) and 0.003 (300 times), nothing within.
            ("latency_s.stdev", 0.75_f64.sqrt() * 0.001),
            ("latency_s.max", 0.5),
            ("latency_s.min", 0.0001),
            ("latency_s.p99", 0.3),
            ("errors.all", 10.0),
            ("failed_share", 0.025),
            ("gbit_per_s", 16.0),
            ("bytes_per_response", 1100.0),
            ("spread_share", 1.0),
        ],
    );
    assert_eq!(whole.percentiles, [(50.0, 0.003), (99.0, 0.3)]);
}

#[test]
fn histograms_of_all_are_merged() {
    let with = |times: &[u64]| {
        let mut histogram = Histogram::new();
        for ms in times {
            histogram.record(Duration::from_millis(*ms));
        }
        let mut printed = part(&[("requests_per_s", 1.0)], &[]);
        printed.set_histogram("latency_s", histogram);
        printed
    };
    // Of the nine the median is 2 ms; the worst of the two medians would be 9 ms.
    let whole = together(&[with(&[1, 1, 1, 2, 2, 2, 2]), with(&[9, 9])]);
    let median = whole.figures["latency_s.p50"];
    assert!((median - 0.002).abs() < 1e-5, "{median}");
    assert_eq!(whole.percentiles.last().map(|last| last.0), Some(100.0));
    let mixed = together(&[with(&[1]), part(&[("latency_s.p50", 0.7)], &[])]);
    check(&mixed, &[("latency_s.p50", 0.7)]);
    assert!(mixed.histograms.is_empty());
}

#[test]
fn one_process_is_as_it_is_and_none_is_nothing() {
    let alone = part(&[("requests_per_s", 5.0)], &[]);
    assert_eq!(together(std::slice::from_ref(&alone)), alone);
    assert_eq!(together(&[]), Printed::default());
}
