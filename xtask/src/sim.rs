//! `cargo xtask sim`: worlds of simulated networks, by seed.

/// Many worlds on all processors.
mod many;

use mill_simtest::matrix;
use mill_simtest::plan::Plan;
use mill_simtest::seeds::World;
use std::ops::Range;
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "\
Usage: cargo xtask sim --seed N [--trace]
       cargo xtask sim --seeds FROM..TO
       cargo xtask sim --matrix

  --seed N          one world: what its seed decides, what came of it; after a failure the last segments
  --trace           every segment of that world, as a ladder
  --seeds FROM..TO  the worlds of these seeds on all processors, TO not included; names those that fail, and counts kinds
  --matrix          writes the matrix of throughput by loss, delay and buffer anew
";

/// The options of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SimCommand {
    One { seed: u64, traces: bool },
    Many(Range<u64>),
    Matrix,
    Help,
}

pub(crate) fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    match parse(arguments) {
        Ok(SimCommand::Help) => {
            print!("{USAGE}");
            ExitCode::SUCCESS
        }
        Ok(SimCommand::One { seed, traces }) => one(seed, traces),
        Ok(SimCommand::Many(seeds)) => many::run(&seeds),
        Ok(SimCommand::Matrix) => write_matrix(root),
        Err(what) => {
            eprintln!("xtask sim: {what}\n\n{USAGE}");
            ExitCode::from(crate::EXIT_USAGE)
        }
    }
}

fn parse(arguments: &[&str]) -> Result<SimCommand, String> {
    match arguments {
        ["help" | "-h" | "--help"] => Ok(SimCommand::Help),
        ["--matrix"] => Ok(SimCommand::Matrix),
        ["--seed", seed] => one_of(seed, false),
        ["--seed", seed, "--trace"] | ["--trace", "--seed", seed] => one_of(seed, true),
        ["--seeds", range] => range
            .split_once("..")
            .and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?))
            .filter(|range: &Range<u64>| !range.is_empty())
            .map(SimCommand::Many)
            .ok_or_else(|| format!("\"{range}\" is no range of seeds such as 0..500")),
        ["--seed" | "--seeds"] => Err(format!("{} wants a number", arguments[0])),
        [] => Err(String::from("which world? --seed, --seeds or --matrix")),
        _ => Err(format!("cannot make sense of \"{}\"", arguments.join(" "))),
    }
}

fn one_of(seed: &str, traces: bool) -> Result<SimCommand, String> {
    match seed.parse() {
        Ok(seed) => Ok(SimCommand::One { seed, traces }),
        Err(_) => Err(format!(
            "\"{seed}\" is no seed: a number from 0 to 2^64 - 1"
        )),
    }
}

fn one(seed: u64, traces: bool) -> ExitCode {
    print!("{}", Plan::new(seed));
    let world = World::of(seed, traces);
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
        let one = |seed, traces| Ok(SimCommand::One { seed, traces });
        check(&["--seed", "7"], one(7, false));
        check(&["--seed", "7", "--trace"], one(7, true));
        check(&["--trace", "--seed", "0"], one(0, true));
        check(&["--seeds", "3..5"], Ok(SimCommand::Many(3..5)));
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
        check(&["--sed", "1"], Err("cannot make sense of \"--sed 1\""));
        for range in ["5", "5..5", "6..5", "a..b", "1...3"] {
            let expected = format!("\"{range}\" is no range of seeds such as 0..500");
            check(&["--seeds", range], Err(&expected));
        }
    }
}
