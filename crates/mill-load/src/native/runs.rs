//! Single runs, runs in several processes, searches, sweeps.

use crate::native::live::{Live, Screen};
use crate::native::merge::{Hosts, merge, merge_period};
use crate::native::options::{Options, Refused};
use crate::native::part::{PartIndex, conduct};
use crate::native::preparation::Prepared;
use crate::native::recorder::Recorder;
use crate::native::results::Results;
use crate::native::search::{
    self, Limit, Objective, Outcome, Point, Searched, Settings, emit_curve,
};
use crate::native::series::Period;
use crate::native::sweep::{self, Sweep};
use crate::native::terminal::Terminal;
use crate::native::units;
use crate::native::verdict::{Subject, Thresholds, VerdictKind};
use crate::plan::Pace;
use crate::platform::{Launcher, Platform, ThreadInput};
use core::time::Duration;
use mill_runtime::time::{Instant, UnixTime};
use std::collections::VecDeque;
use std::io::Write;

/// When requests start.
pub(super) fn pace(options: &Options) -> Pace {
    match options.rate {
        Some(rate) => Pace::Open {
            rate,
            arrivals: options.arrivals,
        },
        None => Pace::Closed {
            think: options.think,
        },
    }
}

/// The input of each thread of the plan.
pub(super) fn inputs(options: &Options, prepared: &Prepared) -> Vec<ThreadInput<Recorder>> {
    let input = |_| ThreadInput {
        requests: prepared.sending.requests(),
        recorder: Recorder::new(options.is_open_loop()),
    };
    (0..prepared.plan.threads).map(input).collect()
}

/// One run in this process.
pub(super) fn alone(
    options: &Options,
    prepared: &Prepared,
    platform: &impl Platform,
    (err, terminal): (&mut dyn Write, Terminal),
) -> Result<Results, Refused> {
    let mut live = Live::new(prepared.plan.threads, options, terminal, err);
    let began = platform.wall_clock();
    let ran = platform.run(&prepared.plan, inputs(options, prepared), &mut live);
    let series = live.finish();
    let ran = ran.map_err(|error| Refused(error.0))?;
    Ok(Results::of(ran, series, began, options.is_open_loop()))
}

/// One run in several processes of this machine, merged.
pub(super) fn together(
    options: &Options,
    arguments: &[Vec<u8>],
    platform: &impl Platform,
    (err, terminal): (&mut dyn Write, Terminal),
) -> Result<Results, Refused> {
    let mut screen = Screen::new(options, terminal, err);
    screen.begin();
    let mut gathering = Gathering::default();
    let mut on_period = |_: PartIndex, period: &Period| {
        if let Some(sum) = gathering.add(options, period) {
            screen.show(&sum);
        }
    };
    let conducted = conduct(
        launcher(platform)?,
        arguments,
        options.processes,
        &mut on_period,
    );
    screen.clear();
    let parts = conducted.map_err(|error| Refused(error.to_string()))?;
    merge(&parts, Hosts::Same).ok_or_else(|| Refused(String::from("no process has done anything")))
}

/// The time of `--start-at` on the monotonic clock.
pub(super) fn begin(
    options: &Options,
    platform: &impl Platform,
) -> Result<Option<Instant>, Refused> {
    let Some(at) = options.start_at else {
        return Ok(None);
    };
    let launcher = launcher(platform)?;
    let ahead = nanos(at) - nanos(platform.wall_clock());
    match u64::try_from(ahead) {
        Ok(ahead) => Ok(Some(launcher.now() + Duration::from_nanos(ahead))),
        Err(_) => {
            let late = Duration::from_nanos(u64::try_from(-ahead).unwrap_or(u64::MAX));
            let late = units::duration(late);
            Err(Refused(format!("--start-at was {late} ago")))
        }
    }
}

/// Searches for the highest rate that meets `objective`; reports each trial on standard error.
pub(super) fn search(
    options: &Options,
    prepared: &Prepared,
    objective: &Objective,
    platform: &impl Platform,
    err: &mut dyn Write,
) -> Result<Searched, Refused> {
    let defaults = Settings::default();
    let start = options.rate.unwrap_or(defaults.start);
    let long = options.duration.unwrap_or(defaults.long);
    let settings = Settings {
        start,
        rate_min: start.min(objective.answers_min() / long.as_secs_f64()),
        long,
        short: options.duration.map_or(defaults.short, |long| long / 5),
        ..defaults
    };
    let new_hands = || inputs(options, prepared);
    let others_told = options.thresholds.of(Subject::OtherCpu).warn / 100.0;
    let mut on_point = |point: &Point| {
        if !options.quiet {
            let how = match point.outcome {
                Outcome::Kept => "kept",
                Outcome::Missed { .. } => "missed",
                Outcome::NotSent => "not sent in time",
                Outcome::NoAnswer => "no request was answered",
            };
            let rate = units::rate(point.rate);
            let p99 = match point.outcome {
                Outcome::NoAnswer => String::from("-"),
                _ => units::duration(point.p99),
            };
            let others = match point.other_cpu {
                Some(share) if share > others_told => {
                    format!(
                        "; other programs used {} of the CPUs",
                        units::percent(share)
                    )
                }
                _ => String::new(),
            };
            let _ = writeln!(err, "{rate:>12}  p99 {p99:>8}  {how}{others}");
        }
    };
    search::search(
        platform,
        (&prepared.plan, options.arrivals),
        &new_hands,
        (objective, settings),
        &mut on_point,
    )
    .map_err(|error| Refused(error.0))
}

/// The result of a search, and all its trials.
pub(super) fn describe(
    searched: &Searched,
    objective: &Objective,
    (verdict, thresholds): (Option<VerdictKind>, &Thresholds),
) -> String {
    let mut table = Vec::new();
    let written = emit_curve(&searched.points, &mut table);
    debug_assert!(written.is_ok(), "writing to memory succeeds");
    let table = String::from_utf8_lossy(&table).into_owned();
    let limit = match searched.found.limit {
        Limit::Objective => "beyond it the objective was missed",
        Limit::Sending => "beyond it requests could not be sent in time",
        Limit::RateMax => "more was not tried",
        Limit::NoAnswer => "then the server answered no more",
    };
    let found = match searched.found.rate {
        Some(rate) => format!(
            "{objective} was kept at up to {}; {limit}",
            units::rate(rate)
        ),
        None if searched.found.limit == Limit::NoAnswer => {
            String::from("no request was answered, so nothing was found: is the server there?")
        }
        None => format!("{objective} was kept at no rate that was tried"),
    };
    let precision = if searched.found.is_precise || searched.interrupted {
        ""
    } else {
        "; the trials contradicted each other, so the place is not precise"
    };
    let interrupted = if searched.interrupted {
        "; interrupted"
    } else {
        ""
    };
    let invalid = if verdict == Some(VerdictKind::Invalid) {
        "; but the verdict of the trial that confirms it is invalid, see below"
    } else {
        ""
    };
    let others = disturbed(&searched.points, thresholds);
    format!("{table}\n{found}{precision}{interrupted}{invalid}\n{others}\n")
}

/// Trials on a machine that had other work: their rate is that of the remaining CPU time.
fn disturbed(points: &[Point], thresholds: &Thresholds) -> String {
    let fail = thresholds.of(Subject::OtherCpu).fail / 100.0;
    let shares = points.iter().filter_map(|point| point.other_cpu);
    let (count, most) = shares
        .filter(|share| *share >= fail)
        .fold((0, 0.0_f64), |(count, most), share| {
            (count + 1, most.max(share))
        });
    if count == 0 {
        return String::new();
    }
    format!(
        "In {count} of {} trials other programs used much of this machine's CPUs, up to {}: what was found is what they \
         left over. End them, and search again.\n",
        points.len(),
        units::percent(most)
    )
}

/// Runs every combination and writes the table.
pub(super) fn sweep(
    sweep: &Sweep,
    arguments: &[Vec<u8>],
    platform: &impl Platform,
    out: &mut dyn Write,
) -> Result<(), Refused> {
    let of_cell = |cell: sweep::Cell| {
        let option = |name: &str, value: u32| format!("--{name}={value}").into_bytes();
        let mut own = vec![
            option("connections", cell.connections),
            option("processes", cell.processes),
        ];
        own.extend_from_slice(arguments);
        own
    };
    sweep::sweep(launcher(platform)?, &sweep.cells(), &of_cell, out)
        .map_err(|error| Refused(error.to_string()))
}

fn launcher(platform: &impl Platform) -> Result<&dyn Launcher, Refused> {
    platform.launcher().map_err(|error| Refused(error.0))
}

fn nanos(time: UnixTime) -> i128 {
    i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos)
}

/// Periods that have not been reported by all parts.
#[derive(Debug, Default)]
struct Gathering {
    /// The periods of the same number.
    open: VecDeque<Vec<Period>>,
    closed: usize,
}

impl Gathering {
    /// Adds a part's period; returns the sum once all parts have reported it. They cut at the same times.
    fn add(&mut self, options: &Options, period: &Period) -> Option<Period> {
        let interval = options.interval.as_secs_f64().max(f64::MIN_POSITIVE);
        let number = (period.end.as_secs_f64() / interval).round();
        let number = Duration::try_from_secs_f64(number).map_or(0, |number| number.as_secs());
        let place = usize::try_from(number).ok()?.checked_sub(1 + self.closed)?;
        while self.open.len() <= place.min(OPEN_MAX) {
            self.open.push_back(Vec::new());
        }
        self.open.get_mut(place)?.push(period.clone());
        let is_complete = self.open.front()?.len() >= options.processes as usize;
        if !is_complete && self.open.len() < OPEN_MAX {
            return None;
        }
        self.closed += 1;
        let same = self.open.pop_front()?;
        merge_period(&same.iter().collect::<Vec<_>>())
    }
}

/// Periods that wait for a part that does not report; a lost part ends the run anyway.
const OPEN_MAX: usize = 16;
