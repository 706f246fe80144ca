//! Answers of one server to one request that changed their size: another file, error pages among them, or a compression that came and went.

use super::sample::Sample;
use super::warning;
use crate::findings::Warning;
use crate::statistics::median;
use std::collections::{BTreeMap, BTreeSet};

/// Samples of one server and one object, with their sizes and half-widths.
type Group<'a> = Vec<(&'a Sample, f64, f64)>;

pub(super) fn of(samples: &[Sample]) -> Vec<Warning> {
    let mut groups: BTreeMap<(&str, &str), Group<'_>> = BTreeMap::new();
    for sample in samples {
        if let Some((size, half_width)) = sample.size() {
            let key = (sample.scope.as_str(), sample.label.as_str());
            groups
                .entry(key)
                .or_default()
                .push((sample, size, half_width));
        }
    }
    let usual: BTreeMap<(&str, &str), f64> = groups
        .iter()
        .filter(|(_, group)| group.len() >= SAMPLES_MIN)
        .filter_map(|(key, group)| {
            let sizes: Vec<f64> = group.iter().map(|(_, size, _)| *size).collect();
            Some((*key, median(&sizes)?))
        })
        .collect();
    let mut warnings = Vec::new();
    for (key, group) in &groups {
        let Some(own) = usual.get(key) else { continue };
        let others: BTreeSet<u64> = usual
            .iter()
            .filter(|(other, _)| other.0 == key.0 && other.1 != key.1)
            .map(|(_, size)| size.to_bits())
            .collect();
        let odd: Vec<String> = group
            .iter()
            .filter(|(_, size, half_width)| (size - own).abs() > own * SHARE + half_width)
            // Another server's size is a swapped label, which has a lint of its own.
            .filter(|(_, size, _)| {
                !others.iter().any(|bits| {
                    let other = f64::from_bits(*bits);
                    (size - other).abs() < (own - other).abs() / 4.0
                })
            })
            .map(|(sample, size, _)| format!("{size:.0} in {}", sample.place))
            .collect();
        if odd.is_empty() {
            continue;
        }
        let text = format!(
            "{} answers with {own:.0} bytes, but with {}.",
            if key.1.is_empty() {
                "The server"
            } else {
                key.1
            },
            odd.join(", ")
        );
        warnings.push(warning("varying-size", text, ADVICE));
    }
    warnings
}

const ADVICE: &str = "Compare only runs that fetched the same: look for error pages, for compression, and for files that changed between runs.";

/// Samples from which there is a usual size.
const SAMPLES_MIN: usize = 3;

/// Share of the size that a date, a counter or a cookie in the head can make.
const SHARE: f64 = 0.02;
