//! Several client processes as one.

use super::Printed;
use super::figures::set_transfer;
use crate::record::Figures;
use std::collections::BTreeSet;

/// See `output::together`.
pub(super) fn together(parts: &[Printed]) -> Printed {
    let [first, others @ ..] = parts else {
        return Printed::default();
    };
    if others.is_empty() {
        return first.clone();
    }
    let mut whole = Printed {
        url: first.url.clone(),
        interrupted: parts.iter().any(|part| part.interrupted),
        notes: notes(parts),
        percentiles: worst_curve(parts),
        ..Printed::default()
    };
    let names: BTreeSet<&String> = parts.iter().flat_map(|part| part.figures.keys()).collect();
    for name in names {
        if let Some(value) = figure(name, parts) {
            whole.set(name, value);
        }
    }
    if let Some(bytes_per_s) = whole.figures.get("transfer_bytes_per_s").copied() {
        set_transfer(&mut whole.figures, bytes_per_s);
    }
    spread(parts, &mut whole);
    for family in first.histograms.keys() {
        let all: Option<Vec<_>> = parts
            .iter()
            .map(|part| part.histograms.get(family))
            .collect();
        let Some((merged, rest)) = all.as_deref().and_then(<[_]>::split_first) else {
            continue;
        };
        let mut merged = (*merged).clone();
        for histogram in rest {
            merged.add(histogram);
        }
        whole.set_histogram(family, merged);
    }
    whole
}

/// One figure of all parts.
fn figure(name: &str, parts: &[Printed]) -> Option<f64> {
    let values = || {
        parts
            .iter()
            .filter_map(|part| Some((*part.figures.get(name)?, weight(&part.figures))))
    };
    let largest = || values().map(|(value, _)| value).reduce(f64::max);
    let (family, part) = name.split_once('.').unwrap_or((name, ""));
    match (family, part) {
        ("seconds", _) => largest(),
        ("failed_share", _) => failed_share(parts),
        ("bytes_per_response", _) | ("thread_requests_per_s", "mean") => weighted_mean(values()),
        ("thread_requests_per_s", _) => largest(),
        (_, "") | ("errors" | "connections_asked", _) => {
            Some(values().map(|(value, _)| value).sum())
        }
        (_, part) => match part.rsplit('.').next() {
            Some("mean") => weighted_mean(values()),
            Some("min") => values().map(|(value, _)| value).reduce(f64::min),
            Some("stdev") => pooled_stdev(name, parts),
            // Percentiles, medians and maxima: no one waited longer than the worst.
            _ => largest(),
        },
    }
}

/// A mean counts as often as there were requests.
fn weight(figures: &Figures) -> f64 {
    figures.get("requests").copied().unwrap_or(0.0)
}

fn weighted_mean(values: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let (sum, weights) = values.fold((0.0, 0.0), |(sum, weights), (value, weight)| {
        (sum + value * weight, weights + weight)
    });
    (weights > 0.0).then(|| sum / weights)
}

/// Of all requests together: what they differ within a process, and what the means of processes differ.
fn pooled_stdev(name: &str, parts: &[Printed]) -> Option<f64> {
    let mean_name = format!("{}mean", name.strip_suffix("stdev")?);
    let each: Vec<(f64, f64, f64)> = parts
        .iter()
        .filter_map(|part| {
            let stdev = part.figures.get(name)?;
            let mean = part.figures.get(&mean_name)?;
            Some((*stdev, *mean, weight(&part.figures)))
        })
        .collect();
    let mean = weighted_mean(each.iter().map(|(_, mean, weight)| (*mean, *weight)))?;
    let squares = each
        .iter()
        .map(|(stdev, own, weight)| (stdev.powi(2) + (own - mean).powi(2), *weight));
    weighted_mean(squares).map(f64::sqrt)
}

/// What failed of what was tried, by all.
fn failed_share(parts: &[Printed]) -> Option<f64> {
    let (mut failed, mut tried) = (0.0, 0.0);
    for part in parts {
        let figure = |name: &str| part.figures.get(name).copied().unwrap_or(0.0);
        let (all, share) = (figure("errors.all"), figure("failed_share"));
        failed += all;
        tried += if share > 0.0 {
            all / share
        } else {
            figure("requests")
        };
    }
    (tried > 0.0).then(|| failed / tried)
}

/// The worst of the processes, at percentiles that all of them have.
fn worst_curve(parts: &[Printed]) -> Vec<(f64, f64)> {
    let Some((first, rest)) = parts.split_first() else {
        return Vec::new();
    };
    let at = |part: &Printed, percent: f64| {
        let found = part
            .percentiles
            .iter()
            .find(|(other, _)| (other - percent).abs() < SAME_PERCENT);
        found.map(|(_, seconds)| *seconds)
    };
    first
        .percentiles
        .iter()
        .filter_map(|(percent, seconds)| {
            let worst = rest.iter().try_fold(*seconds, |worst, part| {
                at(part, *percent).map(|other| worst.max(other))
            })?;
            Some((*percent, worst))
        })
        .collect()
}

/// Percentiles that are written alike to six digits after the point are the same.
const SAME_PERCENT: f64 = 5e-7;

/// How far the processes' rates lie apart: a large one means that some of them had less of a CPU, or of the server.
fn spread(parts: &[Printed], whole: &mut Printed) {
    let rates: Option<Vec<f64>> = parts
        .iter()
        .map(|part| part.figures.get("requests_per_s").copied())
        .collect();
    let Some(rates) = rates else {
        whole.notes.push(String::from(
            "not every process printed a rate: the sum lacks theirs",
        ));
        return;
    };
    let (Some(least), Some(most)) = (
        rates.iter().copied().reduce(f64::min),
        rates.iter().copied().reduce(f64::max),
    ) else {
        return;
    };
    #[expect(
        clippy::cast_precision_loss,
        reason = "there are far fewer processes than 2^53"
    )]
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    if mean > 0.0 {
        whole.set("spread_share", (most - least) / mean);
    }
}

/// Every note once, in order.
fn notes(parts: &[Printed]) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for note in parts.iter().flat_map(|part| &part.notes) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    notes
}

#[cfg(test)]
mod tests;
