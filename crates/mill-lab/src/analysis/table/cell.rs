//! One cell: a median with its spread, a gain, a change, or why there is nothing.

use super::super::measured::{Filter, Measured, describe, over};
use super::super::published::{Document, share};
use super::super::wording::{counted, percent, percent_of_log, signed_percent, written};
use crate::findings::Cell;
use crate::limit::Side;
use crate::metric::Metric;
use crate::recipe::Column;
use crate::record::{Status, TrialRecord};
use crate::statistics::{median, median_interval, number, quantile};

/// Makes the cells of one table, and remembers what its notes have to say.
#[derive(Debug)]
pub(super) struct Cells<'a> {
    measured: &'a Measured<'a>,
    documents: &'a [Document<'a>],
    counts: Vec<usize>,
    spread: bool,
    marks: Vec<Side>,
}

impl<'a> Cells<'a> {
    pub(super) fn new(measured: &'a Measured<'a>, documents: &'a [Document<'a>]) -> Self {
        Self {
            measured,
            documents,
            counts: Vec::new(),
            spread: false,
            marks: Vec::new(),
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
                .map(|(low, high)| format!("± {} %", percent((high - low) / 2.0 / middle * 100.0))),
            published: share(self.documents, at, metric, middle),
            mark: self.limits(&[at]),
            number: true,
        }
    }

    /// In percent, of pairs by block where there are some, else of medians.
    fn gain(&mut self, from: &Filter, to: &Filter, metric: &str, digits: Option<usize>) -> Cell {
        let Some(logs) = self.logs(from, to, metric) else {
            return zero();
        };
        let Some(middle) = median(&logs) else {
            return zero();
        };
        let digits = digits.unwrap_or(2);
        let spread = median_interval(&logs);
        self.counts.push(logs.len());
        self.spread |= spread.is_some();
        Cell {
            text: format!("{:.digits$} %", percent_of_log(middle)),
            spread: spread.map(|(low, high)| {
                let half = (percent_of_log(high) - percent_of_log(low)) / 2.0;
                format!("± {}", percent(half))
            }),
            published: None,
            mark: self.limits(&[from, to]),
            number: true,
        }
    }

    fn logs(&self, from: &Filter, to: &Filter, metric: &str) -> Option<Vec<f64>> {
        let pairs = self.measured.pairs(from, to, metric);
        let logs = crate::statistics::log_ratios(&pairs);
        if !logs.is_empty() {
            return Some(logs);
        }
        let of = |at| median(&self.measured.values(at, metric));
        let logs = crate::statistics::log_ratios(&[(of(from)?, of(to)?)]);
        (!logs.is_empty()).then_some(logs)
    }

    /// "from 33585.56 to 36120.88 (+7.5 %)".
    fn change(
        &mut self,
        from: &Filter,
        to: &Filter,
        metric: &str,
        described: &Metric,
        column: &Column,
    ) -> Cell {
        let of = |at| median(&self.measured.values(at, metric)).unwrap_or_default();
        let (before, after) = (of(from), of(to));
        let delta = self.logs(from, to, metric).and_then(|logs| median(&logs));
        let delta = delta.map(|log| format!(" ({} %)", signed_percent(percent_of_log(log))));
        Cell {
            text: format!(
                "from {} to {}{}",
                written(before, described, column.digits),
                written(after, described, column.digits),
                delta.unwrap_or_default()
            ),
            mark: self.limits(&[from, to]),
            ..Cell::default()
        }
    }

    /// Limits that were not the server.
    fn limits(&mut self, at: &[&Filter]) -> Option<String> {
        let sides = at.iter().filter_map(|at| self.measured.limit(at));
        let side = sides.filter(|side| *side != Side::Server).min()?;
        if !self.marks.contains(&side) {
            self.marks.push(side);
        }
        Some(String::from(side.word()))
    }

    /// Why there is no figure: of the trials' own reasons the one most of them have.
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
        Some(
            reasons
                .into_iter()
                .next_back()
                .unwrap_or_else(|| String::from("not measured")),
        )
    }

    /// What stands below the table.
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
                "; ± is half the 95 % interval of the median (of three to five trials: half their range, which covers 75 to 94 %)"
            } else {
                "; with fewer than three there is no interval"
            };
            notes.push(format!("{trials}{spread}."));
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

/// A trial's reason for not counting.
fn reason(trial: &TrialRecord) -> Option<String> {
    match &trial.status {
        Status::Measured => None,
        Status::Void { reason } => Some(format!("void: {reason}")),
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
