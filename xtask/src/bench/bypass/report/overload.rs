//! What is left of a server under overload.

use super::super::client::PERIOD;
use super::super::overload::Overload;
use super::super::results::CellResult;
use crate::bench::table::Table;

/// A row for each overload.
pub(super) fn table(cells: &[CellResult]) -> Table {
    let mut table = Table::new(
        2,
        &[
            "cell",
            "server",
            "alone/s",
            "on all/s",
            "offered/s",
            "answered/s",
            "of it",
            "worst period",
            "errors",
            "p50 µs",
            "p99 µs",
            "answers/s each 250 ms",
        ],
    );
    for result in cells {
        for overload in &result.overloads {
            table.push(row(&result.cell.name, overload));
        }
    }
    table
}

/// The heading says it.
const _: () = assert!(PERIOD.as_millis() == 250);

fn row(cell: &str, overload: &Overload) -> Vec<String> {
    let series: Vec<String> = overload
        .series
        .iter()
        .map(|rate| format!("{rate:.0}"))
        .collect();
    let share = |share: f64| format!("{share:.2}");
    vec![
        cell.to_owned(),
        overload.subject.kind.name().to_owned(),
        format!("{:.0}", overload.alone_per_s),
        format!("{:.0}", overload.many_per_s),
        format!("{:.0}", overload.offered_per_s),
        format!("{:.0}", overload.goodput_per_s),
        share(overload.kept()),
        overload.least_kept().map_or_else(super::absent, share),
        overload.errors.to_string(),
        super::micros(overload.latency.p50),
        super::micros(overload.latency.p99),
        series.join(" "),
    ]
}
