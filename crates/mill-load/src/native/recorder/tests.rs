//! Figures of known samples.

use super::*;
use mill_runtime::stream::StreamError;

fn at_us(us: u64) -> Instant {
    Instant::from_nanos(us * 1000)
}

/// A request that was due at 100 µs, started at 130, on a connection established at 180, and sent at once.
fn sample() -> Sample {
    Sample {
        intended: at_us(100),
        started: at_us(130),
        connected: Some(at_us(180)),
        first_byte: at_us(380),
        done: at_us(400),
        ..Sample::example(at_us(180))
    }
}

fn recorder(open_loop: bool) -> Recorder {
    let mut recorder = Recorder::new(open_loop);
    recorder.on_sample(&sample());
    recorder.on_connected(at_us(180), Duration::from_micros(50));
    recorder
}

fn measures(open_loop: bool) -> Measures {
    let mut recorder = recorder(open_loop);
    recorder.cut(at_us(500), &tally(1, 1));
    recorder.measures
}

fn tally(started: u64, answered: u64) -> Tally {
    Tally {
        started,
        answered,
        bytes_received: answered * 100,
        connected: 1,
        open: 1,
        ..Tally::default()
    }
}

#[track_caller]
fn check(histogram: &Histogram, expected_us: u64) {
    assert_eq!(histogram.count(), 1);
    let off = histogram.max().abs_diff(Duration::from_micros(expected_us));
    assert!(
        off.as_nanos() <= u128::from(expected_us),
        "{:?}",
        histogram.max()
    );
}

#[test]
fn each_histogram_measures_its_own_stretch() {
    let measures = measures(true);
    check(&measures.latency, 300);
    check(measures.raw(), 270);
    check(measures.lateness.as_ref().unwrap(), 30);
    check(&measures.service, 220);
    check(&measures.first_byte, 200);
    check(&measures.connect, 50);
}

#[test]
fn a_closed_loop_has_one_latency() {
    let measures = measures(false);
    assert_eq!((&measures.raw, &measures.lateness), (&None, &None));
    check(measures.raw(), 300);
}

#[test]
fn a_request_whose_durations_are_all_alike_counts_in_each_of_them() {
    let alike = Sample {
        intended: at_us(130),
        connected: None,
        sent: at_us(130),
        first_byte: at_us(400),
        ..sample()
    };
    for open_loop in [false, true] {
        let mut recorder = recorder(open_loop);
        recorder.on_sample(&alike);
        let interval = recorder.cut(at_us(500), &tally(2, 2));
        let measures = &recorder.measures;
        let all = [&interval.latency, &measures.latency, measures.raw()];
        for histogram in all
            .into_iter()
            .chain([&measures.service, &measures.first_byte])
        {
            assert_eq!(histogram.count(), 2);
        }
        check(&measures.connect, 50);
        recorder.cut(at_us(600), &tally(2, 2));
        assert_eq!(recorder.measures.latency.count(), 2, "no one counts twice");
    }
}

#[test]
fn the_measures_of_threads_add_up() {
    let mut sum = Measures::new(true);
    sum.add(&measures(true));
    assert_eq!(sum, measures(true));
    sum.add(&measures(true));
    assert_eq!(sum.lateness.map(|lateness| lateness.count()), Some(2));
}

#[test]
fn an_interval_counts_since_the_last_one() {
    let mut recorder = recorder(false);
    let first = recorder.cut(at_us(500), &tally(3, 1));
    assert_eq!((first.started, first.answered, first.connected), (3, 1, 1));
    check(&first.latency, 300);
    recorder.on_sample(&sample());
    let second = recorder.cut(at_us(600), &tally(5, 2));
    assert_eq!(
        (second.started, second.answered, second.connected),
        (2, 1, 0)
    );
    assert_eq!((second.bytes_received, second.open), (100, 1));
    check(&second.latency, 300);
    assert_eq!(recorder.measures.latency.count(), 2);
}

#[test]
fn the_first_failure_of_a_kind_is_its_example() {
    let mut recorder = Recorder::new(false);
    for failure in [
        Failure::Timeout,
        Failure::Connect(StreamError::Refused),
        Failure::Connect(StreamError::Unreachable),
    ] {
        recorder.on_failure(failure, at_us(1));
    }
    let examples: Vec<Failure> = recorder.examples.into_iter().flatten().collect();
    let expected = [Failure::Connect(StreamError::Refused), Failure::Timeout];
    assert_eq!(examples, expected);
}
