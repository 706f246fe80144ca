//! Worlds of five hundred seeds, and of fifty new ones. Several tests, so that they run beside each other.

use mill_simtest::plan::Plan;
use mill_simtest::run::run;
use mill_simtest::seeds::{World, failing};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;

fn check(seeds: Range<u64>) {
    let failing = failing(seeds);
    let told: Vec<String> = failing.iter().map(tell).collect();
    assert!(
        told.is_empty(),
        "`cargo xtask sim --seed N --trace` replays one of these:\n{}",
        told.join("\n")
    );
}

fn tell(world: &World) -> String {
    match world {
        World::Ended(outcome) => outcome.to_string(),
        World::Panicked { seed, message } => format!("seed {seed}: panicked: {message}"),
    }
}

#[test]
fn all_is_well_in_worlds_0_to_124() {
    check(0..125);
}

#[test]
fn all_is_well_in_worlds_125_to_249() {
    check(125..250);
}

#[test]
fn all_is_well_in_worlds_250_to_374() {
    check(250..375);
}

#[test]
fn all_is_well_in_worlds_375_to_499() {
    check(375..500);
}

#[test]
fn the_fixed_worlds_are_of_all_kinds() {
    let mut kinds = BTreeMap::new();
    for seed in 0..500 {
        for kind in Plan::new(seed).kinds() {
            *kinds.entry(kind).or_insert(0) += 1;
        }
    }
    assert_eq!(kinds.len(), 13, "{kinds:?}");
    assert!(kinds.values().all(|count| *count >= 20), "{kinds:?}");
}

#[test]
fn all_is_well_in_new_worlds() {
    // A hasher's keys are from the system's randomness.
    let first = RandomState::new().hash_one(0) >> 16;
    check(first..first + 50);
}

#[test]
fn the_same_seed_makes_the_same_world() {
    for seed in [1, 17, 99] {
        let plan = Plan::new(seed);
        let (one, other) = (run(&plan, true), run(&plan, true));
        assert!(!one.segments.is_empty());
        assert!(one.segments == other.segments, "seed {seed}");
        assert_eq!(one.to_string(), other.to_string());
    }
    assert!(run(&Plan::new(1), true).segments != run(&Plan::new(2), true).segments);
}
