//! Known samples, values beyond the bounds, sums, and the exchanged formats.

use super::*;

fn of(nanos: impl IntoIterator<Item = u64>) -> Histogram {
    let mut histogram = Histogram::new();
    for nanos in nanos {
        histogram.record(Duration::from_nanos(nanos));
    }
    histogram
}

/// Equal to a thousandth, which is what three digits promise.
#[track_caller]
fn check_near(actual: Duration, expected_nanos: f64) {
    let off = (actual.as_secs_f64() * 1e9 - expected_nanos).abs();
    assert!(
        off <= expected_nanos / 1000.0 + 1.0,
        "{actual:?} is not {expected_nanos} ns"
    );
}

#[test]
fn percentiles_of_known_samples_are_right_to_three_digits() {
    let histogram = of((1..=100_000).map(|value| value * 1000));
    for (percent, expected) in [
        (0.001, 1e3),
        (50.0, 50e6),
        (90.0, 90e6),
        (99.0, 99e6),
        (99.9, 99.9e6),
        (100.0, 100e6),
    ] {
        check_near(histogram.percentile(percent), expected);
    }
    check_near(histogram.min(), 1e3);
    check_near(histogram.max(), 100e6);
    check_near(histogram.mean(), 50.0005e6);
    check_near(histogram.stdev(), 28.867e6);
    assert_eq!(histogram.count(), 100_000);
}

#[test]
fn nothing_counted_is_zero_everywhere() {
    let none = Histogram::new();
    assert!(none.is_empty());
    for duration in [none.percentile(99.0), none.min(), none.max(), none.mean()] {
        assert_eq!(duration, Duration::ZERO);
    }
    assert_eq!(none.steps().count(), 0);
    assert_eq!(none.count_above(Duration::ZERO), 0);
}

#[test]
fn durations_longer_than_an_hour_count_as_one_and_are_reported() {
    let mut histogram = of([0, 5, HIGHEST_NS, HIGHEST_NS + 1]);
    histogram.record(Duration::MAX);
    assert_eq!((histogram.count(), histogram.overflowed()), (5, 2));
    check_near(histogram.max(), 3.6e12);
    assert_eq!(histogram.min(), Duration::ZERO);
    assert_eq!(histogram.count_above(Duration::from_secs(3600)), 2);
    histogram.clear();
    assert_eq!(histogram, Histogram::new());
}

#[test]
fn counts_above_a_limit_are_those_behind_it() {
    let histogram = of([1_000_000, 2_000_000, 2_000_000, 50_000_000]);
    for (limit_us, expected) in [(0, 4), (999, 4), (1000, 3), (2000, 1), (50_000, 0)] {
        let limit = Duration::from_micros(limit_us);
        assert_eq!(histogram.count_above(limit), expected, "{limit:?}");
    }
}

#[test]
fn sums_are_as_if_one_had_counted_all() {
    let (odd, even) = ((1..2000).step_by(2), (0..2000).step_by(2));
    let mut sum = of(odd.map(|value| value * value));
    sum.add(&of(even.map(|value| value * value)));
    assert_eq!(sum, of((0..2000).map(|value| value * value)));
}

#[test]
fn steps_grow_and_end_with_everything() {
    let histogram = of([10, 10, 20, 40]);
    let steps: Vec<(u128, f64, u64)> = histogram
        .steps()
        .map(|step| (step.value.as_nanos(), step.quantile, step.count))
        .collect();
    assert_eq!(steps, [(10, 0.5, 2), (20, 0.75, 1), (40, 1.0, 1)]);
}

#[test]
fn the_emitted_form_is_read_again() {
    for histogram in [
        Histogram::new(),
        of([0]),
        of((1..5000).map(|value| value * value * 997)),
        of([HIGHEST_NS; 3]),
    ] {
        let text = histogram.emit();
        assert!(text.starts_with("HISTFAAAA"), "the V2 cookie, deflated");
        assert_eq!(Histogram::parse(&text), Ok(histogram));
    }
}

#[test]
fn malformed_histograms_are_refused() {
    let mut wide = Counts::<u64>::new(2).unwrap();
    wide.record(HIGHEST_NS * 4).unwrap();
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(&wide, &mut bytes)
        .unwrap();
    for (text, expected) in [
        (String::from("*"), HistogramError::NotBase64),
        (String::from("HIST"), HistogramError::NotHistogram),
        (String::new(), HistogramError::NotHistogram),
        (base64::encode(&[255; 400]), HistogramError::NotHistogram),
        (base64::encode(&bytes), HistogramError::OutOfBounds),
    ] {
        assert_eq!(Histogram::parse(&text), Err(expected), "{text}");
    }
}

#[test]
fn its_size_is_what_its_documentation_says() {
    let counters = Histogram::new().counts.distinct_values();
    assert_eq!(counters * size_of::<u64>(), 264 * 1024);
}
