//! Orders of trials.

use super::*;

const RECIPE: &str = r#"
title = "t"
question = "q?"
[for]
workers = [1, 2]
[repeat]
blocks = 3
[system.nginx]
title = "nginx"
kind = "nginx"
[system.own]
title = "own"
kind = "millstream"
[load]
tool = "wrk"
args = "-d 2s ${url}"
[[probe]]
kind = "counters"
seconds = 3
"#;

fn plan(text: &str) -> (Resolved, Plan) {
    let recipe = Resolved::parse("t.toml", text, "").unwrap();
    let plan = Plan::of(&recipe, 64).unwrap();
    (recipe, plan)
}

#[test]
fn each_block_has_every_point_once_and_the_first_system_once_more() {
    let (recipe, plan) = plan(RECIPE);
    let points = recipe.points();
    assert_eq!(points.len(), 4);
    for block in 0..3 {
        let of_block: Vec<&Trial> = plan.trials.iter().filter(|t| t.block == block).collect();
        assert_eq!(of_block.len(), 5);
        for point in &points {
            let count = of_block
                .iter()
                .filter(|t| t.point == *point && !t.again)
                .count();
            assert_eq!(count, 1);
        }
        let again = of_block.iter().find(|t| t.again).unwrap();
        assert_eq!(again.point.get("system").map(String::as_str), Some("nginx"));
        let first = of_block
            .iter()
            .find(|t| !t.again && t.point.get("system").is_some_and(|s| s == "nginx"));
        assert_eq!(again.point, first.unwrap().point);
    }
    assert!(
        plan.trials
            .iter()
            .enumerate()
            .all(|(number, t)| t.number == number)
    );
}

#[test]
fn probes_are_only_in_the_first_block_and_never_in_trials_again() {
    let (_, plan) = plan(RECIPE);
    for trial in &plan.trials {
        let expected = usize::from(trial.block == 0 && !trial.again);
        assert_eq!(trial.setup.probe.len(), expected);
    }
}

#[test]
fn probes_that_are_all_there_is_are_in_every_trial() {
    let (_, plan) = plan(&RECIPE.replace("\"wrk\"", "\"none\""));
    assert_eq!(plan.trials.len(), 15);
    assert!(plan.trials.iter().all(|trial| trial.setup.probe.len() == 1));
}

#[test]
fn without_again_there_are_only_points() {
    let (_, plan) = plan(&RECIPE.replace("blocks = 3", "blocks = 3\nagain = false"));
    assert_eq!(plan.trials.len(), 12);
    assert!(plan.trials.iter().all(|trial| !trial.again));
}

#[test]
fn a_seed_is_an_order() {
    let orders = |text: &str| -> Vec<Point> {
        plan(text)
            .1
            .trials
            .into_iter()
            .map(|trial| trial.point)
            .collect()
    };
    assert_eq!(orders(RECIPE), orders(RECIPE));
    let other = RECIPE.replace("blocks = 3", "blocks = 3\nseed = 2");
    assert_ne!(orders(RECIPE), orders(&other));
}

#[test]
fn a_block_more_is_the_block_that_a_longer_plan_has() {
    let (recipe, mut short) = plan(RECIPE);
    let (_, long) = plan(&RECIPE.replace("blocks = 3", "blocks = 4"));
    short.extend(&recipe, |_| true).unwrap();
    assert_eq!(short, long);
}

#[test]
fn a_block_more_may_have_some_points_only_and_a_resumed_run_has_the_same() {
    let (recipe, mut plan) = plan(RECIPE);
    let planned = plan.clone();
    let is_own = |point: &Point| point.get("system").is_some_and(|system| system == "own");
    plan.extend(&recipe, is_own).unwrap();
    let further = &plan.trials[planned.trials.len()..];
    assert!(further.len() < planned.trials.len() / 3 && !further.is_empty());
    assert!(
        further
            .iter()
            .all(|trial| trial.block == 3 && is_own(&trial.point))
    );
    let records: Vec<_> = plan.trials.iter().rev().map(record).collect();
    let mut resumed = planned.clone();
    resumed.adopt(&recipe, &records).unwrap();
    assert_eq!(resumed, plan);
}

fn record(trial: &Trial) -> TrialRecord {
    TrialRecord {
        number: trial.number,
        block: trial.block,
        point: trial.point.clone(),
        again: trial.again,
        ..TrialRecord::default()
    }
}

#[test]
fn a_system_that_is_surely_absent_is_not_the_one_that_runs_again() {
    let absent = RECIPE.replace(
        "[system.nginx]\n",
        "[system.nginx]\nneeds = [\"out-of-scope:its kernel\"]\n",
    );
    let (_, plan) = plan(&absent);
    let again = plan.trials.iter().find(|trial| trial.again).unwrap();
    assert_eq!(again.point.get("system").map(String::as_str), Some("own"));
}

#[test]
fn time_is_loads_and_probes_and_what_is_around_them() {
    let check = |text: &str, seconds: f64| {
        let time = plan(text).1.estimate().as_secs_f64();
        assert!((time - seconds).abs() < 1e-6, "{time} is not {seconds}");
    };
    // 15 trials of 1.5 + 2 s, and 4 probes of 3 + 1 s with two ramps of half a second.
    check(RECIPE, 15.0 * 3.5 + 4.0 * 5.0);
    check(
        &RECIPE.replace("args =", "prime = \"-d 1s\"\nargs ="),
        15.0 * 4.5 + 4.0 * 5.0,
    );
    // `seconds` counts only where the arguments have no duration.
    let estimated = RECIPE.replace("args =", "seconds = 4\nargs =");
    check(&estimated, 15.0 * 3.5 + 4.0 * 5.0);
    check(
        &estimated.replace("-d 2s", "-n 1000"),
        15.0 * 5.5 + 4.0 * 5.0,
    );
    check(
        &RECIPE.replace(
            "kind = \"millstream\"",
            "kind = \"millstream\"\nneeds = [\"not-built:x\"]",
        ),
        9.0 * 3.5 + 2.0 * 5.0,
    );
}

#[test]
fn alternating_blocks_go_there_and_back_at_one_value_of_the_first_axis_after_the_other() {
    let text = RECIPE.replace(
        "blocks = 3",
        "blocks = 3\norder = \"alternating\"\nagain = false",
    );
    let (_, plan) = plan(&text);
    let order: Vec<String> = plan
        .trials
        .iter()
        .map(|trial| trial.point.values().cloned().collect::<Vec<_>>().join(""))
        .collect();
    let of_one = ["nginx1", "own1", "own1", "nginx1", "nginx1", "own1"];
    let of_two = of_one.map(|point| point.replace('1', "2"));
    assert_eq!(order, [of_one.map(String::from), of_two].concat());
}
