//! What connections take that are held, most of them idle at any time.

use super::super::results::{CellResult, RATE};
use crate::bench::table::Table;

/// That fewer were held than were asked for.
pub(super) fn shortfall(result: &CellResult) -> Option<String> {
    let held = result
        .blocks
        .iter()
        .filter_map(|block| block.connections_held);
    let (least, asked) = (held.min()?, u64::from(result.cell.concurrency));
    let name = &result.cell.name;
    (least < asked).then(|| {
        format!("{name}: {least} of {asked} connections were open at the end: the client was too slow to open them in time, or lost them")
    })
}

/// A row for each server of each such cell.
pub(super) fn table(cells: &[CellResult]) -> Table {
    let mut table = Table::new(
        2,
        &[
            "cell",
            "server",
            "connections",
            "open at the end",
            "requests/s",
            "errors",
            "server bytes/connection",
            "client bytes/connection",
            "p99.9 lateness µs",
        ],
    );
    for result in cells.iter().filter(|result| result.cell.is_held()) {
        for subject in result.subjects() {
            let held = |block: &super::super::block::Block| {
                block.connections_held.map(|count| count as f64)
            };
            let whole = |figure: Option<f64>| {
                figure.map_or_else(super::absent, |figure| format!("{figure:.0}"))
            };
            table.push(vec![
                result.cell.name.clone(),
                subject.kind.name().to_owned(),
                result.cell.concurrency.to_string(),
                whole(result.median_told(subject, held)),
                format!("{:.0}", result.median(subject, RATE)),
                result.errors(subject).to_string(),
                format!("{:.0}", result.median(subject, |block| block.server_bytes)),
                format!("{:.0}", result.median(subject, |block| block.client_bytes)),
                super::micros(result.median_told(subject, |block| block.lateness.p999)),
            ]);
        }
    }
    table
}
