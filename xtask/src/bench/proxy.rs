//! Millstream as a proxy against nginx and HAProxy, in turn, on one machine: the proxy on one core, its clients and
//! the server behind it on the other. The recipe is `bench-proxy.toml` of mill-lab.

/// Servers behind the proxy that speak something else than plain HTTP.
pub(super) mod origin;
/// The floor: a relay that parses nothing.
pub(super) mod relay;
/// Clients that send messages and wait for their echo.
pub(super) mod websocket;

use super::recipe::Benchmark;

pub(super) const PROXY: Benchmark = Benchmark {
    name: "proxy",
    usage: USAGE,
    axis: "case",
    option: "--case",
    binary: "--server",
    millstream: &[
        "millstream",
        "system.millstream.binary",
        "system.millstream-xdp.binary",
        "system.millstream-memif.binary",
    ],
    xtask: "xtask",
    starts_xtask: |_| true,
    own: |option, value| match option {
        "--set" => Ok(Some(vec![value()?.to_owned()])),
        _ => Ok(None),
    },
};

const USAGE: &str = "\
Usage: cargo xtask bench proxy [OPTION]...

Measures proxies: nginx, HAProxy, Millstream and a relay that parses nothing in turn, there and back, each block with a fresh
process on the first CPU; the server behind it (nginx, or one of our own for WebSocket and FastCGI)
and the client on the second. Cases over AF_XDP take root and network namespaces.

  --case NAME      only this case; may be repeated
  --list           the names of the cases, then end
  --seconds N      length of a timed block (default 2)
  --rounds N       rounds of all proxies and back (default 3)
  --set KEY=VALUE  for the lab, such as half_rate=15000 (half of what nginx passes on); may be repeated
  --server PATH    the Millstream to measure (default: builds target/release/millstream)
  --timed-only     no system calls and allocations
  --json FILE      every block, for programs
  --markdown FILE  the report: tables, machine, and how to repeat it
";
