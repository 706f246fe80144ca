//! Worlds with a proxy: two hundred seeds, and ten new ones.

use mill_simtest::proxied::plan::ProxiedPlan;
use mill_simtest::proxied::run::run;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;

/// Runs the worlds; returns what became of requests.
fn check(seeds: Range<u64>) -> BTreeMap<&'static str, u64> {
    let outcomes: Vec<_> = seeds
        .map(|seed| run(&ProxiedPlan::new(seed), false))
        .collect();
    let failing = outcomes
        .iter()
        .filter(|outcome| !outcome.failures.is_empty());
    let told: String = failing.map(ToString::to_string).collect();
    assert!(
        told.is_empty(),
        "`cargo xtask sim --proxy --seed N --trace` replays one of these:\n{told}"
    );
    let mut found = BTreeMap::new();
    for (name, count) in outcomes.iter().flat_map(|outcome| &outcome.found) {
        *found.entry(*name).or_default() += count;
    }
    found
}

#[test]
fn all_is_well_in_worlds_with_a_proxy_0_to_99() {
    let found = check(0..100);
    // Nothing that is looked for is missing.
    for name in [
        "answered",
        "refused by the proxy",
        "cut",
        "left",
        "repeated",
    ] {
        assert!(
            found.get(name).is_some_and(|count| *count >= 10),
            "{found:?}"
        );
    }
}

#[test]
fn all_is_well_in_worlds_with_a_proxy_100_to_199() {
    check(100..200);
}

#[test]
fn all_is_well_in_new_worlds_with_a_proxy() {
    // A hasher's keys are from the system's randomness.
    let first = RandomState::new().hash_one(1) >> 16;
    check(first..first + 10);
}

#[test]
fn the_same_seed_makes_the_same_world_with_a_proxy() {
    let plan = ProxiedPlan::new(5);
    let (one, other) = (run(&plan, true), run(&plan, true));
    assert!(!one.segments.is_empty());
    assert!(one.segments == other.segments);
}

#[test]
fn the_same_seed_makes_the_same_world_under_tls_but_for_the_bytes() {
    let plans = (0..100).map(ProxiedPlan::new);
    let secured: Vec<_> = plans
        .filter(|plan| plan.secured.is_some() || plan.has_secured_origins)
        .collect();
    assert!(secured.len() > 10);
    for plan in secured {
        let [one, other] = [(); 2].map(|()| run(&plan, false));
        assert_eq!((one.took, one.frames), (other.took, other.frames), "{plan}");
    }
}
