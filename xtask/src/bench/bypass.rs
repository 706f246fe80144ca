//! The network stack of our own: nginx and Millstream on kernel sockets, Millstream over AF_XDP and over memif, and raw
//! frames over AF_XDP, in turn, on one machine, one core a side.
//!
//! Read on in this order: `cell` is what is asked, `subject` who is asked and by which way, `topology` what lies between,
//! `server` and `client` the processes, `raw` the floor below all of them, `block` one timed measurement, `results` what
//! follows, `report` what is told. Whatever is started and made here ends with this process: see `bench/caretaker.rs`.

/// One timed block.
mod block;
/// What is asked.
mod cell;
/// The clients.
mod client;
/// A server that gets a share of its CPU only.
mod confinement;
/// What raw frames stand for.
mod exchange;
/// The results for programs.
mod json;
/// The command line.
mod options;
/// Far more requests than a server can answer.
mod overload;
/// Raw frames over AF_XDP.
pub(super) mod raw;
/// What raw frames have found.
mod raw_figures;
/// The results for people.
mod report;
/// What was measured.
mod results;
/// The servers.
mod server;
/// Where and with what blocks are measured.
mod setting;
/// Who is measured.
mod subject;
/// Two namespaces and a veth pair.
mod topology;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use super::failure::{Failure, Result};
use super::lab::Lab;
use super::machine::{self, Machine, first_line};
use super::measurement::{self, Measurement, write_files};
use super::order::Order;
use super::programs::{build, in_path};
use super::told::wrk;
use cell::{Cell, Pace};
use client::Client;
use options::{Options, USAGE};
use report::Report;
use results::{CellResult, Trial};
use setting::{Programs, Setting};
use subject::{Kind, Subject, Way};
use topology::Topology;

/// Measures what the options ask for.
pub(super) fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    measurement::run::<Chosen>(root, arguments)
}

/// The options with the cells that they name.
#[derive(Debug)]
struct Chosen {
    options: Options,
    cells: Vec<Cell>,
}

impl Measurement for Chosen {
    const NAME: &'static str = "bypass";
    const USAGE: &'static str = USAGE;

    type Findings = Report;

    fn parse(arguments: &[&str]) -> std::result::Result<Self, String> {
        let options = Options::parse(arguments)?;
        let cells = cells(&options)?;
        Ok(Self { options, cells })
    }

    fn order(&self) -> &Order {
        &self.options.order
    }

    fn case_names(&self) -> Vec<&str> {
        self.cells.iter().map(|cell| cell.name.as_str()).collect()
    }

    fn measure(self, root: &Path, command_line: &str) -> Result<Report> {
        measure(root, &self.options, self.cells, command_line)
    }
}

/// The cells that are asked for, by name or as a list.
fn cells(options: &Options) -> std::result::Result<Vec<Cell>, String> {
    if options.only.is_empty() {
        return Ok(if options.full {
            cell::full()
        } else {
            cell::usual()
        });
    }
    let all = cell::full();
    let find = |name: &String| {
        let found = all.iter().find(|cell| cell.name == *name).cloned();
        found.ok_or_else(|| format!("no cell is called \"{name}\"; --full --list names all"))
    };
    options.only.iter().map(find).collect()
}

/// The files are written after every cell, so that an interrupted run has told what it found.
fn measure(root: &Path, options: &Options, cells: Vec<Cell>, command_line: &str) -> Result<Report> {
    let programs = find_programs(root, options)?;
    let lab = Lab::open()?;
    let topology = Topology::lay(&lab)?;
    let setting = Setting {
        lab: &lab,
        topology: &topology,
        programs: &programs,
        seconds: options.order.seconds.unwrap_or(1),
    };
    let script = setting.wrk_script();
    fs::write(&script, wrk::SCRIPT).map_err(Failure::during(script.display()))?;
    let mut report = Report {
        command_line: command_line.to_owned(),
        machine: Machine {
            between: "a veth pair of one queue, or memif,",
            ..Machine::describe(root, &lab, versions(root, &programs))
        },
        seconds: setting.seconds,
        left_out: Vec::new(),
        shortfalls: Vec::new(),
        cells: Vec::new(),
    };
    let machine = report.machine.lines();
    machine.iter().for_each(|line| println!("{line}"));
    let kinds = try_out(setting, &mut report);
    let count = cells.len();
    for (index, cell) in cells.into_iter().enumerate() {
        eprintln!("{} ({} of {count})", cell.name, index + 1);
        topology.set_mtu(cell.mtu)?;
        let cell = fitted(cell, &mut report);
        let result = measure_cell(setting, options, &kinds, cell);
        report.cells.push(result);
        write_files(&options.order, &report)?;
    }
    Ok(report)
}

/// The cell with as many connections as there is memory for; that they are fewer is said.
fn fitted(mut cell: Cell, report: &mut Report) -> Cell {
    let room = available_bytes().map(|bytes| bytes / CONNECTION_BYTES);
    let room = room.and_then(|room| u32::try_from(room).ok());
    if let Some(room) = room.filter(|room| cell.is_held() && *room < cell.concurrency) {
        let (name, asked) = (&cell.name, cell.concurrency);
        let note = format!("{name}: {room} connections instead of {asked}, for want of memory");
        eprintln!("  {note}");
        report.shortfalls.push(note);
        cell.concurrency = room.max(1);
    }
    cell
}

/// Memory that both sides may need for a connection, their tables while these grow included.
const CONNECTION_BYTES: u64 = 4096;

/// What programs can have without swapping (proc_meminfo(5)).
fn available_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// Which servers and ways there are. Those that do not even answer once are left out of all cells, loudly.
fn try_out(setting: Setting<'_>, report: &mut Report) -> Vec<Kind> {
    let first = cell::usual().swap_remove(0);
    let all = [Kind::Nginx, Kind::Kernel, Kind::Xdp, Kind::Memif, Kind::Raw];
    let mut kinds = Vec::new();
    for kind in all {
        let server = server::Server::start(setting, &first, kind);
        let tried = server.and_then(|server| {
            if kind == Kind::Xdp {
                client::ask_once(setting, &first, &server, Client::LoadXdp)?;
            }
            server.stop()
        });
        match tried {
            Ok(()) => kinds.push(kind),
            Err(failure) => {
                let name = kind.name();
                eprintln!("LEFT OUT: {name} is not there yet: {failure}");
                report.left_out.push((kind, failure.to_string()));
            }
        }
    }
    kinds
}

/// Each round is a pass over the subjects and one back: what drifts slowly meets all alike. A subject that fails is given
/// up for this cell, the others go on.
fn measure_cell(setting: Setting<'_>, options: &Options, kinds: &[Kind], cell: Cell) -> CellResult {
    let mut result = CellResult::new(cell);
    let asked = match asked(setting, &result.cell) {
        Ok(asked) => asked,
        Err(failure) => {
            give_up(&mut result, subject::NGINX, &failure);
            return result;
        }
    };
    let mut subjects = Vec::new();
    let is_asked = |subject: &Subject| subject.is_there(kinds) && subject.takes(&result.cell);
    let all: Vec<Subject> = Subject::ALL.into_iter().filter(is_asked).collect();
    for subject in all {
        match choose_client(setting, &asked, subject) {
            Ok(trial) => {
                result.clients.push(trial);
                subjects.push(subject);
            }
            Err(failure) => give_up(&mut result, subject, &failure),
        }
    }
    for pass in 0..passes(options, &result.cell) {
        subjects.retain(|subject| {
            let client = result.client(*subject).unwrap_or(Client::Wrk);
            let measured = if asked.pace == Pace::Overload {
                overload::measure(setting, &asked, *subject, client)
                    .map(|overload| result.overloads.push(overload))
            } else {
                block::measure(setting, &asked, *subject, client, pass)
                    .map(|block| result.blocks.push(block))
            };
            match measured {
                Ok(()) => true,
                Err(failure) => {
                    give_up(&mut result, *subject, &failure);
                    false
                }
            }
        });
        subjects.reverse();
    }
    result
}

/// There and back for each round; for percentiles no fewer than make a median of them worth something.
fn passes(options: &Options, cell: &Cell) -> u32 {
    let passes = 2 * options.order.rounds.unwrap_or(2);
    match cell.pace {
        Pace::Closed => passes,
        // Each takes a minute, and its memory hardly differs.
        Pace::PerSecond(_) if cell.is_held() => 1,
        Pace::PerSecond(_) | Pace::HalfOfNginx => passes.max(PACED_PASSES_MIN),
        Pace::Overload => options.order.rounds.unwrap_or(2),
    }
}

const PACED_PASSES_MIN: u32 = 8;

/// The cell at a pace that is known.
fn asked(setting: Setting<'_>, cell: &Cell) -> Result<Cell> {
    if cell.pace != Pace::HalfOfNginx {
        return Ok(cell.clone());
    }
    let closed = cell.at(Pace::Closed);
    let rate = block::rate(setting, &closed, subject::NGINX, Client::Wrk)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "requests a second are positive, and fewer than four billion"
    )]
    Ok(cell.at(Pace::PerSecond((rate / 2.0) as u32)))
}

fn give_up(result: &mut CellResult, subject: Subject, failure: &Failure) {
    eprintln!("  {} given up: {failure}", subject.name());
    result.failures.push((subject, failure.to_string()));
}

/// Where several clients could ask, each is tried for a block, and the one that brings most out of the server asks.
fn choose_client(setting: Setting<'_>, cell: &Cell, subject: Subject) -> Result<Trial> {
    let rates = match subject.way {
        Way::Xdp => vec![(Client::LoadXdp, f64::NAN)],
        Way::Memif => vec![(Client::LoadMemif, f64::NAN)],
        Way::Raw => vec![(Client::Raw, f64::NAN)],
        Way::Kernel => {
            let clients = Client::from_kernel(cell);
            if let [only] = clients {
                return Ok(Trial {
                    subject,
                    rates: vec![(*only, f64::NAN)],
                });
            }
            let tried = clients.iter().map(|client| {
                let rate = block::rate(setting, cell, subject, *client)?;
                Ok((*client, rate))
            });
            let mut rates = tried.collect::<Result<Vec<_>>>()?;
            rates.sort_by(|(_, one), (_, other)| other.total_cmp(one));
            rates
        }
    };
    Ok(Trial { subject, rates })
}

/// What was measured, against what, with what.
fn versions(root: &Path, programs: &Programs) -> Vec<(&'static str, String)> {
    let nginx = programs.nginx.display().to_string();
    let wrk = programs.wrk.display().to_string();
    vec![
        (
            "baseline",
            first_line(root, &[&nginx, "-v"]).unwrap_or(nginx),
        ),
        ("measured", machine::built(root, &programs.millstream)),
        (
            "kernel client",
            first_line(root, &[&wrk, "-v"]).unwrap_or(wrk),
        ),
    ]
}

fn find_programs(root: &Path, options: &Options) -> Result<Programs> {
    let find = |program: &str| {
        in_path(program).ok_or_else(|| {
            Failure(format!(
                "{program} is not here; apt-get install nginx wrk util-linux iproute2"
            ))
        })
    };
    find("taskset")?;
    find("ip")?;
    Ok(Programs {
        nginx: find("nginx")?,
        wrk: find("wrk")?,
        millstream: match &options.server {
            Some(path) => fs::canonicalize(path).map_err(Failure::during(path.display()))?,
            None => build(root, "millstream")?,
        },
        xtask: build(root, "xtask")?,
    })
}

#[cfg(test)]
mod tests {
    use super::cells;
    use super::options::Options;

    /// The names of the cells that the command line asks for.
    fn check(arguments: &[&str], expected: Result<&[&str], &str>) {
        let found = cells(&Options::parse(arguments).unwrap());
        let names = found.map(|cells| cells.into_iter().map(|cell| cell.name).collect::<Vec<_>>());
        let expected = expected.map(|names| names.iter().map(|&name| name.to_owned()).collect());
        assert_eq!(names, expected.map_err(str::to_owned));
    }

    #[test]
    fn cells_are_taken_by_name_in_the_order_of_the_command_line() {
        check(
            &["--only", "ka-10M-4", "--only", "req14-600B-64"],
            Ok(&["ka-10M-4", "req14-600B-64"]),
        );
        check(
            &["--only", "x"],
            Err("no cell is called \"x\"; --full --list names all"),
        );
    }
}
