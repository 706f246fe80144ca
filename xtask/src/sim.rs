//! `cargo xtask sim`: worlds of simulated networks, by seed.

/// Many worlds on all processors.
mod many;

use mill_simtest::cached::plan::CachedPlan;
use mill_simtest::matrix;
use mill_simtest::plan::Plan;
use mill_simtest::proxied::plan::ProxiedPlan;
use mill_simtest::seeds::World;
use std::ops::Range;
use std::path::Path;
use std::process::{Command, ExitCode};

const USAGE: &str = "\
Usage: cargo xtask sim [--proxy | --cache] --seed N [--trace]
       cargo xtask sim [--proxy | --cache] --seeds FROM..TO
       cargo xtask sim --matrix

  --seed N          one world: what its seed decides, what came of it; after a failure the last segments
  --trace           every segment of that world, as a ladder
  --seeds FROM..TO  the worlds of these seeds on all processors, TO not included; names those that fail, and counts kinds
  --proxy           the worlds with a proxy between clients and origins, which have seeds of their own
  --cache           the worlds with a cache, its workers and its origins, which have seeds of their own
  --matrix          writes the matrix of throughput by loss, delay and buffer anew
";

/// The options of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SimCommand {
    One {
        worlds: Worlds,
        seed: u64,
        traces: bool,
    },
    Many(Worlds, Range<u64>),
    Matrix,
    Help,
}

/// Which family of worlds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Worlds {
    Plain,
    Proxied,
    Cached,
}

impl Worlds {
    fn of(self, seed: u64, traces: bool) -> World {
        match self {
            Self::Plain => World::of(seed, traces),
            Self::Proxied => World::proxied(seed, traces),
            Self::Cached => World::cached(seed, traces),
        }
    }

    fn kinds(self, seed: u64) -> Vec<&'static str> {
        match self {
            Self::Plain => Plan::new(seed).kinds(),
            Self::Proxied => ProxiedPlan::new(seed).kinds(),
            Self::Cached => CachedPlan::new(seed).kinds(),
        }
    }
}

pub(crate) fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    match parse(arguments) {
        Ok(SimCommand::Help) => {
            print!("{USAGE}");
            ExitCode::SUCCESS
        }
        Ok(SimCommand::One {
            worlds,
            seed,
            traces,
        }) => one(worlds, seed, traces),
        Ok(_) if !is_optimised() => run_optimised(root, arguments),
        Ok(SimCommand::Many(worlds, seeds)) => many::run(worlds, &seeds),
        Ok(SimCommand::Matrix) => write_matrix(root),
        Err(what) => {
            eprintln!("xtask sim: {what}\n\n{USAGE}");
            ExitCode::from(crate::EXIT_USAGE)
        }
    }
}

/// The folder of what was built with the profile for many worlds has its name.
fn is_optimised() -> bool {
    let program = std::env::current_exe().unwrap_or_default();
    let mut folders = program.components().rev().skip(1);
    folders
        .next()
        .is_some_and(|name| name.as_os_str() == PROFILE)
}

/// The profile of `Cargo.toml` with which many worlds are simulated; building it takes minutes.
const PROFILE: &str = "simulation";

/// Has the same command done by a program that is optimised.
fn run_optimised(root: &Path, arguments: &[&str]) -> ExitCode {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(["run", "--quiet", "--locked", "--package", "xtask"])
        .args(["--profile", PROFILE, "--", "sim"])
        .args(arguments)
        .current_dir(root);
    match command.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask sim: cannot start cargo: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parse(arguments: &[&str]) -> Result<SimCommand, String> {
    let (worlds, arguments) = match arguments {
        ["--proxy", arguments @ ..] => (Worlds::Proxied, arguments),
        ["--cache", arguments @ ..] => (Worlds::Cached, arguments),
        arguments => (Worlds::Plain, arguments),
    };
    match arguments {
        ["help" | "-h" | "--help"] => Ok(SimCommand::Help),
        ["--matrix"] if worlds == Worlds::Plain => Ok(SimCommand::Matrix),
        ["--seed", seed] => one_of(worlds, seed, false),
        ["--seed", seed, "--trace"] | ["--trace", "--seed", seed] => one_of(worlds, seed, true),
        ["--seeds", range] => range
            .split_once("..")
            .and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?))
            .filter(|range: &Range<u64>| !range.is_empty())
            .map(|range| SimCommand::Many(worlds, range))
            .ok_or_else(|| format!("\"{range}\" is no range of seeds such as 0..500")),
        ["--seed" | "--seeds"] => Err(format!("{} wants a number", arguments[0])),
        [] => Err(String::from("which world? --seed, --seeds or --matrix")),
        _ => Err(format!("cannot make sense of \"{}\"", arguments.join(" "))),
    }
}

fn one_of(worlds: Worlds, seed: &str, traces: bool) -> Result<SimCommand, String> {
    match seed.parse() {
        Ok(seed) => Ok(SimCommand::One {
            worlds,
            seed,
            traces,
        }),
        Err(_) => Err(format!(
            "\"{seed}\" is no seed: a number from 0 to 2^64 - 1"
        )),
    }
}

fn one(worlds: Worlds, seed: u64, traces: bool) -> ExitCode {
    match worlds {
        Worlds::Plain => print!("{}", Plan::new(seed)),
        Worlds::Proxied => print!("{}", ProxiedPlan::new(seed)),
        Worlds::Cached => print!("{}", CachedPlan::new(seed)),
    }
    let world = worlds.of(seed, traces);
    tell(&world, true);
    if world.is_well() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The result of a world; one that panicked has printed its ladder already.
fn tell(world: &World, with_segments: bool) {
    match world {
        World::Ended(outcome) => {
            if with_segments {
                print!("{}", outcome.segments);
            }
            print!("{outcome}");
        }
        World::Panicked { seed, message } => println!("seed {seed}: PANICKED: {message}"),
    }
}

fn write_matrix(root: &Path) -> ExitCode {
    let path = root.join(matrix::PATH);
    match std::fs::write(&path, matrix::text()) {
        Ok(()) => {
            println!("{} is written", path.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("xtask sim: {}: {error}", path.display());
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(arguments: &[&str], expected: Result<SimCommand, &str>) {
        let expected = expected.map_err(str::to_owned);
        assert_eq!(parse(arguments), expected, "{arguments:?}");
    }

    #[test]
    fn worlds_are_asked_for_by_seed() {
        let worlds = Worlds::Plain;
        let one = |seed, traces| {
            Ok(SimCommand::One {
                worlds,
                seed,
                traces,
            })
        };
        check(&["--seed", "7"], one(7, false));
        check(&["--seed", "7", "--trace"], one(7, true));
        check(&["--trace", "--seed", "0"], one(0, true));
        check(
            &["--seeds", "3..5"],
            Ok(SimCommand::Many(Worlds::Plain, 3..5)),
        );
        let proxied = SimCommand::Many(Worlds::Proxied, 3..5);
        check(&["--proxy", "--seeds", "3..5"], Ok(proxied));
        let cached = SimCommand::Many(Worlds::Cached, 3..5);
        check(&["--cache", "--seeds", "3..5"], Ok(cached));
        check(&["--matrix"], Ok(SimCommand::Matrix));
        check(&["--help"], Ok(SimCommand::Help));
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        check(&[], Err("which world? --seed, --seeds or --matrix"));
        check(&["--seed"], Err("--seed wants a number"));
        check(
            &["--seed", "x"],
            Err("\"x\" is no seed: a number from 0 to 2^64 - 1"),
        );
        check(
            &["--proxy", "--matrix"],
            Err("cannot make sense of \"--matrix\""),
        );
        check(&["--sed", "1"], Err("cannot make sense of \"--sed 1\""));
        for range in ["5", "5..5", "6..5", "a..b", "1...3"] {
            let expected = format!("\"{range}\" is no range of seeds such as 0..500");
            check(&["--seeds", range], Err(&expected));
        }
    }
}
