//! The measurements: one file each in `bench/`, one line each in [`LIST`] and in [`run`].

use std::process::ExitCode;

use crate::EXIT_USAGE;

/// What `cargo xtask bench` prints: one line a measurement, its name first.
const LIST: &str = "There is no measurement in this checkout yet.\n";

/// Runs the measurement that the first argument names, with the others as its options.
pub(crate) fn run(arguments: &[&str]) -> ExitCode {
    match arguments {
        [] => {
            print!("{LIST}");
            ExitCode::SUCCESS
        }
        [name, ..] => {
            eprintln!("xtask bench: no measurement is called \"{name}\"\n\n{LIST}");
            ExitCode::from(EXIT_USAGE)
        }
    }
}
