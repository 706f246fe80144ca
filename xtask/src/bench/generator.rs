//! The load generator alone: over a memif to an end that answers without a stack, beside our server, one core a side. The
//! recipe is `bench-generator.toml` of mill-lab.

/// Answers over a memif without a stack.
pub(super) mod answers;

use super::recipe::Benchmark;

pub(super) const GENERATOR: Benchmark = Benchmark {
    name: "generator",
    usage: USAGE,
    axis: "case",
    option: "--only",
    binary: "--server",
    millstream: &["millstream"],
    xtask: "xtask",
    starts_xtask: |_| true,
    own: |option, value| match option {
        "--set" => Ok(Some(vec![value()?.to_owned()])),
        _ => Ok(None),
    },
};

const USAGE: &str = "\
Usage: cargo xtask bench generator [OPTION]...

Measures how much the load generator can ask for at the most: over a memif to an end that answers each
frame without a stack, and to our server, in turn, one core a side. What both sides take of a request
is the sum; the first says what the generator's is. Takes root.

  --only NAME      only this case; may be repeated
  --list           the names of the cases, then end
  --seconds N      length of a timed block (default 1)
  --rounds N       rounds of all subjects there and back (default 3)
  --set KEY=VALUE  for the lab; may be repeated
  --server PATH    the Millstream to measure (default: builds target/release/millstream)
  --json FILE      every block, for programs
  --markdown FILE  the report: tables, machine, and how to repeat it
";
