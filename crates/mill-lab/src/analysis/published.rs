//! The document's figures, read for one purpose: ours as a share of them.

use super::measured::Filter;
use crate::recipe::{Published, matches};
use crate::record::Point;
use std::collections::BTreeMap;

/// A published matrix that was read.
#[derive(Debug)]
pub(super) struct Document<'a> {
    published: &'a Published,
    /// By (value of `lines`, value of `columns`), in the metric's own unit.
    figures: BTreeMap<(String, String), f64>,
}

/// All that can be read; a unit that is not known can't be compared with ours and is left out.
pub(super) fn documents(published: &[Published]) -> Vec<Document<'_>> {
    let document = |published| {
        let figures = matrix(published)?;
        Some(Document { published, figures })
    };
    published.iter().filter_map(document).collect()
}

/// "0.31 of the document's", with the place, if one document has a figure for this metric at this point.
pub(super) fn share(
    documents: &[Document<'_>],
    at: &Filter,
    metric: &str,
    ours: f64,
) -> Option<String> {
    let stem = metric.split('.').next().unwrap_or(metric);
    if TOTALS.contains(&stem) {
        return None;
    }
    let point = super::measured::as_point(at);
    let theirs = documents
        .iter()
        .filter(|document| document.published.metric == metric)
        .find_map(|document| document.figure(&point))?;
    let share = ours / theirs;
    if !share.is_finite() || theirs <= 0.0 {
        return None;
    }
    let digits = if share < 0.095 { 3 } else { 2 };
    Some(format!("{share:.digits$} of the document's"))
}

/// Figures that grow with the run: a share of them says only how much shorter ours was.
const TOTALS: [&str; 3] = ["requests", "seconds", "errors"];

impl Document<'_> {
    fn figure(&self, point: &Point) -> Option<f64> {
        if !matches(point, &self.published.at) {
            return None;
        }
        let line = point.get(&self.published.lines)?.clone();
        let column = point.get(&self.published.columns)?.clone();
        self.figures.get(&(line, column)).copied()
    }
}

/// None if the text or the unit cannot be parsed; a check of the recipe gives the reason.
fn matrix(published: &Published) -> Option<BTreeMap<(String, String), f64>> {
    let factor = factor(published)?;
    let figures = published.matrix().ok()?.into_iter();
    Some(
        figures
            .map(|figure| ((figure.line, figure.column), figure.value * factor))
            .collect(),
    )
}

/// The factor from a published number to the metric's unit; none if the unit is unknown.
fn factor(published: &Published) -> Option<f64> {
    let Some(unit) = published.unit.as_deref() else {
        return Some(1.0);
    };
    // "Gb/s from MiB/s": 1024² bytes called a million; the metric of that convention takes them as they are.
    if unit == "Gb/s from MiB/s" {
        let same = published.metric == "gbit_per_s_from_mib";
        return Some(if same { 1.0 } else { 1.048_576 });
    }
    if let Some(seconds) = unit
        .strip_prefix("in ")
        .and_then(|rest| rest.strip_suffix(" s"))
    {
        return seconds.parse::<f64>().ok().map(f64::recip);
    }
    let first = unit.split_whitespace().next()?;
    UNITS
        .iter()
        .find(|(name, _)| *name == first)
        .map(|(_, factor)| *factor)
}

/// Units of documents, in those of metrics.
const UNITS: [(&str, f64); 20] = [
    ("s", 1.0),
    ("ms", 1e-3),
    ("us", 1e-6),
    ("µs", 1e-6),
    ("%", 1.0),
    ("rps", 1.0),
    ("req/s", 1.0),
    ("K/s", 1e3),
    ("M/s", 1e6),
    ("B", 1.0),
    ("KB", 1e3),
    ("KiB", 1024.0),
    ("MB", 1e6),
    ("MiB", 1_048_576.0),
    ("KB/s", 1e3),
    ("KiB/s", 1024.0),
    ("MB/s", 1e6),
    ("MiB/s", 1_048_576.0),
    ("Gb/s", 1.0),
    ("Mb/s", 1e-3),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn published(metric: &str, unit: Option<&str>, figures: &str) -> Published {
        Published {
            place: String::from("Table 2"),
            metric: String::from(metric),
            unit: unit.map(String::from),
            at: Filter::from([(String::from("test"), toml::Value::from("tps"))]),
            lines: String::from("workers"),
            columns: String::from("system"),
            figures: String::from(figures),
            defect: None,
        }
    }

    fn at(workers: i64, system: &str, test: &str) -> Filter {
        Filter::from([
            (String::from("workers"), toml::Value::from(workers)),
            (String::from("system"), toml::Value::from(system)),
            (String::from("test"), toml::Value::from(test)),
        ])
    }

    #[test]
    fn a_figure_is_a_share_of_the_documents_where_place_metric_and_values_fit() {
        let table = [published(
            "requests_per_s",
            None,
            "\n   nginx  onload\n1  35890.70  126007\n28 288632 -\n",
        )];
        let documents = documents(&table);
        let check = |at: Filter, metric: &str, expected: Option<&str>| {
            assert_eq!(
                share(&documents, &at, metric, 11_126.0).as_deref(),
                expected,
                "{at:?}"
            );
        };
        check(
            at(1, "nginx", "tps"),
            "requests_per_s",
            Some("0.31 of the document's"),
        );
        check(
            at(28, "nginx", "tps"),
            "requests_per_s",
            Some("0.039 of the document's"),
        );
        check(at(28, "onload", "tps"), "requests_per_s", None);
        check(at(1, "nginx", "rps0k"), "requests_per_s", None);
        check(at(1, "nginx", "tps"), "latency_s.p99", None);
        check(at(2, "nginx", "tps"), "requests_per_s", None);
    }

    #[test]
    fn totals_of_a_longer_run_are_no_measure_of_ours() {
        let figures = "\n nginx\n1 405901\n";
        for (metric, is_shown) in [
            ("requests", false),
            ("errors.read", false),
            ("latency_s.p99", true),
        ] {
            let table = [published(metric, None, figures)];
            let shown = share(&documents(&table), &at(1, "nginx", "tps"), metric, 53_020.0);
            assert_eq!(shown.is_some(), is_shown, "{metric}");
        }
    }

    #[test]
    fn units_of_documents_are_turned_into_ours() {
        for (metric, unit, expected) in [
            ("latency_s.mean", Some("ms"), Some(1e-3)),
            ("malloc_per_s", Some("in 8 s"), Some(0.125)),
            ("gbit_per_s", Some("Gb/s from MiB/s"), Some(1.048_576)),
            ("gbit_per_s_from_mib", Some("Gb/s from MiB/s"), Some(1.0)),
            ("gbit_per_s", Some("Gb/s on the interface"), Some(1.0)),
            ("requests_per_s", None, Some(1.0)),
            ("latency_s.mean", Some("fortnights"), None),
        ] {
            let found = factor(&published(metric, unit, ""));
            assert_eq!(found, expected, "{unit:?}");
        }
    }
}
