//! Results under the wrong name. Responses of one server to one request have one size, head included; other servers
//! send other heads. A sample with the size of another server's responses has the wrong label.

use super::sample::Sample;
use super::warning;
use crate::findings::Warning;
use crate::statistics::median;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn of(samples: &[Sample]) -> Vec<Warning> {
    let mut found = Vec::new();
    let scopes: BTreeSet<&String> = samples.iter().map(|sample| &sample.scope).collect();
    for scope in scopes {
        let inside: Vec<&Sample> = samples.iter().filter(|one| one.scope == *scope).collect();
        found.extend(of_scope(&inside));
    }
    found
}

/// A sample, and the label that its size belongs to.
struct Misfit<'a> {
    sample: &'a Sample,
    size: f64,
    fits: &'a str,
}

fn of_scope(samples: &[&Sample]) -> Vec<Warning> {
    let sizes = Sizes::of(samples);
    let misfits: Vec<Misfit<'_>> = samples
        .iter()
        .filter_map(|sample| sizes.misfit(sample))
        .collect();
    let mut warnings = Vec::new();
    let mut paired = BTreeSet::new();
    for (index, one) in misfits.iter().enumerate() {
        if paired.contains(&index) {
            continue;
        }
        let partner = misfits
            .iter()
            .enumerate()
            .skip(index + 1)
            .find(|(_, other)| {
                other.sample.section == one.sample.section
                    && other.fits == one.sample.label
                    && one.fits == other.sample.label
            });
        let mut text = match partner {
            Some((at, other)) => {
                paired.insert(at);
                format!(
                    "The results of {} and {} are swapped: {} {}. {} {}.",
                    one.sample.label,
                    other.sample.label,
                    one.words(&sizes),
                    rate(one),
                    other.words(&sizes),
                    rate(other),
                )
            }
            None => format!("A result is under the wrong name: {}.", one.words(&sizes)),
        };
        for misfit in [Some(one), partner.map(|(_, other)| other)]
            .into_iter()
            .flatten()
        {
            if let Some(contradiction) = contradiction(misfit.sample) {
                text.push_str(&format!(" {contradiction}"));
            }
        }
        warnings.push(warning("swapped-labels", text, ADVICE));
    }
    // A command and an output that disagree are a mistake also where sizes are inconclusive.
    for sample in samples {
        let known = misfits.iter().any(|misfit| misfit.sample == *sample);
        if let Some(contradiction) = contradiction(sample)
            && !known
        {
            warnings.push(warning("swapped-labels", contradiction, ADVICE));
        }
    }
    warnings
}

fn rate(misfit: &Misfit<'_>) -> String {
    let rate = misfit.sample.figure("requests_per_s").unwrap_or(0.0);
    format!("({rate:.2} requests/s are {}'s)", misfit.fits)
}

impl Misfit<'_> {
    fn words(&self, sizes: &Sizes<'_>) -> String {
        let typical = |label: &str| sizes.medians.get(label).copied().unwrap_or(0.0);
        format!(
            "{}, {}, has {:.0} bytes an answer, where {} has {:.0} and {} {:.0}",
            self.sample.place,
            self.sample.label,
            self.size,
            self.sample.label,
            typical(&self.sample.label),
            self.fits,
            typical(self.fits),
        )
    }
}

/// The usual size of each label's answers.
struct Sizes<'a> {
    medians: BTreeMap<&'a str, f64>,
}

impl<'a> Sizes<'a> {
    fn of(samples: &[&'a Sample]) -> Self {
        let mut by_label: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for sample in samples {
            if let Some((size, _)) = sample.size() {
                by_label.entry(&sample.label).or_default().push(size);
            }
        }
        // Two samples that disagree have no usual size.
        by_label.retain(|_, sizes| sizes.len() >= SAMPLES_MIN);
        let medians = by_label
            .into_iter()
            .filter_map(|(label, sizes)| Some((label, median(&sizes)?)))
            .collect();
        Self { medians }
    }

    fn misfit(&self, sample: &'a Sample) -> Option<Misfit<'a>> {
        let (size, half_width) = sample.size()?;
        let own = *self.medians.get(sample.label.as_str())?;
        let (fits, other) = self
            .medians
            .iter()
            .filter(|(label, _)| **label != sample.label)
            .min_by(|one, two| (one.1 - size).abs().total_cmp(&(two.1 - size).abs()))?;
        let gap = (own - other).abs();
        let apart = gap > size * GAP_MIN && gap > 4.0 * half_width;
        let near_other = (size - other).abs() < gap * NEAR;
        (apart && near_other).then_some(Misfit { sample, size, fits })
    }
}

/// The command has one address, the output another.
fn contradiction(sample: &Sample) -> Option<String> {
    let asked = sample.asked.as_ref()?.url.as_deref()?;
    let printed = sample.url.as_deref()?;
    if address(asked) == address(printed) {
        return None;
    }
    Some(format!(
        "{}, {}: the command asks {asked}, the output is of {printed}.",
        sample.place, sample.label
    ))
}

/// Host and port of a URL.
fn address(url: &str) -> (String, String) {
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let authority = rest.split('/').next().unwrap_or(rest);
    let usual = if scheme == "https" { "443" } else { "80" };
    let (host, port) = authority.rsplit_once(':').unwrap_or((authority, usual));
    (host.to_lowercase(), String::from(port))
}

const ADVICE: &str = "Take the label from what was run, not from where it was pasted; look at the port in the output and at transfer divided by requests.";

/// Samples of a label from which its usual size is known.
const SAMPLES_MIN: usize = 3;

/// Share of the size: heads of two servers that differ by less can't be told apart from dates and counters in them.
const GAP_MIN: f64 = 0.02;

/// Share of the gap between two sizes within which a sample belongs to one of them.
const NEAR: f64 = 0.25;
