//! Figures that are called a server's and are of the client, the link, or both together.

use super::matrix::{Cell, cells};
use super::sample::Sample;
use super::warning;
use crate::findings::Warning;
use crate::limit::Side;
use crate::recipe::{Published, Recipe, matches};
use crate::record::{Status, TrialRecord};
use std::collections::{BTreeMap, BTreeSet};

/// Of a run: comparisons at points where the server was not the limit.
pub(super) fn of_run(recipe: &Recipe, trials: &[TrialRecord]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for comparison in &recipe.compare {
        let was_measured = |value: &String| {
            trials.iter().any(|trial| {
                trial.status == Status::Measured && trial.point.get(&comparison.axis) == Some(value)
            })
        };
        // What was not compared can't mislead.
        if !was_measured(&comparison.from) || !was_measured(&comparison.to) {
            continue;
        }
        let mut points: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for trial in trials {
            let value = trial.point.get(&comparison.axis);
            let is_side = value == Some(&comparison.from) || value == Some(&comparison.to);
            let limit = trial.limit.as_ref().map(|limit| limit.side);
            if let Some(side @ (Side::Client | Side::Both | Side::Link)) = limit
                && is_side
                && trial.status == Status::Measured
                && matches(&trial.point, &comparison.at)
            {
                let names: Vec<&str> = trial.point.values().map(String::as_str).collect();
                points
                    .entry(side.word())
                    .or_default()
                    .insert(names.join(", "));
            }
        }
        for (word, points) in points {
            let points: Vec<String> = points.into_iter().collect();
            let shown = points
                .iter()
                .take(POINTS_SHOWN)
                .cloned()
                .collect::<Vec<_>>();
            let more = points.len() - shown.len();
            let rest = if more == 0 {
                String::new()
            } else {
                format!(" and {more} more")
            };
            let text = format!(
                "{} : {} compares points that were {word}: {}{rest}.",
                comparison.to,
                comparison.from,
                shown.join("; ")
            );
            if !warnings.iter().any(|known: &Warning| known.text == text) {
                warnings.push(warning("client-bound", text, ADVICE));
            }
        }
    }
    warnings
}

/// In a text: three servers or more with equal figures in a comparison.
pub(super) fn of_text(samples: &[Sample]) -> Vec<Warning> {
    let mut groups: BTreeMap<String, Vec<(&str, f64)>> = BTreeMap::new();
    for sample in samples {
        let options = sample.asked.as_ref().map(|asked| {
            let mut asked = asked.clone();
            asked.url = None;
            asked
        });
        if let Some(rate) = sample.figure("requests_per_s") {
            let key = format!("{}|{}|{options:?}", sample.section, sample.scope);
            groups.entry(key).or_default().push((&sample.label, rate));
        }
    }
    groups
        .values()
        .filter_map(|group| {
            let labels: BTreeSet<&str> = group.iter().map(|(label, _)| *label).collect();
            let rates: Vec<f64> = group.iter().map(|(_, rate)| *rate).collect();
            let (least, most) = bounds(&rates)?;
            (labels.len() >= EQUALS_MIN && most <= least * (1.0 + EQUAL)).then(|| {
                let labels: Vec<&str> = labels.into_iter().collect();
                let text = format!(
                    "{} lie within {:.1} % of each other, at {least:.0} to {most:.0} requests/s: that is a ceiling of the client or the link.",
                    labels.join(", "),
                    EQUAL * 100.0
                );
                warning("client-bound", text, ADVICE)
            })
        })
        .collect()
}

/// Of published rates: lines from which on all columns are equal and more of what grows down the table adds nothing.
pub(super) fn of_published(recipe: &Recipe) -> Vec<Warning> {
    recipe
        .published
        .iter()
        .filter(|table| table.metric == "requests_per_s" && table.unit.is_none())
        .filter_map(plateau)
        .collect()
}

fn plateau(table: &Published) -> Option<Warning> {
    let cells = cells(table);
    let mut lines: Vec<&str> = Vec::new();
    for cell in &cells {
        if lines.last() != Some(&cell.line.as_str()) {
            lines.push(&cell.line);
        }
    }
    // From the last line upwards, as long as everything stays within one per cent.
    let flat = |from: usize| {
        let inside: Vec<&Cell> = cells
            .iter()
            .filter(|cell| lines[from..].contains(&cell.line.as_str()))
            .collect();
        let columns: BTreeSet<&str> = inside.iter().map(|cell| cell.column.as_str()).collect();
        let rates: Vec<f64> = inside.iter().map(|cell| cell.figure.value).collect();
        let (least, most) = bounds(&rates)?;
        let is_flat = columns.len() >= EQUALS_MIN && most <= least * (1.0 + EQUAL);
        is_flat.then_some((least, most))
    };
    let from =
        (0..lines.len()).find(|from| lines.len() - from >= LINES_MIN && flat(*from).is_some())?;
    let (least, most) = flat(from)?;
    let text = format!(
        "{}: from {} = {} on all columns lie within {:.0} % of each other ({least} to {most}), and more {} add nothing: that is a ceiling of the link or the client, not of a server.",
        table.place,
        table.lines,
        lines[from],
        EQUAL * 100.0,
        table.lines
    );
    Some(warning("client-bound", text, ADVICE))
}

fn bounds(values: &[f64]) -> Option<(f64, f64)> {
    let least = values.iter().copied().reduce(f64::min)?;
    let most = values.iter().copied().reduce(f64::max)?;
    Some((least, most))
}

const ADVICE: &str = "Give the client more CPUs or more hosts, or the link more bandwidth, until the server is the limit; until then say \"at least\".";

/// Share within which rates count as equal.
const EQUAL: f64 = 0.01;

/// Systems that have to be equal: two may be so by chance.
const EQUALS_MIN: usize = 3;

/// Lines that a plateau has.
const LINES_MIN: usize = 2;

/// Points that a warning names.
const POINTS_SHOWN: usize = 4;
