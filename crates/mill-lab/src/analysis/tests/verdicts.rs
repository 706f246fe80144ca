//! Verdicts on ratios.

use super::made_up::{ALLOCATORS, Run, limit};
use crate::analysis::{findings, widest_half_width};
use crate::findings::{Compared, Tone, Verdict};
use crate::limit::Side;
use crate::parts::assert_contains;
use crate::record::Status;
use crate::statistics::{log_ratios, quantile};

fn only(run: &Run) -> Compared {
    let findings = findings(&run.kept);
    assert_eq!(findings.comparisons.len(), 1);
    findings.comparisons.into_iter().next().unwrap()
}

#[test]
fn a_gain_of_ten_percent_in_noise_of_two_is_found() {
    let run = Run::new(ALLOCATORS).blocks(12, 0.10, 0.02);
    let found = only(&run);
    assert_eq!(found.verdict, Verdict::Better, "{}", found.words);
    assert!(found.words.starts_with("faster by "), "{}", found.words);
    assert_contains(&found.words, "12 pairs, p = 0.000");
    assert_contains(&found.words, "smallest detectable");
    let (low, high) = found.interval.unwrap();
    assert!(low < 1.10 && 1.10 < high && low > 1.05, "{low} {high}");
    let summary = &findings(&run.kept).summary[0];
    assert_eq!(summary.tone, Tone::Gain);
    assert!(
        summary
            .text
            .starts_with("allocator: nginx, jemalloc against nginx, glibc, Requests/s: faster by"),
        "{}",
        summary.text
    );
}

#[test]
fn a_loss_is_told_as_one() {
    let found = only(&Run::new(ALLOCATORS).blocks(12, -0.10, 0.01));
    assert_eq!(found.verdict, Verdict::Worse);
    assert!(found.words.starts_with("slower by "), "{}", found.words);
}

#[test]
fn equals_are_no_difference() {
    let recipe = ALLOCATORS.replace("[[compare]]", "[repeat]\nthreshold = 0.02\n\n[[compare]]");
    let found = only(&Run::new(&recipe).blocks(20, 0.0, 0.01));
    assert_eq!(found.verdict, Verdict::NoDifference, "{}", found.words);
    assert!(
        found.words.starts_with("no difference above "),
        "{}",
        found.words
    );
}

#[test]
fn equals_are_never_ranked_more_often_than_promised() {
    // Forty runs of equals, five blocks each: one in twenty may be wrong.
    let mut ranked = 0;
    for offset in 0..40 {
        let mut run = Run::new(ALLOCATORS).blocks(5 * (offset + 1), 0.0, 0.03);
        run.kept.trials.retain(|trial| trial.block >= 5 * offset);
        let verdict = only(&run).verdict;
        ranked += u32::from(matches!(verdict, Verdict::Better | Verdict::Worse));
    }
    assert!(ranked <= 3, "{ranked} of 40");
}

#[test]
fn a_small_gain_in_much_noise_is_inconclusive_with_the_number_of_blocks_needed() {
    let found = only(&Run::new(ALLOCATORS).blocks(6, 0.03, 0.05));
    assert_eq!(found.verdict, Verdict::Inconclusive, "{}", found.words);
    assert!(found.words.contains("more blocks"), "{}", found.words);
}

#[test]
fn two_pairs_have_no_interval_and_three_say_what_theirs_covers() {
    let run = Run::new(ALLOCATORS).blocks(2, 0.5, 0.001);
    let found = only(&run);
    assert_eq!(
        (found.verdict, found.interval),
        (Verdict::Inconclusive, None)
    );
    assert_contains(&found.words, "three at least are needed");
    assert_eq!(widest_half_width(&run.kept), None);
    let run = Run::new(ALLOCATORS).blocks(3, 0.5, 0.001);
    let found = only(&run);
    assert_eq!(found.verdict, Verdict::Better);
    assert_contains(&found.words, "their range, which covers 75.0 %");
    assert!(widest_half_width(&run.kept).unwrap() < 0.01);
}

#[test]
fn void_trials_do_not_count() {
    let mut run = Run::new(ALLOCATORS).blocks(12, 0.10, 0.01);
    for trial in run.kept.trials.iter_mut().filter(|trial| trial.block < 4) {
        trial.status = Status::Disturbed {
            reason: String::from("others took 9 % of the CPUs"),
        };
        trial.figures.insert(String::from("requests_per_s"), 1.0);
    }
    let found = findings(&run.kept);
    assert_eq!(found.comparisons[0].pairs, 8);
    assert_eq!((found.counts.measured, found.counts.disturbed), (24, 12));
    assert!(found.comparisons[0].from_figure > 25_000.0);
    assert!(
        found
            .absences
            .iter()
            .any(|text| text.contains("disturbed, not used")),
        "{:?}",
        found.absences
    );
}

#[test]
fn the_last_attempt_at_a_trial_is_the_one_that_counts() {
    let mut run = Run::new(ALLOCATORS).blocks(3, 0.10, 0.001);
    let mut again = run.kept.trials[0].clone();
    run.kept.trials[0].status = Status::Disturbed {
        reason: String::from("disturbed"),
    };
    again.attempt = 1;
    run.kept.trials.push(again);
    let found = findings(&run.kept);
    assert_eq!((found.counts.measured, found.counts.disturbed), (9, 0));
    assert_eq!(found.comparisons[0].pairs, 3);
}

#[test]
fn less_cpu_a_request_is_better() {
    let recipe = ALLOCATORS.replace(
        "factor = \"allocator\"",
        "factor = \"allocator\"\nmetrics = [\"cpu_us_per_request.server\"]",
    );
    let mut run = Run::new(&recipe);
    for block in 0..6 {
        let drift = 1.0 + 0.01 * f64::from(block);
        run.trial(
            block,
            "system=glibc concurrency=100",
            &[("cpu_us_per_request.server", 30.0 * drift)],
        );
        run.trial(
            block,
            "system=jemalloc concurrency=100",
            &[("cpu_us_per_request.server", 27.0 * drift * drift.powf(0.01))],
        );
    }
    let found = only(&run);
    assert_eq!(found.verdict, Verdict::Better, "{}", found.words);
    assert!(found.words.starts_with("lower by "), "{}", found.words);
}

#[test]
fn a_client_that_was_the_limit_makes_the_ratio_a_lower_bound() {
    let check = |from: Side, to: Side, expected: Option<&str>| {
        let mut run = Run::new(ALLOCATORS).blocks(3, 0.5, 0.001);
        for trial in &mut run.kept.trials {
            let first = trial
                .point
                .get("system")
                .is_some_and(|system| system == "glibc");
            trial.limit = limit(if first { from } else { to });
        }
        let caution = only(&run).caution;
        match expected {
            Some(words) => assert!(
                caution.as_ref().is_some_and(|c| c.contains(words)),
                "{caution:?}"
            ),
            None => assert_eq!(caution, None),
        }
    };
    check(Side::Server, Side::Server, None);
    check(
        Side::Server,
        Side::Client,
        Some("nginx, jemalloc was client-bound: the true ratio is at least this"),
    );
    check(Side::Link, Side::Server, Some("at most this"));
    check(Side::Client, Side::Client, Some("both were client-bound"));
    check(Side::Server, Side::Nothing, Some("limits differ"));
}

#[test]
fn the_noise_floor_is_reported_with_its_number_of_pairs() {
    let found = findings(&Run::new(ALLOCATORS).blocks(10, 0.1, 0.02).kept);
    let noise = found.noise.unwrap();
    assert_eq!(noise.pairs, 10);
    // t(0.975, 10) · √2 · 0.02 · √(π/2 / 10) is 2.5 %; ten pairs estimate it to a third.
    assert!((0.012..0.04).contains(&noise.floor), "{}", noise.floor);
    assert_contains(&noise.text, "nginx, glibc ran twice in 10 blocks");
    assert!(
        found
            .summary
            .iter()
            .any(|statement| statement.text == noise.text)
    );
}

#[test]
fn as_many_blocks_more_as_are_advised_do_decide_if_they_are_like_the_others() {
    let mut advised = 0;
    for (blocks, gain, noise) in [
        (3, 0.03, 0.02),
        (4, 0.10, 0.05),
        (6, 0.03, 0.02),
        (6, 0.05, 0.08),
        (7, 0.02, 0.02),
        (10, 0.02, 0.03),
        (12, -0.02, 0.03),
    ] {
        let mut run = Run::new(ALLOCATORS).blocks(blocks, gain, noise);
        // Without a noise floor, which would have to be repeated as well.
        run.kept.trials.retain(|trial| !trial.again);
        let found = only(&run);
        if found.verdict != Verdict::Inconclusive {
            continue;
        }
        let Some(more) = found.words.split("about ").nth(1) else {
            continue;
        };
        let more: u32 = more.split(' ').next().unwrap().parse().unwrap();
        advised += 1;
        // As many additional pairs as were advised, with ratios distributed like those before.
        let rates = |system: &str| -> Vec<f64> {
            let trials = run.kept.trials.iter();
            let of = trials.filter(|trial| trial.point["system"] == system);
            of.map(|trial| trial.figures["requests_per_s"]).collect()
        };
        let pairs: Vec<(f64, f64)> = rates("glibc").into_iter().zip(rates("jemalloc")).collect();
        let logs = log_ratios(&pairs);
        let mut longer = Run::new(ALLOCATORS);
        let count = blocks + more;
        for block in 0..count {
            let share = (f64::from(block) + 0.5) / f64::from(count);
            let log = quantile(&logs, share).unwrap();
            for (system, rate) in [("glibc", 30_000.0), ("jemalloc", 30_000.0 * log.exp())] {
                let point = format!("system={system} concurrency=100");
                longer.trial(block, &point, &[("requests_per_s", rate)]);
            }
        }
        let then = only(&longer);
        assert_ne!(
            then.verdict,
            Verdict::Inconclusive,
            "{} then {}",
            found.words,
            then.words
        );
    }
    assert!(advised >= 3, "{advised}");
}

#[test]
fn what_limits_ties_between_is_never_the_server() {
    let mut run = Run::new(ALLOCATORS).blocks(2, 0.5, 0.001);
    for trial in run.kept.trials.iter_mut().filter(|trial| trial.block == 1) {
        trial.limit = limit(Side::Foreign);
    }
    let caution = only(&run).caution.unwrap();
    assert_contains(&caution, "short of CPU time that others took");
}

#[test]
fn the_reason_why_a_system_is_missing_is_the_one_it_failed_for() {
    let mut run = Run::new(ALLOCATORS).blocks(3, 0.1, 0.01);
    let probes = "no load and no probe in this trial: probes look once, in the first block";
    for block in 0..3 {
        run.trial(block, "system=own concurrency=100", &[]).status = if block < 2 {
            Status::Absent {
                reason: String::from(probes),
            }
        } else {
            Status::Failed {
                reason: String::from("it ended with exit status: 1"),
            }
        };
    }
    let found = findings(&run.kept);
    let missing: Vec<&str> = found
        .summary
        .iter()
        .map(|it| it.text.as_str())
        .filter(|text| text.starts_with("Missing"))
        .collect();
    assert_eq!(
        missing,
        ["Missing: own stack (it ended with exit status: 1)."]
    );
}
