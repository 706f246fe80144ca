//! A busy machine for the lab: runs of which others took from nothing to all of the CPU time, in all combinations of the two systems, few
//! blocks and many, little noise and much. For any figures, a report must not contradict itself.

use super::made_up::{ALLOCATORS, Run};
use crate::analysis::{compare, findings};
use crate::findings::{Compared, Findings, LEVEL, Verdict};
use crate::limit::{CPU_OWN, judge};
use crate::parts::assert_contains;
use crate::record::{Figures, Status};
use crate::report;

/// The table has figures beside a gain and beside a change.
const LAYOUT: &str = r#"
[[table]]
title = "Requests"
head = "Metric"
rows.metrics = ["requests_per_s"]
columns = [
    { title = "glibc", at.system = "glibc" },
    { title = "jemalloc", at.system = "jemalloc" },
    { title = "gain", at.system = "jemalloc", over.system = "glibc", digits = 6 },
    { title = "change", at.system = "jemalloc", over.system = "glibc", change = true },
]
"#;

/// What monitors see of a side of whose CPUs others took a share, the client being half as busy as the server.
fn seen(foreign: f64) -> Figures {
    let (server, client) = (100.0 - foreign, (100.0 - foreign) / 2.0);
    [
        ("cpu.server.idle", 0.0),
        ("cpu.server.own", server),
        ("cpu.server.others", foreign),
        ("cpu.client.idle", client),
        ("cpu.client.own", client),
        ("cpu.client.others", foreign),
        ("foreign_cpu_share", foreign / 100.0),
    ]
    .map(|(name, value)| (String::from(name), value))
    .into()
}

/// A run in which others took `foreign` percent from each system's trials, except in blocks that `is_quiet`. The
/// additional system makes the comparisons a family of two.
fn run(blocks: u32, foreign: [f64; 2], noise: f64, is_quiet: impl Fn(u32) -> bool) -> Run {
    let third = "[[compare]]\nfrom = \"glibc\"\nto = \"own\"\nfactor = \"stack\"\n";
    let mut run = Run::new(&format!("{ALLOCATORS}\n{third}\n{LAYOUT}")).blocks(blocks, 0.1, noise);
    for block in 0..blocks {
        let rate = 28_000.0 + 900.0 * f64::from(block % 3);
        run.trial(
            block,
            "system=own concurrency=100",
            &[("requests_per_s", rate)],
        );
    }
    for trial in &mut run.kept.trials {
        let taken = match trial.point["system"].as_str() {
            "glibc" => foreign[0],
            _ => foreign[1],
        };
        let taken = if is_quiet(trial.block) { 0.0 } else { taken };
        trial.figures.extend(seen(taken));
        let rate = trial.figures["requests_per_s"] * (100.5 - taken) / 100.0;
        trial.figures.insert(String::from("requests_per_s"), rate);
        trial.limit = judge(&trial.figures, false);
        if taken > 100.0 * run.kept.recipe.repeat.foreign_cpu {
            trial.status = Status::Disturbed {
                reason: format!("other programs took {taken:.1} % of the machine's CPU time"),
            };
        }
    }
    run
}

fn sign(value: f64) -> i32 {
    i32::from(value > 1e-12) - i32::from(value < -1e-12)
}

/// The numbers of a text, in their order.
fn numbers(text: &str) -> Vec<f64> {
    let words = text.split(|letter: char| !letter.is_ascii_digit() && !".-+".contains(letter));
    words.filter_map(|word| word.parse().ok()).collect()
}

/// What holds of each comparison.
fn check_compared(compared: &Compared) {
    let quotient = (compared.to_figure / compared.from_figure).ln();
    assert!(
        (quotient - compared.ratio.ln()).abs() < 1e-9,
        "{compared:?}"
    );
    let decided = matches!(compared.verdict, Verdict::Better | Verdict::Worse);
    if decided {
        assert!(compared.p_value.is_some_and(|p| p < LEVEL), "{compared:?}");
        let rose = compared.words.starts_with("faster");
        assert_eq!(sign(compared.ratio.ln()) > 0, rose, "{compared:?}");
    }
    assert_eq!(compared.covers.is_some(), compared.interval.is_some());
    if compared.covers.is_some_and(|covers| covers < 0.95) {
        assert!(compared.words.contains("which covers"), "{compared:?}");
    }
}

/// What holds of the table: figures beside a change, and medians beside a gain, point its way.
fn check_table(found: &Findings) {
    let row = &found.tables[0].rows[0];
    let medians = (numbers(&row[1].text)[0], numbers(&row[2].text)[0]);
    if let [gain] = numbers(&row[3].text)[..] {
        let beside = (medians.1 / medians.0).ln();
        assert_eq!(sign(gain), sign(beside), "{row:?}");
    } else {
        assert!(
            row[3]
                .mark
                .as_ref()
                .is_some_and(|mark| mark.contains("undecided")),
            "{row:?}"
        );
    }
    if let [from, to, change] = numbers(&row[4].text)[..] {
        let shown = (to / from - 1.0) * 100.0;
        // From a hundred percent on changes are whole.
        let rounding = if change.abs() < 99.95 { 0.06 } else { 0.6 } + change.abs() * 1e-4;
        assert!((shown - change).abs() < rounding, "{row:?}");
    } else {
        assert!(row[4].mark.is_some(), "{row:?}");
    }
}

/// Words that name a side.
const NAMED: [&str; 4] = [
    "server-bound",
    "client-bound",
    "both sides busy",
    "CPUs of both sides",
];

#[test]
fn reports_of_busy_machines_do_not_contradict_themselves() {
    let shares = [0.0, 4.0, 8.0, 30.0, 75.0, 100.0];
    for blocks in [1, 3, 6, 9] {
        for (from, to) in shares.iter().flat_map(|a| shares.map(|b| (*a, b))) {
            for noise in [0.001, 0.05, 0.8] {
                let run = run(blocks, [from, to], noise, |_| false);
                let found = findings(&run.kept);
                let place = format!("{blocks} blocks, {from} and {to} %, noise {noise}");
                assert_eq!(found.comparisons.len(), 2, "{place}");
                found.comparisons.iter().for_each(check_compared);
                check_table(&found);
                let told: Vec<&str> = found.summary.iter().map(|it| it.text.as_str()).collect();
                let cautions = found
                    .comparisons
                    .iter()
                    .filter_map(|it| it.caution.as_deref());
                let marks = found.tables[0].rows[0]
                    .iter()
                    .filter_map(|it| it.mark.as_deref());
                if 100.0 - from < CPU_OWN && 100.0 - to < CPU_OWN {
                    for text in told.iter().copied().chain(cautions).chain(marks) {
                        assert!(
                            !NAMED.iter().any(|word| text.contains(word)),
                            "{place}: {text}"
                        );
                    }
                    let row = &found.tables[0].rows[0];
                    assert_eq!(row[1].mark.as_deref(), Some("foreign CPU"), "{place}");
                }
                let busy = from > 5.0 || to > 5.0;
                assert_eq!(
                    told[0].starts_with("Warning: the machine was busy"),
                    busy,
                    "{place}: {told:?}"
                );
                let counts = found.counts;
                assert_eq!(counts.disturbed, counts.disturbed_used, "{place}");
            }
        }
    }
}

#[test]
fn a_quiet_trial_is_preferred_and_disturbed_pairs_are_used_only_where_quiet_ones_are_too_few() {
    let check = |blocks: u32, quiet: u32, pairs: usize, used: usize| {
        let run = run(blocks, [40.0, 40.0], 0.001, |block| block < quiet);
        let found = findings(&run.kept);
        let place = format!("{quiet} of {blocks} blocks are quiet");
        assert_eq!(found.comparisons[0].pairs, pairs, "{place}");
        assert_eq!(found.counts.disturbed_used, used, "{place}");
        let cautioned = found.comparisons[0].caution.is_some();
        assert_eq!(
            cautioned,
            used > 0,
            "{place}: {:?}",
            found.comparisons[0].caution
        );
        // With one quiet trial the cell has that, and none of the others.
        let cell = &found.tables[0].rows[0][1];
        assert_eq!(cell.mark.is_some(), quiet == 0, "{place}: {cell:?}");
    };
    check(6, 6, 6, 0);
    check(6, 3, 3, 0);
    // Of the noise floor's second runs the disturbed ones are not used: there are quiet ones.
    check(6, 2, 6, 12);
    check(6, 0, 6, 24);
}

#[test]
fn a_run_on_a_machine_fully_used_by_others_has_a_result_and_a_warning() {
    let run = run(6, [100.0, 100.0], 0.02, |_| false);
    let found = findings(&run.kept);
    assert!(!found.tables[0].rows[0][1].text.is_empty());
    let first = &found.summary[0].text;
    assert_contains(
        first,
        "others took 100 % of its CPU time in 24 of 24 trials",
    );
    assert!(report::html(&found).contains("foreign CPU"));
    assert!(
        found
            .absences
            .iter()
            .any(|text| text.contains("used for want of others"))
    );
}

#[test]
fn two_runs_are_compared_without_contradiction_too() {
    for blocks in [1, 3, 4, 6, 8] {
        for noise in [0.001, 0.1, 0.8] {
            let (a, mut b) = (
                run(blocks, [0.0, 30.0], noise, |_| false),
                run(blocks, [0.0, 0.0], noise, |_| false),
            );
            for trial in &mut b.kept.trials {
                let rate = trial.figures["requests_per_s"];
                let other = rate * (1.0 + noise * f64::from(trial.block % 3) - 0.3 * noise);
                trial.figures.insert(String::from("requests_per_s"), other);
            }
            let between = compare(&a.kept, &b.kept);
            assert!(!between.comparisons.is_empty());
            between.comparisons.iter().for_each(check_compared);
        }
    }
}
