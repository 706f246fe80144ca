//! Each trial as a run of an open loop.

use super::{Found, Objective, Outcome, Point, SEND_RATE_MIN, Search, Settings, Trial};
use crate::native::recorder::Recorder;
use crate::native::requirements::Errors;
use crate::native::results::Results;
use crate::native::series::Series;
use crate::plan::{Arrivals, Pace, Plan};
use crate::platform::{Platform, PlatformError, ThreadInput, Unwatched};

/// The result of a search.
#[derive(Clone, Debug)]
pub struct Searched {
    pub found: Found,
    /// Every trial, in its order.
    pub points: Vec<Point>,
    /// Of the last long trial that met the objective.
    pub results: Option<Results>,
    /// The user interrupted it: `found` is the result at that time.
    pub interrupted: bool,
}

/// Searches for the highest rate that meets `objective`. Each trial is `plan` at its own rate and duration, with new
/// `hands`; `on_point` is called at the end of each.
pub fn search(
    platform: &impl Platform,
    (plan, arrivals): (&Plan, Arrivals),
    inputs: &dyn Fn() -> Vec<ThreadInput<Recorder>>,
    (objective, settings): (&Objective, Settings),
    on_point: &mut dyn FnMut(&Point),
) -> Result<Searched, PlatformError> {
    let mut search = Search::new(settings);
    let mut points = Vec::new();
    let (mut results, mut interrupted) = (None, false);
    while let Some(trial) = search.next() {
        let ran = run(platform, (plan, arrivals), inputs(), trial)?;
        if ran.interrupted {
            interrupted = true;
            break;
        }
        let errors = Errors::of(&ran, plan.connections).worse().0;
        let outcome = judge(&ran, objective, errors);
        let point = point(trial, &ran, (outcome, errors));
        on_point(&point);
        points.push(point);
        if outcome == Outcome::Kept && trial.duration == settings.long {
            results = Some(ran);
        }
        search.on_result(outcome);
    }
    Ok(Searched {
        found: search.found(),
        points,
        results,
        interrupted,
    })
}

fn run(
    platform: &impl Platform,
    (plan, arrivals): (&Plan, Arrivals),
    inputs: Vec<ThreadInput<Recorder>>,
    trial: Trial,
) -> Result<Results, PlatformError> {
    let mut plan = plan.clone();
    plan.pace = Pace::Open {
        rate: trial.rate,
        arrivals,
    };
    plan.stop.after = Some(trial.duration);
    plan.stop.requests = None;
    let began = platform.wall_clock();
    let ran = platform.run(&plan, inputs, &mut Unwatched)?;
    let series = Series::new(plan.threads, plan.interval);
    Ok(Results::of(ran, series, began, true))
}

/// A rate whose requests were not sent, or whose answers were still missing at the end, was not met.
fn judge(results: &Results, objective: &Objective, errors: f64) -> Outcome {
    let tally = &results.tally;
    let due = results.due();
    if tally.answered == 0 {
        return Outcome::NoAnswer;
    }
    if (tally.started as f64) < due as f64 * SEND_RATE_MIN {
        return Outcome::NotSent;
    }
    match objective.missed(&results.measures.latency, errors) {
        Some(missed) => Outcome::Missed {
            excess: missed.excess(),
        },
        None => Outcome::Kept,
    }
}

fn point(trial: Trial, results: &Results, (outcome, errors): (Outcome, f64)) -> Point {
    let latency = &results.measures.latency;
    Point {
        rate: trial.rate,
        achieved: results.rate(),
        p50: latency.percentile(50.0),
        p90: latency.percentile(90.0),
        p99: latency.percentile(99.0),
        max: latency.max(),
        errors,
        other_cpu: results.machine.other_cpu(),
        outcome,
    }
}

#[cfg(test)]
mod tests;
