//! The cost of Millstream's own stack: two hosts in one process, joined in memory, without a device between them.

/// Two devices joined back to back.
mod cable;
/// Two hosts on one cable.
mod pair;
/// Bytes to send.
mod pattern;

/// Segments of an endless transfer.
mod bulk;
/// Whole connections.
mod connections;
/// Idle connections.
mod idle;

use std::path::Path;
use std::process::{Command, ExitCode};

use super::count::count;
use crate::EXIT_USAGE;
use mill_lab::desk::sheet::{row, sheet};

const USAGE: &str = "\
Usage: cargo xtask bench stack [--rounds N] [--only bulk | connections | idle]

Prints what a segment, an acknowledgement and a whole connection cost on one core in the TCP/IP stack, and what
an idle connection holds in memory; the best and the median of N rounds (5 if not said). Nothing leaves the
process: two hosts are joined in memory. \"offload\" leaves checksums to the device, as TAP and memif do;
without it the stack makes and verifies them.
";

/// Segments per round, and connections.
const SEGMENTS: u64 = 400_000;
const CONNECTIONS: u64 = 50_000;
const IDLE: u64 = 200_000;

pub(crate) fn run(root: &Path, options: &[&str]) -> ExitCode {
    let wish = match Wish::parse(options) {
        Ok(Some(wish)) => wish,
        Ok(None) => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(message) => {
            eprintln!("xtask bench stack: {message}\n\n{USAGE}");
            return ExitCode::from(EXIT_USAGE);
        }
    };
    if cfg!(debug_assertions) {
        return run_optimised(root, options);
    }
    match measure(&wish) {
        Ok(table) => {
            print!("{table}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("xtask bench stack: {message}");
            ExitCode::FAILURE
        }
    }
}

/// What is measured.
struct Wish {
    rounds: u32,
    only: Option<Part>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Bulk,
    Connections,
    Idle,
}

impl Wish {
    /// `None` prints the help.
    fn parse(options: &[&str]) -> Result<Option<Self>, String> {
        let mut wish = Self {
            rounds: 5,
            only: None,
        };
        let mut options = options.iter();
        while let Some(option) = options.next() {
            let mut value = || {
                let value = options.next();
                value.ok_or_else(|| format!("{option} wants a value"))
            };
            match *option {
                "--help" | "-h" => return Ok(None),
                "--rounds" => wish.rounds = count(option, value()?)?,
                "--only" => {
                    wish.only = Some(match *value()? {
                        "bulk" => Part::Bulk,
                        "connections" => Part::Connections,
                        "idle" => Part::Idle,
                        other => return Err(format!("nothing is called \"{other}\"")),
                    });
                }
                _ => return Err(format!("no option is called \"{option}\"")),
            }
        }
        Ok(Some(wish))
    }

    fn has(&self, part: Part) -> bool {
        self.only.is_none_or(|only| only == part)
    }
}

/// The stack is compiled into this program, so the release build must be measured.
fn run_optimised(root: &Path, options: &[&str]) -> ExitCode {
    let status = Command::new("cargo")
        .args(["run", "--quiet", "--release", "--package", "xtask", "--"])
        .args(["bench", "stack"])
        .args(options)
        .current_dir(root)
        .status();
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask bench stack: cargo can't be started: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A figure of every round.
struct Row {
    name: String,
    target: &'static str,
    values: Vec<f64>,
}

fn measure(wish: &Wish) -> Result<String, String> {
    let mut rows = Rows(Vec::new());
    for _ in 0..wish.rounds {
        for (offload, how) in [(true, "offload"), (false, "checksums")] {
            let mut note = |what: &str, target, value| rows.note(what, how, target, value);
            if wish.has(Part::Bulk) {
                let bulk = bulk::run(SEGMENTS, offload)?;
                note("data segment sent", "100 ns", bulk.send_ns);
                note("data segment received", "100 ns", bulk.receive_ns);
                note("acknowledgement sent", "", bulk.acknowledge_ns);
                note("acknowledgement received", "", bulk.acknowledged_ns);
                let segments = bulk.segments as f64 / bulk.acks.max(1) as f64;
                note("segments an acknowledgement", "", segments);
            }
            if wish.has(Part::Connections) {
                let whole = connections::run(CONNECTIONS, offload)?;
                note("connection, server", "1500 ns", whole.server_ns);
                note("connection, client", "", whole.client_ns);
                let (there, back) = (whole.frames_to_server, whole.frames_to_client);
                note("frames of a connection to the server", "3", there);
                note("frames of a connection to the client", "3", back);
            }
        }
    }
    if wish.has(Part::Idle) {
        let idle = idle::run(IDLE)?;
        let how = format!("{} of them", idle.count);
        rows.note("bytes of an idle connection", &how, "1024", idle.bytes);
    }
    Ok(table(rows.0))
}

struct Rows(Vec<Row>);

impl Rows {
    /// Enters one round's figure.
    fn note(&mut self, what: &str, how: &str, target: &'static str, value: f64) {
        let name = format!("{what}, {how}");
        match self.0.iter_mut().find(|row| row.name == name) {
            Some(row) => row.values.push(value),
            None => self.0.push(Row {
                name,
                target,
                values: vec![value],
            }),
        }
    }
}

fn table(rows: Vec<Row>) -> String {
    let head = row(["what", "best", "median", "target"]);
    let rows = rows.into_iter().map(|mut one| {
        one.values.sort_by(f64::total_cmp);
        let median = one.values[one.values.len() / 2];
        let [best, median] = [one.values[0], median].map(|value| format!("{value:.1}"));
        row([&one.name, &best, &median, one.target])
    });
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    sheet(&rows, &[1, 2, 3])
}
