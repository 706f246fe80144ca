//! The status document: the server, its workers, and their tables.

use crate::tables::Part;
use crate::verdict::{self, Observed, State};
use mill_metrics::{Description, ServerCounters, StackCounters, WorkerFigures};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Figures by name; the names are those of `ServerCounters` and `StackCounters`.
pub type Figures = BTreeMap<String, u64>;

/// The whole document. Parts that were not requested are empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The version of this format.
    pub format: u32,
    pub server: Server,
    pub workers: Vec<Worker>,
    pub total: Total,
    /// The tables of each worker that has answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// What is unknown, and why: messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The server as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Server {
    /// The name by which it was called: `millstream` or `nginx`.
    pub program: String,
    pub version: String,
    pub pid: u32,
    /// `master`, or `single` without a master process; empty if the server has not answered.
    pub role: String,
    pub uptime_s: f64,
    /// The configuration file.
    pub configuration: String,
    pub pid_file: Option<String>,
    /// Counts the configurations since the start, from 1.
    pub generation: u64,
    /// Addresses with listening sockets.
    pub listen: Vec<String>,
    /// The device of its own stack, as `af_xdp:eth0`.
    pub stack: Option<String>,
    /// Whether the kernel could seal TLS records (kTLS); `None` where no listener speaks TLS. Workers seal them in any case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_tls: Option<bool>,
    /// Features that could not be had as requested: kernel instead of bypass, small pages instead of huge ones, copies
    /// instead of zero copy. Messages.
    pub fallbacks: Vec<String>,
    pub options: Vec<OptionInForce>,
}

/// An option of the stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OptionInForce {
    pub name: String,
    pub value: String,
    /// Where it was set: `default`, `command line`, `profile wan`, a directive's place.
    pub from: String,
}

/// A worker thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Worker {
    /// The number of its process.
    pub process: u32,
    /// Its number among the workers that the process has had.
    pub worker: u32,
    /// Its index among those that serve, from 0.
    pub place: u32,
    /// The number of its thread.
    pub thread: u32,
    pub state: State,
    pub uptime_s: f64,
    /// Time since its last turn ended.
    pub no_turn_s: f64,
    pub turns: u64,
    /// Turns that had something to do.
    pub turns_busy: u64,
    /// CPU time of the thread, if the kernel reports it.
    pub cpu_s: Option<f64>,
    pub server: Figures,
    pub stack: Option<Figures>,
}

/// The sums of all workers, those that have ended included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Total {
    pub server: Figures,
    pub stack: Option<Figures>,
}

/// The version of the format of [`Status`].
pub const FORMAT: u32 = 1;

impl Worker {
    /// The published figures of a process's worker, as seen at `now_ns` of the monotonic clock.
    pub fn new(process: u32, shown: &WorkerFigures, now_ns: u64, observed: Observed) -> Self {
        let since = |at: u64| seconds(now_ns.saturating_sub(at));
        Self {
            process,
            worker: shown.number,
            place: shown.beginning.place,
            thread: shown.beginning.thread,
            state: verdict::judge(shown, now_ns, observed),
            uptime_s: since(shown.beginning.at_ns),
            no_turn_s: since(shown.turn_at_ns),
            turns: shown.turns,
            turns_busy: shown.turns_busy,
            cpu_s: observed.cpu_ns.map(seconds),
            server: figures(ServerCounters::DESCRIPTIONS, &shown.server.values()),
            stack: shown
                .stack
                .map(|stack| figures(StackCounters::DESCRIPTIONS, &stack.values())),
        }
    }

    /// A figure of the server's.
    pub fn server(&self, name: &str) -> u64 {
        self.server.get(name).copied().unwrap_or(0)
    }

    /// A figure of the stack's; 0 without one.
    pub fn stack(&self, name: &str) -> u64 {
        let stack = self.stack.as_ref();
        stack
            .and_then(|stack| stack.get(name))
            .copied()
            .unwrap_or(0)
    }
}

impl Total {
    pub fn of(workers: &[Worker]) -> Self {
        let mut total = Self::default();
        for worker in workers {
            add(&mut total.server, &worker.server);
            if let Some(stack) = &worker.stack {
                add(total.stack.get_or_insert_default(), stack);
            }
        }
        total
    }

    pub fn server(&self, name: &str) -> u64 {
        self.server.get(name).copied().unwrap_or(0)
    }

    pub fn stack(&self, name: &str) -> u64 {
        let stack = self.stack.as_ref();
        stack
            .and_then(|stack| stack.get(name))
            .copied()
            .unwrap_or(0)
    }
}

fn add(to: &mut Figures, more: &Figures) {
    for (name, value) in more {
        let sum = to.entry(name.clone()).or_default();
        *sum = sum.saturating_add(*value);
    }
}

fn figures(descriptions: &[Description], values: &[u64]) -> Figures {
    let named = descriptions.iter().zip(values);
    named
        .map(|(figure, value)| (figure.name.to_owned(), *value))
        .collect()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a century is 3e18 ns: an error of 512 ns"
)]
pub(crate) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
