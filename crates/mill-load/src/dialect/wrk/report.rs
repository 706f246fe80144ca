//! wrk's report, byte for byte in form.

use crate::dialect::wrk::arguments::Arguments;
use crate::dialect::wrk::recorder::SocketErrors;
use crate::dialect::wrk::statistics::Statistics;
use crate::dialect::wrk::units::{binary, decimal, metric, padded, time_s, time_us};
use crate::script::{Errors, Summary};
use mill_runtime::time::Duration;
use std::io::{self, Write};

/// The counters of a run, all threads together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Totals {
    pub(crate) runtime: Duration,
    /// Responses.
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
    pub(crate) errors: SocketErrors,
    /// Responses with a status above 399.
    pub(crate) statuses_bad: u64,
}

impl Totals {
    pub(crate) fn runtime_us(&self) -> u64 {
        u64::try_from(self.runtime.as_micros()).unwrap_or(u64::MAX)
    }

    /// The same for scripts.
    pub(crate) fn summary(&self) -> Summary {
        let errors = self.errors;
        Summary {
            duration: self.runtime,
            requests: self.requests,
            bytes: self.bytes,
            errors: Errors {
                connect: errors.connect,
                read: errors.read,
                write: errors.write,
                status: self.statuses_bad,
                timeout: errors.timeout,
            },
        }
    }
}

/// What is printed when a run begins.
pub(crate) fn emit_banner(arguments: &Arguments, out: &mut dyn Write) -> io::Result<()> {
    let duration = time_s(arguments.duration_s as f64);
    writeln!(out, "Running {duration} test @ {}", arguments.url_text)?;
    let (threads, connections) = (arguments.threads, arguments.connections);
    write!(out, "  {threads} threads and {connections} connections")?;
    match arguments.beyond.connreqs {
        Some(connreqs) => writeln!(out, ", {connreqs} requests/connection"),
        None => writeln!(out),
    }
}

/// The table of averages.
pub(crate) fn emit_thread_stats(
    latency: &dyn Statistics,
    requests: &dyn Statistics,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(
        out,
        "  Thread Stats{:>6}{:>11}{:>8}{:>12}",
        "Avg", "Stdev", "Max", "+/- Stdev"
    )?;
    emit_row("Latency", latency, time_us, out)?;
    emit_row("Req/Sec", requests, metric, out)
}

fn emit_row(
    name: &str,
    statistics: &dyn Statistics,
    format: fn(f64) -> String,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(
        out,
        "    {name:<10}{}{}{}{:>8}%",
        padded(&format(statistics.mean()), 8),
        padded(&format(statistics.stdev()), 10),
        padded(&format(statistics.max() as f64), 9),
        decimal(statistics.within_stdev(), 2)
    )
}

/// The percentiles of `--latency`.
pub(crate) fn emit_distribution(latency: &dyn Statistics, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "  Latency Distribution")?;
    for percent in PERCENTILES {
        let value = time_us(latency.percentile(percent) as f64);
        writeln!(out, "{percent:7.0}%{}", padded(&value, 10))?;
    }
    Ok(())
}

/// The lines that end a report.
pub(crate) fn emit_totals(totals: &Totals, out: &mut dyn Write) -> io::Result<()> {
    let Totals {
        requests, errors, ..
    } = totals;
    let runtime_us = totals.runtime_us() as f64;
    let per_second = |count: u64| count as f64 / (runtime_us / 1e6);
    let (runtime, bytes) = (time_us(runtime_us), binary(totals.bytes as f64));
    writeln!(out, "  {requests} requests in {runtime}, {bytes}B read")?;
    if errors.any() {
        let SocketErrors {
            connect,
            read,
            write,
            timeout,
        } = errors;
        writeln!(
            out,
            "  Socket errors: connect {connect}, read {read}, write {write}, timeout {timeout}"
        )?;
    }
    if totals.statuses_bad > 0 {
        writeln!(out, "  Non-2xx or 3xx responses: {}", totals.statuses_bad)?;
    }
    writeln!(
        out,
        "Requests/sec: {:>9}",
        decimal(per_second(*requests), 2)
    )?;
    writeln!(
        out,
        "Transfer/sec: {:>10}B",
        binary(per_second(totals.bytes))
    )
}

/// Those of wrk's distribution.
const PERCENTILES: [f64; 4] = [50.0, 75.0, 90.0, 99.0];

#[cfg(test)]
mod tests;
