//! `millstream load merge A.json B.json …`: result files of several machines as one.

use super::{Hosts, emit_parts, merge, part_lines};
use crate::native::part::wire;
use crate::native::results::Results;
use serde_json::{Value, json};
use std::io::{self, Write};

/// Merges the files that are named; returns the exit status. `arguments` come after the word `merge`.
pub fn main(arguments: &[Vec<u8>], out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let merged = match run(arguments) {
        Ok(MergeCommand::Help) => out.write_all(HELP.as_bytes()),
        Ok(MergeCommand::Merged(merged)) => merged.emit(out),
        Err(sentence) => {
            // If standard error is closed, only the status reports it.
            let _ = writeln!(err, "millstream load merge: {sentence}");
            return STATUS_REFUSED;
        }
    };
    match merged {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let _ = writeln!(err, "millstream load merge: standard output: {error}");
            STATUS_REFUSED
        }
        _ => 0,
    }
}

enum MergeCommand {
    Help,
    Merged(Box<Merged>),
}

/// The parts and their sum.
struct Merged {
    names: Vec<String>,
    parts: Vec<Results>,
    sum: Results,
    /// The sum goes to standard output as JSON, and nothing else does.
    json_to_out: Option<Value>,
}

fn run(arguments: &[Vec<u8>]) -> Result<MergeCommand, String> {
    let Some(request) = Request::parse(arguments)? else {
        return Ok(MergeCommand::Help);
    };
    let mut documents = Vec::new();
    let mut parts = Vec::new();
    for file in &request.files {
        let text = std::fs::read(file).map_err(|error| format!("{file}: {error}"))?;
        let (document, results) = parse(&text).map_err(|why| format!("{file}: {why}"))?;
        documents.push(document);
        parts.push(results);
    }
    let is_open = |part: &Results| part.measures.raw.is_some();
    if parts.iter().any(is_open) && !parts.iter().all(is_open) {
        return Err(String::from(
            "some of the files are of an open loop and some of a closed one: their latencies do not mean the same",
        ));
    }
    let sum = merge(&parts, request.hosts).ok_or("there is nothing to merge")?;
    let mut json_to_out = None;
    if let (Some(file), Some(first)) = (&request.json, documents.first()) {
        let document = document(first, &request.files, &sum);
        if file == "-" {
            json_to_out = Some(document);
        } else {
            std::fs::write(file, format!("{document}\n"))
                .map_err(|error| format!("--json {file}: {error}"))?;
        }
    }
    Ok(MergeCommand::Merged(Box::new(Merged {
        names: request.files,
        parts,
        sum,
        json_to_out,
    })))
}

/// The options of the command line.
struct Request {
    files: Vec<String>,
    json: Option<String>,
    hosts: Hosts,
}

impl Request {
    /// `None`: it asks for help.
    fn parse(arguments: &[Vec<u8>]) -> Result<Option<Self>, String> {
        let mut request = Self {
            files: Vec::new(),
            json: None,
            hosts: Hosts::Several,
        };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let argument = text(argument)?;
            match argument {
                "-h" | "--help" => return Ok(None),
                "--same-host" => request.hosts = Hosts::Same,
                "--json" => {
                    let file = arguments.next().ok_or("--json needs a file's name")?;
                    request.json = Some(String::from(text(file)?));
                }
                _ => match argument.strip_prefix("--json=") {
                    Some(file) => request.json = Some(String::from(file)),
                    None if argument.starts_with('-') => {
                        return Err(format!("{argument} is not an option; see --help"));
                    }
                    None => request.files.push(String::from(argument)),
                },
            }
        }
        if request.files.len() < 2 {
            return Err(String::from(
                "name at least two files that \"load --json\" wrote",
            ));
        }
        Ok(Some(request))
    }
}

impl Merged {
    fn emit(&self, out: &mut dyn Write) -> io::Result<()> {
        if let Some(document) = &self.json_to_out {
            return writeln!(out, "{document}");
        }
        let latency = &self.sum.measures.latency;
        let millis = |percent| latency.percentile(percent).as_secs_f64() * 1e3;
        let named: Vec<(String, &Results)> = self.names.iter().cloned().zip(&self.parts).collect();
        emit_parts(&part_lines(&named), out)?;
        let tally = &self.sum.tally;
        writeln!(
            out,
            "\n{} answers in {:.2}s from {} parts, {:.1} a second; {} failed, {} unfinished",
            tally.answered,
            self.sum.measured.as_secs_f64(),
            self.parts.len(),
            self.sum.rate(),
            tally.failed(),
            tally.unfinished()
        )?;
        writeln!(
            out,
            "latency of all: p50 {:.3}ms  p90 {:.3}ms  p99 {:.3}ms  p99.9 {:.3}ms  max {:.3}ms",
            millis(50.0),
            millis(90.0),
            millis(99.0),
            millis(99.9),
            latency.max().as_secs_f64() * 1e3
        )
    }
}

/// A document of `--json` and its results.
fn parse(text: &[u8]) -> Result<(Value, Results), String> {
    let document: Value =
        serde_json::from_slice(text).map_err(|error| format!("it is no JSON: {error}"))?;
    let results = document
        .get("results")
        .ok_or("it is no document of \"millstream load --json\"")?;
    let results = wire::parse(results).ok_or("its results are damaged or of another version")?;
    Ok((document, results))
}

/// The sum as a document that can be merged again: the head of the first one, without its conclusions.
fn document(first: &Value, files: &[String], sum: &Results) -> Value {
    let mut document = json!({
        "schema": first.get("schema"),
        "millstream": env!("CARGO_PKG_VERSION"),
        "merged": files,
    });
    document["results"] = wire::emit(sum);
    document
}

fn text(argument: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(argument)
        .map_err(|_| format!("\"{}\" is not UTF-8", argument.escape_ascii()))
}

/// Nothing was merged.
const STATUS_REFUSED: u8 = 1;

const HELP: &str = "\
usage: millstream load merge [--json FILE] [--same-host] FILE FILE ...

Adds up results that \"millstream load --json\" wrote on several machines at the
same time. Histograms are added, so that percentiles are those of all requests
together; the parts are shown beside each other, and one that is not like the
others is marked.

  --json FILE   write the sum, which can be merged again; - is standard output
  --same-host   the parts ran on one machine: count its drops and
                retransmissions once
";

#[cfg(test)]
mod tests;
