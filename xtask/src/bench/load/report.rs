//! The results in words and tables, for people.

/// What the columns mean.
mod meanings;
/// The tables.
mod tables;

use super::accuracy::AccuracyResult;
use super::json;
use super::precision::Precision;
use super::results::{CaseResult, Measured};
use super::server::Kind;
use super::situation::SituationResult;
use crate::bench::accounting::SoftirqAccount;
use crate::bench::machine::Machine;
use crate::bench::measurement::Findings;
use crate::bench::table::Table;

/// Everything that a run has found.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) command_line: String,
    pub(super) machine: Machine,
    pub(super) softirq_account: SoftirqAccount,
    pub(super) server: Kind,
    pub(super) seconds: u64,
    pub(super) has_h2load: bool,
    pub(super) cases: Vec<CaseResult>,
    pub(super) precision: Option<Measured<Precision>>,
    pub(super) accuracy: Vec<AccuracyResult>,
    pub(super) situations: Vec<SituationResult>,
}

/// Of 1: what a client says that waited longer for its CPU is about the others, too.
const WAITED_MAX: f64 = 0.005;

impl Findings for Report {
    fn emit_text(&self) -> String {
        let mut text = String::new();
        for (title, table) in self.tables() {
            text += &format!("\n{title}\n{}", table.emit_text());
        }
        let notes = self.notes();
        if !notes.is_empty() {
            text += &format!("\n{}\n", notes.join("\n"));
        }
        text
    }

    fn emit_markdown(&self) -> String {
        let mut text = "# The load generator against wrk, ab and h2load\n\n".to_owned();
        text += "Made by the command below; run it again to replace this page.\n\n";
        text += &format!("```\n{}\n```\n\n", self.command_line);
        for line in self.machine.lines() {
            text += &format!("- {line}\n");
        }
        for (title, table) in self.tables() {
            text += &format!("\n## {title}\n\n{}", table.emit_markdown());
        }
        text += "\n## What the columns mean\n\n";
        for line in meanings::lines(self) {
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
        self.cases.iter().all(|result| result.failures.is_empty())
    }
}

impl Report {
    /// Those that have something to show.
    fn tables(&self) -> Vec<(&'static str, Table)> {
        let precision = self
            .precision
            .as_ref()
            .and_then(|found| found.as_ref().ok());
        let all = [
            ("Speed", tables::speed(&self.cases)),
            ("Ratios", tables::ratios(&self.cases)),
            (
                "System calls per request, by name",
                tables::system_calls(&self.cases),
            ),
            ("An open loop's times", tables::precision(precision)),
            ("Known delays, as told", tables::accuracy(&self.accuracy)),
            ("Verdicts", tables::situations(&self.situations)),
        ];
        all.into_iter()
            .filter(|(_, table)| !table.is_empty())
            .collect()
    }

    /// What weakens the figures, or is absent.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.has_h2load {
            notes.push(
                "h2load is not here and was left out (apt-get install nghttp2-client)".to_owned(),
            );
        }
        for result in &self.cases {
            let name = result.case.name;
            for (client, why) in &result.failures {
                notes.push(format!("{name}: {} given up: {why}", client.name()));
            }
            let disturbed = result.disturbed();
            if disturbed > 0 {
                let blocks = result.blocks.len();
                notes.push(format!(
                    "{name}: in {disturbed} of {blocks} blocks client or server waited for a CPU that others used"
                ));
            }
            for (client, calls) in &result.system_calls {
                if let Err(why) = calls {
                    notes.push(format!("{name}, {}: no system calls: {why}", client.name()));
                }
            }
        }
        match &self.precision {
            Some(Err(why)) => notes.push(format!("an open loop's times: {why}")),
            Some(Ok(precision)) => notes.extend(waited("an open loop's times", precision.waited)),
            None => {}
        }
        for result in &self.accuracy {
            for account in &result.accounts {
                let what = format!("{}, {}", result.delays.name(), account.measurer.name());
                match &account.measured {
                    Ok(found) => notes.extend(waited(&what, found.waited)),
                    Err(why) => notes.push(format!("{what}: {why}")),
                }
            }
        }
        for result in &self.situations {
            let what = result.situation.name();
            match &result.judged {
                Ok(judged) => notes.extend(waited(what, judged.waited)),
                Err(why) => notes.push(format!("{what}: no verdict: {why}")),
            }
        }
        notes
    }
}

/// A note if others had the client's CPU.
fn waited(what: &str, share: f64) -> Option<String> {
    let percent = 100.0 * share;
    (share > WAITED_MAX)
        .then(|| format!("{what}: the client waited for its CPU, which others used, for {percent:.1} % of the time"))
}

#[cfg(test)]
mod tests {
    use super::waited;

    #[test]
    fn only_a_client_that_was_not_alone_is_noted() {
        assert_eq!(waited("x", 0.001), None);
        assert!(
            waited("x", 0.25)
                .unwrap()
                .ends_with("for 25.0 % of the time")
        );
    }
}
