//! Millstream against nginx: the same configuration, the same client, in turn, on one machine.
//!
//! Read on in this order: `case` is what is asked, `server` who is asked, `block` one timed
//! measurement, `system_calls`, `allocations` and `idle_memory` what is counted apart, `results` what
//! follows, `report` what is told. Whatever is started here ends with this process: see
//! `bench/caretaker.rs`.

/// Heap allocations per request.
mod allocations;
/// One timed block.
mod block;
/// What is asked of the servers.
mod case;
/// A client for what wrk does not tell.
mod client;
/// Memory per idle connection.
mod idle_memory;
/// The results for programs.
mod json;
/// The command line.
mod options;
/// The results for people.
mod report;
/// What was measured.
mod results;
/// The servers.
mod server;
/// System calls per request.
mod system_calls;
/// The load generator.
mod wrk;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use super::failure::{Failure, Result};
use super::lab::Lab;
use super::machine::{self, Machine, first_line};
use super::measurement::{self, Measurement, write_files};
use super::order::Order;
use super::programs::{build, in_path};
use case::Case;
use options::{Options, USAGE};
use report::Report;
use results::{CaseResult, Costs, IdleResult};
use server::{Programs, Subject};

/// Measures what the options ask for.
pub(super) fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    measurement::run::<Chosen>(root, arguments)
}

/// The options with the cases that they name.
#[derive(Debug)]
struct Chosen {
    options: Options,
    cases: Vec<Case>,
}

impl Measurement for Chosen {
    const NAME: &'static str = "serve";
    const USAGE: &'static str = USAGE;

    type Findings = Report;

    fn parse(arguments: &[&str]) -> std::result::Result<Self, String> {
        let options = Options::parse(arguments)?;
        let cases = cases(&options)?;
        Ok(Self { options, cases })
    }

    fn order(&self) -> &Order {
        &self.options.order
    }

    fn case_names(&self) -> Vec<&str> {
        self.cases.iter().map(|case| case.name.as_str()).collect()
    }

    fn measure(self, root: &Path, command_line: &str) -> Result<Report> {
        measure(root, &self.options, self.cases, command_line)
    }
}

/// The cases that are asked for, by name or as a list.
fn cases(options: &Options) -> std::result::Result<Vec<Case>, String> {
    if options.cases.is_empty() {
        return Ok(if options.full {
            case::full()
        } else {
            case::usual()
        });
    }
    let all = case::full();
    let find = |name: &String| {
        let found = all.iter().find(|case| case.name == *name).cloned();
        found.ok_or_else(|| format!("no case is called \"{name}\"; --full --list names all"))
    };
    options.cases.iter().map(find).collect()
}

/// The files are written after every case, so that an interrupted run has told what it found.
fn measure(root: &Path, options: &Options, cases: Vec<Case>, command_line: &str) -> Result<Report> {
    let programs = find_programs(root, options)?;
    let lab = Lab::open()?;
    let mut report = Report {
        command_line: command_line.to_owned(),
        machine: Machine::describe(root, &lab, versions(root, &programs)),
        softirq_account: lab.softirq_account,
        seconds: options.order.seconds,
        cases: Vec::new(),
        idle: Vec::new(),
    };
    report
        .machine
        .lines()
        .iter()
        .for_each(|line| println!("{line}"));
    let count = cases.len();
    let idle_case = cases.first().cloned();
    for (index, case) in cases.into_iter().enumerate() {
        eprintln!("{} ({} of {count})", case.name, index + 1);
        report
            .cases
            .push(measure_case(&lab, &programs, options, case));
        write_files(&options.order, &report)?;
    }
    if let Some(case) = idle_case.filter(|_| !options.order.timed_only) {
        eprintln!("idle connections");
        report.idle = measure_idle(&lab, &programs, &case);
        write_files(&options.order, &report)?;
    }
    Ok(report)
}

fn measure_case(lab: &Lab, programs: &Programs, options: &Options, case: Case) -> CaseResult {
    let mut result = CaseResult {
        case,
        blocks: Vec::new(),
        costs: Vec::new(),
        failure: None,
    };
    if let Err(failure) = measure_blocks(lab, programs, options, &mut result) {
        eprintln!("  given up: {failure}");
        result.failure = Some(failure.to_string());
    } else if !options.order.timed_only {
        for subject in result.subjects() {
            let calls = system_calls::measure(lab, programs, &result.case, subject);
            let allocations = allocations::measure(lab, programs, &result.case, subject);
            result.costs.push(Costs {
                subject,
                system_calls: calls.map_err(|failure| failure.to_string()),
                allocations: allocations.map_err(|failure| failure.to_string()),
            });
        }
    }
    result
}

/// Each round is a pass over the servers and one back: what drifts slowly meets all alike.
fn measure_blocks(
    lab: &Lab,
    programs: &Programs,
    options: &Options,
    result: &mut CaseResult,
) -> Result<()> {
    let mut subjects = vec![Subject::Nginx, Subject::Millstream];
    if programs.floor.is_some() && result.case.has_floor() {
        subjects.push(Subject::Floor);
    }
    block::fill_time_wait(lab, programs, &result.case)?;
    for pass in 0..2 * options.order.rounds {
        for subject in &subjects {
            let case = &result.case;
            let block = block::measure(lab, programs, case, *subject, pass, options.order.seconds)?;
            result.blocks.push(block);
        }
        subjects.reverse();
    }
    Ok(())
}

fn measure_idle(lab: &Lab, programs: &Programs, case: &Case) -> Vec<IdleResult> {
    let subjects = [Subject::Nginx, Subject::Millstream];
    let results = subjects.map(|subject| IdleResult {
        subject,
        memory: idle_memory::measure(lab, programs, &case.kept_alive(), subject)
            .map_err(|failure| failure.to_string()),
    });
    results.into()
}

/// What was measured, against what, with what.
fn versions(root: &Path, programs: &Programs) -> Vec<(&'static str, String)> {
    let nginx = programs.nginx.display().to_string();
    let wrk = first_line(root, &["wrk", "-v"]);
    vec![
        (
            "baseline",
            first_line(root, &[&nginx, "-v"]).unwrap_or(nginx),
        ),
        ("measured", machine::built(root, &programs.millstream)),
        ("client", wrk.unwrap_or_else(|| "wrk".to_owned())),
    ]
}

fn find_programs(root: &Path, options: &Options) -> Result<Programs> {
    for program in ["wrk", "taskset", "gzip"] {
        if in_path(program).is_none() {
            return Err(Failure(format!(
                "{program} is not here; apt-get install nginx wrk util-linux gzip strace valgrind"
            )));
        }
    }
    let nginx = in_path("nginx")
        .ok_or_else(|| Failure("nginx is not here; apt-get install nginx".to_owned()))?;
    let millstream = match &options.server {
        Some(path) => fs::canonicalize(path).map_err(Failure::during(path.display()))?,
        None => build(root, "millstream")?,
    };
    let floor = if options.floor {
        Some(build(root, "xtask")?)
    } else {
        None
    };
    Ok(Programs {
        nginx,
        millstream,
        floor,
    })
}

#[cfg(test)]
mod tests {
    use super::cases;
    use super::options::Options;

    /// The names of the cases that the command line asks for.
    fn check(arguments: &[&str], expected: Result<&[&str], &str>) {
        let found = cases(&Options::parse(arguments).unwrap());
        let names = found.map(|cases| cases.into_iter().map(|case| case.name).collect::<Vec<_>>());
        let expected = expected.map(|names| names.iter().map(|&name| name.to_owned()).collect());
        assert_eq!(names, expected.map_err(str::to_owned));
    }

    #[test]
    fn cases_are_taken_by_name_in_the_order_of_the_command_line() {
        check(
            &["--case", "gzip-1k", "--case", "close-0-x4096"],
            Ok(&["gzip-1k", "close-0-x4096"]),
        );
        check(
            &["--case", "x"],
            Err("no case is called \"x\"; --full --list names all"),
        );
    }
}
