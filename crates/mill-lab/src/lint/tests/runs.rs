//! Runs that are made up, with one mistake each.

use super::*;
use crate::limit::{Limit, Side};
use crate::record::{CommandLine, Status};

const RECIPE: &str = r#"
title = "t"
question = "q"

[[compare]]
from = "nginx"
to = "jemalloc"
factor = "allocator"

[system.nginx]
title = "nginx"
factors = { server = "nginx", stack = "kernel", allocator = "glibc" }

[system.jemalloc]
title = "nginx, jemalloc"
factors = { server = "nginx", stack = "kernel", allocator = "jemalloc" }
"#;

fn recipe(changes: &[(&str, &str)]) -> Recipe {
    let mut text = String::from(RECIPE);
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    toml::from_str(&text).unwrap()
}

fn limit(side: Side) -> Option<Limit> {
    let evidence = String::new();
    Some(Limit { side, evidence })
}

/// Three blocks of both systems, without any mistake.
fn trials() -> Vec<TrialRecord> {
    let mut trials = Vec::new();
    for block in 0..3 {
        for (system, rate) in [("nginx", 33_000.0), ("jemalloc", 36_000.0)] {
            trials.push(TrialRecord {
                number: trials.len(),
                block,
                point: [("system", system), ("concurrency", "100")]
                    .map(|(axis, value)| (axis.to_owned(), value.to_owned()))
                    .into(),
                seconds: 3.0,
                commands: vec![CommandLine {
                    role: String::from("client 0"),
                    line: String::from("taskset -c 0 ab -n 1000 -c 100 http://10.0.0.1/logo.svg"),
                }],
                figures: [
                    ("requests_per_s", rate),
                    ("requests", 1000.0),
                    ("seconds", 0.03),
                    ("connections_asked", 100.0),
                    ("bytes_per_response", 2910.0),
                    ("malloc_per_request", 4.0),
                ]
                .map(|(name, value)| (name.to_owned(), value))
                .into(),
                limit: limit(Side::Server),
                ..TrialRecord::default()
            });
        }
    }
    trials
}

/// The warnings of a run in which something was changed.
#[track_caller]
fn check(recipe: &Recipe, trials: &[TrialRecord], lint: &str, part: &str) {
    let warnings = run(recipe, trials);
    let texts = of_lint(&warnings, lint);
    assert!(
        texts.iter().any(|text| text.contains(part)),
        "{part}: {warnings:#?}"
    );
    assert_eq!(names(&warnings), BTreeSet::from([lint]), "{warnings:#?}");
}

/// Trials of jemalloc.
fn of_jemalloc(trials: &mut [TrialRecord]) -> impl Iterator<Item = &mut TrialRecord> {
    trials
        .iter_mut()
        .filter(|trial| trial.point["system"] == "jemalloc")
}

fn set(trial: &mut TrialRecord, name: &str, value: f64) {
    trial.figures.insert(String::from(name), value);
}

#[test]
fn a_run_without_a_mistake_has_no_warnings() {
    assert_eq!(run(&recipe(&[]), &trials()), []);
}

#[test]
fn systems_that_differ_in_two_factors_are_found() {
    let both = (
        "allocator = \"jemalloc\"",
        "allocator = \"jemalloc\", gzip = \"on\"",
    );
    check(
        &recipe(&[both]),
        &trials(),
        "two-factors",
        "jemalloc : nginx changes allocator and gzip at once.",
    );
    check(
        &recipe(&[("factor = \"allocator\"", "factor = \"server\"")]),
        &trials(),
        "two-factors",
        "is called a comparison of server, but what changes is allocator",
    );
}

#[test]
fn clients_that_were_asked_for_different_things_are_found() {
    let mut trials = trials();
    for trial in of_jemalloc(&mut trials) {
        trial.commands[0].line = trial.commands[0].line.replace("-c 100", "-c 300");
        set(trial, "connections_asked", 300.0);
    }
    check(
        &recipe(&[]),
        &trials,
        "two-factors",
        "the clients differ as well, in -c 100 and 300",
    );
}

#[test]
fn points_of_the_client_are_not_the_servers() {
    for (side, word) in [
        (Side::Client, "client-bound"),
        (Side::Both, "both sides busy"),
        (Side::Link, "link-bound"),
    ] {
        let mut trials = trials();
        trials[0].limit = limit(side);
        check(
            &recipe(&[]),
            &trials,
            "client-bound",
            &format!("compares points that were {word}: 100, nginx."),
        );
    }
}

#[test]
fn a_side_that_was_not_measured_is_not_compared_and_gives_no_warning() {
    let mut trials = trials();
    trials[0].limit = limit(Side::Both);
    of_jemalloc(&mut trials).for_each(|trial| {
        trial.status = Status::Absent {
            reason: String::from("not built yet"),
        };
    });
    let warnings = run(&recipe(&[]), &trials);
    assert!(
        !warnings
            .iter()
            .any(|warning| warning.lint == "client-bound"),
        "{warnings:#?}"
    );
}

#[test]
fn large_answers_that_the_end_of_a_run_cut_off_are_not_other_answers() {
    let mut trials = trials();
    for (trial, size) in trials
        .iter_mut()
        .zip([1.00e8, 1.00e8, 1.06e8, 1.00e8, 1.00e8, 1.05e8])
    {
        set(trial, "bytes_per_response", size);
        set(trial, "connections_asked", 25.0);
        set(trial, "requests", 100.0);
    }
    let varying = |trials: &[TrialRecord]| {
        let warnings = run(&recipe(&[]), trials);
        warnings
            .iter()
            .any(|warning| warning.lint == "varying-size")
    };
    assert!(!varying(&trials));
    trials
        .iter_mut()
        .for_each(|trial| set(trial, "requests", 10_000.0));
    assert!(varying(&trials));
}

#[test]
fn an_allocator_that_is_never_called_is_a_probe_that_missed_it() {
    let mut trials = trials();
    of_jemalloc(&mut trials).for_each(|trial| set(trial, "malloc_per_request", 0.003));
    check(
        &recipe(&[]),
        &trials,
        "wrong-allocator",
        "nginx calls malloc 4.00 times a request, jemalloc 0.00 times",
    );
}

#[test]
fn a_comparison_of_single_trials_is_found() {
    check(
        &recipe(&[]),
        &trials()[..2],
        "single-run",
        "One trial of a side is all there is for jemalloc : nginx.",
    );
}

#[test]
fn trials_that_ended_early_or_lost_connections_are_found() {
    let mut short = trials();
    set(&mut short[2], "requests", 400.0);
    check(
        &recipe(&[]),
        &short,
        "interrupted",
        "trial 3, nginx: 400 of the 1000 requests asked for were made.",
    );
    // ab -t ends a run before its -n requests are made.
    short[2].commands[0].line = String::from("ab -t 3 -n 1000 -c 100 http://10.0.0.1/logo.svg");
    short[2].figures.insert(String::from("seconds"), 3.0);
    assert_eq!(of_lint(&run(&recipe(&[]), &short), "interrupted"), [""; 0]);
    set(&mut short[2], "seconds", 1.0);
    assert_eq!(
        of_lint(&run(&recipe(&[]), &short), "interrupted"),
        ["trial 3, nginx: the run ended after 1 s of the 3 s asked for."]
    );
    let mut lost = trials();
    set(&mut lost[3], "errors.connect", 40.0);
    check(
        &recipe(&[]),
        &lost,
        "hidden-errors",
        "at most 60 of 100 connections were used",
    );
}

#[test]
fn a_trial_under_the_wrong_system_is_found() {
    let mut trials = trials();
    of_jemalloc(&mut trials).for_each(|trial| set(trial, "bytes_per_response", 2700.0));
    let warnings = run(&recipe(&[]), &trials);
    assert_eq!(warnings, []);
    set(&mut trials[1], "bytes_per_response", 2910.0);
    check(
        &recipe(&[]),
        &trials,
        "swapped-labels",
        "trial 2, jemalloc, has 2910 bytes an answer, where jemalloc has 2700 and nginx 2910",
    );
}

#[test]
fn trials_that_were_not_measured_are_passed_over() {
    let mut trials = trials();
    for trial in &mut trials {
        trial.status = Status::Failed {
            reason: String::from("no port"),
        };
        set(trial, "errors.connect", 5.0);
    }
    assert_eq!(run(&recipe(&[]), &trials), []);
}
