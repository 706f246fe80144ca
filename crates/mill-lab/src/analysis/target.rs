//! Limits for figures or ratios: met, missed, or open while the limit is inside the interval.

use super::Kept;
use super::measured::{Filter, Measured, figure, over};
use super::wording::written;
use crate::findings::{Cell, Grid, Statement, Tone};
use crate::metric::describe;
use crate::recipe::Target;
use crate::record::{Point, TrialRecord};
use crate::statistics::{PairedRatio, median};
use std::collections::BTreeSet;

/// The table of all targets that have figures, if there is any, and its sentence in the summary.
pub(super) fn all(measured: &Measured<'_>) -> (Option<Grid>, Option<Statement>) {
    let judged: Vec<Judged> = measured
        .recipe
        .target
        .iter()
        .flat_map(|target| judge(measured, target))
        .collect();
    if judged.is_empty() {
        return (None, None);
    }
    let count = |verdict| judged.iter().filter(|one| one.verdict == verdict).count();
    let counts = [Verdict::Met, Verdict::Missed, Verdict::Open]
        .map(|verdict| (count(verdict), verdict.word()));
    let said = counts.iter().filter(|(count, _)| *count > 0);
    let said: Vec<String> = said
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let [(_, _), (missed, _), (open, _)] = counts;
    let statement = Statement {
        tone: match (missed, open) {
            (0, 0) => Tone::Gain,
            (0, _) => Tone::Unsure,
            _ => Tone::Loss,
        },
        text: format!("Targets: {}.", said.join(", ")),
    };
    let grid = Grid {
        title: String::from("Targets"),
        head: ["figure", "of", "found", "from", "target", "verdict"]
            .map(String::from)
            .to_vec(),
        rows: judged.iter().map(Judged::row).collect(),
        notes: vec![String::from(
            "In brackets the interval of a ratio, or the least and the most. A target is open when its limit lies inside, and of a ratio from fewer than six pairs. Trials in which requests failed do not count, except for figures of errors.",
        )],
    };
    (Some(grid), Some(statement))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Met,
    Missed,
    Open,
}

/// A target at a point.
struct Judged {
    figure: String,
    of: String,
    found: String,
    /// Trials, or pairs of them.
    from: String,
    limit: String,
    verdict: Verdict,
    /// The points whose trials it rests on, if more of them can decide it.
    rests_on: Vec<Filter>,
    /// What was left out because requests failed, and of how many.
    left_out: (usize, usize),
}

/// What was found, and what surrounds it.
struct Found {
    middle: f64,
    low: f64,
    high: f64,
    count: usize,
    /// Whether the true value is between the two in 95 % of cases.
    is_sure: bool,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "missed",
            Self::Open => "open",
        }
    }
}

impl Judged {
    fn row(&self) -> Vec<Cell> {
        let words = [&self.figure, &self.of, &self.found, &self.from, &self.limit];
        let cell = |text: &str| Cell {
            text: String::from(text),
            ..Cell::default()
        };
        let mut row: Vec<Cell> = words.into_iter().map(|word| cell(word)).collect();
        let verdict = self.verdict.word();
        row.push(cell(&match self.left_out {
            (0, _) => String::from(verdict),
            (count, all) => format!("{verdict}; {count} of {all} had errors and are left out"),
        }));
        row
    }
}

/// Each point that the target is for and that was measured.
fn judge(measured: &Measured<'_>, target: &Target) -> Vec<Judged> {
    let metric = describe(&target.metric);
    let axes = measured.moving_names();
    let points = measured.combinations(&axes, &target.at).into_iter();
    let judged = points.filter_map(|point| {
        let (found, left_out) = match &target.over {
            Some(other) => ratio(measured, &over(&[&point, other]), &point, &target.metric),
            None => figures(measured, &point, &target.metric),
        };
        if found.is_none() && left_out.0 == 0 {
            return None;
        }
        let number = |value: f64| match target.over {
            Some(_) => format!("{value:.3}"),
            None => written(value, &metric, None),
        };
        let of = match &target.over {
            Some(other) => format!("{} to {}", measured.told(&point), measured.told(other)),
            None => measured.told(&point),
        };
        let limits = [("≤", target.at_most), ("≥", target.at_least)];
        let limits = limits
            .into_iter()
            .filter_map(|(sign, limit)| Some(format!("{sign} {}", number(limit?))));
        Some(Judged {
            figure: metric.title.clone(),
            of,
            found: found.as_ref().map_or_else(String::new, |found| {
                let [middle, low, high] = [found.middle, found.low, found.high].map(number);
                format!("{middle} [{low}, {high}]")
            }),
            from: found.as_ref().map_or_else(String::new, |found| {
                let unit = match target.over {
                    Some(_) => "pair",
                    None => "trial",
                };
                let plural = if found.count == 1 { "" } else { "s" };
                format!("{} {unit}{plural}", found.count)
            }),
            limit: limits.collect::<Vec<_>>().join(", "),
            rests_on: match &target.over {
                Some(other) => vec![over(&[&point, other]), point.clone()],
                // The least and the most of more trials are only further apart.
                None => Vec::new(),
            },
            verdict: found.map_or(Verdict::Open, |found| found.verdict(target)),
            left_out,
        })
    });
    judged.collect()
}

/// The points of targets that are open, and that more trials can decide: those that are ratios.
pub fn undecided_points(kept: &Kept) -> BTreeSet<Point> {
    let measured = Measured::of(kept);
    let targets = measured.recipe.target.iter();
    let judged = targets.flat_map(|target| judge(&measured, target));
    let open = judged.filter(|one| one.verdict == Verdict::Open);
    let filters: Vec<Filter> = open.flat_map(|one| one.rests_on).collect();
    let trials = filters.iter().flat_map(|filter| measured.at(filter));
    trials.map(|trial| trial.point.clone()).collect()
}

/// Whether a trial may count: what failed took other time and bytes than an answer.
fn is_clean(trial: &TrialRecord, metric: &str) -> bool {
    metric.starts_with("errors.")
        || metric == "failed_share"
        || figure(trial, "errors.all").is_none_or(|errors| errors == 0.0)
}

/// What was found in clean trials, and how many others of how many there are.
type Counted = (Option<Found>, (usize, usize));

fn figures(measured: &Measured<'_>, at: &Filter, metric: &str) -> Counted {
    let mut trials = measured.usable(at);
    trials.retain(|trial| figure(trial, metric).is_some());
    let all = trials.len();
    trials.retain(|trial| is_clean(trial, metric));
    let values: Vec<f64> = trials
        .iter()
        .filter_map(|trial| figure(trial, metric))
        .collect();
    (spread(&values), (all - trials.len(), all))
}

fn ratio(measured: &Measured<'_>, from: &Filter, to: &Filter, metric: &str) -> Counted {
    let mut pairs = measured.pairs(from, to, metric);
    let all = pairs.len();
    pairs.retain(|pair| is_clean(pair.from, metric) && is_clean(pair.to, metric));
    let figures = pairs.iter().filter_map(|pair| pair.figures(metric));
    let found = ratio_of(&figures.collect::<Vec<_>>());
    (found, (all - pairs.len(), all))
}

fn ratio_of(pairs: &[(f64, f64)]) -> Option<Found> {
    let ratio = PairedRatio::of(pairs)?;
    // Without an interval nothing is known but the pairs themselves.
    let (low, high, is_sure) = match &ratio.interval {
        Some(interval) => (interval.low, interval.high, interval.is_sure()),
        None => spread(&ratio.logs).map(|logs| (logs.low, logs.high, false))?,
    };
    Some(Found {
        middle: ratio.middle.exp(),
        low: low.exp(),
        high: high.exp(),
        count: pairs.len(),
        is_sure,
    })
}

fn spread(values: &[f64]) -> Option<Found> {
    Some(Found {
        middle: median(values)?,
        low: values.iter().copied().fold(f64::INFINITY, f64::min),
        high: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        count: values.len(),
        is_sure: true,
    })
}

impl Found {
    fn verdict(&self, target: &Target) -> Verdict {
        let at_most = target
            .at_most
            .map(|limit| (self.high <= limit, self.low > limit));
        let at_least = target
            .at_least
            .map(|limit| (self.low >= limit, self.high < limit));
        let held: Vec<(bool, bool)> = at_most.into_iter().chain(at_least).collect();
        if !self.is_sure {
            Verdict::Open
        } else if held.iter().any(|(_, missed)| *missed) {
            Verdict::Missed
        } else if held.iter().all(|(met, _)| *met) {
            Verdict::Met
        } else {
            Verdict::Open
        }
    }
}
