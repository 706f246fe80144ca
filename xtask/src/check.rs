//! Everything that a commit must pass, the quick steps first. The first failure ends the run.

mod examples;
mod failures;
mod programs;

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Runs every step, then prints how long each took and what could not be checked here.
pub(crate) fn run(root: &Path) -> ExitCode {
    let mut timings = Vec::new();
    let mut left_out = Vec::new();
    let mut failed = None;
    for (name, step) in STEPS {
        println!("== {name}");
        let (outcome, took) = timed(|| step(root));
        timings.push((name, took));
        match outcome {
            Outcome::Passed => {}
            Outcome::LeftOut(what) => left_out.push(what),
            Outcome::Failed => {
                failed = Some(name);
                break;
            }
        }
    }
    println!("\n{}", timing_table(&timings));
    for what in left_out {
        println!("left out: {what}");
    }
    match failed {
        None => {
            println!("check: passed");
            ExitCode::SUCCESS
        }
        Some(name) => {
            eprintln!("check: {name} failed; the steps after it did not run");
            ExitCode::FAILURE
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    /// A tool is missing on this machine. The text names it and how to install it.
    LeftOut(&'static str),
    Failed,
}

type Step = fn(&Path) -> Outcome;

const STEPS: [(&str, Step); 6] = [
    ("fmt", fmt),
    ("tidy", tidy),
    ("clippy", clippy),
    ("doc", doc),
    ("deny", deny),
    ("test", test),
];

fn fmt(root: &Path) -> Outcome {
    if !succeeds_silently(root, "fmt --version") {
        return Outcome::LeftOut("fmt, rustfmt is not here; rustup component add rustfmt");
    }
    cargo(root, "fmt --all --check")
}

fn tidy(root: &Path) -> Outcome {
    if crate::tidy::run(root) == ExitCode::SUCCESS {
        Outcome::Passed
    } else {
        Outcome::Failed
    }
}

fn clippy(root: &Path) -> Outcome {
    if !succeeds_silently(root, "clippy --version") {
        return Outcome::LeftOut("clippy, it is not here; rustup component add clippy");
    }
    let options = "--quiet --workspace --all-targets --locked";
    cargo(root, &format!("clippy {options} -- -D warnings"))
}

/// The tests preload a library, which no crate links to, so that only this builds it. The examples of the documentation
/// come last.
fn test(root: &Path) -> Outcome {
    if cargo(root, "build --quiet --locked --package mill-preload") == Outcome::Failed {
        return Outcome::Failed;
    }
    let every = "test --quiet --workspace --locked";
    let json = "--message-format=json-render-diagnostics";
    let build = cargo_command(root, &format!("{every} --no-run {json}"));
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let failed = match programs::run(build, &root.join(target).join("tests")) {
        Ok(failed) => failed,
        Err(message) => {
            eprintln!("{message}");
            return Outcome::Failed;
        }
    };
    let documentation = examples_of_documentation(root);
    // Last, for the end is what is kept of a long output.
    for text in &failed {
        eprintln!("failed: {text}");
    }
    match documentation {
        Outcome::Passed if failed.is_empty() => Outcome::Passed,
        _ => Outcome::Failed,
    }
}

fn examples_of_documentation(root: &Path) -> Outcome {
    let tree = match crate::tidy::tree::Tree::read(root) {
        Ok(tree) => tree,
        Err(error) => {
            eprintln!("{}: {error}", root.display());
            return Outcome::Failed;
        }
    };
    let packages: Vec<_> = examples::packages(&tree).into_iter().collect();
    if packages.is_empty() {
        return Outcome::Passed;
    }
    let packages = packages.join(" --package ");
    let options = "--quiet --locked --no-fail-fast --doc";
    cargo(root, &format!("test {options} --package {packages}"))
}

fn doc(root: &Path) -> Outcome {
    let mut command = cargo_command(root, "doc --quiet --workspace --no-deps --locked");
    command.env("RUSTDOCFLAGS", "-D warnings");
    finish(&mut command)
}

/// Licences, bans and sources are facts of this checkout. Advisories need the network: without it they are left out,
/// and the output has a note.
fn deny(root: &Path) -> Outcome {
    if !succeeds_silently(root, "deny --version") {
        return Outcome::LeftOut("deny, it is not here; cargo install --locked cargo-deny");
    }
    let check = "deny --log-level error check";
    let own = cargo(root, &format!("{check} bans licenses sources"));
    if own == Outcome::Failed {
        return Outcome::Failed;
    }
    if !succeeds_silently(root, "deny fetch db") {
        return Outcome::LeftOut("advisories, their database cannot be reached from here");
    }
    cargo(root, &format!("{check} --disable-fetch advisories"))
}

fn cargo(root: &Path, arguments: &str) -> Outcome {
    finish(&mut cargo_command(root, arguments))
}

/// The cargo that started this program, so that every step uses one toolchain.
fn cargo_command(root: &Path, arguments: &str) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(arguments.split(' '))
        .current_dir(root)
        .stdin(Stdio::null());
    command
}

fn finish(command: &mut Command) -> Outcome {
    match command.status() {
        Ok(status) if status.success() => Outcome::Passed,
        Ok(_) => Outcome::Failed,
        Err(error) => {
            eprintln!(
                "cannot start {}: {error}",
                command.get_program().to_string_lossy()
            );
            Outcome::Failed
        }
    }
}

fn succeeds_silently(root: &Path, arguments: &str) -> bool {
    let mut command = cargo_command(root, arguments);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[expect(
    clippy::disallowed_methods,
    reason = "it is the wall clock that people wait for"
)]
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

/// One line per step, and the sum.
fn timing_table(timings: &[(&str, Duration)]) -> String {
    let total = timings.iter().map(|(_, took)| *took).sum();
    let rows = timings.iter().copied().chain([("total", total)]);
    rows.map(|(name, took)| format!("{name:<8}{:>8.1} s\n", took.as_secs_f64()))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::{Outcome, finish, timing_table};

    #[test]
    fn the_timing_table_has_a_line_a_step_and_their_sum() {
        let timings = [
            ("fmt", Duration::from_millis(400)),
            ("clippy", Duration::from_secs(61)),
        ];
        let expected = "fmt          0.4 s\nclippy      61.0 s\ntotal       61.4 s\n";
        assert_eq!(timing_table(&timings), expected);
    }

    #[test]
    fn a_command_passes_fails_or_cannot_be_started() {
        for (program, outcome) in [
            ("true", Outcome::Passed),
            ("false", Outcome::Failed),
            ("./no/such/program", Outcome::Failed),
        ] {
            assert_eq!(finish(&mut Command::new(program)), outcome, "{program}");
        }
    }
}
