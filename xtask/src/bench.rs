//! The measurements: one file each in `bench/` (`serve`, `load`, `bypass`, `paths` …), one line each in `LIST` and in `run`.
//! Modules that several of them use are beside them.

/// The content that is served.
mod content;
/// Numbers on the command line.
mod count;
/// What clients of our own print.
mod figures;
/// The options of every measurement.
mod order;
/// Recipes of the lab.
mod recipe;

/// Millstream over AF_XDP and memif, against nginx and against raw frames.
mod bypass;
/// Millstream as a cache, against nginx, Varnish and HAProxy.
mod cache;
/// The least work that a server on kernel sockets can do, as a reference.
mod floor;
/// The load generator alone, over a memif.
mod generator;
/// Our load generator beside wrk, ab and h2load.
mod load;
/// Congestion control beside the kernel's, over emulated paths.
mod paths;
/// Programs that are not changed, on our stack.
mod program;
/// Millstream as a proxy, against nginx and HAProxy.
mod proxy;
/// Millstream against nginx, the same configuration, in turn.
mod serve;
/// The cost of a segment and of a connection in Millstream's own stack, in memory.
mod stack;
/// TLS and HTTP/2, against nginx and h2o.
mod tls;
/// The memory of an idle tunnel through a proxy.
mod tunnels;

use std::path::Path;
use std::process::ExitCode;

use crate::EXIT_USAGE;

/// The output of `cargo xtask bench`: one line per measurement, its name first.
const LIST: &str = "\
Measurements:

  serve    Millstream against nginx: requests, CPU time, system calls, allocations, memory
           (cargo xtask bench serve --help)
  load     the load generator beside wrk, ab and h2load: CPU time, punctuality, accuracy, verdicts
           (cargo xtask bench load --help)
  bypass   our own TCP/IP stack over AF_XDP and memif, against nginx and against raw frames
           (cargo xtask bench bypass --help)
  generator
           what the load generator alone can ask for over a memif, beside our server
           (cargo xtask bench generator --help)
  run      nginx and wrk, not changed, on our stack, against the kernel and our own server
           (cargo xtask bench run --help)
  proxy    Millstream as a proxy against nginx, HAProxy and a plain relay: CPU time a request, system calls, allocations
           (cargo xtask bench proxy --help)
  cache    Millstream as a cache against nginx, Varnish and HAProxy: CPU time a hit, system calls
           (cargo xtask bench cache --help)
  stack    our own TCP/IP stack in memory: nanoseconds a segment and a connection, bytes an idle one
           (cargo xtask bench stack --help)
  paths    congestion control of our stack beside the kernel's, over ten emulated paths
           (cargo xtask bench paths --help)
  tls      TLS and HTTP/2 against nginx and h2o: CPU time a handshake and a request
           (cargo xtask bench tls --help)
  tunnels  the memory of an idle WebSocket through nginx and Millstream, 20 000 of them
           (cargo xtask bench tunnels --help)
";

/// Runs the measurement that the first argument names, with the others as its options. The last
/// arms are for the processes that a measurement starts from its own binary.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    match arguments {
        [] => {
            print!("{LIST}");
            ExitCode::SUCCESS
        }
        ["bypass", options @ ..] => recipe::run(root, &bypass::BYPASS, options),
        ["cache", options @ ..] => recipe::run(root, &cache::CACHE, options),
        ["load", options @ ..] => recipe::run(root, &load::LOAD, options),
        ["proxy", options @ ..] => recipe::run(root, &proxy::PROXY, options),
        ["generator", options @ ..] => recipe::run(root, &generator::GENERATOR, options),
        ["run", options @ ..] => recipe::run(root, &program::RUN, options),
        ["tls", options @ ..] => recipe::run(root, &tls::TLS, options),
        ["serve", options @ ..] => recipe::run(root, &serve::SERVE, options),
        ["paths", options @ ..] => paths::run(root, options),
        ["stack", options @ ..] => stack::run(root, options),
        ["tunnels", options @ ..] => tunnels::run(root, options),
        [floor::ARGUMENT, port, cpu, body_bytes] => floor::run(port, cpu, body_bytes),
        [generator::answers::ARGUMENT, arguments @ ..] => generator::answers::run(arguments),
        [bypass::raw::ARGUMENT, arguments @ ..] => bypass::raw::run(arguments),
        [proxy::origin::ARGUMENT, arguments @ ..] => proxy::origin::run(arguments),
        [proxy::relay::ARGUMENT, arguments @ ..] => proxy::relay::run(arguments),
        [proxy::websocket::ARGUMENT, arguments @ ..] => proxy::websocket::run(arguments),
        [name, ..] => {
            eprintln!("xtask bench: no measurement is called \"{name}\"\n\n{LIST}");
            ExitCode::from(EXIT_USAGE)
        }
    }
}
