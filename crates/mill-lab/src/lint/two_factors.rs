//! Comparisons in which more than one thing changed: whose gain is it?

use super::sample::{Sample, rest_of};
use super::warning;
use crate::command::{ClientCommand, count};
use crate::findings::Warning;
use crate::recipe::{Comparison, Recipe, matches};
use crate::record::{Status, TrialRecord};
use std::collections::{BTreeMap, BTreeSet};

/// In a text: compared results whose commands differ as well.
pub(super) fn of_text(samples: &[Sample]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for (index, one) in samples.iter().enumerate() {
        for other in &samples[index + 1..] {
            let Some(factor) = factor(one, other, samples) else {
                continue;
            };
            let (Some(asked), Some(asked_other)) = (&one.asked, &other.asked) else {
                continue;
            };
            let differences = asked.differences(asked_other);
            if differences.is_empty() || is_one_factor(one, other, asked, asked_other) {
                continue;
            }
            let text = format!(
                "{} and {} differ in {factor}, and in {}: the gain is of all of it together.",
                one.place,
                other.place,
                differences.join(", ")
            );
            warnings.push(warning("two-factors", text, ADVICE));
        }
    }
    warnings
}

/// Whether the headings describe the difference between the commands: "10 connections" and "100 connections" are one
/// server's.
fn is_one_factor(
    one: &Sample,
    other: &Sample,
    asked: &ClientCommand,
    asked_other: &ClientCommand,
) -> bool {
    if one.label == other.label {
        return false;
    }
    let numbers = |label: &str| -> Vec<f64> {
        label
            .split(|letter: char| !letter.is_ascii_alphanumeric() && !matches!(letter, '.' | ','))
            .filter_map(count)
            .collect()
    };
    let values = |asked: &ClientCommand| {
        [
            asked.connections,
            asked.threads,
            asked.requests,
            asked.seconds,
        ]
    };
    let differing = values(asked).into_iter().zip(values(asked_other));
    let (mut named, mut differs) = (true, false);
    for (value, value_other) in differing.filter(|(value, other)| value != other) {
        differs = true;
        let says = |label: &str, value: Option<f64>| {
            value.is_some_and(|value| numbers(label).contains(&value))
        };
        named &= says(&one.label, value) && says(&other.label, value_other);
    }
    differs && named && without_numbers(&one.label) == without_numbers(&other.label)
}

/// The words of a heading, its numbers left out: what is left names the server.
fn without_numbers(label: &str) -> Vec<String> {
    label
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty() && count(word).is_none())
        .map(str::to_lowercase)
        .collect()
}

/// What two results are compared for, if they are.
fn factor(one: &Sample, other: &Sample, all: &[Sample]) -> Option<String> {
    if one.scope != other.scope {
        return None;
    }
    // "Introduce jemalloc" between two runs: the run before the word and the one after it.
    let new = other
        .allocators
        .iter()
        .find(|name| !one.allocators.contains(name));
    if let Some(name) = new {
        let before_last = |sample: &&Sample| sample.allocators == one.allocators;
        let is_last_before = all.iter().rfind(before_last) == Some(one);
        let is_first_after = all
            .iter()
            .find(|sample| sample.allocators == other.allocators)
            == Some(other);
        return (is_last_before && is_first_after).then(|| format!("the allocator ({name})"));
    }
    // Two servers of one section, each with one result; in a sweep every label has several.
    let alone = |sample: &Sample| {
        let same = all
            .iter()
            .filter(|other| other.section == sample.section && other.label == sample.label);
        same.count() == 1
    };
    let is_pair = one.section == other.section && one.label != other.label;
    (is_pair && alone(one) && alone(other))
        .then(|| format!("the server ({} and {})", one.label, other.label))
}

/// Of a run: systems that differ in several factors, and clients with different loads.
pub(super) fn of_run(recipe: &Recipe, trials: &[TrialRecord]) -> Vec<Warning> {
    let mut warnings: Vec<Warning> = Vec::new();
    for comparison in &recipe.compare {
        let found = [systems(recipe, comparison), clients(comparison, trials)];
        for warning in found.into_iter().flatten() {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
    }
    warnings
}

/// The factors of two systems, from their recipe.
fn systems(recipe: &Recipe, comparison: &Comparison) -> Option<Warning> {
    if comparison.axis != "system" {
        return None;
    }
    let from = factors(recipe, &comparison.from)?;
    let to = factors(recipe, &comparison.to)?;
    let names: BTreeSet<&String> = from.keys().chain(to.keys()).collect();
    let changed: Vec<&str> = names
        .into_iter()
        .filter(|name| from.get(*name) != to.get(*name))
        .map(String::as_str)
        .collect();
    let pair = format!("{} : {}", comparison.to, comparison.from);
    match changed.as_slice() {
        [] | [_] if changed.iter().all(|name| **name == comparison.factor) => None,
        [one] => Some(warning(
            "two-factors",
            format!(
                "{pair} is called a comparison of {}, but what changes is {one}.",
                comparison.factor
            ),
            "Call the comparison by the factor that changes.",
        )),
        several => Some(warning(
            "two-factors",
            format!("{pair} changes {} at once.", several.join(" and ")),
            ADVICE,
        )),
    }
}

fn factors(recipe: &Recipe, system: &str) -> Option<BTreeMap<String, String>> {
    let factors = recipe.system.get(system)?.get("factors")?.as_table()?;
    let pairs = factors.iter().map(|(name, value)| {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), String::from);
        (name.clone(), value)
    });
    Some(pairs.collect())
}

/// Clients of the two sides at the same point with different loads.
fn clients(comparison: &Comparison, trials: &[TrialRecord]) -> Option<Warning> {
    if comparison.axis != "system" {
        return None;
    }
    let side = |value: &String| -> Vec<&TrialRecord> {
        trials
            .iter()
            .filter(|trial| trial.point.get("system") == Some(value))
            .filter(|trial| trial.status == Status::Measured)
            .filter(|trial| matches(&trial.point, &comparison.at))
            .collect()
    };
    for from in side(&comparison.from) {
        for to in side(&comparison.to) {
            if rest_of(&from.point) != rest_of(&to.point) {
                continue;
            }
            let (Some(one), Some(other)) = (Sample::of(from), Sample::of(to)) else {
                continue;
            };
            let mut differences = match (&one.asked, &other.asked) {
                (Some(asked), Some(asked_other)) => asked.differences(asked_other),
                _ => Vec::new(),
            };
            if differences.is_empty() {
                differences = figures(&one, &other);
            }
            if !differences.is_empty() {
                let text = format!(
                    "{} : {}: the clients differ as well, in {} ({}, {}).",
                    comparison.to,
                    comparison.from,
                    differences.join(", "),
                    one.place,
                    other.place
                );
                return Some(warning("two-factors", text, ADVICE));
            }
        }
    }
    None
}

/// The tools' own description of the load, where commands cannot be parsed.
fn figures(one: &Sample, other: &Sample) -> Vec<String> {
    let mut found = Vec::new();
    for (name, word) in [("connections_asked", "connections"), ("threads", "threads")] {
        if let (Some(first), Some(second)) = (one.figure(name), other.figure(name))
            && (first - second).abs() > 0.5
        {
            found.push(format!("{first} and {second} {word}"));
        }
    }
    found
}

const ADVICE: &str =
    "Change one thing at a time, and measure the step between: each ratio is of one factor.";
