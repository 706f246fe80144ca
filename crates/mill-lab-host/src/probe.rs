//! Measurements that slow the system down: each in a pass of its own, under the same load, and without an effect on
//! any rate.

use crate::host::{Host, Line};
use crate::monitor::process;
use crate::process_stat::ProcessStat;
use crate::topology::Testbed;
use mill_lab::recipe::{Probe, ProbeKind, Where};
use mill_lab::record::{CommandLine, Figures};
use std::path::PathBuf;

/// Probes on the allocator that is mapped.
mod allocations;
/// A capture and what is in it.
mod capture;
/// `perf stat`.
mod counters;
/// Processes and services of the machine.
mod environment;
/// Round trips and bulk TCP.
pub mod path;
/// Segments in a capture file.
mod pcap;
/// `perf record`, folded.
mod profile;
/// One line a second.
mod rate;
/// TCP as seen on an interface.
mod segments;
/// Stacks that `perf script` prints.
mod stack;
/// System calls by strace.
pub(crate) mod strace;
/// Running measuring programs with a time limit.
mod tool;
/// CPU by process.
mod top;
/// What a tracing kernel offers.
mod tracing;
/// Heap allocations by valgrind.
pub(crate) mod valgrind;
/// `perf kvm stat`.
mod vm_exits;
/// What a probe may observe.
#[derive(Clone, Debug)]
pub struct Scene {
    pub testbed: Testbed,
    pub server: Option<u32>,
    pub clients: Vec<u32>,
    pub port: u16,
    /// Where artefacts go.
    pub folder: PathBuf,
}

/// The result of a probe.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Looked {
    pub figures: Figures,
    /// Metric and reason.
    pub absent: Vec<(String, String)>,
    /// Files in the folder.
    pub artefacts: Vec<String>,
    pub commands: Vec<CommandLine>,
    pub notes: Vec<String>,
}

/// Observes for `probe.seconds`, while the load runs.
pub fn look(probe: &Probe, scene: &Scene) -> Looked {
    let mut looked = Looked::default();
    let seconds = probe.seconds.clamp(SECONDS_MIN, SECONDS_MAX);
    match probe.kind {
        ProbeKind::Counters => counters::look(probe, scene, seconds, &mut looked),
        ProbeKind::Profile => profile::look(probe, scene, seconds, &mut looked),
        ProbeKind::Capture => capture::look(scene, seconds, &mut looked),
        ProbeKind::Path => path::look(scene, seconds, &mut looked),
        ProbeKind::Environment => environment::look(scene, &mut looked),
        ProbeKind::VmExits => vm_exits::look(scene, seconds, &mut looked),
        ProbeKind::Rate => rate::look(scene, seconds, &mut looked),
        ProbeKind::Top => top::look(scene, seconds, &mut looked),
        // Their passes have servers of their own.
        ProbeKind::Strace | ProbeKind::Valgrind | ProbeKind::IdleConnections => {}
    }
    looked
}

/// Shorter passes have counts too small to mean anything.
const SECONDS_MIN: f64 = 0.1;

/// An hour: a longer time is a mistake in the unit.
const SECONDS_MAX: f64 = 3600.0;

/// The processes that a probe observes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    /// These and, in perf, their children.
    Processes(Vec<u32>),
    Machine,
}

impl Scene {
    /// The processes of a side with all their descendants; else why there are none.
    fn target(&self, at: Where) -> Result<Target, String> {
        let (host, roots) = match at {
            Where::Machine => return Ok(Target::Machine),
            Where::Server => (Some(&self.testbed.server), self.server.as_slice()),
            Where::Client => (self.testbed.clients.first(), self.clients.as_slice()),
        };
        if let Some(Host::Remote(target)) = host {
            return Err(format!(
                "{target} is another machine; run the probe's command there"
            ));
        }
        let alive: Vec<u32> = process::descendants(roots, &process::parents())
            .into_iter()
            .filter(|number| ProcessStat::of(*number).is_some())
            .collect();
        if alive.is_empty() {
            return Err(String::from(
                "no process to observe: it had not begun or was over; give the load more seconds than the probe",
            ));
        }
        Ok(Target::Processes(alive))
    }
}

impl Target {
    /// As perf(1) takes it.
    fn arguments(&self) -> Vec<String> {
        match self {
            Self::Machine => vec![String::from("-a")],
            Self::Processes(numbers) => {
                let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
                vec![String::from("-p"), numbers.join(",")]
            }
        }
    }
}

impl Looked {
    fn miss(&mut self, metric: impl Into<String>, reason: impl Into<String>) {
        self.absent.push((metric.into(), reason.into()));
    }

    fn figure(&mut self, name: impl Into<String>, value: f64) {
        self.figures.insert(name.into(), value);
    }

    /// Records a command, so that a user can repeat it.
    fn ran(&mut self, host: &Host, line: &Line) {
        self.commands.push(CommandLine {
            role: String::from("probe"),
            line: host.text(line),
        });
    }

    /// Writes an artefact.
    fn keep(&mut self, scene: &Scene, name: &str, text: impl AsRef<[u8]>) {
        match std::fs::write(scene.folder.join(name), text) {
            Ok(()) => self.artefacts.push(String::from(name)),
            Err(error) => self.notes.push(format!("{name} was not written: {error}")),
        }
    }
}
