//! Scales have round values and the right ends.

use super::*;

const AREA: Area = Area {
    left: 100.0,
    right: 900.0,
    top: 50.0,
    bottom: 400.0,
};

const STRIP: Area = Area {
    bottom: 130.0,
    ..AREA
};

fn of(micros: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    for micros in micros {
        histogram.record(Duration::from_micros(*micros));
    }
    histogram
}

#[track_caller]
fn check_nines(count: u64, expected: &[&str]) {
    let ticks = Across::new(AREA, count).ticks();
    let labels: Vec<&str> = ticks.iter().map(|(_, label)| label.as_str()).collect();
    assert_eq!(labels, expected);
}

#[test]
fn each_nine_has_the_same_width() {
    let across = Across::new(AREA, 10_000);
    for (quantile, x) in [
        (0.0, 100.0),
        (0.9, 300.0),
        (0.99, 500.0),
        (0.999, 700.0),
        (0.999_9, 900.0),
        (1.0, 900.0),
    ] {
        assert!((across.place(quantile) - x).abs() < 0.01, "{quantile}");
        let back = across.quantile(x);
        assert!((back - quantile.min(0.999_9)).abs() < 1e-6, "{back}");
    }
}

#[test]
fn there_are_as_many_nines_as_requests_can_show() {
    check_nines(1, &["0 %", "50 %", "90 %"]);
    check_nines(
        10_000,
        &["0 %", "50 %", "90 %", "99 %", "99.9 %", "99.99 %"],
    );
}

#[track_caller]
fn check_latencies(area: Area, micros: &[u64], logarithmic: bool, expected: &[&str]) {
    let up = Up::of(area, &[&of(micros)]);
    assert_eq!(up.is_logarithmic(), logarithmic);
    let labels: Vec<String> = up.ticks().into_iter().map(latency_label).collect();
    assert_eq!(labels, expected);
}

#[test]
fn a_narrow_distribution_stands_on_zero() {
    let some = &[900, 1000, 3900];
    check_latencies(STRIP, some, false, &["0", "2 ms", "4 ms"]);
    check_latencies(
        AREA,
        &[900, 4900],
        false,
        &["0", "1 ms", "2 ms", "3 ms", "4 ms", "5 ms"],
    );
}

#[test]
fn a_long_tail_makes_it_logarithmic() {
    check_latencies(
        AREA,
        &[80, 100, 100_000],
        true,
        &["100 µs", "1 ms", "10 ms", "100 ms"],
    );
    check_latencies(
        AREA,
        &[80, 100, 9000],
        true,
        &[
            "50 µs", "100 µs", "200 µs", "500 µs", "1 ms", "2 ms", "5 ms", "10 ms",
        ],
    );
    check_latencies(
        STRIP,
        &[80, 100, 1_000_000],
        true,
        &["100 µs", "10 ms", "1 s"],
    );
}

#[test]
fn above_the_longest_there_is_room_for_its_label() {
    for longest in [4000, 3999, 100_000, 999_999, 5_000_000] {
        let histogram = of(&[3000, longest]);
        let up = Up::of(AREA, &[&histogram]);
        let y = up.place(histogram.max().as_secs_f64());
        assert!(y >= AREA.top + LABEL_ROOM - 0.01, "{longest}: {y}");
        assert!(y < AREA.bottom);
    }
}

#[test]
fn zeros_and_hours_have_a_scale() {
    for histogram in [
        of(&[0]),
        of(&[0, 0, 0, 3_600_000_000]),
        of(&[3_600_000_000]),
    ] {
        for area in [AREA, STRIP] {
            let up = Up::of(area, &[&histogram]);
            assert!((2..=13).contains(&up.ticks().len()), "{up:?}");
            let y = up.place(histogram.max().as_secs_f64());
            assert!((area.top..=area.bottom).contains(&y), "{up:?}");
        }
    }
    assert!(Up::linear(STRIP, 0.0).place(0.0).is_finite());
}

#[test]
fn steps_are_round() {
    for (high, most, expected) in [
        (10.0, 10.0, 1.0),
        (10.0, 9.0, 2.0),
        (30.0, 15.0, 2.0),
        (60.0, 15.0, 5.0),
        (0.007, 4.0, 0.002),
    ] {
        let step = step(high, most);
        assert!((step / expected - 1.0).abs() < 1e-9, "{high}: {step}");
    }
    assert_eq!(multiples(2.0, 6.0), [0.0, 2.0, 4.0, 6.0]);
}
