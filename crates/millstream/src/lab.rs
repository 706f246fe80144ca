//! `millstream lab`: recipes, runs and reports.

use crate::screen::Screen;
use mill_lab_host::command::{self, Terminal};
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

/// Carries out the arguments after `lab`.
pub(crate) fn run(arguments: &[Vec<u8>]) -> ExitCode {
    let words: Vec<OsString> = arguments
        .iter()
        .map(|word| OsStr::from_bytes(word).to_owned())
        .collect();
    let screen = Screen::of_process();
    let terminal = Terminal {
        columns: screen.columns.map(usize::from),
        colour: screen.colour,
    };
    let mut out = io::stdout();
    let status = command::main(&words, terminal, &mut out, &mut io::stderr());
    let _ = out.flush();
    ExitCode::from(status)
}
