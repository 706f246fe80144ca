//! One cell: a median with its spread, a gain, a change, or why there is nothing.

use super::super::measured::{Filter, Measured, is_disturbed, over};
use super::super::published::{Document, share};
use super::super::wording::{
    counted, percent, percent_of_log, signed_percent, span_of_shares, written, written_apart,
};
use crate::findings::Cell;
use crate::limit::Side;
use crate::metric::{Metric, describe};
use crate::recipe::Column;
use crate::record::{Status, TrialRecord};
use crate::statistics::{PairedRatio, median, median_interval, number, quantile};
use std::collections::BTreeSet;

/// Makes the cells of one table, and collects its notes.
#[derive(Debug)]
pub(super) struct Cells<'a> {
    measured: &'a Measured<'a>,
    documents: &'a [Document<'a>],
    counts: Vec<usize>,
    spread: bool,
    marks: Vec<Side>,
    /// Numbers of trials that figures rest on though others took CPU time.
    disturbed: BTreeSet<usize>,
    has_gains: bool,
}

impl<'a> Cells<'a> {
    pub(super) fn new(measured: &'a Measured<'a>, documents: &'a [Document<'a>]) -> Self {
        Self {
            measured,
            documents,
            counts: Vec::new(),
            spread: false,
            marks: Vec::new(),
            disturbed: BTreeSet::new(),
            has_gains: false,
        }
    }

    pub(super) fn cell(&mut self, base: &Filter, column: &Column, metric: &str) -> Cell {
        let to = over(&[base, &column.at]);
        let from = column
            .over
            .as_ref()
            .map(|other| over(&[base, &column.at, other]));
        let described = describe(metric);
        for at in from.iter().chain([&to]) {
            if let Some(reason) = self.missing(at, metric) {
                return Cell {
                    mark: Some(reason),
                    number: true,
                    ..Cell::default()
                };
            }
        }
        match from {
            None => self.figure(&to, metric, &described, column.digits),
            Some(from) if column.change => self.change(&from, &to, metric, &described, column),
            Some(from) => self.gain(&from, &to, metric, column.digits),
        }
    }

    fn figure(
        &mut self,
        at: &Filter,
        metric: &str,
        described: &Metric,
        digits: Option<usize>,
    ) -> Cell {
        let values = self.measured.values(at, metric);
        self.counts.push(values.len());
        let Some(middle) = median(&values) else {
            return Cell::default();
        };
        let spread = median_interval(&values).filter(|_| middle > 0.0);
        self.spread |= spread.is_some();
        Cell {
            text: written(middle, described, digits),
            spread: spread
                .map(|span| (span.high - span.low) / 2.0 / middle * 100.0)
                .map(|half| format!("± {} %", percent(half))),
            published: share(self.documents, at, metric, middle),
            mark: self.mark(&[at]),
            number: true,
        }
    }

    /// In percent, of pairs by block where there are some, else of medians. One that points another way than the medians in the cells
    /// beside it is no gain.
    fn gain(&mut self, from: &Filter, to: &Filter, metric: &str, digits: Option<usize>) -> Cell {
        let Some(ratio) = self.ratio(from, to, metric) else {
            return zero();
        };
        let gain = percent_of_log(ratio.middle);
        self.counts.push(ratio.logs.len());
        self.has_gains = true;
        let beside = self
            .medians(from, to, metric)
            .map(|(from, to)| (to / from).ln());
        if let Some(beside) = beside.filter(|beside| *beside * ratio.middle < 0.0) {
            let (pairs, medians) = (signed_percent(gain), signed_percent(percent_of_log(beside)));
            let mark = format!("undecided: pairs {pairs} %, medians {medians} %");
            return Cell {
                mark: Some(mark),
                number: true,
                ..Cell::default()
            };
        }
        self.spread |= ratio.interval.is_some();
        let digits = digits.unwrap_or(2);
        Cell {
            text: format!("{gain:.digits$} %"),
            spread: ratio.interval.map(|span| {
                let half = (percent_of_log(span.high) - percent_of_log(span.low)) / 2.0;
                format!("± {}", percent(half))
            }),
            published: None,
            mark: self.mark(&[from, to]),
            number: true,
        }
    }

    /// Of pairs by block where there are some, else of the medians.
    fn ratio(&self, from: &Filter, to: &Filter, metric: &str) -> Option<PairedRatio> {
        let pairs = self.measured.pairs(from, to, metric);
        let pairs: Vec<(f64, f64)> = pairs
            .iter()
            .filter_map(|pair| pair.figures(metric))
            .collect();
        PairedRatio::of(&pairs).or_else(|| PairedRatio::of(&[self.medians(from, to, metric)?]))
    }

    fn medians(&self, from: &Filter, to: &Filter, metric: &str) -> Option<(f64, f64)> {
        let of = |at| median(&self.measured.values(at, metric));
        Some((of(from)?, of(to)?))
    }

    /// "from 33585.56 to 36120.88 (+7.5 %)": the figures of the pair whose ratio is the median, so that one is the others' quotient.
    fn change(
        &mut self,
        from: &Filter,
        to: &Filter,
        metric: &str,
        described: &Metric,
        column: &Column,
    ) -> Cell {
        let ratio = self.ratio(from, to, metric);
        let (figures, delta) = match &ratio {
            Some(ratio) => {
                let delta = signed_percent(percent_of_log(ratio.middle));
                (ratio.in_the_middle, format!(" ({delta} %)"))
            }
            None => (
                self.medians(from, to, metric).unwrap_or_default(),
                String::new(),
            ),
        };
        self.has_gains |= ratio.is_some();
        let (before, after) = written_apart(figures, described, column.digits);
        Cell {
            text: format!("from {before} to {after}{delta}"),
            mark: self.mark(&[from, to]),
            ..Cell::default()
        }
    }

    /// What has to be known of a figure: a limit that was not the server, that others took CPU time, that further trials failed.
    fn mark(&mut self, at: &[&Filter]) -> Option<String> {
        let mut words: Vec<String> = Vec::new();
        let sides = at.iter().filter_map(|at| self.measured.limit(at));
        let side = sides.filter(|side| *side != Side::Server).max();
        if let Some(side) = side {
            if !self.marks.contains(&side) {
                self.marks.push(side);
            }
            words.push(String::from(side.word()));
        }
        let used: Vec<&TrialRecord> = at.iter().flat_map(|at| self.measured.usable(at)).collect();
        let disturbed = used.iter().filter(|trial| is_disturbed(trial));
        self.disturbed
            .extend(disturbed.clone().map(|trial| trial.number));
        if disturbed.count() > 0 && side != Some(Side::Foreign) {
            words.push(String::from("disturbed"));
        }
        let all: Vec<&TrialRecord> = at.iter().flat_map(|at| self.measured.at(at)).collect();
        let failed = |trial: &&&TrialRecord| matches!(trial.status, Status::Failed { .. });
        let failed: Vec<String> = all
            .iter()
            .filter(failed)
            .filter_map(|it| reason(it))
            .collect();
        if let Some(first) = failed.first() {
            // The reason is preceded by "failed: ".
            let why = first.split_once(": ").map_or("", |(_, why)| why);
            words.push(format!("{} of {} failed: {why}", failed.len(), all.len()));
        }
        (!words.is_empty()).then(|| words.join("; "))
    }

    /// Why there is no figure: the most frequent reason of the trials.
    fn missing(&self, at: &Filter, metric: &str) -> Option<String> {
        let trials = self.measured.at(at);
        let usable = self.measured.usable(at);
        if usable
            .iter()
            .any(|trial| super::super::measured::figure(trial, metric).is_some())
        {
            return None;
        }
        if let Some(trial) = usable.first() {
            let family = metric.split('.').next().unwrap_or(metric);
            let reason = trial
                .absent
                .get(metric)
                .or_else(|| trial.absent.get(family));
            return Some(match reason {
                Some(reason) => format!("absent: {reason}"),
                None => String::from("not given by the tools here"),
            });
        }
        let reasons: Vec<String> = trials.iter().filter_map(|trial| reason(trial)).collect();
        Some(most_frequent(reasons).unwrap_or_else(|| String::from("not measured")))
    }

    /// The notes below the table.
    pub(super) fn notes(&self) -> Vec<String> {
        let counts: Vec<f64> = self.counts.iter().map(|count| number(*count)).collect();
        let mut notes = Vec::new();
        if let (Some(least), Some(most)) = (quantile(&counts, 0.0), quantile(&counts, 1.0)) {
            let trials = if (most - least).abs() < 0.5 {
                match self.counts[0] {
                    1 => String::from("One trial each"),
                    count => format!("Medians of {}", counted(count, "trial")),
                }
            } else {
                format!("Medians of {least:.0} to {most:.0} trials")
            };
            let spread = if self.spread {
                "; ± is half the interval of the median, of 95 % or more (of three to five trials: half their range, which covers 75 to 94 %)"
            } else {
                "; with fewer than three there is no interval"
            };
            notes.push(format!("{trials}{spread}."));
        }
        if self.has_gains {
            notes.push(String::from(
                "Changes are medians of the ratios of trials that ran side by side, with the figures of the pair in the middle; medians of all trials \
                 may have another quotient.",
            ));
        }
        if !self.disturbed.is_empty() {
            let trials: Vec<&TrialRecord> = self
                .measured
                .trials
                .iter()
                .filter(|trial| self.disturbed.contains(&trial.number))
                .copied()
                .collect();
            notes.push(format!(
                "Others took {} of the machine's CPU time from {} that these figures rest on: they are of what was left.",
                span_of_shares(&trials),
                counted(trials.len(), "trial")
            ));
        }
        if !self.marks.is_empty() {
            let words: Vec<&str> = self.marks.iter().map(|side| side.word()).collect();
            notes.push(format!(
                "Not the server's own figure where a cell says {}.",
                words.join(", ")
            ));
        }
        notes
    }
}

/// The reason that most have; of equally many the first.
fn most_frequent(reasons: Vec<String>) -> Option<String> {
    let count = |reason: &String| reasons.iter().filter(|other| *other == reason).count();
    let most = reasons.iter().map(count).max()?;
    reasons.iter().find(|reason| count(reason) == most).cloned()
}

/// A trial's reason for not counting.
fn reason(trial: &TrialRecord) -> Option<String> {
    match &trial.status {
        Status::Measured => None,
        Status::Disturbed { reason } => Some(format!("disturbed: {reason}")),
        Status::Absent { reason } => Some(reason.clone()),
        Status::Failed { reason } => Some(format!("failed: {reason}")),
    }
}

/// A ratio with nothing on one side.
fn zero() -> Cell {
    Cell {
        mark: Some(String::from("no ratio: one side is zero")),
        number: true,
        ..Cell::default()
    }
}
