//! wrk's and wrk2's usage and version.

/// wrk's usage, with the blanks at its lines' ends; options beyond wrk 4.1 are in a block of their own.
pub(crate) const WRK: &str = concat!(
    "Usage: wrk <options> <url>                            \n",
    "  Options:                                            \n",
    "    -c, --connections <N>  Connections to keep open   \n",
    "    -d, --duration    <T>  Duration of test           \n",
    "    -t, --threads     <N>  Number of threads to use   \n",
    "                                                      \n",
    "    -s, --script      <S>  Load Lua script file       \n",
    "    -H, --header      <H>  Add header to request      \n",
    "        --latency          Print latency statistics   \n",
    "        --timeout     <T>  Socket/request timeout     \n",
    "    -v, --version          Print version details      \n",
    "                                                      \n",
    "    -C, --connreqs    <N>  Requests per connection    \n",
    "    -N, --delay            Leave out TCP_NODELAY      \n",
    "    -B, --bindcpu          Accepted, without effect   \n",
    "    -R, --rate        <T>  Constant rate, as wrk2     \n",
    "                                                      \n",
    "  Numeric arguments may include a SI unit (1k, 1M, 1G)\n",
    "  Time arguments may include a time unit (2s, 2m, 2h)\n",
);

/// wrk2's usage.
pub(crate) const WRK2: &str = concat!(
    "Usage: wrk <options> <url>                            \n",
    "  Options:                                            \n",
    "    -c, --connections <N>  Connections to keep open   \n",
    "    -d, --duration    <T>  Duration of test           \n",
    "    -t, --threads     <N>  Number of threads to use   \n",
    "                                                      \n",
    "    -s, --script      <S>  Load Lua script file       \n",
    "    -H, --header      <H>  Add header to request      \n",
    "    -L  --latency          Print latency statistics   \n",
    "    -U  --u_latency        Print uncorrected latency statistics\n",
    "        --timeout     <T>  Socket/request timeout     \n",
    "    -B, --batch_latency    Measure latency of whole   \n",
    "                           batches of pipelined ops   \n",
    "                           (as opposed to each op)    \n",
    "    -v, --version          Print version details      \n",
    "    -R, --rate        <T>  work rate (throughput)     \n",
    "                           in requests/sec (total)    \n",
    "                           [Required Parameter]       \n",
    "                                                      \n",
    "                                                      \n",
    "  Numeric arguments may include a SI unit (1k, 1M, 1G)\n",
    "  Time arguments may include a time unit (2s, 2m, 2h)\n",
);

/// wrk's version line, with the version of this form and, as Debian does it, the build. Programs parse the words up to
/// the year.
pub(crate) fn version(of: &str) -> String {
    format!(
        "wrk millstream/{of}+{} [epoll] Copyright (C) 2012 Will Glozer (options and form; the program is Millstream)\n",
        env!("CARGO_PKG_VERSION")
    )
}
