//! The results in words and tables, for people.

use super::case::Target;
use super::idle_memory::CONNECTIONS;
use super::json;
use super::results::{CPU, CaseResult, IdleResult, RATE};
use super::server::Subject;
use crate::bench::accounting::SoftirqAccount;
use crate::bench::bound::bound;
use crate::bench::machine::Machine;
use crate::bench::measurement::Findings;
use crate::bench::ratio::Ratio;
use crate::bench::table::Table;

/// Everything that a run has found.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) command_line: String,
    pub(super) machine: Machine,
    pub(super) softirq_account: SoftirqAccount,
    pub(super) seconds: u32,
    pub(super) cases: Vec<CaseResult>,
    pub(super) idle: Vec<IdleResult>,
}

impl Findings for Report {
    fn emit_text(&self) -> String {
        let mut text = format!("\n{}", measurements(&self.cases).emit_text());
        for table in [ratios(&self.cases), idle(&self.idle)] {
            if !table.is_empty() {
                text += &format!("\n{}", table.emit_text());
            }
        }
        let notes = self.notes();
        if !notes.is_empty() {
            text += &format!("\n{}\n", notes.join("\n"));
        }
        text
    }

    fn emit_markdown(&self) -> String {
        let mut text = "# Millstream against nginx, static files on kernel sockets\n\n".to_owned();
        text += "Made by the command below; run it again to replace this page.\n\n";
        text += &format!("```\n{}\n```\n\n", self.command_line);
        for line in self.machine.lines() {
            text += &format!("- {line}\n");
        }
        text += &format!(
            "\n## Figures\n\n{}",
            measurements(&self.cases).emit_markdown()
        );
        text += &format!("\n## Ratios\n\n{}", ratios(&self.cases).emit_markdown());
        if !self.idle.is_empty() {
            text += &format!(
                "\n## Idle connections\n\n{}",
                idle(&self.idle).emit_markdown()
            );
        }
        let calls = system_calls(&self.cases);
        if !calls.is_empty() {
            text += &format!(
                "\n## System calls per request, by name\n\n{}",
                calls.emit_markdown()
            );
        }
        text += "\n## What the columns mean\n\n";
        for line in self.meanings() {
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
        self.cases.iter().all(|result| result.failure.is_none())
    }
}

impl Report {
    /// What weakens the figures, or is absent.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for result in &self.cases {
            let name = &result.case.name;
            if let Some(failure) = &result.failure {
                notes.push(format!("{name}: given up: {failure}"));
            }
            if let Some((nginx, millstream)) = result.unequal_answers() {
                notes.push(format!(
                    "{name}: unequal work: an answer of nginx has {nginx} bytes, one of millstream {millstream}"
                ));
            }
            let disturbed = result.disturbed();
            if disturbed > 0 {
                let blocks = result.blocks.len();
                notes.push(format!(
                    "{name}: in {disturbed} of {blocks} blocks the server waited for its CPU, which others used"
                ));
            }
            for costs in &result.costs {
                let server = costs.subject.name();
                if let Err(why) = &costs.system_calls {
                    notes.push(format!("{name}, {server}: no system calls: {why}"));
                }
                if let Err(why) = &costs.allocations {
                    notes.push(format!("{name}, {server}: no allocations: {why}"));
                }
            }
        }
        for result in &self.idle {
            if let Err(why) = &result.memory {
                let server = result.subject.name();
                notes.push(format!("{server}: no memory of idle connections: {why}"));
            }
        }
        notes
    }

    fn meanings(&self) -> Vec<String> {
        let softirq = match self.softirq_account {
            SoftirqAccount::InTask => {
                "this kernel counts it in the time of the process in whose context it ran, so that it \
                 is part of the column before"
            }
            SoftirqAccount::Apart => {
                "this kernel keeps it out of the processes' time, and it was added to the column before"
            }
            SoftirqAccount::Unknown => {
                "whether this kernel counts it in the processes' time could not be found out; it was \
                 not added"
            }
        };
        vec![
            format!(
                "Each block has a fresh server and lasts {} s; blocks alternate (nginx, millstream, \
                 millstream, nginx, …). Figures are medians of the blocks.",
                self.seconds
            ),
            "requests/s: answers per second of wrk's time. From 100 kB on, unfinished answers count \
             as fractions, by their bytes."
                .to_owned(),
            "bytes: of one answer with its head. What it holds was compared with the file."
                .to_owned(),
            "CPU µs: run time of all threads of the server's processes (schedstat), per answer. The \
             opening of connections is in it."
                .to_owned(),
            format!(
                "softirq µs: the network stack's work between system calls on the server's CPU, by \
                 clock ticks, per answer; {softirq}. On loopback a sender does the receiver's share of \
                 that work."
            ),
            "calls: system calls per request, by strace in a run of its own. Where connections stay, \
             their opening is taken off."
                .to_owned(),
            "allocations: heap allocations per request, by valgrind: the difference of two runs. \
             Mappings and allocators linked into a server are not seen."
                .to_owned(),
            "p50, p99, p99.9, max: milliseconds from a request's first write to its whole answer, \
             without connecting; a closed loop's service time, not the response time at a given rate."
                .to_owned(),
            "client µs: wrk's CPU time per answer. busy: share of the time in which the server and the \
             client ran or wanted to; bound: which of them could do no more."
                .to_owned(),
            "Ratios: Millstream's figure by that of the neighbouring block, geometric mean with the \
             95 % interval by Student's t on the logarithms. A target is open when it lies inside."
                .to_owned(),
            format!(
                "Idle connections: {CONNECTIONS} connections that made one request each; growth of the \
                 server's proportional (PSS) and private memory per connection. The kernel's own memory \
                 for sockets is not in it, and is the same for both."
            ),
        ]
    }
}

fn measurements(cases: &[CaseResult]) -> Table {
    let mut table = Table::new(
        2,
        &[
            "case",
            "server",
            "requests/s",
            "MB/s",
            "bytes",
            "CPU µs",
            "softirq µs",
            "calls",
            "allocations",
            "p50 ms",
            "p99 ms",
            "p99.9 ms",
            "max ms",
            "errors",
            "client µs",
            "busy",
            "bound",
        ],
    );
    for result in cases {
        for subject in result.subjects() {
            table.push(measurement(result, subject));
        }
    }
    table
}

fn measurement(result: &CaseResult, subject: Subject) -> Vec<String> {
    let median = |figure| result.median(subject, figure);
    let costs = result.costs_of(subject);
    let calls = costs.and_then(|costs| costs.system_calls.as_ref().ok());
    let allocations = costs.and_then(|costs| costs.allocations.as_ref().ok());
    let server_wants = median(|block| block.server_ran + block.server_waited);
    let client_wants = median(|block| block.client_ran + block.client_waited);
    let absent = || "–".to_owned();
    vec![
        result.case.name.clone(),
        subject.name().to_owned(),
        format!("{:.0}", median(RATE)),
        format!("{:.1}", median(|block| block.bytes_per_s) / 1e6),
        format!("{:.0}", median(|block| block.answer_bytes as f64)),
        format!("{:.2}", median(CPU)),
        format!("{:.2}", median(|block| block.softirq_us_per_request)),
        calls.map_or_else(absent, |calls| format!("{:.2}", calls.total())),
        allocations.map_or_else(absent, |count| format!("{:.2}", without_sign(*count))),
        millis(median(|block| block.latency.p50_us as f64)),
        millis(median(|block| block.latency.p99_us as f64)),
        millis(median(|block| block.latency.p999_us as f64)),
        millis(median(|block| block.latency.max_us as f64)),
        result.errors(subject).to_string(),
        format!("{:.2}", median(|block| block.client_cpu_us_per_request)),
        format!("{:.0}/{:.0} %", 100.0 * server_wants, 100.0 * client_wants),
        bound(server_wants, client_wants).to_owned(),
    ]
}

/// A difference of two counts may come out a hair below zero.
fn without_sign(count: f64) -> f64 {
    if count.abs() < 0.005 { 0.0 } else { count }
}

/// wrk tells zero when no answer was finished.
fn millis(us: f64) -> String {
    if us > 0.0 {
        format!("{:.2}", us / 1000.0)
    } else {
        "–".to_owned()
    }
}

fn ratios(cases: &[CaseResult]) -> Table {
    let mut table = Table::new(
        2,
        &[
            "case",
            "millstream to",
            "requests/s",
            "CPU time",
            "pairs",
            "target",
        ],
    );
    for result in cases {
        let subjects = result.subjects();
        if !subjects.contains(&Subject::Millstream) {
            continue;
        }
        for to in subjects.into_iter().filter(|to| *to != Subject::Millstream) {
            let ratio = |figure| result.ratio(Subject::Millstream, to, figure);
            let pairs = ratio(CPU).map_or(0, |ratio| ratio.pairs);
            table.push(vec![
                result.case.name.clone(),
                to.name().to_owned(),
                interval(result, ratio(RATE)),
                interval(result, ratio(CPU)),
                pairs.to_string(),
                targets(result, to),
            ]);
        }
    }
    table
}

fn interval(result: &CaseResult, ratio: Option<Ratio>) -> String {
    let refusal = if result.failure.is_some() {
        "given up"
    } else {
        "refused: errors"
    };
    ratio.map_or_else(|| refusal.to_owned(), |ratio| ratio.to_string())
}

fn targets(result: &CaseResult, to: Subject) -> String {
    let results = result.targets().into_iter().filter_map(|target| {
        let (subject, text) = match target.target {
            Target::CpuOfNginx(limit) => (Subject::Nginx, format!("CPU ≤ {limit:.2}")),
            Target::CpuOfFloor(limit) => (Subject::Floor, format!("CPU ≤ {limit:.2}")),
            Target::RateOfNginx(limit) => (Subject::Nginx, format!("requests/s ≥ {limit:.2}")),
        };
        let verdict = target.verdict.name();
        (subject == to).then(|| format!("{text}: {verdict}"))
    });
    results.collect::<Vec<_>>().join(", ")
}

fn idle(results: &[IdleResult]) -> Table {
    let mut table = Table::new(
        1,
        &[
            "server",
            "PSS bytes/connection",
            "private bytes/connection",
            "PSS kB before",
        ],
    );
    for result in results {
        if let Ok(memory) = &result.memory {
            table.push(vec![
                result.subject.name().to_owned(),
                format!("{:.0}", memory.pss_bytes_per_connection),
                format!("{:.0}", memory.private_bytes_per_connection),
                (memory.pss_bytes_before / 1024).to_string(),
            ]);
        }
    }
    table
}

fn system_calls(cases: &[CaseResult]) -> Table {
    let mut table = Table::new(3, &["case", "server", "calls"]);
    for result in cases {
        for costs in &result.costs {
            let Ok(calls) = &costs.system_calls else {
                continue;
            };
            let server = costs.subject.name().to_owned();
            table.push(vec![result.case.name.clone(), server, calls.listed()]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::{measurements, ratios};
    use crate::bench::serve::results::tests::two_passes;

    #[test]
    fn a_case_is_a_row_a_server_and_a_row_a_comparison() {
        let results = [two_passes()];
        assert_eq!(measurements(&results).emit_text().lines().count(), 3);
        let expected = "\
| case | millstream to | requests/s | CPU time | pairs | target |
| --- | --- | ---: | ---: | ---: | ---: |
| keep-alive-0 | nginx | 1.250 [1.250, 1.250] | 0.800 [0.800, 0.800] | 2 | CPU ≤ 0.92: met |
";
        assert_eq!(ratios(&results).emit_markdown(), expected);
    }

    #[test]
    fn a_ratio_with_errors_is_refused_in_words() {
        let mut result = two_passes();
        result.blocks.iter_mut().for_each(|block| block.errors = 1);
        assert!(ratios(&[result]).emit_text().contains("refused: errors"));
    }
}
