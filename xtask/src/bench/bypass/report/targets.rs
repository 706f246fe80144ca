//! What is to be reached, and what became of it.

use super::super::cell::Target;
use super::super::results::{CellResult, Found, Spread};
use crate::bench::table::Table;

/// A row for each target of each cell.
pub(super) fn table(cells: &[CellResult]) -> Table {
    let mut table = Table::new(2, &["cell", "target", "found", "verdict"]);
    for result in cells {
        let judged = result.targets();
        for target in result.cell.targets() {
            let found = judged.iter().find(|judged| judged.target == target);
            table.push(vec![
                result.cell.name.clone(),
                in_words(target),
                found.map_or_else(super::absent, |judged| match judged.found {
                    Found::Ratio(ratio) => ratio.to_string(),
                    Found::Times(own, nginx) => {
                        format!("{:.1} µs to {:.1} µs", 1000.0 * own, 1000.0 * nginx)
                    }
                    Found::Time(time) => {
                        let Spread {
                            median,
                            least,
                            most,
                        } = time;
                        let [median, least, most] = [median, least, most].map(|ms| 1000.0 * ms);
                        format!("{median:.1} [{least:.1}, {most:.1}] µs")
                    }
                    Found::Rate(rate) => {
                        format!("{:.0} [{:.0}, {:.0}]", rate.median, rate.least, rate.most)
                    }
                    Found::Bytes(bytes) => format!("{:.0} bytes", bytes.median),
                    Found::Kept(kept) => {
                        format!("{:.2} [{:.2}, {:.2}]", kept.median, kept.least, kept.most)
                    }
                }),
                found
                    .map_or("not measured", |judged| judged.verdict.name())
                    .to_owned(),
            ]);
        }
    }
    table
}

fn in_words(target: Target) -> String {
    match target {
        Target::XdpOfRaw(limit) => format!("AF_XDP ≥ {limit:.2} × raw frames"),
        Target::XdpOfNginx(limit) => format!("AF_XDP ≥ {limit:.1} × nginx, same client"),
        Target::XdpOfBetterNginx(limit) => {
            format!("AF_XDP ≥ {limit:.1} × nginx, its better client")
        }
        Target::XdpP99OfNginx(limit) => {
            format!("p99 over AF_XDP ≤ {limit:.1} × nginx's, at half of nginx's requests/s")
        }
        Target::MemifLateness(limit) => {
            format!(
                "memif, 99.9 % of requests begun within {:.0} µs",
                1000.0 * limit
            )
        }
        Target::MemifServerBytes(limit) => {
            format!("memif, server ≤ {limit:.0} bytes a connection")
        }
        Target::MemifClientBytes(limit) => {
            format!("memif, client ≤ {limit:.0} bytes a connection")
        }
        Target::MemifPaceKept(limit) => {
            format!("memif, answered ≥ {limit:.2} × what is due while they are held")
        }
        Target::XdpGoodput(limit) => {
            format!("answers under overload over AF_XDP ≥ {limit:.1} × those without")
        }
        Target::MemifRate(limit) => format!("memif ≥ {:.1} M requests/s", limit / 1e6),
    }
}
