//! Automation of the workspace, in the workspace's own language.
//!
//! In reading order: `check` is everything a commit must pass, `tidy` has the rules of the workspace that the
//! compiler does not check, `docs` writes the generated pages, `bench` measures, `sim` replays worlds of simulated
//! networks, `vm` runs tests in a virtual machine, `conformance` asks other caches what ours is asked.
#![forbid(unsafe_code)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line program"
)]

/// The measurements.
mod bench;
/// Everything that a commit must pass, step by step.
mod check;
/// Our cases of RFC 9111, put to other caches.
mod conformance;
/// The pages generated from tables in the code.
mod docs;
/// Worlds of simulated networks, by seed.
mod sim;
/// The rules of the workspace that the compiler does not check.
mod tidy;
/// Tests in a virtual machine.
mod vm;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "\
Usage: cargo xtask COMMAND

  check           formatting, tidy, lints, tests, dependencies, documentation
  tidy            only the rules of the house: edges, fences, names, leftovers
  docs            writes docs/directives.md anew
  bench [NAME]    a measurement; without a name, the list of them
  sim …           simulated networks by seed; `sim --help` says more
  vm [FILTER]     the tests of network cards, in a guest of QEMU; `vm --help` says more
  conformance     what nginx, Varnish, HAProxy and Millstream do in our cases of RFC 9111
";

/// Exit status for a wrong command line, as the shell's builtins use it.
const EXIT_USAGE: u8 = 2;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["check"] => check::run(root()),
        ["tidy"] => tidy::run(root()),
        ["docs"] => docs::run(root()),
        ["bench", arguments @ ..] => bench::run(root(), arguments),
        ["sim", arguments @ ..] => sim::run(root(), arguments),
        ["vm", arguments @ ..] => vm::run(root(), arguments),
        ["conformance", arguments @ ..] => conformance::run(root(), arguments),
        [] | ["help" | "-h" | "--help"] => {
            print!("{USAGE}");
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!(
                "xtask: cannot make sense of \"{}\"\n\n{USAGE}",
                arguments.join(" ")
            );
            ExitCode::from(EXIT_USAGE)
        }
    }
}

/// The checkout: the folder above this crate.
fn root() -> &'static Path {
    let manifest_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest_dir.parent().unwrap_or(manifest_dir)
}
