//! Limits that figures and ratios are to keep.

use super::made_up::{ALLOCATORS, Run};
use crate::analysis::{findings, undecided_points};

/// The verdicts on targets at jemalloc, which is faster than glibc by 10 % at 30 000 requests/s.
fn check(targets: &str, expected: &[&str]) {
    check_of(10, targets, expected);
}

fn check_of(blocks: u32, targets: &str, expected: &[&str]) {
    check_with_errors(blocks, &[], targets, expected);
}

/// The same with errors in jemalloc's trials of some blocks, which are then ten times as fast.
fn check_with_errors(blocks: u32, failed: &[u32], targets: &str, expected: &[&str]) {
    let mut run = Run::new(&format!("{ALLOCATORS}{targets}")).blocks(blocks, 0.1, 0.001);
    for trial in &mut run.kept.trials {
        let of_jemalloc = trial.point["system"] == "jemalloc";
        if of_jemalloc && failed.contains(&trial.block) {
            trial.figures.insert(String::from("errors.all"), 7.0);
            *trial.figures.get_mut("requests_per_s").unwrap() *= 10.0;
        }
    }
    let found = findings(&run.kept);
    let grid = found.tables.iter().find(|grid| grid.title == "Targets");
    let rows = grid.map_or(&[][..], |grid| grid.rows.as_slice());
    let verdicts: Vec<&str> = rows
        .iter()
        .filter_map(|row| Some(row.last()?.text.as_str()))
        .collect();
    assert_eq!(verdicts, expected, "{targets}");
    let said = found
        .summary
        .iter()
        .any(|one| one.text.starts_with("Targets"));
    assert_eq!(said, !expected.is_empty());
}

#[test]
fn a_limit_of_a_ratio_is_met_missed_or_open() {
    let target = |limit: &str| {
        format!(
            "[[target]]\nmetric = \"requests_per_s\"\nat = {{ system = \"jemalloc\" }}\nover = {{ system = \"glibc\" }}\n{limit}\n"
        )
    };
    check("", &[]);
    check(&target("at_least = 1.05"), &["met"]);
    check(&target("at_least = 1.2"), &["missed"]);
    check(&target("at_most = 1.1"), &["open"]);
    check_of(5, &target("at_least = 1.05"), &["open"]);
    check(&target("at_least = 1.05\nat_most = 1.06"), &["missed"]);
}

#[test]
fn a_limit_of_a_figure_holds_at_each_point_and_in_each_trial() {
    let target =
        |limit: f64| format!("[[target]]\nmetric = \"requests_per_s\"\nat_least = {limit}\n");
    check(&target(20_000.0), &["met", "met"]);
    check(&target(31_500.0), &["missed", "met"]);
    check(&target(33_000.0), &["missed", "open"]);
    check(
        &target(20_000.0).replace("requests_per_s", "latency_s.p99"),
        &[],
    );
}

#[test]
fn trials_in_which_requests_failed_do_not_count() {
    let figure = "[[target]]\nmetric = \"requests_per_s\"\nat = { system = \"jemalloc\" }\nat_most = 40000\n";
    let ratio = "over = { system = \"glibc\" }\nat_most = 1.2\n";
    let ratio = figure.replace("at_most = 40000\n", ratio);
    let check = |failed: &[u32], verdict: &str| {
        check_with_errors(10, failed, figure, &[verdict]);
        check_with_errors(10, failed, &ratio, &[verdict]);
    };
    check(&[], "met");
    check(&[3, 7], "met; 2 of 10 had errors and are left out");
    let all: Vec<u32> = (0..10).collect();
    check(&all, "open; 10 of 10 had errors and are left out");
    let errors = figure.replace("requests_per_s", "errors.all");
    check_with_errors(10, &all, &errors, &["met"]);
}

#[test]
fn open_ratios_name_the_points_that_they_rest_on_and_open_figures_none() {
    let of = |limit: &str, rest: &str| {
        format!(
            "[[target]]\nmetric = \"requests_per_s\"\nat = {{ system = \"jemalloc\" }}\n{limit}\n{rest}\n"
        )
    };
    let over = "over = { system = \"glibc\" }";
    let systems = |blocks: u32, target: &str| -> Vec<String> {
        let run = Run::new(&format!("{ALLOCATORS}{target}")).blocks(blocks, 0.1, 0.001);
        let points = undecided_points(&run.kept).into_iter();
        points.map(|point| point["system"].clone()).collect()
    };
    let none: [&str; 0] = [];
    assert_eq!(systems(10, &of("at_least = 1.05", over)), none);
    assert_eq!(
        systems(10, &of("at_most = 1.1", over)),
        ["glibc", "jemalloc"]
    );
    assert_eq!(
        systems(5, &of("at_least = 1.05", over)),
        ["glibc", "jemalloc"]
    );
    assert_eq!(systems(10, &of("at_least = 33000", "")), none);
}
