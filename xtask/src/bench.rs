//! The measurements: one file each in `bench/`, one line each in `LIST` and in `run`.

/// The least work that a server on kernel sockets can do, to hold others against.
mod floor;
/// Millstream against nginx, the same configuration, in turn.
mod serve;

use std::path::Path;
use std::process::ExitCode;

use crate::EXIT_USAGE;

/// What `cargo xtask bench` prints: one line a measurement, its name first.
const LIST: &str = "\
Measurements:

  serve    Millstream against nginx: requests, CPU time, system calls, allocations, memory
           (cargo xtask bench serve --help)
";

/// Runs the measurement that the first argument names, with the others as its options. The last two
/// arms are for the processes that a measurement starts from its own binary.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    match arguments {
        [] => {
            print!("{LIST}");
            ExitCode::SUCCESS
        }
        ["serve", options @ ..] => serve::run(root, options),
        [floor::ARGUMENT, port, cpu] => floor::run(port, cpu),
        [serve::CARETAKER_ARGUMENT, folder] => serve::take_care(Path::new(folder)),
        [name, ..] => {
            eprintln!("xtask bench: no measurement is called \"{name}\"\n\n{LIST}");
            ExitCode::from(EXIT_USAGE)
        }
    }
}
