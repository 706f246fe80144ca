//! Millstream as a cache against nginx, Varnish and HAProxy, in turn, on one machine: the cache on one core, its clients and
//! the server behind it on the other. The recipe is `bench-cache.toml` of mill-lab.

use super::recipe::Benchmark;

pub(super) const CACHE: Benchmark = Benchmark {
    name: "cache",
    usage: USAGE,
    axis: "case",
    option: "--case",
    binary: "--server",
    millstream: &[
        "millstream",
        "system.millstream.binary",
        "system.millstream-xdp.binary",
    ],
    xtask: "xtask",
    starts_xtask: |_| false,
    own: |option, value| match option {
        "--set" => Ok(Some(vec![value()?.to_owned()])),
        _ => Ok(None),
    },
};

const USAGE: &str = "\
Usage: cargo xtask bench cache [OPTION]...

Measures hits and misses of caches: nginx, Varnish, HAProxy and Millstream in turn, there and back, each block with a fresh process on the
first CPU; the server behind it (nginx) and the client on the second. Cases over AF_XDP take root and network namespaces.

  --case NAME      only this case; may be repeated
  --list           the names of the cases, then end
  --seconds N      length of a timed block (default 2)
  --rounds N       rounds of all caches and back (default 3)
  --set KEY=VALUE  for the lab; may be repeated
  --server PATH    the Millstream to measure (default: builds target/release/millstream)
  --timed-only     no system calls and allocations
  --json FILE      every block, for programs
  --markdown FILE  the report: tables, machine, and how to repeat it
";
