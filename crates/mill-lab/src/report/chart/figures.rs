//! A picture's figures as a table, for screen readers and for exact values.

use super::axis::short;
use super::flame::Tree;
use crate::findings::{Drawing, Picture, Series};
use crate::report::number::{figure, grouped, significant};
use serde::Serialize;

/// Headings and rows of text; the first column names its row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(in crate::report) struct Figures {
    pub(in crate::report) head: Vec<String>,
    pub(in crate::report) rows: Vec<Vec<String>>,
}

/// At most `rows_max` rows: what is longer is better read from the run's own files, and gives none. A flame graph gives its hottest functions.
pub(in crate::report) fn figures(picture: &Picture, rows_max: usize) -> Option<Figures> {
    let figures = match &picture.drawing {
        Drawing::Lines { x, y, series, .. } => {
            let mut head = vec![x.title.clone()];
            head.extend(series.iter().map(|series| series.name.clone()));
            let places = places(series);
            if places.len() > rows_max {
                return None;
            }
            let row = |place: &f64| {
                let mut row = vec![short(*place, x.unit)];
                row.extend(series.iter().map(|series| at(series, *place, y.unit)));
                row
            };
            let rows = places.iter().map(row).collect();
            Figures { head, rows }
        }
        Drawing::Bars { scale, bars, .. } => {
            let number = |value: Option<f64>| {
                value.map_or_else(|| String::from("–"), |value| figure(value, scale.unit))
            };
            let row = |bar: &crate::findings::Bar| {
                vec![
                    bar.name.clone(),
                    number(Some(bar.value)),
                    number(bar.low),
                    number(bar.high),
                    bar.tone.word().to_owned(),
                ]
            };
            Figures {
                head: ["Bar", &scale.title, "from", "to", "verdict"]
                    .map(String::from)
                    .to_vec(),
                rows: bars.iter().map(row).collect(),
            }
        }
        Drawing::Stacks { parts, bars } => {
            let mut head = vec![String::from("Percent of")];
            head.extend(parts.iter().cloned());
            let row = |(name, values): &(String, Vec<f64>)| {
                let mut row = vec![name.clone()];
                row.extend(values.iter().map(|value| significant(*value, 3)));
                row
            };
            let rows = bars.iter().map(row).collect();
            Figures { head, rows }
        }
        Drawing::Flame { folded } => hottest(folded),
    };
    let shown = !figures.rows.is_empty() && figures.rows.len() <= rows_max;
    shown.then_some(figures)
}

fn hottest(folded: &[(String, u64)]) -> Figures {
    let tree = Tree::of(folded, 1.0);
    #[expect(
        clippy::cast_precision_loss,
        reason = "samples are far fewer than 2^53"
    )]
    let share = |count: u64| count as f64 / tree.samples.max(1) as f64 * 100.0;
    let row = |(name, count): &(String, u64)| {
        vec![
            name.clone(),
            format!("{} %", significant(share(*count), 3)),
            grouped(&count.to_string()),
        ]
    };
    Figures {
        head: ["Function", "Self", "Samples"].map(String::from).to_vec(),
        rows: tree.hottest.iter().take(HOTTEST).map(row).collect(),
    }
}

/// Functions that are named.
const HOTTEST: usize = 15;

/// All places along x, ascending.
fn places(series: &[Series]) -> Vec<f64> {
    let mut out: Vec<f64> = series
        .iter()
        .flat_map(|series| &series.points)
        .map(|dot| dot.x)
        .collect();
    out.sort_by(f64::total_cmp);
    out.dedup();
    out
}

fn at(series: &Series, place: f64, unit: crate::metric::Unit) -> String {
    let dot = series
        .points
        .iter()
        .find(|dot| dot.x.total_cmp(&place).is_eq());
    match dot {
        Some(dot) => match (dot.low, dot.high) {
            (Some(low), Some(high)) => format!(
                "{} [{} to {}]",
                figure(dot.y, unit),
                figure(low, unit),
                figure(high, unit)
            ),
            _ => figure(dot.y, unit),
        },
        None => String::from("–"),
    }
}
