//! Tables, charts and published figures: that what they show can be measured.

use super::{Check, item};
use crate::recipe::{Chart, ChartKind, Column, Rows, Table};
use std::collections::BTreeMap;

impl Check<'_> {
    pub(super) fn tables(&mut self) {
        for (index, table) in self.resolved.recipe.table.iter().enumerate() {
            let path = item(&["table"], index);
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            self.table(&path, table);
        }
    }

    fn table(&mut self, path: &[&str], table: &Table) {
        let key = |key| [path, &[key]].concat();
        self.at(&key("at"), &table.at);
        self.axes(&key("each"), &table.each);
        self.title(&key("title"), &table.title, &table.at, &table.each);
        let points = match &table.rows {
            Rows::Axis(axis) => self.axis(&[path, &["rows", "axis"]].concat(), axis),
            Rows::Axes(axes) => {
                self.axes(&[path, &["rows", "axes"]].concat(), axes);
                true
            }
            Rows::Metrics(metrics) => {
                for (index, metric) in metrics.iter().enumerate() {
                    let index = index.to_string();
                    self.metric(&[path, &["rows", "metrics", &index]].concat(), metric);
                }
                false
            }
        };
        if table.columns.is_empty() {
            self.fail(&key("columns"), "a table without columns shows nothing");
        }
        for (index, column) in table.columns.iter().enumerate() {
            let index = index.to_string();
            self.column(&[path, &["columns", &index]].concat(), column, points);
        }
    }

    fn column(&mut self, path: &[&str], column: &Column, rows_are_points: bool) {
        let key = |key| [path, &[key]].concat();
        self.at(&key("at"), &column.at);
        if let Some(over) = &column.over {
            self.at(&key("over"), over);
        }
        match &column.metric {
            Some(metric) => self.metric(&key("metric"), metric),
            None if rows_are_points => {
                let problem = format!(
                    "the column `{}` needs a `metric`, because the rows are points",
                    column.title
                );
                self.fail(path, problem);
            }
            None => {}
        }
        if column.change && column.over.is_none() {
            self.fail(path, "`change` needs `over`: from what?");
        }
    }

    pub(super) fn charts(&mut self) {
        for (index, chart) in self.resolved.recipe.chart.iter().enumerate() {
            let path = item(&["chart"], index);
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            self.chart(&path, chart);
        }
    }

    fn chart(&mut self, path: &[&str], chart: &Chart) {
        let key = |key| [path, &[key]].concat();
        self.at(&key("at"), &chart.at);
        self.axes(&key("each"), &chart.each);
        self.axes(&key("series"), &chart.series);
        self.title(&key("title"), &chart.title, &chart.at, &chart.each);
        let along = matches!(chart.kind, ChartKind::Scaling | ChartKind::Lines);
        if along && chart.x.is_empty() {
            self.fail(
                path,
                "a chart of this kind needs `x`: the axis along which it is drawn",
            );
        } else if !chart.x.is_empty() {
            self.axis(&key("x"), &chart.x);
        }
        self.metric(&key("metric"), &chart.metric);
        let bars = chart.kind == ChartKind::Gains;
        if bars && self.resolved.recipe.compare.is_empty() {
            self.fail(path, "gains are those of `[[compare]]`, and there is none");
        }
    }

    pub(super) fn published(&mut self) {
        for (index, published) in self.resolved.recipe.published.iter().enumerate() {
            let path = item(&["published"], index);
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            let key = |key| [path.as_slice(), &[key]].concat();
            self.metric(&key("metric"), &published.metric);
            self.at(&key("at"), &published.at);
            let lines = self.axis(&key("lines"), &published.lines);
            let columns = self.axis(&key("columns"), &published.columns);
            let figures = match published.matrix() {
                Ok(figures) => figures,
                Err(error) => {
                    self.fail(&key("figures"), error.to_string());
                    continue;
                }
            };
            let mut seen = Vec::new();
            for (axis, known, name) in figures.iter().flat_map(|figure| {
                [
                    (&published.lines, lines, &figure.line),
                    (&published.columns, columns, &figure.column),
                ]
            }) {
                if known && !self.may_be_elsewhere(axis, name) && !seen.contains(&(axis, name)) {
                    seen.push((axis, name));
                    self.value(&key("figures"), axis, name);
                }
            }
        }
    }

    /// A document may have measured at numbers that no size of the recipe has; an unknown word is a mistake.
    fn may_be_elsewhere(&self, axis: &str, name: &str) -> bool {
        let is_number = |name: &str| name.parse::<f64>().is_ok();
        let known = self.resolved.known.get(axis);
        is_number(name) && known.is_some_and(|names| names.iter().all(|name| is_number(name)))
    }

    fn axes(&mut self, path: &[&str], axes: &[String]) {
        for (index, axis) in axes.iter().enumerate() {
            let index = index.to_string();
            self.axis(&[path, &[&index]].concat(), axis);
        }
    }

    /// `${axis}` in a title has one value in each table: the axis is fixed, or there is a table for each value.
    fn title(
        &mut self,
        path: &[&str],
        title: &str,
        at: &BTreeMap<String, toml::Value>,
        each: &[String],
    ) {
        for part in title.split("${").skip(1) {
            let Some((name, _)) = part.split_once('}') else {
                self.fail(path, "`${` without its `}`");
                continue;
            };
            let fixed = at.contains_key(name) || each.iter().any(|axis| axis == name);
            if !fixed {
                let problem = format!(
                    "`${{{name}}}` has no single value here; add `{name}` to `each`, or fix it in `at`"
                );
                self.fail(path, problem);
            }
        }
    }
}
