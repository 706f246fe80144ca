//! Millstream against nginx: the same configuration, the same client, in turn, on one machine. The recipe is
//! `bench-serve.toml` of mill-lab.

use super::recipe::Benchmark;

pub(super) const SERVE: Benchmark = Benchmark {
    name: "serve",
    usage: USAGE,
    axis: "case",
    option: "--case",
    binary: "--server",
    millstream: &["system.millstream.binary"],
    xtask: "floor",
    starts_xtask: |sets| !sets.is_empty(),
    own: |option, _| {
        let floor = || vec![String::from("system=nginx,millstream,floor")];
        Ok((option == "--floor").then(floor))
    },
};

const USAGE: &str = "\
Usage: cargo xtask bench serve [OPTION]...

Measures Millstream against nginx with the same configuration, in turn, each block with a fresh
server: one worker pinned to the first CPU, wrk to the second.

  --case NAME      only this case; may be repeated
  --full           every size, connection kind and number of connections (about 40 minutes)
  --list           the names of the cases, then end
  --seconds N      length of a timed block (default 2)
  --rounds N       rounds of nginx, Millstream, Millstream, nginx (default 3)
  --floor          also measure a server that parses nothing, in the cases of 0 bytes
  --server PATH    the server to measure (default: builds target/release/millstream);
                   a program whose name begins with \"nginx\" gets nginx's command line
  --timed-only     no system calls, allocations and memory
  --json FILE      every block, for programs
  --markdown FILE  the report: tables, machine, and how to repeat it
";
