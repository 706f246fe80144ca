//! Where the limits lie: one sentence for all points, and the places where a limit changes along an axis.

use super::measured::{Filter, Measured, named, over};
use super::wording::counted;
use crate::limit::Side;
use std::collections::BTreeMap;

/// What limited the points, the most frequent first.
pub(super) fn overall(measured: &Measured<'_>) -> Option<String> {
    let moving = measured.moving_names();
    let mut by_side: BTreeMap<Side, Vec<String>> = BTreeMap::new();
    for point in &measured.points {
        let all: Filter = point
            .iter()
            .map(|(axis, name)| (axis.clone(), named(name)))
            .collect();
        if let Some(side) = measured.limit(&all) {
            let mut told = all;
            told.retain(|axis, _| moving.contains(axis));
            by_side.entry(side).or_default().push(measured.told(&told));
        }
    }
    let total: usize = by_side.values().map(Vec::len).sum();
    let mut sides: Vec<(Side, Vec<String>)> = by_side.into_iter().collect();
    sides.sort_by_key(|(_, points)| std::cmp::Reverse(points.len()));
    match sides.as_slice() {
        [] => None,
        [(side, _)] if total == 1 => Some(format!("Limit: {} at the only point.", side.word())),
        [(side, _)] => Some(format!("Limit: {} at all {total} points.", side.word())),
        _ => {
            let part = |(index, (side, points)): (usize, &(Side, Vec<String>))| {
                // The most frequent one is the rule; the others are what has to be known.
                let named = index > 0 && points.len() <= POINTS_SHOWN;
                let names = if named {
                    format!(" ({})", points.join("; "))
                } else {
                    String::new()
                };
                format!("{} at {}{names}", side.word(), points.len())
            };
            let parts: Vec<String> = sides.iter().enumerate().map(part).collect();
            Some(format!(
                "Limit, of {}: {}.",
                counted(total, "point"),
                parts.join(", ")
            ))
        }
    }
}

/// Along the first axis of numbers: where the limit changes.
pub(super) fn saturation(measured: &Measured<'_>) -> Vec<String> {
    let numeric = |name: &str| {
        let names = measured.names_at(name, &Filter::new());
        names.len() > 1
            && names
                .iter()
                .all(|value| measured.number(name, value).is_some())
    };
    let moving = measured.moving_axes();
    let Some(along) = moving
        .iter()
        .find(|axis| axis.name != "system" && numeric(&axis.name))
    else {
        return Vec::new();
    };
    let others: Vec<String> = moving
        .iter()
        .map(|axis| axis.name.clone())
        .filter(|name| *name != along.name)
        .collect();
    let mut sentences: Vec<String> = Vec::new();
    for part in measured.combinations(&others, &Filter::new()) {
        let mut steps: Vec<(Side, Vec<String>)> = Vec::new();
        for value in measured.names_at(&along.name, &part) {
            let here = over(&[&part, &Filter::from([(along.name.clone(), named(&value))])]);
            let Some(side) = measured.limit(&here) else {
                continue;
            };
            match steps.last_mut() {
                Some((last, values)) if *last == side => values.push(value),
                _ => steps.push((side, vec![value])),
            }
        }
        let word = |(side, values): &(Side, Vec<String>)| {
            let span = match values.as_slice() {
                [first, .., last] => format!("{first} to {last}"),
                values => values.join(""),
            };
            format!("{} at {span}", side.word())
        };
        // A limit that never changes is in the sentence on all points.
        if steps.len() > 1 {
            let told = if part.is_empty() {
                String::new()
            } else {
                format!("{}: ", measured.told(&part))
            };
            let steps: Vec<String> = steps.iter().map(word).collect();
            sentences.push(format!("{told}{} ({}).", steps.join(", "), along.name));
        }
    }
    // The tables describe a sweep of many series.
    sentences.truncate(SATURATIONS_MAX);
    sentences
}

/// Sentences on saturation in a summary.
const SATURATIONS_MAX: usize = 4;

/// Points that a sentence names.
const POINTS_SHOWN: usize = 2;
