//! The results in words and tables, for people.

use super::json;
use super::results::{CellResult, RATE};
use super::subject::{Kind, RAW, Subject, Way};
use crate::bench::machine::Machine;
use crate::bench::measurement::Findings;
use crate::bench::ratio::Ratio;
use crate::bench::table::Table;

/// What connections take that are held.
mod held;
/// What the columns mean, and how blocks are made.
mod meanings;
/// What is left of a server under overload.
mod overload;
/// What is to be reached, and what became of it.
mod targets;

/// Everything that a run has found.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) command_line: String,
    pub(super) machine: Machine,
    pub(super) seconds: u32,
    /// Servers that were not measured at all, and why.
    pub(super) left_out: Vec<(Kind, String)>,
    /// Cells that were measured smaller than they are, and why: sentences.
    pub(super) shortfalls: Vec<String>,
    pub(super) cells: Vec<CellResult>,
}

impl Findings for Report {
    fn emit_text(&self) -> String {
        let mut text = String::new();
        for (title, table) in self.tables() {
            text += &format!("\n{title}\n\n{}", table.emit_text());
        }
        let notes = self.notes();
        if !notes.is_empty() {
            text += &format!("\n{}\n", notes.join("\n"));
        }
        text
    }

    fn emit_markdown(&self) -> String {
        let mut text =
            "# The network stack of our own, against nginx and against raw frames\n\n".to_owned();
        text += "Made by the command below; run it again to replace this page.\n\n";
        text += &format!("```\n{}\n```\n\n", self.command_line);
        for line in self.machine.lines() {
            text += &format!("- {line}\n");
        }
        for (title, table) in self.tables() {
            text += &format!("\n## {title}\n\n{}", table.emit_markdown());
        }
        text += "\n## What the columns mean\n\n";
        for line in meanings::lines(self.seconds) {
            text += &format!("- {line}\n");
        }
        let notes = self.notes();
        if !notes.is_empty() {
            text += &format!("\n## Notes\n\n- {}\n", notes.join("\n- "));
        }
        text
    }

    fn emit_json(&self) -> String {
        json::emit(self)
    }

    fn is_whole(&self) -> bool {
        self.left_out.is_empty() && self.cells.iter().all(|result| result.failures.is_empty())
    }
}

impl Report {
    /// Those that hold something.
    fn tables(&self) -> Vec<(&'static str, Table)> {
        let from_kernel = |subject: Subject| subject.way == Way::Kernel;
        let tables = vec![
            ("Targets", targets::table(&self.cells)),
            (
                "Each server with its best kernel client",
                figures(&self.cells, from_kernel),
            ),
            (
                "Each server with our client over AF_XDP, memif, and raw frames",
                figures(&self.cells, |subject| !from_kernel(subject)),
            ),
            ("Connections that are held", held::table(&self.cells)),
            ("Overload", overload::table(&self.cells)),
            ("CPU and latency", costs(&self.cells)),
        ];
        let mut tables = tables;
        tables.retain(|(_, table)| !table.is_empty());
        tables
    }

    /// What weakens the figures, or is absent.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for (kind, why) in &self.left_out {
            notes.push(format!("{}: left out: {why}", kind.name()));
        }
        notes.extend(self.shortfalls.iter().cloned());
        for result in &self.cells {
            let name = &result.cell.name;
            for (subject, why) in &result.failures {
                notes.push(format!("{name}, {}: given up: {why}", subject.name()));
            }
            for overload in result.overloads.iter().filter(|one| one.errors > 0) {
                let (subject, errors) = (overload.subject.name(), overload.errors);
                notes.push(format!("{name}, {subject}: {errors} errors under overload"));
            }
            for subject in result.subjects() {
                let errors = result.errors(subject);
                if errors > 0 {
                    let subject = subject.name();
                    notes.push(format!(
                        "{name}, {subject}: {errors} errors; no ratios of it are told"
                    ));
                }
            }
            if result.cell.is_held() {
                notes.extend(held::shortfall(result));
            }
            let disturbed = result.disturbed();
            if disturbed > 0 {
                let blocks = result.blocks.len();
                notes.push(format!(
                    "{name}: in {disturbed} of {blocks} blocks others had a CPU: such figures are those of a busy machine"
                ));
            }
        }
        notes
    }
}

fn figures(cells: &[CellResult], is_wanted: impl Fn(Subject) -> bool) -> Table {
    let mut table = Table::new(
        3,
        &[
            "cell",
            "server",
            "client",
            "requests/s",
            "least",
            "most",
            "MB/s",
            "to nginx",
            "to raw frames",
            "errors",
            "bound",
        ],
    );
    for result in cells {
        for subject in result
            .subjects()
            .into_iter()
            .filter(|subject| is_wanted(*subject))
        {
            let Some(rate) = result.spread(subject, RATE) else {
                continue;
            };
            let nginx = subject.nginx();
            table.push(vec![
                result.cell.name.clone(),
                subject.kind.name().to_owned(),
                client(result, subject),
                format!("{:.0}", rate.median),
                format!("{:.0}", rate.least),
                format!("{:.0}", rate.most),
                format!(
                    "{:.1}",
                    result.median(subject, |block| block.bytes_per_s) / 1e6
                ),
                to(result, subject, nginx),
                to(result, subject, RAW),
                result.errors(subject).to_string(),
                result.bound(subject).to_owned(),
            ]);
        }
    }
    table
}

fn costs(cells: &[CellResult]) -> Table {
    let mut table = Table::new(
        3,
        &[
            "cell",
            "server",
            "client",
            "server CPU µs",
            "of it softirq",
            "server µs",
            "client CPU µs",
            "of it softirq",
            "client µs",
            "busy",
            "p50 µs",
            "p99 µs",
            "p99.9 µs",
            "max µs",
        ],
    );
    for result in cells {
        for subject in result.subjects() {
            let us = |share: fn(&super::block::Block) -> f64| {
                let share = result.median(subject, share);
                let rate = result.median(subject, RATE);
                format!("{:.2}", share * 1e6 / rate)
            };
            let busy =
                |share: fn(&super::block::Block) -> f64| 100.0 * result.median(subject, share);
            table.push(vec![
                result.cell.name.clone(),
                subject.kind.name().to_owned(),
                client(result, subject),
                us(|block| block.server_core.busy),
                us(|block| block.server_core.softirq),
                us(|block| block.server_ran),
                us(|block| block.client_core.busy),
                us(|block| block.client_core.softirq),
                us(|block| block.client_ran),
                format!(
                    "{:.0}/{:.0} %",
                    busy(|block| block.server_core.busy),
                    busy(|block| block.client_core.busy)
                ),
                micros(result.median_told(subject, |block| block.latency.p50)),
                micros(result.median_told(subject, |block| block.latency.p99)),
                micros(result.median_told(subject, |block| block.latency.p999)),
                micros(result.median_told(subject, |block| block.latency.max)),
            ]);
        }
    }
    table
}

fn client(result: &CellResult, subject: Subject) -> String {
    result
        .client(subject)
        .map_or_else(absent, |client| client.name().to_owned())
}

/// The ratio of the rates, but to itself.
fn to(result: &CellResult, subject: Subject, other: Subject) -> String {
    let ratio = (subject != other)
        .then(|| result.ratio(subject, other))
        .flatten();
    ratio.map_or_else(absent, |ratio| interval(&ratio))
}

/// Two digits are all that such intervals allow.
fn interval(ratio: &Ratio) -> String {
    let Ratio {
        mean, low, high, ..
    } = ratio;
    format!("{mean:.2} [{low:.2}, {high:.2}]")
}

fn micros(ms: Option<f64>) -> String {
    ms.filter(|ms| *ms > 0.0)
        .map_or_else(absent, |ms| format!("{:.1}", 1000.0 * ms))
}

fn absent() -> String {
    "–".to_owned()
}

#[cfg(test)]
mod tests {
    use super::{Findings, Kind, Machine, Report};
    use crate::bench::bypass::results::tests::two_passes;
    use crate::bench::bypass::subject::{NGINX, NGINX_BY_XDP, RAW, XDP};

    fn report() -> Report {
        let rates = [
            (NGINX, 90.0),
            (NGINX_BY_XDP, 100.0),
            (XDP, 500.0),
            (RAW, 1000.0),
        ];
        Report {
            command_line: "bench".to_owned(),
            machine: Machine {
                date: String::new(),
                cpu_model: String::new(),
                cpus: 2,
                kernel: String::new(),
                server_cpu: 0,
                client_cpu: 1,
                between: "veth",
                programs: Vec::new(),
            },
            seconds: 1,
            left_out: Vec::new(),
            shortfalls: Vec::new(),
            cells: vec![two_passes("ka-0B-64", &rates)],
        }
    }

    #[test]
    fn every_subject_has_a_row_in_its_matrix() {
        let text = report().emit_text();
        let expected = [
            ("nginx", 4),
            ("millstream, AF_XDP", 2),
            ("raw frames", 2),
            ("5.00 [5.00, 5.00]", 1),
            ("0.50 [0.50, 0.50]", 1),
            ("AF_XDP ≥ 0.70 × raw frames", 1),
            ("not measured", 1),
        ];
        for (words, count) in expected {
            let cell = format!("  {words}  ");
            let rows = text
                .lines()
                .filter(|line| format!("{line}  ").contains(&cell));
            assert_eq!(rows.count(), count, "{words}: {text}");
        }
        assert!(report().emit_markdown().contains("## Targets"));
        assert!(report().emit_json().contains("\"requests_per_s\":500"));
    }

    #[test]
    fn what_is_absent_and_what_failed_is_said() {
        let mut report = report();
        assert!(report.is_whole() && report.notes().is_empty());
        report
            .left_out
            .push((Kind::Memif, "no such option".to_owned()));
        report.cells[0]
            .failures
            .push((XDP, "it crashed".to_owned()));
        report.cells[0].blocks[0].errors = 7;
        report.cells[0].blocks[1].server_core.steal = 0.2;
        report.cells[0].blocks[2].client_waited = 0.2;
        assert!(!report.is_whole());
        let expected = [
            "millstream, memif: left out: no such option",
            "ka-0B-64, millstream, AF_XDP, asked over AF_XDP: given up: it crashed",
            "ka-0B-64, nginx, asked from the kernel: 7 errors; no ratios of it are told",
            "ka-0B-64: in 2 of 8 blocks others had a CPU: such figures are those of a busy machine",
        ];
        assert_eq!(report.notes(), expected);
    }
}
