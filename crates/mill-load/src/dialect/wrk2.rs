//! wrk2: wrk at a constant rate, its latency counted from when a request was due.
//!
//! Each connection has its own even schedule and lags behind it alone; requests are sent with the precision of the
//! engine, not of a millisecond. The rate is sampled at hundredths of a second, so an interval is as long as calibrated
//! or up to ten milliseconds longer.

/// wrk2's histogram of values.
mod histogram;
/// What a thread records.
mod recorder;
/// Its report.
mod report;

use crate::dialect::wrk::arguments::Tool;
use crate::dialect::wrk::preparation::{EXIT_FAILURE, Prepared, exit_status};
use crate::dialect::wrk::statistics::Statistics;
use crate::dialect::wrk::{self, finish, report as wrk_report, totals, warnings};
use crate::dialect::wrk2::recorder::{Calibration, INTERVAL_MIN_MS, Recorder, STAGGER};
use crate::plan::{Opening, Pace, Plan};
use crate::platform::{Platform, ThreadInput, Watch};
use mill_runtime::time::Duration;
use std::io::{self, Write};

/// Runs a command line of wrk2, without its first word; returns the exit status.
pub fn main(
    arguments: &[Vec<u8>],
    platform: &impl Platform,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    exit_status(wrk::run(Tool::Wrk2, arguments, platform, (out, err)))
}

pub(super) fn measure(
    mut prepared: Prepared<'_>,
    platform: &impl Platform,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    let plan = plan(&prepared);
    let requests = std::mem::take(&mut prepared.requests).into_iter();
    let arguments = &prepared.arguments;
    let timeout = Duration::from_secs(arguments.timeout_s);
    let connections = arguments.connections / arguments.threads;
    let inputs = requests.map(|requests| ThreadInput {
        requests,
        recorder: Recorder::new(timeout, connections),
    });
    wrk_report::emit_banner(arguments, out)?;
    out.flush()?;
    let mut calibrations = Calibrations {
        out,
        result: Ok(()),
    };
    let ran = match platform.run(&plan, inputs.collect(), &mut calibrations) {
        Ok(ran) => ran,
        Err(error) => {
            writeln!(err, "millstream: {error}")?;
            return Ok(EXIT_FAILURE);
        }
    };
    let Calibrations { out, result } = calibrations;
    result?;
    let mut sum = Recorder::new(timeout, connections);
    for part in &ran.parts {
        sum.add(&part.recorder);
    }
    wrk_report::emit_thread_stats(&sum.latency, &sum.requests, out)?;
    if arguments.latency {
        report::emit_latency(&sum.latency, out)?;
    }
    if arguments.constant.uncorrected {
        report::emit_uncorrected(&sum.uncorrected, out)?;
    }
    let totals = totals(&ran, sum.errors);
    wrk_report::emit_totals(&totals, out)?;
    out.flush()?;
    let usual = warnings::usual((&ran, &totals), &sum.uncorrected, plan.connections);
    warnings::emit_unserved(&ran, plan.connections, usual, err)?;
    let statistics = (&sum.latency as &dyn Statistics, &sum.requests as _);
    finish(prepared.stage.as_ref(), (&ran, &totals), statistics, err)
}

/// wrk's plan at a constant rate, its connections opened one after another.
fn plan(prepared: &Prepared<'_>) -> Plan {
    let mut plan = prepared.plan();
    plan.pace = Pace::Each {
        rate: prepared.arguments.constant.rate as f64,
    };
    plan.opening = Opening::Staggered(STAGGER);
    plan.spin = SPIN;
    plan.interval = Duration::from_secs_f64(INTERVAL_MIN_MS / 1000.0);
    plan
}

/// Prints calibrations when they are done.
struct Calibrations<'a> {
    out: &'a mut dyn Write,
    result: io::Result<()>,
}

impl Watch<Option<Calibration>> for Calibrations<'_> {
    fn on_interval(&mut self, _thread: u32, _elapsed: Duration, found: Option<Calibration>) {
        if let (Some(calibration), Ok(())) = (found, &self.result) {
            self.result =
                report::emit_calibration(calibration, self.out).and_then(|()| self.out.flush());
        }
    }
}

/// How long a thread spins instead of sleeping before a request is due: sleeping is precise to about 50 µs.
const SPIN: Duration = Duration::from_micros(50);
