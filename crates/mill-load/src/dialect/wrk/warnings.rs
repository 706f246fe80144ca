//! Warnings about misleading figures in wrk's form, one line each on standard error.

use crate::dialect::wrk::arguments::Arguments;
use crate::dialect::wrk::report::Totals;
use crate::dialect::wrk::statistics::Statistics;
use crate::dialect::wrk::units::time_us;
use crate::failure::FailureKind;
use crate::platform::RunOutcome;
use crate::silence;
use crate::tally::Tally;
use core::time::Duration;
use std::io::{self, Write};

/// Latency before and after wrk's correction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Corrected {
    pub(crate) before: Glance,
    pub(crate) after: Glance,
}

/// The figures that users read first.
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

/// The warnings before a run.
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

/// The warnings after a run.
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

/// The usual latency. Of answers that took longer than wrk's timeout only the longest is known.
pub(crate) fn usual<R>(
    (ran, totals): (&RunOutcome<R>, &Totals),
    latency: &dyn Statistics,
    connections: u32,
) -> Duration {
    let (answers, timeouts) = (totals.requests, totals.errors.timeout);
    let rank = silence::usual_rank(answers, connections);
    let kept = answers.saturating_sub(timeouts);
    if rank > kept || kept == 0 {
        let longest = ran.parts.iter().map(|part| part.longest).max();
        return longest.unwrap_or_default();
    }
    Duration::from_micros(latency.percentile(rank as f64 * 100.0 / kept as f64))
}

/// Unserved time, which no column of wrk has: its latencies and mean rates cover only the time in which answers
/// arrived.
pub(crate) fn emit_unserved<R>(
    ran: &RunOutcome<R>,
    connections: u32,
    usual: Duration,
    err: &mut dyn Write,
) -> io::Result<()> {
    let counted = (ran.gaps(), ran.tally());
    match silence::remark((&counted.0, &counted.1), connections, ran.measured, usual) {
        Some(line) => writeln!(err, "millstream: {line}; wrk's table leaves that time out"),
        None => Ok(()),
    }
}

fn emit_correction(corrected: &Corrected, err: &mut dyn Write) -> io::Result<()> {
    let Corrected { before, after } = corrected;
    let noticed = |before: f64, after: f64| (after - before).abs() > NOTICED * before;
    let (p99_before, p99_after) = (before.p99_us as f64, after.p99_us as f64);
    if noticed(before.mean_us, after.mean_us) || noticed(p99_before, p99_after) {
        writeln!(
            err,
            "millstream: wrk's correction fills in latencies that were not measured: measured were {} on average and {} at 99%",
            time_us(before.mean_us),
            time_us(p99_before)
        )?;
    }
    Ok(())
}

/// A correction that changes a figure by less is not reported: two runs differ by about a tenth.
const NOTICED: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::wrk::recorder::SocketErrors;
    use crate::failure::Failure;
    use mill_runtime::stream::StreamError;

    /// The lines after a run with these failures and corrected figures.
    fn lines(failures: &[Failure], timeout: u64, corrected: &Corrected) -> Vec<String> {
        let mut errors = SocketErrors {
            timeout,
            ..SocketErrors::default()
        };
        let mut tally = Tally::default();
        for failure in failures {
            errors.on_failure(*failure);
            tally.on_failure(failure.kind());
        }
        let totals = Totals {
            runtime: Duration::from_secs(1),
            requests: 1,
            bytes: 1,
            errors,
            statuses_bad: 0,
        };
        let mut err = Vec::new();
        emit_after((&totals, &tally), corrected, 2, &mut err).unwrap();
        let text = String::from_utf8(err).unwrap();
        text.lines().map(String::from).collect()
    }

    fn glance(mean_us: f64, p99_us: u64) -> Glance {
        Glance { mean_us, p99_us }
    }

    #[test]
    fn a_run_without_warnings_is_silent() {
        assert!(lines(&[], 0, &Corrected::default()).is_empty());
        assert!(lines(&[Failure::EndedEarly], 0, &Corrected::default()).is_empty());
    }

    #[test]
    fn each_thing_that_misleads_has_one_line() {
        let check = |failures: &[Failure], timeout, expected: &str| {
            let lines = lines(failures, timeout, &Corrected::default());
            assert!(
                lines.len() == 1 && lines[0].starts_with("millstream: "),
                "{lines:?}"
            );
            assert!(lines[0].contains(expected), "{lines:?}");
        };
        check(
            &[Failure::NoPort, Failure::NoDescriptor],
            0,
            "2 connections could not be opened",
        );
        let refused = Failure::Connect(StreamError::Refused);
        check(
            &[refused, Failure::ConnectTimeout],
            0,
            "2 handshakes were refused or timed out",
        );
        check(&[], 7, "7 answers took longer than 2s");
        let unreachable = Failure::Connect(StreamError::Unreachable);
        check(&[unreachable], 0, "1 connections could not be opened");
    }

    #[test]
    fn a_correction_is_reported_from_a_tenth_on() {
        let is_reported = |before, after| !lines(&[], 0, &Corrected { before, after }).is_empty();
        assert!(!is_reported(glance(100.0, 1000), glance(109.0, 1090)));
        assert!(is_reported(glance(100.0, 1000), glance(111.0, 1000)));
        assert!(is_reported(glance(100.0, 1000), glance(89.0, 1000)));
        assert!(is_reported(glance(100.0, 1000), glance(100.0, 1101)));
    }
}
