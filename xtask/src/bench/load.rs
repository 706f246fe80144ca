//! Load generators: Millstream's beside wrk, ab and h2load, the same server, in turn, on one machine; how well an
//! open loop keeps its schedule, whether known delays are reported exactly, the verdicts on known situations. The
//! recipe is `bench-load.toml` of mill-lab.

use super::recipe::Benchmark;

pub(super) const LOAD: Benchmark = Benchmark {
    name: "load",
    usage: USAGE,
    axis: "case",
    option: "--case",
    binary: "--millstream",
    millstream: &["millstream"],
    xtask: "xtask",
    starts_xtask: |_| true,
    own: |option, value| {
        if option != "--server" {
            return Ok(None);
        }
        match value()? {
            kind @ ("respond" | "floor" | "nginx") => {
                Ok(Some(vec![format!("server=\"${{{kind}}}\"")]))
            }
            other => Err(format!(
                "--server wants respond, floor or nginx, not \"{other}\""
            )),
        }
    },
};

const USAGE: &str = "\
Usage: cargo xtask bench load [OPTION]...

Measures load generators against one server that always answers the same: the server on the first
CPU, the clients in turn on the second. Speed beside wrk, ab and h2load; how well an open loop keeps
its times; whether known delays are told as they were; the verdicts on known situations.

  --case NAME      only this case; may be repeated
  --list           the names of the cases, then end
  --seconds N      length of a timed block (default 2)
  --rounds N       rounds of all clients and back (default 3)
  --server KIND    respond, floor or nginx (default respond): a client is the bound of a case only
                   where the server can do more
  --millstream PATH  the binary to measure (default: builds target/release/millstream)
  --timed-only     no system calls
  --json FILE      every block, for programs
  --markdown FILE  the report: tables, machine, and how to repeat it
";
