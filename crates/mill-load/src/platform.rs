//! What a run needs of the machine: names, threads, clocks, signals. The binary stands on the kernel, tests on a simulation.

use crate::generator::Part;
use crate::plan::Plan;
use crate::record::Record;
use crate::request::Requests;
use crate::silence::{self, Gap};
use core::net::SocketAddr;
use core::time::Duration;
use mill_runtime::time::{Instant, UnixTime};

/// The machine under a run.
pub trait Platform {
    /// The addresses of a name, in the system's order; the error is a sentence.
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

    /// Other processes that may take a part of a run; the error says why there is only this one.
    fn launcher(&self) -> Result<&dyn Launcher, PlatformError> {
        Err(PlatformError(String::from(
            "several processes are not possible here",
        )))
    }

    /// Makes what runs need and what is not made lightly, once it is known that there will be one: a user who asks for
    /// help, or has made a mistake, changes nothing. `run` does it too.
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

/// Other processes of this program, each with a part of a run. They and we speak in lines.
pub trait Launcher {
    /// The monotonic clock, which all processes of this machine share.
    fn now(&self) -> Instant;

    /// Starts this program's `load` once for each list of arguments; the error is a sentence.
    fn start(&self, arguments: &[Vec<Vec<u8>>]) -> Result<Box<dyn ChildProcesses>, String>;

    /// In a part: waits for the next line from the process that started us; `None`: it is gone.
    fn order(&self) -> Option<String>;

    /// In a part: from now on whatever the process that started us says, or its end, interrupts the run.
    fn obey(&self);
}

/// The processes that were started. Dropping it ends those that still run.
pub trait ChildProcesses {
    /// Says a line to one of them. One that is gone is missed when it is received from.
    fn send(&mut self, part: u32, line: &str);

    /// Waits for the next thing that happens.
    fn receive(&mut self) -> FromPart;
}

/// What a part has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromPart {
    Line(u32, String),
    /// It has ended and said all it had to say; how, as a sentence's end.
    Ended(u32, String),
    /// The user wants the run to end.
    Interrupted,
}

/// What a thread is given besides its share of the plan.
#[derive(Debug)]
pub struct ThreadInput<R> {
    pub requests: Requests,
    pub recorder: R,
}

/// Who looks on while a run goes on.
pub trait Watch<I> {
    /// The run has begun: all threads are up.
    fn on_begin(&mut self) {}

    /// One thread's interval has passed, `elapsed` since the beginning of the measured period.
    fn on_interval(&mut self, thread: u32, elapsed: Duration, interval: I) {
        let _ = (thread, elapsed, interval);
    }
}

/// Nobody looks on.
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
    /// What the machine noticed meanwhile.
    pub machine: Machine,
}

/// What the machine noticed during the measured period. What it can't tell is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machine {
    /// CPU time of each generating thread, and how long it was looked at.
    pub threads: Vec<ThreadCpu>,
    /// Connections that this machine's listeners refused because their queue was full, and SYNs dropped.
    pub listen_overflows: Option<u64>,
    /// TCP segments that this machine sent again, and sent.
    pub retransmitted_segments: Option<u64>,
    pub sent_segments: Option<u64>,
    /// Share of the interface towards the target, 0 to 1, by the busier direction; loopback has none.
    pub link_use: Option<LinkUse>,
    /// Share of CPU time that the hypervisor gave to others, 0 to 1.
    pub steal: Option<f64>,
    /// CPU time that all programs of this machine used. `None` too if the server runs here and could not be found:
    /// its share would be taken for somebody else's.
    pub programs: Option<ProgramsCpu>,
    /// CPU time of the server's process, if it runs here and could be found.
    pub server: Option<ServerCpu>,
}

impl Machine {
    /// The share of this machine's CPU time that went to others than the load generator and the server, 0 to 1.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadCpu {
    pub user: Duration,
    pub system: Duration,
    /// Over this time.
    pub wall: Duration,
    /// Times that it was put aside although it could have gone on.
    pub involuntary_switches: u64,
}

/// The CPU time of everything that runs, without interrupts and idling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramsCpu {
    pub used: Duration,
    /// What all CPUs together could have given.
    pub available: Duration,
}

/// How much of an interface was used.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkUse {
    pub interface: String,
    pub bits_per_second: f64,
    /// Of what the interface says it can carry, if it says.
    pub share: Option<f64>,
}

/// The server's CPU time, all its threads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerCpu {
    pub process: u32,
    pub command: String,
    pub user: Duration,
    pub system: Duration,
    /// Its busiest thread's share of a CPU, 0 to 1.
    pub busiest_thread: f64,
}

/// A run that could not begin: a sentence that says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlatformError(pub String);

impl std::fmt::Display for PlatformError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for PlatformError {}

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
