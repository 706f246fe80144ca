//! What the first system differs from itself: its two runs in each block.

use super::measured::{Measured, figure};
use super::wording::{counted, percent, percent_of_log, signed_percent};
use crate::findings::Noise;
use crate::record::TrialRecord;
use crate::statistics::{NoiseFloor, log_ratios, median};

/// The noise floor of a run, by metric, computed on demand.
#[derive(Debug)]
pub(super) struct NoiseOfRun {
    metric: String,
    system: String,
    logs: Vec<f64>,
    /// Blocks of the run: pairs that a comparison may have.
    blocks: usize,
    pairs_of_trials: Vec<(TrialRecord, TrialRecord)>,
}

/// None if nothing ran twice.
pub(super) fn floor(measured: &Measured<'_>) -> Option<NoiseOfRun> {
    let usable = |trial: &&&TrialRecord| measured.counts(trial);
    let pairs_of_trials: Vec<(TrialRecord, TrialRecord)> = measured
        .trials
        .iter()
        .filter(|trial| trial.again)
        .filter(usable)
        .filter_map(|again| {
            let same = |trial: &&&TrialRecord| {
                !trial.again && trial.block == again.block && trial.point == again.point
            };
            let first = measured.trials.iter().filter(same).find(usable)?;
            Some(((*first).clone(), (*again).clone()))
        })
        .collect();
    let (first, _) = pairs_of_trials.first()?;
    let compared = measured.recipe.compare.first();
    let metric = compared.and_then(|comparison| comparison.metrics.first());
    let metric = metric.map_or("requests_per_s", String::as_str);
    let system = first.point.get("system").map_or("", String::as_str);
    let blocks = measured
        .trials
        .iter()
        .map(|trial| trial.block)
        .max()
        .unwrap_or(0);
    Some(NoiseOfRun {
        metric: String::from(metric),
        system: measured.title("system", system),
        logs: logs(&pairs_of_trials, metric),
        blocks: usize::try_from(blocks).map_or(1, |last| last + 1),
        pairs_of_trials,
    })
}

fn logs(pairs: &[(TrialRecord, TrialRecord)], metric: &str) -> Vec<f64> {
    let pairs: Vec<(f64, f64)> = pairs
        .iter()
        .filter_map(|(first, again)| Some((figure(first, metric)?, figure(again, metric)?)))
        .collect();
    log_ratios(&pairs)
}

impl NoiseOfRun {
    /// The noise of any metric.
    pub(super) fn of(&self, metric: &str) -> Option<NoiseFloor> {
        NoiseFloor::of(&logs(&self.pairs_of_trials, metric))
    }

    /// The text in the report.
    pub(super) fn told(&self) -> Noise {
        let pairs = self.logs.len();
        let title = crate::metric::describe(&self.metric).title;
        let system = &self.system;
        let Some(noise) = NoiseFloor::of(&self.logs) else {
            return Noise {
                floor: 0.0,
                metric: self.metric.clone(),
                pairs,
                text: format!(
                    "{system} ran twice in {}: too few for a noise floor, two are needed. Verdicts rest on the spread of their own pairs.",
                    counted(pairs, "block")
                ),
            };
        };
        let floor = percent_of_log(noise.floor(self.blocks));
        let middle = median(&self.logs).unwrap_or_default();
        Noise {
            floor: floor / 100.0,
            metric: self.metric.clone(),
            pairs,
            text: format!(
                "Noise floor {} %: {system} ran twice in {}, and its {title} differed from itself by {} % (median) and at most {} %. By chance alone the \
                 median of {} of equals stays within {} % in 19 of 20 cases; smaller differences are not ranked.",
                percent(floor),
                counted(pairs, "block"),
                signed_percent(percent_of_log(middle)),
                percent(percent_of_log(noise.widest)),
                counted(self.blocks, "pair"),
                percent(floor),
            ),
        }
    }
}
