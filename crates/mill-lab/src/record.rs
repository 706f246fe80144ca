//! The stored form of a run: a folder that is written once and never changed.
//!
//! ```text
//! runs/2026-11-21T0736-nginx-jemalloc-k3f9/
//!   run.json               RunRecord
//!   recipe.toml            the recipe as it was resolved
//!   environment.json       Environment
//!   trials/0001/
//!     trial.json           TrialRecord
//!     client-0.out, .err   what the client printed, whole
//!     server.log           what the server printed
//!     monitor.csv          one line an interval: `second`, then figures by the names of `metric`
//!     latency.json         percentiles or a histogram, if the client gave one
//!     profile.folded       stacks, if a probe made them
//!     …                    what else probes left, named in TrialRecord::artefacts
//!   finished.json          only when all was done, or interrupted and restored
//! ```

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A number by its metric's name.
pub type Figures = BTreeMap<String, f64>;

/// A point: the names of its values, by axis.
pub type Point = BTreeMap<String, String>;

/// `run.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The folder's name.
    pub id: String,
    pub recipe: String,
    pub title: String,
    pub size: String,
    /// `--set`, as given.
    pub overrides: Vec<String>,
    /// The whole command line that began the run.
    pub command: Vec<String>,
    /// Of the order of trials.
    pub seed: u64,
    /// Unix milliseconds.
    pub started_ms: u64,
    /// Version of the millstream that measured, and the commit of the working folder if it is a checkout.
    pub millstream: String,
    pub commit: Option<String>,
    /// How many trials the plan has.
    pub trials: usize,
}

impl RunRecord {
    /// Counts the trials of blocks that followed those of the plan, because figures were not precise enough or targets open.
    pub(crate) fn count_further<'a>(&mut self, kept: impl Iterator<Item = &'a TrialRecord>) {
        let reached = kept.map(|trial| trial.number + 1).max();
        self.trials = self.trials.max(reached.unwrap_or(0));
    }
}

/// `finished.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finish {
    pub ended_ms: u64,
    pub interrupted: bool,
    /// Messages on what could not be restored; normally empty.
    pub not_restored: Vec<String>,
}

/// `trial.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// Its place in the plan, from 0; the folder's number is one more.
    pub number: usize,
    pub block: u32,
    /// Axis to value; `system` is among them.
    pub point: Point,
    /// The first system's second run in a block, for the noise floor.
    pub again: bool,
    /// How often it was tried before, because it was disturbed.
    pub attempt: u32,
    pub status: Status,
    /// Unix milliseconds.
    pub started_ms: u64,
    pub seconds: f64,
    /// Each process that was started, as it can be repeated.
    pub commands: Vec<CommandLine>,
    /// Everything measured, the clean pass and the probes' passes.
    pub figures: Figures,
    /// Latency at percentiles of the clean pass, ascending: (percent, seconds). From histograms where there are, else what the tool printed.
    pub percentiles: Vec<(f64, f64)>,
    pub limit: Option<crate::limit::Limit>,
    /// What could not be measured: metric and reason.
    pub absent: BTreeMap<String, String>,
    /// Changes to the system that held during the trial; failed ones have the reason.
    pub tuned: Vec<TunedKey>,
    /// Further files in the folder.
    pub artefacts: Vec<String>,
    /// What the reader should know of this trial.
    pub notes: Vec<String>,
}

/// What became of a trial.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum Status {
    #[default]
    Measured,
    /// Measured while others took more CPU time than the recipe allows: used, and marked, only where no trial was left undisturbed.
    /// Older stores call it void.
    #[serde(alias = "void")]
    Disturbed { reason: String },
    /// Something it needs is not here: "not on this machine: needs …", "needs 4 cores", "not built yet".
    Absent { reason: String },
    /// It should have worked.
    Failed { reason: String },
}

/// A process, with its command as a user would start it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandLine {
    /// "server", "client 3", "upstream", "probe".
    pub role: String,
    /// With all wrappers: `ip netns exec`, `taskset`.
    pub line: String,
}

/// One key of the system while a trial ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunedKey {
    /// `net.ipv4.tcp_tw_reuse (server)`.
    pub key: String,
    pub before: Option<String>,
    pub wanted: String,
    /// Why it is not as wanted: absent on this kernel, refused.
    pub problem: Option<String>,
}

/// `environment.json`: what a colleague needs to know of the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Environment {
    pub host: String,
    pub kernel: String,
    pub distribution: String,
    pub cpu: String,
    pub cores: u32,
    pub memory_bytes: u64,
    pub nodes: u32,
    /// "KVM", "none".
    pub hypervisor: String,
    pub governor: Option<String>,
    pub clocksource: Option<String>,
    pub transparent_hugepage: Option<String>,
    pub congestion_control: Option<String>,
    pub mitigations: Vec<String>,
    pub open_files_max: u64,
    /// Tool to version: nginx, wrk, ab, perf.
    pub versions: BTreeMap<String, String>,
    /// Interfaces with driver, speed, queues.
    pub interfaces: Vec<String>,
    /// Services and busy processes that were running.
    pub running: Vec<String>,
    /// What to fix before the figures can be trusted, in sentences.
    pub warnings: Vec<String>,
    /// What the machine can't measure: feature and reason.
    pub absent: BTreeMap<String, String>,
}
