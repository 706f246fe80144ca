//! The content of a report, independent of its format: made by `analysis` and `lint`, written by `report`.

use crate::record::{CommandLine, Environment, RunRecord, TunedKey};
use serde::{Deserialize, Serialize};

/// Everything of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    pub run: RunRecord,
    pub question: String,
    /// The document and rows it reproduces: "Seed 004, rows N1 and N2".
    pub origin: Option<String>,
    pub environment: Environment,
    /// The first thing read: a sentence each, the most important first.
    pub summary: Vec<Statement>,
    pub noise: Option<Noise>,
    pub comparisons: Vec<Compared>,
    pub tables: Vec<Grid>,
    pub charts: Vec<Picture>,
    /// What tools printed, verbatim, of the median trial of a point.
    pub blocks: Vec<Block>,
    pub warnings: Vec<Warning>,
    /// What is not here, and what replaces it.
    pub absences: Vec<String>,
    pub notes: Vec<String>,
    /// The topology as a drawing in text.
    pub topology: String,
    pub tuned: Vec<TunedKey>,
    /// How to repeat one point, by system.
    pub commands: Vec<(String, Vec<CommandLine>)>,
    /// Trials measured, disturbed, absent, failed.
    pub counts: Counts,
    pub interrupted: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Undisturbed.
    pub measured: usize,
    pub disturbed: usize,
    /// Of the disturbed ones those that figures rest on, because their points have no others.
    pub disturbed_used: usize,
    pub absent: usize,
    pub failed: usize,
    pub missing: usize,
}

/// A sentence of the summary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statement {
    pub tone: Tone,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tone {
    Gain,
    Loss,
    Same,
    Unsure,
    Plain,
}

/// What the same system differs from itself, run to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Share: comparisons below it are "no difference".
    pub floor: f64,
    pub metric: String,
    pub pairs: usize,
    pub text: String,
}

/// One comparison at one point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// "jemalloc : glibc at workers = 1".
    pub title: String,
    pub factor: String,
    pub metric: String,
    pub at: String,
    pub from: String,
    pub to: String,
    /// Figures whose quotient is the ratio: of the pair in the middle (of an even number the geometric means of two), or, where runs
    /// are compared that are not paired, the medians.
    pub from_figure: f64,
    pub to_figure: f64,
    /// to : from, median of the paired ratios, and its interval.
    pub ratio: f64,
    pub interval: Option<(f64, f64)>,
    /// The share of cases in which such an interval has the true ratio inside: 0.95 and more, and less of a few pairs.
    pub covers: Option<f64>,
    pub pairs: usize,
    /// Corrected for its family; below `LEVEL` wherever the verdict is better or worse.
    pub p_value: Option<f64>,
    pub verdict: Verdict,
    /// "faster by 12.1 % [9.8, 14.0], 12 pairs, p = 0.0005".
    pub words: String,
    /// At points where the server was not the limit the ratio is one of something else; this names them.
    pub caution: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Better,
    Worse,
    NoDifference,
    Inconclusive,
}

impl Verdict {
    pub(crate) fn tone(self) -> Tone {
        match self {
            Self::Better => Tone::Gain,
            Self::Worse => Tone::Loss,
            Self::NoDifference => Tone::Same,
            Self::Inconclusive => Tone::Unsure,
        }
    }
}

/// What the whiskers of these comparisons are: intervals of 95 % need six pairs.
pub fn whiskers(comparisons: &[Compared]) -> String {
    let covers = || comparisons.iter().filter_map(|compared| compared.covers);
    if covers().next().is_none() {
        return String::from("Of one or two pairs there are no whiskers.");
    }
    let least = covers().fold(1.0, f64::min);
    let sure = "intervals of the median of paired ratios, of 95 % or more";
    if least >= SURE {
        return format!("Whiskers are {sure}.");
    }
    let few = format!(
        "the range of the pairs' ratios, which covers {:.0} % of cases and is no interval of 95 %",
        (least * 100.0).floor()
    );
    if covers().any(|covers| covers >= SURE) {
        format!("Whiskers are {sure}, and of fewer than six pairs {few}.")
    } else {
        format!("Whiskers are {few}.")
    }
}

/// What an interval of 95 % covers.
const SURE: f64 = 0.95;

/// The p from which on no test finds a difference.
pub const LEVEL: f64 = 0.05;

/// A table in the document's layout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grid {
    pub title: String,
    pub head: Vec<String>,
    pub rows: Vec<Vec<Cell>>,
    /// Below it: units, what a mark means, how often measured.
    pub notes: Vec<String>,
}

impl Grid {
    /// Those of its widest row.
    pub fn columns(&self) -> usize {
        let rows = self.rows.iter().map(Vec::len);
        rows.fold(self.head.len(), usize::max)
    }
}

/// A cell is text with what has to be known of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cell {
    pub text: String,
    /// Half-width of its interval, "± 1.2 %".
    pub spread: Option<String>,
    /// ratio to the published figure, "0.83 of the document's".
    pub published: Option<String>,
    /// "client-bound", "needs 4 cores", "not built yet".
    pub mark: Option<String>,
    /// Numbers are aligned right.
    pub number: bool,
}

/// A picture as data; `report` draws it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Picture {
    pub title: String,
    pub drawing: Drawing,
    pub caption: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum Drawing {
    /// Points with intervals, joined; `curves` are smooth (the fitted law, the ideal).
    Lines {
        x: Scale,
        y: Scale,
        series: Vec<Series>,
        curves: Vec<Series>,
        /// Spans of x that are shaded: ramps.
        shaded: Vec<(f64, f64)>,
    },
    /// One bar each with an interval; `zero` is where nothing changes (1 of a ratio, 0 of a gain).
    Bars {
        scale: Scale,
        zero: f64,
        bars: Vec<Bar>,
    },
    /// Stacked shares of 100 %.
    Stacks {
        parts: Vec<String>,
        bars: Vec<(String, Vec<f64>)>,
    },
    /// Folded stacks: `a;b;c` and a count.
    Flame { folded: Vec<(String, u64)> },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scale {
    pub title: String,
    pub unit: crate::metric::Unit,
    pub logarithmic: bool,
    /// Percentiles: p is drawn at -log(1 - p).
    pub complement: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    pub name: String,
    pub points: Vec<Dot>,
}

/// A point with an interval, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dot {
    pub x: f64,
    pub y: f64,
    pub low: Option<f64>,
    pub high: Option<f64>,
}

impl Dot {
    pub(crate) fn without_interval((x, y): (f64, f64)) -> Self {
        Self {
            x,
            y,
            low: None,
            high: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bar {
    pub name: String,
    pub value: f64,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub tone: Tone,
}

/// What a tool printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    pub title: String,
    pub text: String,
}

/// A mistake, or something that looks like one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// Which lint: `swapped-labels`.
    pub lint: String,
    /// What was found, with figures.
    pub text: String,
    /// The same mistake at further places, a sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<String>,
    /// What to do.
    pub advice: String,
}
