//! A part.

use super::conduct::VERSION;
use super::message::{Order, PartMessage};
use super::{PartError, PartIndex};
use crate::native::recorder::{Interval, Recorder};
use crate::native::results::Results;
use crate::native::series::Series;
use crate::plan::Plan;
use crate::platform::{Launcher, Platform, ThreadInput, Watch};
use core::time::Duration;
use std::io::Write;

/// Runs one part: `plan` is already [`PartIndex::share`]d, `inputs` are its threads'. Everything is reported on `out`,
/// which the conductor reads; the error is for the exit status.
pub fn perform(
    platform: &impl Platform,
    place: PartIndex,
    prepared: Result<(Plan, Vec<ThreadInput<Recorder>>), String>,
    out: &mut dyn Write,
) -> Result<(), PartError> {
    let done = run(platform, place, prepared, out);
    match &done {
        Ok(results) => say(out, &PartMessage::Result(Box::new(results.clone())))?,
        Err(PartError(sentence)) => say(out, &PartMessage::Failed(sentence.clone()))?,
    }
    done.map(|_| ())
}

fn run(
    platform: &impl Platform,
    place: PartIndex,
    prepared: Result<(Plan, Vec<ThreadInput<Recorder>>), String>,
    out: &mut dyn Write,
) -> Result<Results, PartError> {
    let version = String::from(VERSION);
    say(out, &PartMessage::Hello { version })?;
    let (mut plan, inputs) = prepared.map_err(PartError)?;
    let launcher: &dyn Launcher = platform.launcher().map_err(|error| PartError(error.0))?;
    say(out, &PartMessage::Ready)?;
    let order = launcher.order().as_deref().and_then(Order::parse);
    let Some(Order::Start(at)) = order else {
        return Err(PartError(String::from(
            "the process that started this part went away before the run began",
        )));
    };
    launcher.interrupt_on_input();
    plan.begin = Some(at + place.offset(&plan));
    let mut teller = IntervalReporter {
        series: Series::new(plan.threads, plan.interval),
        out,
    };
    let began = platform.wall_clock();
    let ran = platform.run(&plan, inputs, &mut teller);
    let ran = ran.map_err(|error| PartError(error.0))?;
    let has_schedule = !matches!(plan.pace, crate::plan::Pace::Closed { .. });
    Ok(Results::of(ran, teller.series, began, has_schedule))
}

/// Reports each interval to the conductor.
struct IntervalReporter<'a> {
    series: Series,
    out: &'a mut dyn Write,
}

impl Watch<Interval> for IntervalReporter<'_> {
    fn on_interval(&mut self, thread: u32, elapsed: Duration, interval: Interval) {
        if let Some(period) = self.series.on_interval(thread, elapsed, &interval) {
            // When the conductor is gone, our input is closed too, which ends the run.
            let _ = say(self.out, &PartMessage::Interval(Box::new(period.clone())));
        }
    }
}

fn say(out: &mut dyn Write, said: &PartMessage) -> Result<(), PartError> {
    writeln!(out, "{}", said.emit())
        .and_then(|()| out.flush())
        .map_err(|error| {
            PartError(format!(
                "the process that started this part is gone: {error}"
            ))
        })
}

#[cfg(test)]
mod tests;
