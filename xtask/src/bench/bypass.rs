//! Millstream's own network stack: nginx and Millstream on kernel sockets, Millstream over AF_XDP and over memif, and
//! raw frames over AF_XDP, in turn, on one machine, one core per side. The recipe is `bench-bypass.toml` of mill-lab.

/// The frames in place of a request and its response.
mod exchange;
/// Raw frames over AF_XDP.
pub(super) mod raw;

use super::recipe::Benchmark;

pub(super) const BYPASS: Benchmark = Benchmark {
    name: "bypass",
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
Usage: cargo xtask bench bypass [OPTION]...

Measures the network stack of our own: nginx and Millstream on kernel sockets, Millstream over AF_XDP
and over memif, and raw frames over AF_XDP, in turn, each block with a fresh server on the first CPU
and a client on the second, in two network namespaces joined by a veth pair. Takes root.

  --only NAME      only this case; may be repeated
  --full           every size, connection kind and number of connections, and a million idle ones
                   (idle-1m, which takes a minute); hours in all
  --list           the names of the cases, then end
  --seconds N      length of a timed block (default 1)
  --rounds N       exactly N rounds of all subjects there and back. Otherwise 3, and then as many more,
                   12 in all at most, of those whose targets are open, until none is
  --set KEY=VALUE  for the lab, such as half_rate=20000 or overload_rate=200000; may be repeated
  --server PATH    the Millstream to measure (default: builds target/release/millstream)
  --json FILE      every block, for programs
  --markdown FILE  the report: tables, machine, and how to repeat it
";
