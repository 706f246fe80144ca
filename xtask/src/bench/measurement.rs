//! What all measurements have in common from the command line to the exit status.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use super::failure::{Failure, Result};
use super::order::Order;
use crate::EXIT_USAGE;

/// What one command line of a measurement asks for.
pub(super) trait Measurement: Sized {
    /// As `cargo xtask bench` knows it.
    const NAME: &'static str;
    const USAGE: &'static str;

    type Findings: Findings;

    fn parse(arguments: &[&str]) -> std::result::Result<Self, String>;

    fn order(&self) -> &Order;

    /// For `--list`.
    fn case_names(&self) -> Vec<&str>;

    /// The findings name the command line.
    fn measure(self, root: &Path, command_line: &str) -> Result<Self::Findings>;
}

/// What a measurement has found.
pub(super) trait Findings {
    /// For the terminal.
    fn emit_text(&self) -> String;

    fn emit_markdown(&self) -> String;

    /// For programs.
    fn emit_json(&self) -> String;

    /// Whether nothing was given up.
    fn is_whole(&self) -> bool;
}

/// Does what the arguments ask for.
pub(super) fn run<M: Measurement>(root: &Path, arguments: &[&str]) -> ExitCode {
    let name = M::NAME;
    let measurement = match M::parse(arguments) {
        Ok(measurement) => measurement,
        Err(message) => {
            eprintln!("xtask bench {name}: {message}\n\n{}", M::USAGE);
            return ExitCode::from(EXIT_USAGE);
        }
    };
    if measurement.order().help {
        print!("{}", M::USAGE);
        return ExitCode::SUCCESS;
    }
    if measurement.order().list {
        let names = measurement.case_names();
        names.iter().for_each(|case| println!("{case}"));
        return ExitCode::SUCCESS;
    }
    let command_line = format!("cargo xtask bench {name} {}", arguments.join(" "));
    match measurement.measure(root, command_line.trim_end()) {
        Ok(findings) => {
            print!("{}", findings.emit_text());
            if findings.is_whole() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        Err(failure) => {
            eprintln!("xtask bench {name}: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Writes the files that were asked for.
pub(super) fn write_files(order: &Order, findings: &impl Findings) -> Result<()> {
    if let Some(path) = &order.json {
        fs::write(path, findings.emit_json()).map_err(Failure::during(path.display()))?;
    }
    if let Some(path) = &order.markdown {
        fs::write(path, findings.emit_markdown()).map_err(Failure::during(path.display()))?;
    }
    Ok(())
}
