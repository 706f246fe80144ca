//! Two runs beside each other: between commits, machines, days.
//!
//! Their trials are not paired, so what drifted from one run to the other is in the difference; what differs in the surroundings
//! comes first for that reason. Runs under different loads are shown and not ranked.

mod differences;

use super::Kept;
use super::measured::{Filter, Measured, named};
use super::noise;
use super::verdict::direction;
use super::wording::{
    counted, p_value, percent, percent_of_log, range_covers, signed_percent, written,
};
use crate::findings::{Cell, Compared, Grid, LEVEL, Statement, Tone, Verdict};
use crate::metric::{Better, Metric, describe};
use crate::record::Point;
use crate::statistics::{Interval, bootstrap_two, holm, mann_whitney, median, number, welch};
use std::fmt::Write;

/// What two runs have in common and where they differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Between {
    /// Ids of the runs.
    pub a: String,
    pub b: String,
    /// What differs besides figures: version, commit, machine, size, tuning. Read first.
    pub differences: Vec<String>,
    /// Why nothing is ranked: what of the loads differs. Empty if they are alike.
    pub refusals: Vec<String>,
    /// `b` : `a` at each common point; none if ranking was refused.
    pub comparisons: Vec<Compared>,
    pub grid: Grid,
    pub statements: Vec<Statement>,
}

/// Compares points that both runs measured.
pub fn compare(a: &Kept, b: &Kept) -> Between {
    let refusals = differences::of_loads(&a.recipe, &b.recipe);
    let (left, right) = (Measured::of(a), Measured::of(b));
    let common: Vec<Point> = left
        .points
        .iter()
        .filter(|point| right.points.contains(point))
        .map(|point| (*point).clone())
        .collect();
    let mut samples: Vec<Sample> = Vec::new();
    for metric in metrics(a) {
        for point in &common {
            let at: Filter = point
                .iter()
                .map(|(axis, value)| (axis.clone(), named(value)))
                .collect();
            let sample = Sample {
                metric: metric.clone(),
                from: left.values(&at, &metric),
                to: right.values(&at, &metric),
                at,
            };
            if !sample.from.is_empty() && !sample.to.is_empty() {
                samples.push(sample);
            }
        }
    }
    let comparisons = if refusals.is_empty() {
        judged(&left, &right, &samples)
    } else {
        Vec::new()
    };
    Between {
        a: a.run.id.clone(),
        b: b.run.id.clone(),
        differences: differences::of_surroundings(a, b),
        statements: statements(&refusals, &comparisons, &samples, common.len()),
        grid: grid(&left, (a, b), &samples, &comparisons),
        refusals,
        comparisons,
    }
}

impl Between {
    /// For a terminal.
    pub fn text(&self) -> String {
        let mut text = format!("A  {}\nB  {}\n", self.a, self.b);
        let section = |text: &mut String, title: &str, lines: &[String]| {
            if !lines.is_empty() {
                let _ = writeln!(text, "\n{title}");
                for line in lines {
                    let _ = writeln!(text, "  {line}");
                }
            }
        };
        section(&mut text, "What differs besides figures", &self.differences);
        section(
            &mut text,
            "Not ranked, because the loads differ",
            &self.refusals,
        );
        let said: Vec<String> = self.statements.iter().map(|s| s.text.clone()).collect();
        section(&mut text, "Result", &said);
        if !self.grid.rows.is_empty() {
            let _ = write!(text, "\n{}", columns(&self.grid));
        }
        section(&mut text, "Notes", &self.grid.notes);
        text
    }
}

/// One metric at one point, of both runs.
struct Sample {
    metric: String,
    at: Filter,
    from: Vec<f64>,
    to: Vec<f64>,
}

impl Sample {
    /// Whether the least p of so many trials, both of all ways to divide them into two sides that don't overlap, is below the level
    /// for the first of a family.
    fn ranks_can_speak(&self, family: usize) -> bool {
        let (a, b) = (self.from.len(), self.to.len());
        let ways = (1..=a).fold(1.0, |ways, k| ways * number(b + k) / number(k));
        2.0 / ways * number(family) < LEVEL
    }

    /// Mann and Whitney's, else Welch's of the logarithms.
    fn p_value(&self, by_ranks: bool) -> Option<f64> {
        if by_ranks {
            return mann_whitney(&self.to, &self.from).map(|test| test.p_value);
        }
        let logs = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<f64>>();
        welch(&logs(&self.from), &logs(&self.to))
    }
}

/// Those that the recipe compares, and what every run has.
fn metrics(kept: &Kept) -> Vec<String> {
    let named = kept
        .recipe
        .compare
        .iter()
        .flat_map(|comparison| comparison.metrics.iter().cloned());
    let always = [
        "requests_per_s",
        "latency_s.p99",
        "cpu_us_per_request.server",
    ];
    let mut metrics: Vec<String> = Vec::new();
    for metric in named.chain(always.map(String::from)) {
        if !metrics.contains(&metric) {
            metrics.push(metric);
        }
    }
    metrics
}

/// All points of a metric are one family of tests.
fn judged(left: &Measured<'_>, right: &Measured<'_>, samples: &[Sample]) -> Vec<Compared> {
    let mut compared = Vec::new();
    for family in samples.chunk_by(|a, b| a.metric == b.metric) {
        let by_ranks = family
            .iter()
            .all(|sample| sample.ranks_can_speak(family.len()));
        let raw: Vec<f64> = family
            .iter()
            .map(|sample| sample.p_value(by_ranks).unwrap_or(1.0))
            .collect();
        let floors = [left, right].map(|measured| {
            let noise = noise::floor(measured)?;
            noise.of(&family[0].metric)
        });
        for (sample, p) in family.iter().zip(holm(&raw)) {
            let least = sample.from.len().min(sample.to.len());
            let floor = floors
                .iter()
                .flatten()
                .map(|noise| noise.floor(least))
                .fold(0.0, f64::max);
            let margin = left.recipe.repeat.threshold.max(0.0).ln_1p().max(floor);
            compared.extend(one(left, sample, (p, by_ranks), margin));
        }
    }
    compared
}

/// `tested` is the p, corrected for its family, and whether it is of ranks.
fn one(left: &Measured<'_>, sample: &Sample, tested: (f64, bool), margin: f64) -> Option<Compared> {
    let (from, to) = (median(&sample.from)?, median(&sample.to)?);
    let middle = (to / from).ln();
    if !middle.is_finite() {
        return None;
    }
    let interval = bootstrap_two(&sample.from, &sample.to, left.kept.run.seed);
    let metric = describe(&sample.metric);
    let verdict = verdict(interval, middle, margin, tested.0, &metric);
    let at = left.told(&sample.at);
    Some(Compared {
        title: format!("B : A at {at}"),
        factor: String::from("run"),
        metric: sample.metric.clone(),
        from: String::from("A"),
        to: String::from("B"),
        from_figure: from,
        to_figure: to,
        ratio: middle.exp(),
        interval: interval.map(|span| (span.low.exp(), span.high.exp())),
        covers: interval.map(|span| span.covers),
        pairs: sample.from.len().min(sample.to.len()),
        p_value: Some(tested.0),
        verdict,
        words: words(sample, interval, middle, tested, (margin, verdict), &metric),
        caution: None,
        at,
    })
}

fn verdict(
    interval: Option<Interval>,
    middle: f64,
    margin: f64,
    p: f64,
    metric: &Metric,
) -> Verdict {
    let Some(Interval { low, high, .. }) = interval else {
        return Verdict::Inconclusive;
    };
    if low >= -margin && high <= margin {
        return Verdict::NoDifference;
    }
    if !(low > 0.0 || high < 0.0) || middle.abs() <= margin || p >= LEVEL {
        return Verdict::Inconclusive;
    }
    match (metric.better, middle > 0.0) {
        (Better::Lower, true) | (Better::Higher | Better::Neither, false) => Verdict::Worse,
        (Better::Lower, false) | (Better::Higher | Better::Neither, true) => Verdict::Better,
    }
}

fn words(
    sample: &Sample,
    interval: Option<Interval>,
    middle: f64,
    (p, by_ranks): (f64, bool),
    (margin, verdict): (f64, Verdict),
    metric: &Metric,
) -> String {
    let change = signed_percent(percent_of_log(middle));
    let trials = format!("{} and {} trials", sample.from.len(), sample.to.len());
    let Some(interval) = interval else {
        return format!(
            "inconclusive: {change} % from {trials}; three at least are needed on each side"
        );
    };
    let (low, high) = (percent_of_log(interval.low), percent_of_log(interval.high));
    let bounds = format!("[{}, {}]", percent(low), percent(high));
    let test = if by_ranks { "" } else { " (t-test)" };
    let covers = range_covers(interval);
    let evidence = format!("{trials}{covers}, {}{test}", p_value(p));
    match verdict {
        Verdict::NoDifference => format!(
            "no difference above {} % ({change} % {bounds}, {evidence})",
            percent(percent_of_log(margin))
        ),
        Verdict::Inconclusive => format!("inconclusive: {change} % {bounds}, {evidence}"),
        Verdict::Better | Verdict::Worse => {
            let (least, most) = if high < 0.0 {
                (-high, -low)
            } else {
                (low, high)
            };
            format!(
                "{} by {} % [{}, {}], {evidence}",
                direction(metric, middle > 0.0),
                percent(percent_of_log(middle).abs()),
                percent(least),
                percent(most)
            )
        }
    }
}

fn statements(
    refusals: &[String],
    comparisons: &[Compared],
    samples: &[Sample],
    common: usize,
) -> Vec<Statement> {
    let say = |tone, text| Statement { tone, text };
    if common == 0 || samples.is_empty() {
        let text = String::from("The runs have no measured point in common.");
        return vec![say(Tone::Unsure, text)];
    }
    if !refusals.is_empty() {
        let text = String::from(
            "The figures stand side by side and are not ranked: they are of different loads.",
        );
        return vec![say(Tone::Unsure, text)];
    }
    let decided =
        |compared: &&Compared| matches!(compared.verdict, Verdict::Better | Verdict::Worse);
    let mut statements: Vec<Statement> = comparisons
        .iter()
        .filter(decided)
        .map(|compared| {
            let metric = describe(&compared.metric).title;
            let text = format!(
                "B against A, {metric} at {}: {}.",
                compared.at, compared.words
            );
            say(compared.verdict.tone(), text)
        })
        .collect();
    let count = |verdict| comparisons.iter().filter(|c| c.verdict == verdict).count();
    for (verdict, tone, words) in [
        (
            Verdict::NoDifference,
            Tone::Same,
            "without a difference beyond the noise",
        ),
        (Verdict::Inconclusive, Tone::Unsure, "inconclusive"),
    ] {
        let count = count(verdict);
        if count > 0 {
            statements.push(say(
                tone,
                format!("{} {words}.", counted(count, "comparison")),
            ));
        }
    }
    statements
}

fn grid(
    left: &Measured<'_>,
    (a, b): (&Kept, &Kept),
    samples: &[Sample],
    comparisons: &[Compared],
) -> Grid {
    let text = |text: String| Cell {
        text,
        ..Cell::default()
    };
    let number = |text: String| Cell {
        text,
        number: true,
        ..Cell::default()
    };
    let rows = samples.iter().map(|sample| {
        let metric = describe(&sample.metric);
        let middle = |values: &[f64]| {
            number(median(values).map_or_else(String::new, |value| written(value, &metric, None)))
        };
        let at = left.told(&sample.at);
        let same = |compared: &&Compared| compared.metric == sample.metric && compared.at == at;
        let verdict = comparisons.iter().find(same);
        vec![
            text(metric.title.clone()),
            text(at.clone()),
            middle(&sample.from),
            middle(&sample.to),
            text(verdict.map_or_else(|| String::from("not ranked"), |c| c.words.clone())),
        ]
    });
    Grid {
        title: format!("{} : {}", b.run.id, a.run.id),
        head: ["Metric", "Point", "A", "B", "B against A"]
            .map(String::from)
            .to_vec(),
        rows: rows.collect(),
        notes: vec![String::from(
            "Medians. The runs' trials are not paired: a machine that drifted between the runs looks like a difference of what was measured.",
        )],
    }
}

/// A grid in columns of text.
fn columns(grid: &Grid) -> String {
    let mut lines: Vec<Vec<&str>> = vec![grid.head.iter().map(String::as_str).collect()];
    lines.extend(
        grid.rows
            .iter()
            .map(|row| row.iter().map(|cell| cell.text.as_str()).collect()),
    );
    let width = |column: usize| {
        let widths = lines
            .iter()
            .filter_map(|line| line.get(column))
            .map(|text| text.chars().count());
        widths.max().unwrap_or(0)
    };
    let mut text = String::new();
    for line in &lines {
        let mut out = String::new();
        for (column, word) in line.iter().enumerate() {
            let pad = " ".repeat(width(column).saturating_sub(word.chars().count()));
            let right = grid
                .rows
                .first()
                .and_then(|row| row.get(column))
                .is_some_and(|c| c.number);
            let cell = if right {
                format!("{pad}{word}  ")
            } else {
                format!("{word}{pad}  ")
            };
            out.push_str(&cell);
        }
        text.push_str(out.trim_end());
        text.push('\n');
    }
    text
}
