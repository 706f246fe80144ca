//! Threads that report in time, late, or not at all.

use super::*;

fn interval(latencies_ms: &[u64]) -> Interval {
    let mut interval = Gathering::new().sum;
    for ms in latencies_ms {
        interval.latency.record(Duration::from_millis(*ms));
    }
    interval.answered = interval.latency.count();
    interval.started = interval.answered;
    interval
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Begin and end in milliseconds, and answers.
#[track_caller]
fn check(periods: &[Period], expected: &[(u64, u64, u64)]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|(begin, end, answered)| (ms(*begin), ms(*end), *answered))
        .collect();
    let actual: Vec<_> = periods
        .iter()
        .map(|period| (period.begin, period.end, period.answered))
        .collect();
    assert_eq!(actual, expected);
}

#[test]
fn a_period_closes_when_all_threads_have_reported_it() {
    let mut series = Series::new(2, ms(1000));
    assert_eq!(series.on_interval(0, ms(1000), &interval(&[5])), None);
    let closed = series.on_interval(1, ms(1001), &interval(&[7, 9])).unwrap();
    assert_eq!(
        (closed.answered, closed.begin, closed.end),
        (3, ms(0), ms(1001))
    );
    assert_eq!(Histogram::parse(&closed.histogram).unwrap().count(), 3);
    assert!((closed.per_second(closed.answered) - 2.997).abs() < 0.001);
    check(series.periods(), &[(0, 1001, 3)]);
}

#[test]
fn the_rest_at_the_end_is_the_last_period() {
    let mut series = Series::new(2, ms(1000));
    series.on_interval(0, ms(1000), &interval(&[1]));
    series.on_interval(1, ms(1000), &interval(&[1]));
    let rests = [interval(&[1, 2]), interval(&[3])];
    check(
        &series.finish(ms(1500), &rests),
        &[(0, 1000, 2), (1000, 1500, 3)],
    );
}

#[test]
fn nothing_left_is_no_period() {
    let mut series = Series::new(1, ms(1000));
    series.on_interval(0, ms(1000), &interval(&[1]));
    check(&series.finish(ms(1000), &[interval(&[])]), &[(0, 1000, 1)]);
    check(&Series::new(3, ms(1000)).finish(ms(4), &[]), &[]);
}

#[test]
fn a_thread_that_skips_an_interval_does_not_block_the_others() {
    let mut series = Series::new(2, ms(100));
    series.on_interval(0, ms(100), &interval(&[1]));
    series.on_interval(0, ms(200), &interval(&[1]));
    check(series.periods(), &[]);
    series.on_interval(1, ms(200), &interval(&[1, 1]));
    check(series.periods(), &[(0, 100, 1), (100, 200, 3)]);
}

#[test]
fn a_thread_that_ended_early_costs_bounded_memory_and_no_answer() {
    let mut series = Series::new(2, ms(100));
    for nth in 1..=200 {
        series.on_interval(0, ms(nth * 100), &interval(&[1]));
        assert!(series.open.len() <= OPEN_MAX);
    }
    let periods = series.finish(ms(20_050), &[interval(&[1]), interval(&[1])]);
    assert_eq!(periods.len(), 201);
    assert_eq!(
        periods.iter().map(|period| period.answered).sum::<u64>(),
        202
    );
    assert_eq!(periods.last().unwrap().end, ms(20_050));
}

#[test]
fn an_interval_in_which_nothing_happened_stays_in_the_series() {
    let mut series = Series::new(1, ms(100));
    series.on_interval(0, ms(300), &interval(&[1]));
    check(
        series.periods(),
        &[(0, 100, 0), (100, 200, 0), (200, 300, 1)],
    );
}
