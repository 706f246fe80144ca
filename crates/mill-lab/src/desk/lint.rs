//! `lab lint`: mistakes in other people's texts.

use super::{DONE, FAILED, Problem, UNREADABLE, answer, complain, read_text};
use crate::lint::text;
use std::io::{self, Read, Write};
use std::path::PathBuf;

/// Says what looks like a mistake in each file: 0 if nothing does, 1 if something does, 2 if a file could not be read.
pub fn lint(files: &[PathBuf], out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    lint_with(files, &mut io::stdin(), out, err)
}

pub(super) fn lint_with(
    files: &[PathBuf],
    input: &mut dyn Read,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let result = write_warnings(files, input, out, err);
    answer(result, err)
}

fn write_warnings(
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
        for warning in text(&file.display().to_string(), &content) {
            status = status.max(FAILED);
            writeln!(out, "{}: {}", warning.lint, warning.text)?;
            writeln!(out, "    {}", warning.advice)?;
        }
    }
    Ok(status)
}
