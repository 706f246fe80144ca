//! One run of a client, pinned to its CPU, watched from outside.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::process::Command;
use std::time::Duration;

use mill_sys::clock;

use super::client::{Client, Files, PATIENCE_PAST_END};
use crate::bench::accounting::{CpuTime, times_of_threads};
use crate::bench::child::Child;
use crate::bench::failure::{Failure, Result};
use crate::bench::lab::Lab;
use crate::bench::patience::{pause, wait_for};
use crate::bench::told::{self, Told};

/// What a run left behind.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    /// Both output streams.
    pub(super) text: String,
    /// Of all threads from start to end, but for the last milliseconds.
    pub(super) time: CpuTime,
    /// From its start to its end.
    pub(super) lasted: Duration,
}

/// How long before its end a client is looked at; looking costs the measured CPUs a little. What it
/// does after the last look, at most 5 ms before its end, is not counted.
const LOOKING: Duration = Duration::from_millis(100);

/// Runs a client that ends by itself after `seconds`.
pub(super) fn run(lab: &Lab, line: &[OsString], seconds: u64) -> Result<Ended> {
    let output = lab.file("client.txt");
    let mut command = Command::new("taskset");
    command.args(["-c", &lab.client_cpu.to_string()]).args(line);
    let began = clock::monotonic();
    let mut child = Child::start(&lab.caretaker, &mut command, &output)?;
    pause(Duration::from_secs(seconds).saturating_sub(LOOKING));
    let mut times: BTreeMap<u32, CpuTime> = BTreeMap::new();
    let status = wait_for(LOOKING + PATIENCE_PAST_END, || {
        // A thread that has ended is not seen any more; its last time counts.
        times.extend(times_of_threads(child.pid()));
        child.ended()
    });
    let lasted = clock::monotonic().saturating_sub(began);
    let text = fs::read_to_string(&output).unwrap_or_default();
    if status.is_none() {
        return Err(Failure(format!("the client did not end: {}", text.trim())));
    }
    let time = times
        .values()
        .fold(CpuTime::default(), |sum, time| CpuTime {
            ran: sum.ran + time.ran,
            waited: sum.waited + time.waited,
        });
    Ok(Ended { text, time, lasted })
}

impl Ended {
    /// Of 1: how long others kept it waiting for its CPU.
    pub(super) fn waited(&self) -> f64 {
        share(self.time.waited, self.lasted)
    }
}

/// Of 1; nothing of no time.
pub(super) fn share(part: Duration, whole: Duration) -> f64 {
    if whole.is_zero() {
        0.0
    } else {
        part.as_secs_f64() / whole.as_secs_f64()
    }
}

/// The files of a lab's clients; wrk's script is written.
pub(super) fn files(lab: &Lab) -> Result<Files> {
    let files = Files {
        script: lab.file("done.lua"),
        percentages: lab.file("percentages.csv"),
        json: lab.file("load.json"),
    };
    let script = &files.script;
    fs::write(script, told::wrk::SCRIPT).map_err(Failure::during(script.display()))?;
    Ok(files)
}

/// Removes what the run before has written, so that nobody takes it for the next one's.
pub(super) fn forget(files: &Files) {
    for file in [&files.percentages, &files.json] {
        // Absent is what is wanted.
        let _absent_already = fs::remove_file(file);
    }
}

/// What the client said of its run.
pub(super) fn told(client: Client, files: &Files, ended: &Ended) -> Result<Told> {
    let text = ended.text.as_str();
    let file = |file| fs::read_to_string(file).unwrap_or_default();
    let told = match client {
        Client::MillstreamWrk | Client::Wrk => told::wrk::parse(text),
        Client::MillstreamAb | Client::Ab => told::ab::parse(text, &file(&files.percentages)),
        Client::MillstreamLoad => told::native::parse(&file(&files.json)).map(|native| native.told),
        Client::H2load => told::h2load::parse(text),
    };
    told.ok_or_else(|| {
        let said = text.trim();
        let last = said.lines().last().unwrap_or("nothing");
        Failure(format!("{} told no figures: {last}", client.name()))
    })
}
