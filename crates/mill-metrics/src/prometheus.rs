//! The workers' figures in the text format of Prometheus (exposition format 0.0.4).
//!
//! Every figure has a family of its own, `millstream_…` of the server's and `millstream_stack_…` of the stack's, with
//! the label `worker`. Counters end in `_total`. Figures that differ only by a reason are one family with a label for
//! it:
//!
//! | fields | family | label |
//! | --- | --- | --- |
//! | `responses_2xx`, … | `millstream_responses_total` | `class` |
//! | `refused_…` | `millstream_refused_total` | `reason` |
//! | `limit_…` | `millstream_limited_total` | `limit` |
//! | `timeout_…` | `millstream_timeouts_total` | `timeout` |
//! | `dropped_…` of the stack | `millstream_stack_dropped_total` | `reason` |
//! | `steering_…` of the stack | `millstream_stack_steering_total` | `outcome`, and no worker |

use crate::stack_counters::is_of_interface;
use crate::{Description, Kind, ServerCounters, StackCounters, WorkerFigures};
use std::fmt::Write;

/// The media type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The text; `now_ns` is the time on the clock of the workers' turns.
pub fn render(workers: &[WorkerFigures], now_ns: u64) -> String {
    let mut page = Page::default();
    for (index, figure) in ServerCounters::DESCRIPTIONS.iter().enumerate() {
        page.figure("millstream_", &SERVER_GROUPS, figure, workers, |worker| {
            worker.server.values().get(index).copied()
        });
    }
    if workers.iter().any(|worker| worker.stack.is_some()) {
        for (index, figure) in StackCounters::DESCRIPTIONS.iter().enumerate() {
            page.figure(
                "millstream_stack_",
                &STACK_GROUPS,
                figure,
                workers,
                |worker| worker.stack?.values().get(index).copied(),
            );
        }
    }
    page.workers(workers, now_ns);
    page.0
}

/// Figures of one family: the prefix of their names, the family, its label, and its help.
struct Group {
    prefix: &'static str,
    family: &'static str,
    label: &'static str,
    help: &'static str,
}

const SERVER_GROUPS: [Group; 4] = [
    Group {
        prefix: "responses_",
        family: "responses",
        label: "class",
        help: "Responses, by the class of their status.",
    },
    Group {
        prefix: "refused_",
        family: "refused",
        label: "reason",
        help: "Requests that were refused, by what was wrong with them.",
    },
    Group {
        prefix: "limit_",
        family: "limited",
        label: "limit",
        help: "Connections and requests that met a limit.",
    },
    Group {
        prefix: "timeout_",
        family: "timeouts",
        label: "timeout",
        help: "Connections on which a time has passed.",
    },
];

const STACK_GROUPS: [Group; 2] = [
    Group {
        prefix: "dropped_",
        family: "dropped",
        label: "reason",
        help: "Frames dropped, by reason.",
    },
    Group {
        prefix: "steering_",
        family: "steering",
        label: "outcome",
        help: "Frames of the interface, by what the steering program did with them.",
    },
];

#[derive(Default)]
struct Page(String);

impl Page {
    /// The samples of one figure, after the head of its family if it is the first of that.
    fn figure(
        &mut self,
        prefix: &str,
        groups: &[Group],
        figure: &Description,
        workers: &[WorkerFigures],
        value: impl Fn(&WorkerFigures) -> Option<u64>,
    ) {
        let group = groups.iter().find_map(|group| {
            let rest = figure.name.strip_prefix(group.prefix)?;
            Some((group, rest))
        });
        let (name, help) = match group {
            Some((group, _)) => (group.family, group.help),
            None => (figure.name, figure.help),
        };
        let (kind, suffix) = match figure.kind {
            Kind::Counter => ("counter", "_total"),
            Kind::Gauge => ("gauge", ""),
        };
        let family = format!("{prefix}{name}{suffix}");
        self.head(&family, kind, help);
        let own_label = group.map(|(group, rest)| format!("{}=\"{rest}\"", group.label));
        if is_of_interface(figure.name) {
            let mut values = workers.iter().filter_map(value).peekable();
            if values.peek().is_some() {
                let sum = values.fold(0, u64::saturating_add);
                self.sample(&family, own_label.as_deref(), None, &sum.to_string());
            }
            return;
        }
        for worker in workers {
            if let Some(value) = value(worker) {
                let number = Some(worker.number);
                self.sample(&family, own_label.as_deref(), number, &value.to_string());
            }
        }
    }

    /// The figures about the workers themselves.
    fn workers(&mut self, workers: &[WorkerFigures], now_ns: u64) {
        let running = || workers.iter().filter(|worker| !worker.has_ended);
        self.head("millstream_workers", "gauge", "Worker threads that run.");
        let count = running().count().to_string();
        self.sample("millstream_workers", None, None, &count);
        let turns = "millstream_turns_total";
        self.head(turns, "counter", "Turns of the worker.");
        for worker in workers {
            self.sample(turns, None, Some(worker.number), &worker.turns.to_string());
        }
        let busy = "millstream_busy_turns_total";
        self.head(
            busy,
            "counter",
            "Turns of the worker that had something to do.",
        );
        for worker in workers {
            let value = worker.turns_busy.to_string();
            self.sample(busy, None, Some(worker.number), &value);
        }
        let silent = "millstream_silent_seconds";
        let help =
            "How long ago the worker's last turn has ended, if it does not sleep for want of work.";
        self.head(silent, "gauge", help);
        for worker in running() {
            let since = match worker.parked_until_ns {
                0 => now_ns.saturating_sub(worker.turn_at_ns),
                until => now_ns.saturating_sub(until),
            };
            let seconds = std::time::Duration::from_nanos(since).as_secs_f64();
            self.sample(silent, None, Some(worker.number), &seconds.to_string());
        }
    }

    /// Once a family.
    fn head(&mut self, family: &str, kind: &str, help: &str) {
        let head = format!("# TYPE {family} {kind}\n");
        if !self.0.contains(&head) {
            let help = help.replace('\\', "\\\\").replace('\n', "\\n");
            // Writing to a string succeeds.
            let _ = write!(self.0, "# HELP {family} {help}\n{head}");
        }
    }

    fn sample(&mut self, family: &str, label: Option<&str>, worker: Option<u32>, value: &str) {
        let worker = worker.map(|number| format!("worker=\"{number}\""));
        let labels: Vec<&str> = worker.as_deref().into_iter().chain(label).collect();
        let labels = labels.join(",");
        let _ = if labels.is_empty() {
            writeln!(self.0, "{family} {value}")
        } else {
            writeln!(self.0, "{family}{{{labels}}} {value}")
        };
    }
}

#[cfg(test)]
mod tests;
