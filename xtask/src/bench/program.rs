//! Programs that are not changed, under `millstream run`: nginx on the kernel and on our stack, our own server there, and wrk on
//! it, in turn, on one machine, one core per side. The recipe is `bench-run.toml` of mill-lab.

use super::recipe::Benchmark;

pub(super) const RUN: Benchmark = Benchmark {
    name: "run",
    usage: USAGE,
    axis: "case",
    option: "--only",
    binary: "--server",
    millstream: &["millstream"],
    xtask: "xtask",
    starts_xtask: |_| false,
    own: |option, value| match option {
        "--set" => Ok(Some(vec![value()?.to_owned()])),
        _ => Ok(None),
    },
};

const USAGE: &str = "\
Usage: cargo xtask bench run [OPTION]...

Measures programs that are not changed on the network stack of our own: nginx on the kernel and under
`millstream run`, and our own server on the same stack, in turn, each block with a fresh server on the
first CPU and the same client on the second, in two network namespaces joined by a veth pair; and wrk
under `millstream run`, beside `millstream wrk`. Takes root.

  --only NAME      only this case; may be repeated
  --list           the names of the cases, then end
  --seconds N      length of a timed block (default 2)
  --rounds N       rounds of all subjects there and back (default 2)
  --set KEY=VALUE  for the lab; may be repeated
  --server PATH    the Millstream to measure, with libmillstream.so beside it
                   (default: builds both in target/release)
  --json FILE      every block, for programs
  --markdown FILE  the report: tables, machine, and how to repeat it
";
