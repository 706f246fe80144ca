//! TLS and HTTP/2 in Millstream against nginx, HAProxy and h2o, in turn, on one machine: the server on one core, the client on the
//! other. The recipe is `bench-tls.toml` of mill-lab.

use super::recipe::Benchmark;

pub(super) const TLS: Benchmark = Benchmark {
    name: "tls",
    usage: USAGE,
    axis: "case",
    option: "--case",
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
Usage: cargo xtask bench tls [OPTION]...

Measures TLS and HTTP/2: nginx, h2o, HAProxy and Millstream in turn, there and back, each block with a fresh process on the first
CPU and the client (millstream load, or h2load) on the second. The case over AF_XDP takes root and network namespaces.

  --case NAME      only this case; may be repeated
  --list           the names of the cases, then end
  --seconds N      length of a timed block (default 2)
  --rounds N       rounds of all servers and back (default 3)
  --set KEY=VALUE  for the lab; may be repeated
  --server PATH    the Millstream to measure (default: builds target/release/millstream)
  --timed-only     no system calls and allocations
  --json FILE      every block, for programs
  --markdown FILE  the report: tables, machine, and how to repeat it
";
