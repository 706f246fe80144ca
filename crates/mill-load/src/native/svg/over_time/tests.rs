//! Which columns are drawn of which periods.

use super::*;
use crate::native::sample_results::results;

fn period(begin_ms: u64, end_ms: u64, answered: u64, p99_ms: u64) -> Period {
    Period {
        begin: Duration::from_millis(begin_ms),
        end: Duration::from_millis(end_ms),
        answered,
        p99: Duration::from_millis(p99_ms),
        ..results(false).periods.swap_remove(0)
    }
}

/// Begin and end in milliseconds, rate, p99 in milliseconds.
#[track_caller]
fn check(periods: &[Period], expected: &[(u128, u128, f64, Option<u128>)]) {
    let actual: Vec<_> = columns(periods, Duration::from_secs(1))
        .iter()
        .map(|column| {
            (
                column.begin.as_millis(),
                column.end.as_millis(),
                column.answered_per_second,
                column.p99.map(|p99| p99.as_millis()),
            )
        })
        .collect();
    assert_eq!(actual, expected);
}

#[test]
fn the_rest_at_the_end_is_no_column() {
    check(
        &[
            period(0, 1000, 10, 3),
            period(1000, 2000, 20, 4),
            period(2000, 2899, 9, 5),
        ],
        &[(0, 1000, 10.0, Some(3)), (1000, 2000, 20.0, Some(4))],
    );
}

#[test]
fn an_interval_without_answers_has_a_rate_and_no_p99() {
    check(
        &[period(0, 1000, 10, 3), period(1000, 3000, 0, 0)],
        &[(0, 1000, 10.0, Some(3)), (1000, 3000, 0.0, None)],
    );
}

#[test]
fn a_very_long_run_is_drawn_with_fewer_columns_and_its_highest_p99() {
    let mut periods: Vec<Period> = (0..COLUMNS_MAX as u64 + 2)
        .map(|second| period(second * 1000, second * 1000 + 1000, 10, 3))
        .collect();
    periods[1].answered = 30;
    periods[1].p99 = Duration::from_millis(70);
    let columns = columns(&periods, Duration::from_secs(1));
    assert_eq!(columns.len(), COLUMNS_MAX / 2 + 1);
    let first = columns[0];
    assert_eq!(first.end, Duration::from_secs(2));
    assert_eq!(first.answered_per_second, 20.0);
    assert_eq!(first.p99, Some(Duration::from_millis(70)));
}

#[test]
fn a_gap_lifts_the_pen() {
    let clock = Clock::new(strip(0.0), Duration::from_secs(4));
    let columns = columns(
        &[
            period(0, 1000, 1, 1),
            period(1000, 2000, 1, 1),
            period(2000, 3000, 0, 0),
            period(3000, 4000, 1, 1),
        ],
        Duration::from_secs(1),
    );
    let steps = columns
        .iter()
        .map(|column| (column, column.p99.map(|_| 50.0)));
    let mut text = String::new();
    staircase(&mut text, "latency", &clock, steps);
    assert_eq!(
        text,
        "<path class=\"curve thin latency\" \
         d=\"M84.0 50.0H293.0L293.0 50.0H502.0M711.0 50.0H920.0\"/>\n"
    );
}

#[test]
fn the_clock_shows_small_numbers() {
    for (seconds, name) in [
        (10, "seconds"),
        (180, "seconds"),
        (181, "minutes"),
        (7200, "minutes"),
        (86_400, "hours"),
    ] {
        let clock = Clock::new(strip(0.0), Duration::from_secs(seconds));
        assert_eq!(clock.name, name);
        let mut text = String::new();
        clock.rules(&mut text, true);
        assert!(
            (3..=16).contains(&text.lines().count()),
            "{seconds}: {text}"
        );
    }
}

#[test]
fn rates_are_round() {
    for (rate, expected) in [
        (0.0, "0"),
        (0.5, "0.5"),
        (20_000.0, "20,000"),
        (1_500_000.0, "1.5 M"),
    ] {
        assert_eq!(rate_label(rate), expected);
    }
}
