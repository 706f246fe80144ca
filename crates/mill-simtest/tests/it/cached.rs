//! Worlds with a cache: three hundred seeds, and ten new ones.

use mill_simtest::cached::plan::CachedPlan;
use mill_simtest::cached::run::run;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;

/// Runs the worlds; returns what became of requests.
fn check(seeds: Range<u64>) -> BTreeMap<&'static str, u64> {
    let outcomes: Vec<_> = seeds
        .map(|seed| run(&CachedPlan::new(seed), false))
        .collect();
    let failing = outcomes
        .iter()
        .filter(|outcome| !outcome.failures.is_empty());
    let told: String = failing.map(ToString::to_string).collect();
    assert!(
        told.is_empty(),
        "`cargo xtask sim --cache --seed N --trace` replays one of these:\n{told}"
    );
    let mut found = BTreeMap::new();
    for (name, count) in outcomes.iter().flat_map(|outcome| &outcome.found) {
        *found.entry(*name).or_default() += count;
    }
    found
}

#[test]
fn all_is_well_in_worlds_with_a_cache_0_to_149() {
    let found = check(0..150);
    // Nothing that is looked for is missing.
    for name in [
        "answered by a hit",
        "answered by a miss",
        "answered after expiry",
        "answered by something stale",
        "answered after validation",
        "refused by the proxy",
        "cut",
        "left",
        "that remove",
    ] {
        assert!(
            found.get(name).is_some_and(|count| *count >= 10),
            "{name}: {found:?}"
        );
    }
}

#[test]
fn all_is_well_in_worlds_with_a_cache_150_to_299() {
    check(150..300);
}

#[test]
fn all_is_well_in_new_worlds_with_a_cache() {
    // A hasher's keys are from the system's randomness.
    let first = RandomState::new().hash_one(1) >> 16;
    check(first..first + 10);
}

#[test]
fn the_same_seed_makes_the_same_world_with_a_cache() {
    let plan = CachedPlan::new(5);
    let (one, other) = (run(&plan, true), run(&plan, true));
    assert!(!one.segments.is_empty());
    assert!(one.segments == other.segments);
}

#[test]
fn a_cache_that_does_what_it_must_not_is_found_out() {
    for (slip, told) in [
        ("proxy_cache_key $request_method;", "it is that of object"),
        (IGNORANT, "it is that of user"),
        (IGNORANT, "it is that of variant"),
        (IGNORANT, "HIT, said at"),
        // A purge has no such field.
        ("proxy_cache_key $uri$http_x_user;", "gone since then"),
        ("proxy_no_cache 1;", "is_plain: true } although"),
    ] {
        let failures = (0..60).flat_map(|seed| {
            let mut plan = CachedPlan::new(seed);
            plan.serving.follows_rfc = false;
            plan.serving.valid = (0, 0);
            plan.slip = slip;
            run(&plan, false).failures
        });
        let mut failures = failures.map(|failure| format!("{failure:?}"));
        assert!(
            failures.any(|failure| failure.contains(told)),
            "{slip}: {told}"
        );
    }
}

/// Keeps everything, for all users, for a minute.
const IGNORANT: &str = "proxy_ignore_headers Cache-Control Set-Cookie Vary Expires X-Accel-Expires; proxy_cache_valid any 60s;";
