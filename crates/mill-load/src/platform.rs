//! What a run needs of the operating system: names, threads, clocks, signals. The binary runs on the kernel, tests on a
//! simulation.

use crate::generator::Part;
use crate::nanos;
use crate::plan::Plan;
use crate::record::Record;
use crate::request::Requests;
use crate::silence::{self, Gap};
use core::net::SocketAddr;
use core::time::Duration;
use mill_runtime::time::{Instant, UnixTime};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The platform of a run.
pub trait Platform {
    /// The addresses of a name, in the resolver's order; the error is a message.
    fn resolve(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, String>;

    /// Whether something accepts connections there (wrk's scripts ask).
    fn accepts(&self, address: SocketAddr) -> bool;

    /// The wall-clock time.
    fn wall_clock(&self) -> UnixTime;

    /// Seconds that local time is ahead of UTC at a moment given in Unix seconds (ab writes local time).
    fn utc_offset_seconds(&self, at: i64) -> i32 {
        let _ = at;
        0
    }

    /// CPUs that this process may use.
    fn cpus(&self) -> u32;

    /// Starts other processes that run a part of the load; the error says why there is only this one.
    fn launcher(&self) -> Result<&dyn Launcher, PlatformError> {
        Err(PlatformError(String::from(
            "several processes are not possible here",
        )))
    }

    /// Makes resources that are costly or need privileges, once it is known that there will be a run: help or a wrong
    /// command line changes nothing. `run` does it too.
    fn prepare(&self) -> Result<(), PlatformError> {
        Ok(())
    }

    /// Carries out a plan: one thread per input, started together. `watch` is called on the caller's thread.
    fn run<R: Record>(
        &self,
        plan: &Plan,
        inputs: Vec<ThreadInput<R>>,
        watch: &mut dyn Watch<R::Interval>,
    ) -> Result<RunOutcome<R>, PlatformError>;
}

/// Other processes of this program, each with a part of a run. Messages are lines.
pub trait Launcher {
    /// The monotonic clock, which all processes of this machine share.
    fn now(&self) -> Instant;

    /// Starts this program's `load` once for each list of arguments; the error is a message.
    fn start(&self, arguments: &[Vec<Vec<u8>>]) -> Result<Box<dyn ChildProcesses>, String>;

    /// In a part: waits for the next line of the parent process; `None`: it has ended.
    fn order(&self) -> Option<String>;

    /// In a part: from now on any line of the parent process, or its end, interrupts the run.
    fn interrupt_on_input(&self);
}

/// The child processes. Dropping it ends those that still run.
pub trait ChildProcesses {
    /// Sends a line to one of them. If it has ended, `receive` reports that.
    fn send(&mut self, part: u32, line: &str);

    /// Waits for the next event.
    fn receive(&mut self) -> FromPart;
}

/// An event of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromPart {
    Line(u32, String),
    /// It has ended, and all its lines were received; how, as the end of a message.
    Ended(u32, String),
    /// The user has interrupted the run.
    Interrupted,
}

/// A thread's input besides its share of the plan.
#[derive(Debug)]
pub struct ThreadInput<R> {
    pub requests: Requests,
    pub recorder: R,
}

/// Watches a run.
pub trait Watch<I> {
    /// The run has begun: all threads are up.
    fn on_begin(&mut self) {}

    /// One thread's interval has passed, `elapsed` since the beginning of the measured period.
    fn on_interval(&mut self, thread: u32, elapsed: Duration, interval: I) {
        let _ = (thread, elapsed, interval);
    }
}

/// Ignores all events.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl<I> Watch<I> for Unwatched {}

/// A run that has ended.
#[derive(Debug)]
pub struct RunOutcome<R> {
    /// In the order of threads.
    pub parts: Vec<Part<R>>,
    /// From the beginning of the measured period to the end of the last thread.
    pub measured: Duration,
    /// The user interrupted it.
    pub interrupted: bool,
    /// The kernel's figures for the measured period.
    pub machine: Machine,
}

/// The kernel's figures for the measured period. Unavailable ones are `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// CPU time of each generating thread, and the time of its measurement.
    pub threads: Vec<ThreadCpu>,
    /// Connections that this machine's listeners refused because their queue was full, and SYNs dropped.
    pub listen_overflows: Option<u64>,
    /// TCP segments that this machine retransmitted, and sent.
    pub retransmitted_segments: Option<u64>,
    pub sent_segments: Option<u64>,
    /// Share of the interface towards the target, 0 to 1, by the busier direction; loopback has none.
    pub link_use: Option<LinkUse>,
    /// Share of CPU time that the hypervisor gave to other guests, 0 to 1.
    pub steal: Option<f64>,
    /// CPU time of all programs of this machine. Also `None` if the server runs here and was not found: its share would
    /// be attributed to other programs.
    pub programs: Option<ProgramsCpu>,
    /// CPU time of the server's process, if it runs here and could be found.
    pub server: Option<ServerCpu>,
}

impl Machine {
    /// The share of this machine's CPU time that other programs than the load generator and the server used, 0 to 1.
    pub fn other_cpu(&self) -> Option<f64> {
        let programs = self.programs.filter(|it| !it.available.is_zero())?;
        let client: Duration = self.threads.iter().map(|cpu| cpu.user + cpu.system).sum();
        let server = self.server.as_ref();
        let server = server.map_or(Duration::ZERO, |cpu| cpu.user + cpu.system);
        let others = programs.used.saturating_sub(client + server);
        Some(others.as_secs_f64() / programs.available.as_secs_f64())
    }
}

/// One generating thread's CPU time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadCpu {
    #[serde(rename = "user_ns", with = "nanos")]
    pub user: Duration,
    #[serde(rename = "system_ns", with = "nanos")]
    pub system: Duration,
    /// Over this time.
    #[serde(rename = "wall_ns", with = "nanos")]
    pub wall: Duration,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
}

/// The CPU time of all threads, without interrupts and idling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramsCpu {
    #[serde(rename = "used_ns", with = "nanos")]
    pub used: Duration,
    /// The time of all CPUs together.
    #[serde(rename = "available_ns", with = "nanos")]
    pub available: Duration,
}

/// How much of an interface was used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkUse {
    pub interface: String,
    pub bits_per_second: f64,
    /// Of the interface's reported speed, if it reports one.
    pub share: Option<f64>,
}

/// The server's CPU time, all its threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerCpu {
    pub process: u32,
    pub command: String,
    #[serde(rename = "user_ns", with = "nanos")]
    pub user: Duration,
    #[serde(rename = "system_ns", with = "nanos")]
    pub system: Duration,
    /// Its busiest thread's share of a CPU, 0 to 1.
    pub busiest_thread: f64,
}

/// A run that could not begin: a message that says what to do.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct PlatformError(pub String);

impl<R> RunOutcome<R> {
    /// When no thread was answered.
    pub fn gaps(&self) -> Vec<Gap> {
        silence::common(self.parts.iter().map(|part| part.gaps.as_slice()))
    }

    /// All threads' counters together.
    pub fn tally(&self) -> crate::tally::Tally {
        let mut sum = crate::tally::Tally::default();
        for part in &self.parts {
            sum += part.tally;
        }
        sum
    }
}
