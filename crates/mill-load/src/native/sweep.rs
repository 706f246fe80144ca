//! Processes times connections: the sweep and the table of dpdk-httpperf's measurements.

use crate::dialect::wrk::units;
use crate::native::merge::{Hosts, merge};
use crate::native::part::{PartError, conduct};
use crate::native::results::Results;
use crate::platform::{Launcher, Machine, ThreadCpu};
use core::time::Duration;
use std::io::{self, Write};
use thiserror::Error;

/// The varied parameters. Cells with fewer connections than processes are omitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    pub processes: Vec<u32>,
    /// All processes of a cell together.
    pub connections: Vec<u32>,
}

/// One run of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    pub processes: u32,
    pub connections: u32,
}

/// Why a text is no sweep.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{0}: no sweep; write for instance \"processes=1,2,4 connections=1..128\" (1..128 doubles)"
)]
pub struct SweepError(String);

impl Sweep {
    /// Parses `processes=1,2,4 connections=1,2,4..128`; a missing one is 1. `4..128` doubles from 4 to 128.
    pub fn parse(text: &str) -> Result<Self, SweepError> {
        let refuse = |word: &str| SweepError(String::from(word));
        let (mut processes, mut connections) = (None, None);
        for word in text.split_whitespace() {
            let (name, values) = word.split_once('=').ok_or_else(|| refuse(word))?;
            let place = match name {
                "processes" => &mut processes,
                "connections" => &mut connections,
                _ => return Err(refuse(word)),
            };
            let values = list(values).ok_or_else(|| refuse(word))?;
            if place.replace(values).is_some() {
                return Err(refuse(word));
            }
        }
        if processes.is_none() && connections.is_none() {
            return Err(refuse(text));
        }
        Ok(Self {
            processes: processes.unwrap_or_else(|| vec![1]),
            connections: connections.unwrap_or_else(|| vec![1]),
        })
    }

    /// The runs in the order of the table: processes growing, connections falling.
    pub fn cells(&self) -> Vec<Cell> {
        let mut processes = self.processes.clone();
        processes.sort_unstable();
        processes.dedup();
        let mut connections = self.connections.clone();
        connections.sort_unstable_by(|one, other| other.cmp(one));
        connections.dedup();
        let cells = processes.iter().flat_map(|&processes| {
            let cell = move |&connections: &u32| Cell {
                processes,
                connections,
            };
            connections.iter().map(cell)
        });
        cells
            .filter(|cell| cell.connections >= cell.processes)
            .collect()
    }
}

/// Runs every cell, each in its number of processes, and writes its line when it has ended. `arguments` are the command
/// line of a cell; an interrupt ends the sweep after the line of the current cell.
pub fn sweep(
    launcher: &dyn Launcher,
    cells: &[Cell],
    arguments: &dyn Fn(Cell) -> Vec<Vec<u8>>,
    out: &mut dyn Write,
) -> Result<(), PartError> {
    let written = |done: io::Result<()>| done.map_err(|error| PartError(error.to_string()));
    written(emit_head(out))?;
    for cell in cells {
        let own = arguments(*cell);
        let parts = conduct(launcher, &own, cell.processes, &mut |_, _| {})?;
        written(emit_row(*cell, &parts, out).and_then(|()| out.flush()))?;
        if parts.iter().any(|part| part.interrupted) {
            break;
        }
    }
    Ok(())
}

/// Writes the head of the table. Columns are separated by tabs, so that a line can be pasted into a spreadsheet.
pub fn emit_head(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", COLUMNS.join("\t"))
}

/// Writes the line of a cell with its processes' results. Rates are those of one process, latencies those of all
/// together, in wrk's units.
pub fn emit_row(cell: Cell, parts: &[Results], out: &mut dyn Write) -> io::Result<()> {
    let rates: Vec<f64> = parts.iter().flat_map(rates).collect();
    let mean = rates.iter().sum::<f64>() / (rates.len().max(1) as f64);
    let highest = rates.iter().copied().fold(0.0, f64::max);
    let sum = merge(parts, Hosts::Same);
    let latency = |percent| {
        let found = sum.as_ref().map(|sum| match percent {
            Some(percent) => sum.measures.latency.percentile(percent),
            None => sum.measures.latency.max(),
        });
        time(found.unwrap_or_default())
    };
    let (client, server) = match &sum {
        Some(sum) => (
            client_cpu(&sum.machine.threads),
            server_cpu(&sum.machine, sum.measured),
        ),
        None => (None, None),
    };
    let columns = [
        cell.processes.to_string(),
        cell.connections.to_string(),
        units::metric(mean),
        units::metric(highest),
        latency(Some(50.0)),
        latency(Some(75.0)),
        latency(Some(90.0)),
        latency(Some(99.0)),
        latency(None),
        client.unwrap_or_else(|| String::from("-")),
        server.unwrap_or_else(|| String::from("-")),
    ];
    writeln!(out, "{}", columns.join("\t"))
}

/// Answers per second in each period of a process; the last one, cut short by the end, would only be noise.
fn rates(part: &Results) -> impl Iterator<Item = f64> + '_ {
    let whole = part
        .periods
        .first()
        .map_or(Duration::ZERO, |first| first.end - first.begin);
    let is_whole = move |length: Duration| length.as_secs_f64() >= whole.as_secs_f64() * 0.9;
    part.periods.iter().filter_map(move |period| {
        let length = period.end.saturating_sub(period.begin);
        let seconds = length.as_secs_f64();
        (seconds > 0.0 && is_whole(length)).then(|| period.answered as f64 / seconds)
    })
}

/// As wrk prints it, but whole microseconds: it measures no finer.
fn time(duration: Duration) -> String {
    let micros = (duration.as_secs_f64() * 1e6).round();
    let text = units::time_us(micros);
    match text.strip_suffix(".00us") {
        Some(whole) => format!("{whole}us"),
        None => text,
    }
}

/// User and system time as shares of a CPU, of the average thread: `92+7`.
fn client_cpu(threads: &[ThreadCpu]) -> Option<String> {
    let mut sum = ThreadCpu::default();
    for thread in threads {
        sum.user += thread.user;
        sum.system += thread.system;
        sum.wall += thread.wall;
    }
    usr_and_sys(sum.user, sum.system, sum.wall)
}

/// The same of the whole server: beyond 100 if it has several threads.
fn server_cpu(machine: &Machine, measured: Duration) -> Option<String> {
    let server = machine.server.as_ref()?;
    usr_and_sys(server.user, server.system, measured)
}

fn usr_and_sys(user: Duration, system: Duration, wall: Duration) -> Option<String> {
    let percent = |time: Duration| time.as_secs_f64() / wall.as_secs_f64() * 100.0;
    (!wall.is_zero()).then(|| format!("{:.0}+{:.0}", percent(user), percent(system)))
}

/// `1,2,4..128`
fn list(text: &str) -> Option<Vec<u32>> {
    let mut values = Vec::new();
    let number = |text: &str| text.parse().ok().filter(|value: &u32| *value > 0);
    for piece in text.split(',') {
        let Some((from, to)) = piece.split_once("..") else {
            values.push(number(piece)?);
            continue;
        };
        let (from, to) = (number(from)?, number(to)?);
        if from > to {
            return None;
        }
        let doublings = core::iter::successors(Some(from), |value| value.checked_mul(2));
        values.extend(doublings.take_while(|value| *value <= to));
    }
    Some(values)
}

/// The columns of the table.
const COLUMNS: [&str; 11] = [
    "PROC", "CONN", "RPSavg", "RPSmax", "LAT50", "LAT75", "LAT90", "LAT99", "LATmax", "CPUc",
    "CPUs",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::merge::tests::part;
    use crate::native::part::answering::Answering;
    use crate::platform::ServerCpu;

    #[test]
    fn the_cells_are_those_of_the_table() {
        let check = |text: &str, expected: &[(u32, u32)]| {
            let cells: Vec<(u32, u32)> = Sweep::parse(text)
                .unwrap()
                .cells()
                .iter()
                .map(|cell| (cell.processes, cell.connections))
                .collect();
            assert_eq!(cells, expected, "{text}");
        };
        check(
            "connections=1,2,4..16",
            &[(1, 16), (1, 8), (1, 4), (1, 2), (1, 1)],
        );
        check(
            "processes=4,1 connections=1..8",
            &[(1, 8), (1, 4), (1, 2), (1, 1), (4, 8), (4, 4)],
        );
        check(
            "processes=2 connections=3..20,7",
            &[(2, 12), (2, 7), (2, 6), (2, 3)],
        );
        let whole = Sweep::parse("processes=1,2,4,6,8 connections=1,2,4..128").unwrap();
        assert_eq!(whole.cells().len(), 8 + 7 + 6 + 5 + 5);
    }

    #[test]
    fn malformed_sweeps_are_errors_with_their_reason() {
        for text in [
            "",
            "processes",
            "processes=",
            "threads=1",
            "connections=0",
            "connections=8..2",
            "processes=1 processes=2",
            "connections=1,,2",
        ] {
            let error = Sweep::parse(text).unwrap_err();
            assert!(error.to_string().contains("no sweep; write"), "{text}");
        }
    }

    #[test]
    fn every_cell_is_run_in_its_processes_until_an_interrupt() {
        let run = |interrupted_in| {
            let launcher = Answering::new(interrupted_in);
            let cells = Sweep::parse("processes=1,2 connections=2,4")
                .unwrap()
                .cells();
            let arguments =
                |cell: Cell| vec![b"-c".to_vec(), cell.connections.to_string().into_bytes()];
            let mut out = Vec::new();
            sweep(&launcher, &cells, &arguments, &mut out).unwrap();
            let lines = String::from_utf8(out).unwrap();
            (launcher.started(), lines.lines().count())
        };
        let all = [
            "--part 1/1 -c 4",
            "--part 1/1 -c 2",
            "--part 1/2 -c 4",
            "--part 2/2 -c 4",
            "--part 1/2 -c 2",
            "--part 2/2 -c 2",
        ];
        assert_eq!(run(usize::MAX), (all.map(String::from).to_vec(), 5));
        assert_eq!(
            run(1),
            (all[..2].iter().map(ToString::to_string).collect(), 3)
        );
    }

    #[test]
    fn a_row_has_the_units_of_wrk() {
        let mut one = part(&[Duration::from_micros(521); 1000]);
        for period in &mut one.periods {
            period.answered = 111_420;
        }
        let mut other = part(&[Duration::from_micros(890); 1000]);
        other.periods[0].answered = 113_750;
        other.periods[1].answered = 113_750;
        let thread = ThreadCpu {
            user: Duration::from_millis(1840),
            system: Duration::from_millis(140),
            wall: Duration::from_secs(2),
            involuntary_switches: 0,
        };
        for part in [&mut one, &mut other] {
            part.machine.threads = vec![thread];
            part.machine.server = Some(ServerCpu {
                user: Duration::from_secs(2),
                system: Duration::ZERO,
                ..ServerCpu::default()
            });
        }
        let mut out = Vec::new();
        emit_head(&mut out).unwrap();
        let cell = Cell {
            processes: 2,
            connections: 128,
        };
        emit_row(cell, &[one, other], &mut out).unwrap();
        emit_row(cell, &[part(&[])], &mut out).unwrap();
        let expected = "
PROC\tCONN\tRPSavg\tRPSmax\tLAT50\tLAT75\tLAT90\tLAT99\tLATmax\tCPUc\tCPUs
2\t128\t112.58k\t113.75k\t521us\t0.89ms\t0.89ms\t0.89ms\t0.89ms\t92+7\t100+0
2\t128\t0.00\t0.00\t0us\t0us\t0us\t0us\t0us\t-\t-
";
        assert_eq!(String::from_utf8(out).unwrap(), expected[1..]);
    }
}
