//! Two runs beside each other.

use super::made_up::{ALLOCATORS, Run};
use crate::analysis::compare;
use crate::findings::Verdict;

#[test]
fn a_faster_commit_is_found_and_what_differs_comes_first() {
    let a = Run::new(ALLOCATORS).blocks(10, 0.1, 0.01);
    let mut b = Run::new(ALLOCATORS).blocks(10, 0.1, 0.01);
    b.kept.run.id = String::from("later");
    b.kept.run.commit = Some(String::from("abc1234"));
    b.kept.environment.kernel = String::from("6.12");
    for trial in &mut b.kept.trials {
        trial
            .figures
            .entry(String::from("requests_per_s"))
            .and_modify(|rate| *rate *= 1.2);
    }
    let found = compare(&a.kept, &b.kept);
    assert_eq!(
        found.differences,
        ["commit: A none, B abc1234", "kernel: A none, B 6.12"]
    );
    assert!(found.refusals.is_empty());
    let verdicts: Vec<Verdict> = found.comparisons.iter().map(|c| c.verdict).collect();
    assert_eq!(verdicts, [Verdict::Better, Verdict::Better]);
    assert!((found.comparisons[0].ratio - 1.2).abs() < 1e-9);
    let text = found.text();
    let place = |words: &str| {
        text.find(words)
            .unwrap_or_else(|| panic!("{words} in {text}"))
    };
    assert!(place("commit: A none") < place("faster by 20.0 %"));
}

#[test]
fn the_same_run_twice_is_no_difference() {
    let a = Run::new(ALLOCATORS).blocks(10, 0.1, 0.01);
    let found = compare(&a.kept, &a.kept);
    assert!(found.differences.is_empty(), "{:?}", found.differences);
    assert!(
        found
            .comparisons
            .iter()
            .all(|c| c.verdict == Verdict::NoDifference),
        "{found:?}"
    );
}

#[test]
fn runs_under_different_loads_are_not_ranked() {
    let a = Run::new(ALLOCATORS).blocks(10, 0.1, 0.01);
    let b =
        Run::new(&ALLOCATORS.replace("requests = 1000", "requests = 5000")).blocks(10, 0.1, 0.01);
    let found = compare(&a.kept, &b.kept);
    assert_eq!(found.refusals, ["vars.requests: A 1000, B 5000"]);
    assert!(found.comparisons.is_empty());
    assert_eq!(found.grid.rows.len(), 2);
    assert!(found.text().contains("not ranked"));
}

#[test]
fn runs_without_a_common_point_say_so() {
    let a = Run::new(ALLOCATORS).blocks(3, 0.1, 0.01);
    let b = Run::new(ALLOCATORS);
    let found = compare(&a.kept, &b.kept);
    assert!(
        found.statements[0]
            .text
            .contains("no measured point in common")
    );
}
