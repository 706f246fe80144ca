//! The load: N processes of one tool, started together, with their complete output.

use crate::host::{Host, Line};
use crate::interrupt::Interrupt;
use crate::journal::Journal;
use crate::names::Names;
use crate::needs;
use crate::own_stack;
use crate::prepared_testbed::PreparedTestbed;
use crate::process::{Process, Streams};
use crate::remote_shell::GuestTarget;
use crate::shell;
use mill_lab::command::seconds_asked;
use mill_lab::output::{self, Printed};
use mill_lab::recipe::{Load, Tool};
use mill_lab::record::CommandLine;
use mill_sys::clock;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Running clients.
#[derive(Debug)]
pub struct Clients {
    tool: Tool,
    processes: Vec<Running>,
    began: Duration,
    patience: Duration,
}

#[derive(Debug)]
struct Running {
    process: Process,
    out: PathBuf,
    err: PathBuf,
}

/// The result of the load's processes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    pub printed: Printed,
    pub seconds: f64,
}

/// Starts all of them, through the program `wrapper` if there is one. `label` begins the names of the files in
/// `folder`.
pub fn start(
    load: &Load,
    args: &str,
    prepared_testbed: &PreparedTestbed,
    names: &Names,
    (folder, label): (&Path, &str),
    wrapper: &[&str],
    journal: &mut Journal,
) -> Result<Clients, String> {
    let began = clock::monotonic();
    let testbed = &prepared_testbed.testbed;
    let mut processes = Vec::new();
    for index in 0..load.processes.max(1) {
        let host = chosen(&testbed.clients, index).ok_or("there is no client host")?;
        let mut names = names.clone();
        names.set("index", index);
        if let Some(address) = chosen(&testbed.client_addresses, index) {
            names.set("client_host", address);
        }
        let mut line = Line::new(wrapper.iter().copied());
        let stack = names.fill(&load.stack);
        if load.is_run() {
            let words = own_stack::run_words(load.runner.as_deref(), &stack, host)?;
            line.argv.extend(words);
        }
        line.argv.extend(program(load, host)?);
        if load.tool.is_ours() && !stack.is_empty() {
            line.argv.extend([String::from("--stack"), stack]);
        }
        line.argv.extend(shell::words(&names.fill(args))?);
        line.cpus = cpus(load, &testbed.client_cpus, index);
        line.nofile = prepared_testbed.nofile;
        let filled = |(name, value): (&String, &String)| (name.clone(), names.fill(value));
        line.environment = load.environment.iter().map(filled).collect();
        let out = folder.join(format!("{label}-{index}.out"));
        let err = folder.join(format!("{label}-{index}.err"));
        let streams = Streams {
            out: &out,
            err: &err,
        };
        let role = format!("{label} {index}");
        let process = Process::start(host, &line, &role, streams, journal)
            .map_err(|error| format!("{}: {error}", host.text(&line)))?;
        processes.push(Running { process, out, err });
    }
    Ok(Clients {
        tool: load.tool,
        processes,
        began,
        patience: patience(load.tool, load.seconds, &names.fill(args)),
    })
}

impl Clients {
    pub fn pids(&self) -> Vec<u32> {
        self.processes.iter().map(|one| one.process.pid()).collect()
    }

    pub fn commands(&self) -> Vec<CommandLine> {
        self.processes
            .iter()
            .map(|one| one.process.command().clone())
            .collect()
    }

    /// Waits until all have ended, and reads what they printed. None if the run was interrupted.
    pub fn finish(mut self, interrupt: &Interrupt) -> Result<Option<Outcome>, String> {
        let mut parts = Vec::new();
        for one in &mut self.processes {
            let Some(status) = one.process.wait(self.patience, interrupt) else {
                if interrupt.is_asked() {
                    return Ok(None);
                }
                return Err(format!(
                    "{} did not end within {:.0} s",
                    one.process.command().line,
                    self.patience.as_secs_f64()
                ));
            };
            let mut text = std::fs::read_to_string(&one.out)
                .map_err(|error| format!("{}: {error}", one.out.display()))?;
            if matches!(self.tool, Tool::Ab | Tool::MillstreamAb) {
                // `-e /dev/stderr` has the percentiles that the report rounds.
                text += &std::fs::read_to_string(&one.err).unwrap_or_default();
            }
            let printed = output::parse(self.tool, &text)
                .map_err(|error| error.to_string())
                .and_then(|printed| with_rate(self.tool, printed));
            let mut printed = printed.map_err(|problem| explain(&problem, status, &one.err))?;
            if !status.success() {
                let what = one.process.command().role.clone();
                printed.notes.push(explain(&what, status, &one.err));
            }
            parts.push(printed);
        }
        let seconds = (clock::monotonic() - self.began).as_secs_f64();
        Ok(Some(Outcome {
            printed: output::together(&parts),
            seconds,
        }))
    }
}

/// The first requirement of the load that a client's host does not meet.
pub fn unmet(load: &Load, host: Option<&Host>) -> Option<String> {
    let tool = match (&load.binary, load.tool) {
        (Some(binary), _) => Some(binary.as_str()),
        (None, Tool::Wrk | Tool::Wrk2 | Tool::Ab | Tool::H2load | Tool::DpdkHttperf) => {
            Some(load.tool.name())
        }
        _ => None,
    };
    let missing = tool.filter(|name| needs::program(name).is_none());
    missing
        .map(|name| format!("not on this machine: needs {name}"))
        .or_else(|| needs::unmet(&load.needs))
        .or_else(|| own_stack::unmet(&load.stack, host?))
        .or_else(|| match load.is_run() {
            true => own_stack::unmet_runner(load.runner.as_deref(), host?),
            false => None,
        })
}

/// The first words of the command line.
fn program(load: &Load, host: &Host) -> Result<Vec<String>, String> {
    let ours = |dialect: &str| -> Result<Vec<String>, String> {
        Ok(vec![
            millstream(load.binary.as_deref(), host)?,
            String::from(dialect),
        ])
    };
    match load.tool {
        Tool::MillstreamWrk => ours("wrk"),
        Tool::MillstreamWrk2 => ours("wrk2"),
        Tool::MillstreamAb => ours("ab"),
        Tool::MillstreamLoad => {
            let mut words = ours("load")?;
            words.extend(["--json", "-"].map(String::from));
            Ok(words)
        }
        tool => Ok(vec![
            load.binary
                .clone()
                .unwrap_or_else(|| String::from(tool.name())),
        ]),
    }
}

/// This binary, which guests have at the same path; on other machines, the one in their PATH.
pub(crate) fn millstream(given: Option<&str>, host: &Host) -> Result<String, String> {
    match (given, host) {
        (Some(binary), _) => Ok(String::from(binary)),
        (None, Host::Remote(target)) if GuestTarget::of(target).is_none() => {
            Ok(String::from("millstream"))
        }
        (None, _) => {
            let path = std::env::current_exe()
                .map_err(|error| format!("this program's own path: {error}"))?;
            Ok(path.display().to_string())
        }
    }
}

fn chosen<T>(all: &[T], index: u32) -> Option<&T> {
    let index = usize::try_from(index).ok()?;
    all.get(index % all.len().max(1))
}

/// One process may use all of the client's CPUs; several get one each, in turn.
fn cpus(load: &Load, cpus: &[u32], index: u32) -> Option<String> {
    if cpus.is_empty() {
        return None;
    }
    if load.processes <= 1 {
        return Some(crate::names::cpu_list(cpus));
    }
    let index = usize::try_from(index).unwrap_or(0);
    cpus.get(index % cpus.len()).map(u32::to_string)
}

/// Three times the expected time and a minute: slow machines finish, and a hung tool does not stop a long sweep.
fn patience(tool: Tool, seconds: Option<f64>, args: &str) -> Duration {
    let seconds = seconds_asked(tool.name(), args).or(seconds);
    let seconds = seconds.unwrap_or(10.0).clamp(0.0, 86_400.0);
    Duration::from_secs_f64(seconds * 3.0 + 60.0)
}

/// A tool that gave up printed something, but no rate: nothing was measured, and the sum over several processes would
/// lack it.
fn with_rate(tool: Tool, printed: Printed) -> Result<Printed, String> {
    let name = tool.name();
    let is_above_zero = |metric: &str| {
        printed
            .figures
            .get(metric)
            .is_some_and(|figure| *figure > 0.0)
    };
    if printed.figures.contains_key("requests_per_s") {
        // Large responses are counted as throughput too.
        return if ["requests_per_s", "transfer_bytes_per_s"]
            .into_iter()
            .any(is_above_zero)
        {
            Ok(printed)
        } else {
            Err(format!("{name} got no answer at all within its time"))
        };
    }
    Err(match printed.notes.first() {
        Some(note) => format!("{name} printed no rate: {note}"),
        None => format!("{name} printed no rate"),
    })
}

fn explain(error: &str, status: std::process::ExitStatus, err: &Path) -> String {
    let said = std::fs::read_to_string(err).unwrap_or_default();
    let last = said.lines().rev().find(|line| !line.trim().is_empty());
    if status.success() {
        // The last line of a tool that succeeded is no reason for a failure.
        return String::from(error);
    }
    match last {
        Some(line) => format!("{error}; it ended with {status} and said: {}", line.trim()),
        None => format!("{error}; it ended with {status} and said nothing"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_load_gets_more_than_its_time() {
        let check = |tool, args: &str, seconds, expected| {
            assert_eq!(patience(tool, seconds, args).as_secs(), expected, "{args}");
        };
        check(Tool::Wrk, "-c 10 -d 600s http://x/", None, 1860);
        check(Tool::Ab, "-t 600 http://x/", None, 1860);
        check(Tool::MillstreamWrk, "-d10m http://x/", Some(5.0), 1860);
        check(Tool::MillstreamLoad, "--duration=600 http://x/", None, 1860);
        check(Tool::Ab, "-n 1000 http://x/", Some(20.0), 120);
        check(Tool::Ab, "-n 1000 http://x/", None, 90);
    }

    #[test]
    fn a_client_that_gave_up_measured_nothing() {
        let gave_up = "Benchmarking 10.0.0.1 (be patient)\nTotal of 101 requests completed\n";
        let printed = output::parse(Tool::Ab, gave_up).unwrap();
        let problem = with_rate(Tool::Ab, printed).unwrap_err();
        assert!(
            problem.starts_with("ab printed no rate: ab gave up after 101 requests"),
            "{problem}"
        );
        let mut rated = Printed::default();
        rated.figures.insert(String::from("requests_per_s"), 1.0);
        assert!(with_rate(Tool::Ab, rated.clone()).is_ok());
        rated.figures.insert(String::from("requests_per_s"), 0.0);
        assert!(with_rate(Tool::Ab, rated.clone()).is_err());
        rated
            .figures
            .insert(String::from("transfer_bytes_per_s"), 1e6);
        assert!(with_rate(Tool::Ab, rated).is_ok());
    }
}
