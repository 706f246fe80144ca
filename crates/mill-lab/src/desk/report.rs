//! `lab report`: a run as pages, and what matters most on the terminal.

use super::{DONE, Desk, Problem, STANDARD, put, write_file};
use crate::analysis::findings;
use crate::findings::{Findings, Tone};
use crate::record::{Status, TrialRecord};
use crate::report;
use crate::store::Store;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

/// Which forms of a report are wanted, and where; none of them means a page in the store.
#[derive(Clone, Copy, Debug, Default)]
pub struct Forms<'a> {
    /// A file, or `-`.
    pub html: Option<&'a Path>,
    /// A folder.
    pub markdown: Option<&'a Path>,
    /// A folder.
    pub csv: Option<&'a Path>,
}

/// Writes the report of the run that `run` means.
pub fn report(
    desk: Desk<'_>,
    run: &str,
    forms: Forms<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Problem> {
    let store = desk.open(err)?;
    let id = store.find(run)?;
    write_report(&store, &id, forms, out)
}

/// What follows a run: all forms into `folder`, or a page in the store.
pub fn report_after(
    desk: Desk<'_>,
    id: &str,
    folder: Option<&Path>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Problem> {
    let store = desk.open(err)?;
    let Some(folder) = folder else {
        return write_report(&store, id, Forms::default(), out);
    };
    let forms = Forms {
        html: Some(&folder.join("report.html")),
        markdown: Some(folder),
        csv: Some(&folder.join("tables")),
    };
    write_report(&store, id, forms, out)
}

fn write_report(
    store: &Store,
    id: &str,
    forms: Forms<'_>,
    out: &mut dyn Write,
) -> Result<u8, Problem> {
    let kept = store.load(id)?;
    let findings = findings(&kept);
    if forms.html == Some(Path::new(STANDARD)) {
        // The page alone: another program reads it.
        out.write_all(report::html(&findings).as_bytes())?;
        return write_folders(&findings, forms, &mut std::io::sink());
    }
    write_summary(&findings, &kept.trials, out)?;
    let own = store.folder().join(REPORTS).join(format!("{id}.html"));
    let nothing = forms.markdown.is_none() && forms.csv.is_none();
    if let Some(page) = forms.html.or(nothing.then_some(&*own)) {
        write_file(page, &report::html(&findings), out)?;
    }
    write_folders(&findings, forms, out)
}

fn write_folders(
    findings: &Findings,
    forms: Forms<'_>,
    out: &mut dyn Write,
) -> Result<u8, Problem> {
    if let Some(folder) = forms.markdown {
        let (text, pictures) = report::markdown(findings);
        for (name, picture) in pictures {
            put(&folder.join(name), &picture)?;
        }
        write_file(&folder.join("README.md"), &text, out)?;
    }
    if let Some(folder) = forms.csv {
        for (name, table) in report::csv(findings) {
            put(&folder.join(name), &table)?;
        }
        writeln!(out, "{}", folder.display())?;
    }
    Ok(DONE)
}

/// The first sentences of the page.
fn write_summary(
    findings: &Findings,
    records: &[TrialRecord],
    out: &mut dyn Write,
) -> Result<(), Problem> {
    writeln!(out, "{}", findings.run.title)?;
    for statement in &findings.summary {
        writeln!(out, "  {} {}", sign(statement.tone), statement.text)?;
    }
    let trials = report::counted(findings, "absent", "missing");
    writeln!(out, "  {trials}")?;
    write_failures(records, out)?;
    if !findings.warnings.is_empty() {
        let lints: BTreeSet<&str> = findings
            .warnings
            .iter()
            .map(|warning| &*warning.lint)
            .collect();
        let lints: Vec<&str> = lints.into_iter().collect();
        writeln!(out, "  warnings in the report: {}", lints.join(", "))?;
    }
    Ok(())
}

/// Why trials failed, each reason once: the terminal shows it without opening the page.
fn write_failures(records: &[TrialRecord], out: &mut dyn Write) -> Result<(), Problem> {
    let mut reasons: Vec<&str> = Vec::new();
    for record in records {
        if let Status::Failed { reason } = &record.status
            && !reasons.contains(&&**reason)
        {
            reasons.push(reason);
        }
    }
    for reason in reasons.iter().take(FAILURES_SHOWN) {
        writeln!(out, "  failed: {reason}")?;
    }
    if reasons.len() > FAILURES_SHOWN {
        let more = reasons.len() - FAILURES_SHOWN;
        writeln!(out, "  and failed for {more} more reasons, in the report")?;
    }
    Ok(())
}

/// Shows the direction without colours.
fn sign(tone: Tone) -> &'static str {
    match tone {
        Tone::Gain => "+",
        Tone::Loss => "-",
        Tone::Same => "=",
        Tone::Unsure => "?",
        Tone::Plain => "·",
    }
}

/// Folder of a store for pages without a given place.
const REPORTS: &str = "reports";

/// Reasons of failures on the terminal. A broken set-up fails everywhere for one or two.
const FAILURES_SHOWN: usize = 3;
