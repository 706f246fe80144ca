//! wrk 4.1 and 4.2, with the extensions of sephe's branch.
//!
//! Modelled on wrk's own sources and Debian's 4.1.0: 4.2 has no visible difference. Standard output has wrk's form to
//! the byte; our own messages go to standard error.

/// Its command line.
pub(crate) mod arguments;
/// Options as glibc reads them.
pub(crate) mod getopt;
/// The steps before a run.
pub(crate) mod preparation;
/// What a thread records.
pub(crate) mod recorder;
/// Its report.
pub(crate) mod report;
/// The request it sends.
pub(crate) mod request;
/// The statistics of its columns.
pub mod statistics;
/// Numbers and their units.
pub(crate) mod units;
/// Its usage and version.
pub(crate) mod usage;
/// Warnings about misleading figures.
pub(crate) mod warnings;

use crate::dialect::wrk::arguments::Tool;
use crate::dialect::wrk::preparation::{EXIT_FAILURE, Preparation, Prepared, exit_status, prepare};
use crate::dialect::wrk::recorder::{Recorder, responses};
use crate::dialect::wrk::report::Totals;
use crate::dialect::wrk::statistics::Statistics;
use crate::dialect::wrk::warnings::{Corrected, Glance};
use crate::dialect::wrk2;
use crate::local::Abort;
use crate::platform::{Platform, RunOutcome, ThreadInput, Unwatched};
use crate::record::Record;
use crate::script::{Environment, Stage};
use mill_runtime::time::Duration;
use std::io::{self, Write};

/// Runs a command line of wrk, without its first word; returns the exit status. One of wrk2's options makes it wrk2.
pub fn main(
    arguments: &[Vec<u8>],
    platform: &impl Platform,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    exit_status(run(Tool::Wrk, arguments, platform, (out, err)))
}

/// Runs a command line of wrk or of wrk2.
pub(super) fn run(
    tool: Tool,
    arguments: &[Vec<u8>],
    platform: &impl Platform,
    (out, err): (&mut dyn Write, &mut dyn Write),
) -> io::Result<u8> {
    let environment = Environment {
        resolve: &|host, port| platform.resolve(host, port),
        accepts: &|address| platform.accepts(address),
    };
    let preparation = prepare(tool, arguments, environment, (out, err))?;
    if matches!(preparation, Preparation::Ready(_))
        && let Err(error) = platform.prepare()
    {
        writeln!(err, "millstream: {error}")?;
        return Ok(EXIT_FAILURE);
    }
    let status = match (preparation, tool) {
        (Preparation::Exit(status), _) => status,
        (Preparation::ConstantRate, Tool::Wrk) => {
            return run(Tool::Wrk2, arguments, platform, (out, err));
        }
        (Preparation::ConstantRate, Tool::Wrk2) => EXIT_FAILURE,
        (Preparation::Ready(prepared), Tool::Wrk) => measure(*prepared, platform, out, err)?,
        (Preparation::Ready(prepared), Tool::Wrk2) => wrk2::measure(*prepared, platform, out, err)?,
    };
    out.flush()?;
    Ok(status)
}

fn measure(
    mut prepared: Prepared<'_>,
    platform: &impl Platform,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    let mut plan = prepared.plan();
    plan.interval = RECORD_INTERVAL;
    let timeout = Duration::from_secs(prepared.arguments.timeout_s);
    let requests = std::mem::take(&mut prepared.requests).into_iter();
    let inputs = requests.map(|requests| ThreadInput {
        requests,
        recorder: Recorder::new(timeout),
    });
    let arguments = &prepared.arguments;
    report::emit_banner(arguments, out)?;
    out.flush()?;
    let mut ran = match platform.run(&plan, inputs.collect(), &mut Unwatched) {
        Ok(ran) => ran,
        Err(error) => {
            writeln!(err, "millstream: {error}")?;
            return Ok(EXIT_FAILURE);
        }
    };
    let mut sum = Recorder::sum(timeout, &mut ran.parts);
    let totals = totals(&ran, sum.errors);
    let before = Glance::of(&sum.latency);
    let usual = warnings::usual((&ran, &totals), &sum.latency, plan.connections);
    correct(&mut sum, &totals, arguments.connections);
    let corrected = Corrected {
        before,
        after: Glance::of(&sum.latency),
    };
    report::emit_thread_stats(&sum.latency, &sum.requests, out)?;
    if arguments.latency {
        report::emit_distribution(&sum.latency, out)?;
    }
    report::emit_totals(&totals, out)?;
    out.flush()?;
    warnings::emit_unserved(&ran, plan.connections, usual, err)?;
    warnings::emit_after(
        (&totals, &ran.tally()),
        &corrected,
        arguments.timeout_s,
        err,
    )?;
    let statistics = (&sum.latency as &dyn Statistics, &sum.requests as _);
    finish(prepared.stage.as_ref(), (&ran, &totals), statistics, err)
}

/// The counters of all threads.
pub(crate) fn totals<R: Record>(ran: &RunOutcome<R>, errors: recorder::SocketErrors) -> Totals {
    let tally = ran.tally();
    // Bytes after a response are no response, which wrk counts as a read error.
    let errors = recorder::SocketErrors {
        read: errors.read + tally.surplus,
        ..errors
    };
    Totals {
        runtime: ran.measured,
        requests: responses(&tally),
        bytes: tally.bytes_received,
        errors,
        statuses_bad: tally.statuses_bad,
    }
}

/// Reports why a run ended early, and runs the script's `done`; returns the exit status.
pub(crate) fn finish<R>(
    stage: Option<&Stage<'_>>,
    (ran, totals): (&RunOutcome<R>, &Totals),
    (latency, requests): (&dyn Statistics, &dyn Statistics),
    err: &mut dyn Write,
) -> io::Result<u8> {
    let mut status = 0;
    for aborted in ran.parts.iter().filter_map(|part| part.aborted.as_ref()) {
        match aborted {
            Abort::Stopped => continue,
            Abort::Script(error) => writeln!(err, "millstream: {error}")?,
            Abort::Failure(failure) => writeln!(err, "millstream: {failure}")?,
        }
        status = EXIT_FAILURE;
    }
    let done = stage.map(|stage| stage.done(&totals.summary(), latency, requests));
    if let Some(Err(error)) = done {
        writeln!(err, "millstream: {error}")?;
        status = EXIT_FAILURE;
    }
    Ok(status)
}

/// wrk's correction: the interval is the mean time that a connection took for a request.
fn correct(sum: &mut Recorder, totals: &Totals, connections: u32) {
    let each = totals.requests / u64::from(connections);
    if let Some(interval) = totals.runtime_us().checked_div(each) {
        sum.latency.correct(interval);
    }
}

/// How often wrk samples the rate of a thread (wrk.h).
const RECORD_INTERVAL: Duration = Duration::from_millis(100);
