//! Claims from one run: the spread between runs is unknown.

use super::sample::Sample;
use super::warning;
use crate::findings::Warning;
use crate::recipe::{Comparison, Recipe, matches};
use crate::record::{Status, TrialRecord};
use std::collections::BTreeMap;

/// Of a text, if it has several results and none was repeated.
pub(super) fn of_text(samples: &[Sample]) -> Vec<Warning> {
    if samples.len() < 2 {
        return Vec::new();
    }
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for sample in samples {
        let asked = sample.asked.as_ref().map(|asked| format!("{asked:?}"));
        let key = format!(
            "{}|{}|{}|{:?}|{:?}|{asked:?}",
            sample.section, sample.scope, sample.label, sample.allocators, sample.url
        );
        *counts.entry(key).or_default() += 1;
    }
    if counts.values().any(|count| *count > 1) {
        return Vec::new();
    }
    let text = format!("Each of the {} results is of a single run.", samples.len());
    vec![warning("single-run", text, ADVICE)]
}

/// Of a run: comparisons that rest on one trial of a side.
pub(super) fn of_run(recipe: &Recipe, trials: &[TrialRecord]) -> Vec<Warning> {
    let single: Vec<String> = recipe
        .compare
        .iter()
        .filter_map(|comparison| {
            let least = fewest(comparison, trials)?;
            (least == 1).then(|| format!("{} : {}", comparison.to, comparison.from))
        })
        .collect();
    if single.is_empty() {
        return Vec::new();
    }
    let text = format!(
        "One trial of a side is all there is for {}.",
        single.join(", ")
    );
    vec![warning("single-run", text, ADVICE)]
}

/// The fewest measured trials that a point of the comparison has; none if one side has nothing at all.
fn fewest(comparison: &Comparison, trials: &[TrialRecord]) -> Option<usize> {
    let mut counts: BTreeMap<(bool, String), usize> = BTreeMap::new();
    for trial in trials {
        let value = trial.point.get(&comparison.axis);
        let is_from = value == Some(&comparison.from);
        let is_side = is_from || value == Some(&comparison.to);
        if is_side
            && trial.status == Status::Measured
            && !trial.again
            && matches(&trial.point, &comparison.at)
        {
            let mut rest = trial.point.clone();
            rest.remove(&comparison.axis);
            *counts.entry((is_from, format!("{rest:?}"))).or_default() += 1;
        }
    }
    let both = [true, false]
        .iter()
        .all(|side| counts.keys().any(|(is_from, _)| is_from == side));
    if both {
        counts.values().copied().min()
    } else {
        None
    }
}

const ADVICE: &str = "Repeat each point in fresh processes, in changing order, and give the interval; below the spread of one and the same system there is no ranking.";
