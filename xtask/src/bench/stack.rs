//! What our own stack costs: two hosts in one process, joined in memory, no device between them.

/// Two devices joined back to back.
mod cable;
/// Two hosts on one cable.
mod pair;
/// Bytes to send.
mod pattern;

/// Segments of a transfer without end.
mod bulk;
/// Whole connections.
mod connections;
/// Connections that idle.
mod idle;

use std::path::Path;
use std::process::{Command, ExitCode};

use super::count::count;
use super::table::Table;
use crate::EXIT_USAGE;

const USAGE: &str = "\
Usage: cargo xtask bench stack [--rounds N]

Prints what a segment, an acknowledgement and a whole connection cost on one core in the TCP/IP stack, and what
an idle connection holds in memory; the best and the median of N rounds (5 if not said). Nothing leaves the
process: two hosts are joined in memory. \"offload\" leaves checksums to the device, as TAP and memif do;
without it the stack makes and verifies them.
";

/// Segments a round, and connections.
const SEGMENTS: u64 = 400_000;
const CONNECTIONS: u64 = 50_000;
const IDLE: u64 = 200_000;

pub(crate) fn run(root: &Path, options: &[&str]) -> ExitCode {
    let rounds = match options {
        [] => 5,
        ["--help" | "-h"] => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        ["--rounds", number] => match count("--rounds", number) {
            Ok(rounds) => rounds,
            Err(message) => return refuse(&message),
        },
        [option, ..] => return refuse(&format!("cannot make sense of \"{option}\"")),
    };
    if cfg!(debug_assertions) {
        return run_optimised(root, options);
    }
    match measure(rounds) {
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

fn refuse(message: &str) -> ExitCode {
    eprintln!("xtask bench stack: {message}\n\n{USAGE}");
    ExitCode::from(EXIT_USAGE)
}

/// The stack is compiled into this program: what is to be measured is its release build.
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

fn measure(rounds: u32) -> Result<String, String> {
    let mut rows: Vec<Row> = Vec::new();
    let mut note = |name: String, target: &'static str, value: f64| match rows
        .iter_mut()
        .find(|row| row.name == name)
    {
        Some(row) => row.values.push(value),
        None => rows.push(Row {
            name,
            target,
            values: vec![value],
        }),
    };
    for _ in 0..rounds {
        for (offload, how) in [(true, "offload"), (false, "checksums")] {
            let bulk = bulk::run(SEGMENTS, offload)?;
            note(format!("data segment sent, {how}"), "100 ns", bulk.send_ns);
            note(
                format!("data segment received, {how}"),
                "100 ns",
                bulk.receive_ns,
            );
            note(
                format!("acknowledgement sent, {how}"),
                "",
                bulk.acknowledge_ns,
            );
            note(
                format!("acknowledgement received, {how}"),
                "",
                bulk.acknowledged_ns,
            );
            let whole = connections::run(CONNECTIONS, offload)?;
            note(
                format!("connection, server, {how}"),
                "1500 ns",
                whole.server_ns,
            );
            note(format!("connection, client, {how}"), "", whole.client_ns);
            note(
                format!("frames of a connection to the server, {how}"),
                "3",
                whole.frames_to_server,
            );
            note(
                format!("frames of a connection to the client, {how}"),
                "3",
                whole.frames_to_client,
            );
        }
    }
    let idle = idle::run(IDLE)?;
    note(
        format!("bytes of an idle connection, {} of them", idle.count),
        "1024",
        idle.bytes,
    );
    let mut table = Table::new(1, &["what", "best", "median", "target"]);
    for mut row in rows {
        row.values.sort_by(f64::total_cmp);
        let median = row.values[row.values.len() / 2];
        let figures = [row.values[0], median].map(|value| format!("{value:.1}"));
        table.push(
            [
                vec![row.name],
                figures.to_vec(),
                vec![row.target.to_owned()],
            ]
            .concat(),
        );
    }
    Ok(table.emit_text())
}
