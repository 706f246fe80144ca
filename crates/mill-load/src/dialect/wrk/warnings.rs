//! Where wrk's form misleads, one line each on the error output.

use crate::dialect::wrk::arguments::Arguments;
use crate::dialect::wrk::report::Totals;
use crate::dialect::wrk::statistics::Statistics;
use crate::dialect::wrk::units::time_us;
use crate::failure::FailureKind;
use crate::tally::Tally;
use std::io::{self, Write};

/// Latency before and after wrk's correction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Corrected {
    pub(crate) before: Glance,
    pub(crate) after: Glance,
}

/// The figures that people look at.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Glance {
    mean_us: f64,
    p99_us: u64,
}

impl Glance {
    pub(crate) fn of(latency: &dyn Statistics) -> Self {
        Self {
            mean_us: latency.mean(),
            p99_us: latency.percentile(99.0),
        }
    }
}

/// What is said before a run.
pub(crate) fn emit_before(arguments: &Arguments, err: &mut dyn Write) -> io::Result<()> {
    let opened = arguments.connections_opened();
    let dropped = arguments.connections - opened;
    if dropped > 0 {
        writeln!(
            err,
            "millstream: {opened} connections are opened, not {}: wrk gives each of {} threads the same number and drops the rest",
            arguments.connections, arguments.threads
        )?;
    }
    if arguments.beyond.bind_cpu {
        writeln!(
            err,
            "millstream: --bindcpu has no effect, as in sephe's wrk on Linux"
        )?;
    }
    Ok(())
}

/// What is said after it.
pub(crate) fn emit_after(
    (totals, tally): (&Totals, &Tally),
    corrected: &Corrected,
    timeout_s: u64,
    err: &mut dyn Write,
) -> io::Result<()> {
    let timeouts = totals.errors.timeout;
    if timeouts > 0 {
        writeln!(
            err,
            "millstream: {timeouts} answers took longer than {timeout_s}s; wrk counts them as timeouts and leaves their latency out"
        )?;
    }
    let given_up = totals.errors.connect;
    if given_up > 0 {
        writeln!(
            err,
            "millstream: {given_up} connections could not be opened and, as wrk does it, were not tried again"
        )?;
    }
    let refused =
        tally.failures_of(FailureKind::Connect) + tally.failures_of(FailureKind::ConnectTimeout);
    let refused = refused.min(totals.errors.write);
    if refused > 0 {
        writeln!(
            err,
            "millstream: {refused} handshakes were refused or timed out; wrk counts them as write errors"
        )?;
    }
    emit_correction(corrected, err)
}

fn emit_correction(corrected: &Corrected, err: &mut dyn Write) -> io::Result<()> {
    let Corrected { before, after } = corrected;
    let noticed = |before: f64, after: f64| (after - before).abs() > NOTICED * before;
    let (p99_before, p99_after) = (before.p99_us as f64, after.p99_us as f64);
    if noticed(before.mean_us, after.mean_us) || noticed(p99_before, p99_after) {
        writeln!(
            err,
            "millstream: wrk's correction fills in latencies that nobody measured: measured were {} on average and {} at 99%",
            time_us(before.mean_us),
            time_us(p99_before)
        )?;
    }
    Ok(())
}

/// A correction that changes a figure by less is not worth a line: a tenth is about what two runs differ.
const NOTICED: f64 = 0.1;
