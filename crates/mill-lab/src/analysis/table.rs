//! Tables in the document's layout.

mod cell;

use super::measured::{Filter, Measured, as_point, over};
use super::published::{Document, documents};
use crate::findings::{Cell, Grid};
use crate::metric::describe;
use crate::recipe::{Column, Rows, Table};
use cell::Cells;

/// Each table of the recipe, once for each value of the axes in `each`.
pub(super) fn all(measured: &Measured<'_>) -> Vec<Grid> {
    let documents = documents(&measured.recipe.published);
    let grids = measured.recipe.table.iter().flat_map(|table| {
        let each = measured.combinations(&table.each, &table.at);
        each.into_iter()
            .map(|each| grid(measured, &documents, table, &each))
            .collect::<Vec<_>>()
    });
    grids.collect()
}

/// A line of a table: its heading, the points, and the figure if rows are figures.
struct Line {
    words: Vec<String>,
    at: Filter,
    metric: Option<String>,
}

fn grid(measured: &Measured<'_>, documents: &[Document<'_>], table: &Table, each: &Filter) -> Grid {
    let base = over(&[&table.at, each]);
    let (mut head, lines) = lines(measured, table, &base);
    head.extend(table.columns.iter().map(|column| column.title.clone()));
    let mut cells = Cells::new(measured, documents);
    let rows = lines
        .iter()
        .map(|line| {
            let at = over(&[&base, &line.at]);
            let mut row: Vec<Cell> = words(&line.words);
            row.extend(table.columns.iter().map(|column| {
                let metric = column.metric.as_ref().or(line.metric.as_ref());
                cells.cell(&at, column, metric.map_or("requests_per_s", String::as_str))
            }));
            row
        })
        .collect();
    let mut notes = cells.notes();
    notes.extend(conventions(table));
    notes.extend(stand_ins(measured, table));
    Grid {
        title: title(measured, &table.title, &base),
        head,
        rows,
        notes,
    }
}

/// The headings before the columns, and the lines.
fn lines(measured: &Measured<'_>, table: &Table, base: &Filter) -> (Vec<String>, Vec<Line>) {
    let of_axes = |axes: &[String]| {
        let lines = measured.combinations(axes, base).into_iter().map(|at| {
            let point = as_point(&at);
            let words = axes.iter().map(|axis| {
                point
                    .get(axis)
                    .map_or_else(String::new, |name| measured.title(axis, name))
            });
            Line {
                words: words.collect(),
                at: at.clone(),
                metric: None,
            }
        });
        lines.collect()
    };
    match &table.rows {
        Rows::Axis(axis) => {
            let head = if table.head.is_empty() {
                axis.clone()
            } else {
                table.head.clone()
            };
            (vec![head], of_axes(std::slice::from_ref(axis)))
        }
        // One heading for several columns of words can only be split by the axes' own names.
        Rows::Axes(axes) => (axes.clone(), of_axes(axes)),
        Rows::Metrics(metrics) => {
            let lines = metrics.iter().map(|metric| Line {
                words: vec![describe(metric).title],
                at: Filter::new(),
                metric: Some(metric.clone()),
            });
            (vec![table.head.clone()], lines.collect())
        }
    }
}

/// The cells before the columns. Of several axes none is a number: a table whose lines have no figure would look as if it had.
fn words(words: &[String]) -> Vec<Cell> {
    let is_alone = words.len() == 1;
    let cell = |word: &String| Cell {
        text: word.clone(),
        number: is_alone && word.parse::<f64>().is_ok(),
        ..Cell::default()
    };
    words.iter().map(cell).collect()
}

/// `${axis}` in a title is the value's title.
pub(super) fn title(measured: &Measured<'_>, title: &str, at: &Filter) -> String {
    let mut text = String::from(title);
    for (axis, name) in as_point(at) {
        text = text.replace(&format!("${{{axis}}}"), &measured.title(&axis, &name));
    }
    text
}

/// What a reader has to know of figures' units.
fn conventions(table: &Table) -> Option<String> {
    let metric = |column: &Column| column.metric.clone();
    let rows = match &table.rows {
        Rows::Metrics(metrics) => metrics.clone(),
        Rows::Axis(_) | Rows::Axes(_) => Vec::new(),
    };
    let mut metrics = table.columns.iter().filter_map(metric).chain(rows);
    metrics
        .any(|metric| metric == "gbit_per_s_from_mib")
        .then(|| {
            String::from(
                "\"Gb/s\" are MiB/s × 8 / 1000, as the document has them: 4.63 % less than Gb/s.",
            )
        })
}

/// Marks columns of systems that replace others.
fn stand_ins(measured: &Measured<'_>, table: &Table) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    let names = table
        .columns
        .iter()
        .filter_map(|column| column.at.get("system"));
    for name in names.flat_map(crate::recipe::value_names) {
        let system = measured.recipe.system.get(&name);
        let other = system.and_then(|system| system.get("stands_for")?.as_str());
        if let Some(other) = other {
            let note = format!("{} stands in for {other}.", measured.title("system", &name));
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    notes
}
