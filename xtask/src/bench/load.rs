//! Load generators: ours beside wrk, ab and h2load, the same server, in turn, on one machine.
//!
//! Read on in this order: `case` is what is asked, `client` who asks, `server` who answers, `told` what
//! a client says, `block` one timed measurement, `system_calls` what is counted apart. Then what only
//! an open loop can be asked: `precision`, `accuracy` with its `truth`, and `situation`, the verdicts.
//! `results` is what follows, `report` what is told.

/// Whether latencies are told as they were.
mod accuracy;
/// One timed block.
mod block;
/// What clients are asked to do.
mod case;
/// The load generators.
mod client;
/// The results for programs.
mod json;
/// The command line.
mod options;
/// How well an open loop keeps its times.
mod precision;
/// The results for people.
mod report;
/// What was measured.
mod results;
/// One run of a client.
mod run;
/// The server that all ask.
mod server;
/// Situations whose verdict is known.
mod situation;
/// System calls per request.
mod system_calls;
/// What a perfect client must find.
mod truth;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use super::failure::{Failure, Result};
use super::lab::Lab;
use super::machine::{self, Machine, first_line};
use super::measurement::{self, Measurement, write_files};
use super::order::Order;
use super::programs::{build, in_path};
use accuracy::Delays;
use block::Setting;
use case::{CASES, Case};
use client::{Client, Programs};
use options::{Options, USAGE};
use report::Report;
use results::CaseResult;
use server::Kind;
use situation::Situation;

/// Measures what the options ask for.
pub(super) fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    measurement::run::<Options>(root, arguments)
}

impl Measurement for Options {
    const NAME: &'static str = "load";
    const USAGE: &'static str = USAGE;

    type Findings = Report;

    fn parse(arguments: &[&str]) -> std::result::Result<Self, String> {
        Self::parse(arguments)
    }

    fn order(&self) -> &Order {
        &self.order
    }

    fn case_names(&self) -> Vec<&str> {
        CASES.iter().map(|case| case.name).collect()
    }

    fn measure(self, root: &Path, command_line: &str) -> Result<Report> {
        measure(root, &self, command_line)
    }
}

/// The files are written after every part, so that an interrupted run has told what it found.
fn measure(root: &Path, options: &Options, command_line: &str) -> Result<Report> {
    let programs = find_programs(root, options)?;
    let lab = Lab::open()?;
    let files = run::files(&lab)?;
    let setting = Setting {
        lab: &lab,
        programs: &programs,
        files: &files,
        server: options.server,
        seconds: u64::from(options.order.seconds.unwrap_or(2)),
    };
    let mut report = Report {
        command_line: command_line.to_owned(),
        machine: Machine::describe(root, &lab, versions(root, &programs, options)),
        softirq_account: lab.softirq_account,
        server: options.server,
        seconds: setting.seconds,
        has_h2load: programs.h2load.is_some(),
        cases: Vec::new(),
        precision: None,
        accuracy: Vec::new(),
        situations: Vec::new(),
    };
    let machine = report.machine.lines();
    machine.iter().for_each(|line| println!("{line}"));
    let cases = if options.cases.is_empty() {
        &CASES[..]
    } else {
        &options.cases
    };
    for case in cases {
        eprintln!("{}", case.name);
        report.cases.push(measure_case(setting, options, *case));
        write_files(&options.order, &report)?;
    }
    if options.cases.is_empty() {
        measure_latencies(setting, options, &mut report)?;
    }
    Ok(report)
}

/// What is not about speed.
fn measure_latencies(setting: Setting<'_>, options: &Options, report: &mut Report) -> Result<()> {
    eprintln!("an open loop's times");
    let precision = precision::measure(setting);
    report.precision = Some(precision.map_err(|failure| failure.to_string()));
    write_files(&options.order, report)?;
    for delays in Delays::ALL {
        eprintln!("known delays: {}", delays.name());
        report.accuracy.push(accuracy::measure(setting, delays));
        write_files(&options.order, report)?;
    }
    for situation in Situation::ALL {
        eprintln!("verdict: {}", situation.name());
        report
            .situations
            .push(situation::measure(setting, situation));
    }
    write_files(&options.order, report)
}

/// Each round is a pass over the clients and one back: what drifts slowly meets all alike. A client
/// that fails is given up for this case, the others go on.
fn measure_case(setting: Setting<'_>, options: &Options, case: Case) -> CaseResult {
    let mut result = CaseResult::new(case);
    let takes_part = |client: &Client| client.can(&case) && client.is_here(setting.programs);
    let mut clients: Vec<Client> = Client::ALL.into_iter().filter(takes_part).collect();
    for pass in 0..2 * options.order.rounds.unwrap_or(3) {
        clients.retain(
            |client| match block::measure(setting, &case, *client, pass) {
                Ok(block) => {
                    result.blocks.push(block);
                    true
                }
                Err(failure) => {
                    eprintln!("  {} given up: {failure}", client.name());
                    result.failures.push((*client, failure.to_string()));
                    false
                }
            },
        );
        clients.reverse();
    }
    if !options.order.timed_only {
        for client in system_calls::COUNTED {
            if clients.contains(&client) {
                let calls = system_calls::measure(setting, &case, client);
                let calls = calls.map_err(|failure| failure.to_string());
                result.system_calls.push((client, calls));
            }
        }
    }
    result
}

/// What was measured, and beside what.
fn versions(root: &Path, programs: &Programs, options: &Options) -> Vec<(&'static str, String)> {
    let said = |program: &Path, argument: &str| {
        first_line(root, &[&program.display().to_string(), argument])
            .unwrap_or_else(|| program.display().to_string())
    };
    let mut versions = vec![
        ("measured", machine::built(root, &programs.millstream)),
        ("wrk", said(&programs.wrk, "-v")),
        ("ab", said(&programs.ab, "-V")),
    ];
    if let Some(h2load) = &programs.h2load {
        versions.push(("h2load", said(h2load, "--version")));
    }
    versions.push(match (&options.server, &programs.nginx) {
        (Kind::Nginx, Some(nginx)) => ("server", said(nginx, "-v")),
        (kind, _) => ("server", kind.name().to_owned()),
    });
    versions
}

fn find_programs(root: &Path, options: &Options) -> Result<Programs> {
    let find = |program: &str| {
        in_path(program).ok_or_else(|| {
            Failure(format!(
                "{program} is not here; apt-get install wrk apache2-utils util-linux strace"
            ))
        })
    };
    find("taskset")?;
    let millstream = match &options.millstream {
        Some(path) => fs::canonicalize(path).map_err(Failure::during(path.display()))?,
        None => build(root, "millstream")?,
    };
    Ok(Programs {
        millstream,
        wrk: find("wrk")?,
        ab: find("ab")?,
        h2load: in_path("h2load"),
        nginx: in_path("nginx"),
        // Also the verdicts ask it: nothing answers faster.
        floor: Some(build(root, "xtask")?),
    })
}
