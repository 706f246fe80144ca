//! Requirements that are met or missed, and their messages.

use super::*;
use crate::failure::FailureKind;
use crate::native::answers::Answers;
use crate::native::measures::Measures;
use crate::tally::Tally;

/// A hundred answers after 1 to 100 ms in two seconds, two of them bad, and one timeout.
fn results() -> Results {
    let mut measures = Measures::new(false);
    for millis in 1..=100 {
        measures.latency.record(Duration::from_millis(millis));
    }
    let mut tally = Tally {
        started: 101,
        answered: 100,
        statuses_bad: 2,
        ..Tally::default()
    };
    tally.on_failure(FailureKind::Timeout);
    Results {
        measured: Duration::from_secs(2),
        tally,
        measures,
        ..empty()
    }
}

fn empty() -> Results {
    Results {
        began: Default::default(),
        measured: Duration::from_secs(2),
        tally: Tally::default(),
        measures: Measures::new(false),
        answers: Answers::default(),
        failures: Vec::new(),
        periods: Vec::new(),
        machine: Default::default(),
        gaps: Vec::new(),
        interrupted: false,
        aborted: None,
    }
}

fn latency(percent: f64, millis: u64) -> Requirement {
    Requirement::Latency {
        percent,
        most: Duration::from_millis(millis),
    }
}

#[track_caller]
fn check(requirement: Requirement, results: &Results, expected: &str) {
    let kept = requirement.examine(results, 10);
    let held = if kept.held { "held" } else { "missed" };
    let line = format!(
        "{held} {} {}: {} {}",
        requirement.option(),
        requirement.limit(),
        requirement.name(),
        kept.measured
    );
    assert_eq!(line, expected);
}

#[test]
fn both_figures_are_shown_whether_it_was_met_or_not() {
    let results = results();
    check(
        latency(50.0, 51),
        &results,
        "held --max-p50 51.0 ms: p50 50.0 ms",
    );
    check(
        latency(99.0, 90),
        &results,
        "missed --max-p99 90.0 ms: p99 99.0 ms",
    );
    check(
        latency(100.0, 101),
        &results,
        "held --max-latency 101 ms: longest latency 100 ms",
    );
    check(
        Requirement::Errors(MostErrors::Count(3)),
        &results,
        "held --max-errors 3: errors 3",
    );
    check(
        Requirement::Errors(MostErrors::Count(0)),
        &results,
        "missed --max-errors 0: errors 3",
    );
    check(
        Requirement::Errors(MostErrors::Percent(2.5)),
        &results,
        "missed --max-errors 2.5 %: errors 2.97 %",
    );
    check(
        Requirement::Rate { least: 50.0 },
        &results,
        "held --min-rate 50.0/s: rate 50.0/s",
    );
    check(
        Requirement::Rate { least: 2e4 },
        &results,
        "missed --min-rate 20,000/s: rate 50.0/s",
    );
}

#[test]
fn without_an_answer_no_latency_holds() {
    check(
        latency(99.0, 90),
        &empty(),
        "missed --max-p99 90.0 ms: p99 no answer",
    );
    check(
        Requirement::Errors(MostErrors::Percent(0.0)),
        &empty(),
        "held --max-errors 0 %: errors 0 %",
    );
}

#[test]
fn errors_are_a_count_or_a_share() {
    assert_eq!(MostErrors::parse("0"), Ok(MostErrors::Count(0)));
    assert_eq!(MostErrors::parse("0.1%"), Ok(MostErrors::Percent(0.1)));
    for bad in ["", "-1", "%", "101%", "1.5"] {
        assert!(MostErrors::parse(bad).is_err(), "{bad}");
    }
}
