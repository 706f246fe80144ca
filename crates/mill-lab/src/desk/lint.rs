//! `lab lint`: mistakes in published texts.

use super::{DONE, FAILED, Problem, UNREADABLE, complain, read_text};
use crate::lint::{results, text};
use std::io::{self, Read, Write};
use std::path::PathBuf;

/// Prints what looks like a mistake in each file: 0 if nothing does, 1 if something does, 2 if a file could not be
/// read.
pub fn lint(files: &[PathBuf], out: &mut dyn Write, err: &mut dyn Write) -> Result<u8, Problem> {
    lint_with(files, &mut io::stdin(), out, err)
}

pub(super) fn lint_with(
    files: &[PathBuf],
    input: &mut dyn Read,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Problem> {
    let mut status = DONE;
    for file in files {
        let content = match read_text(file, input) {
            Ok(content) => content,
            Err(problem) => {
                complain(&problem, err);
                status = UNREADABLE;
                continue;
            }
        };
        let name = file.display().to_string();
        let warnings = text(&name, &content);
        for warning in &warnings {
            status = status.max(FAILED);
            for found in std::iter::once(&warning.text).chain(&warning.more) {
                writeln!(out, "{}: {}", warning.lint, lines_of(found, &name))?;
            }
            writeln!(out, "    {}", warning.advice)?;
        }
        if warnings.is_empty() {
            let seen = seen(results(&content));
            writeln!(out, "{name}: {seen}")?;
        }
    }
    Ok(status)
}

/// What a text without a mistake has: results of wrk and ab, and tables of figures.
fn seen((results, tables): (usize, usize)) -> String {
    let results = match results {
        0 => None,
        1 => Some(String::from("1 result of wrk or ab")),
        count => Some(format!("{count} results of wrk and ab")),
    };
    let tables = match tables {
        0 => None,
        1 => Some(String::from("1 table of figures")),
        count => Some(format!("{count} tables of figures")),
    };
    let seen: Vec<String> = results.into_iter().chain(tables).collect();
    if seen.is_empty() {
        String::from("nothing that wrk or ab printed and no table of figures, so nothing to check")
    } else {
        format!("no mistakes in {}", seen.join(" and "))
    }
}

/// A file is named once in a sentence, then its lines only: ten times a long path is not read.
pub(super) fn lines_of(text: &str, name: &str) -> String {
    let place = format!("{name}:");
    match text.split_once(&place) {
        Some((before, after)) => format!("{before}{place}{}", after.replace(&place, "line ")),
        None => String::from(text),
    }
}
