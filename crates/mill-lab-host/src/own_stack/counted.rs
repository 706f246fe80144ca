//! Counters of a server's own stack, in place of those of the kernel's TCP, which did not see its traffic.

use crate::client;
use crate::host::Host;
use crate::journal::errand;
use crate::monitor::process::{descendants, parents};
use crate::patience::pause;
use mill_lab::recipe::System;
use mill_lab::record::{Figures, TrialRecord};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Requests the counters of a freshly started server, so that they cover this trial only, and stores the reply in the
/// trial's folder.
pub(crate) fn count(
    system: &System,
    host: &Host,
    process: Option<u32>,
    folder: &Path,
    record: &mut TrialRecord,
) {
    if system.stack.is_empty() {
        return;
    }
    record.figures.retain(|name, _| !name.starts_with(KERNEL));
    let way = Way::of(system);
    let asked = process
        .ok_or_else(|| String::from("it has ended"))
        .and_then(|process| ask_patiently(|| way.ask(system, host, process)));
    let kept = asked.and_then(|(text, counts)| {
        std::fs::write(folder.join(way.file()), text).map_err(|error| error.to_string())?;
        Ok(counts)
    });
    match kept {
        Ok(counts) => {
            record.figures.extend(figures(&counts));
            record.artefacts.push(String::from(way.file()));
        }
        Err(problem) => {
            let reason = format!(
                "the kernel's TCP does not see a stack of our own, which was not heard: {problem}"
            );
            for family in ["tcp.server", "own_stack.server"] {
                record.absent.insert(String::from(family), reason.clone());
            }
        }
    }
}

const KERNEL: &str = "tcp.server.";

/// How the counters are had.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// From a server of our own.
    Status,
    /// From the processes of a program that is not changed.
    Stackdump,
}

impl Way {
    fn of(system: &System) -> Self {
        match system.is_run() {
            true => Self::Stackdump,
            false => Self::Status,
        }
    }

    const fn file(self) -> &'static str {
        match self {
            Self::Status => "status.json",
            Self::Stackdump => "stackdump.txt",
        }
    }

    /// The output and its counters.
    fn ask(
        self,
        system: &System,
        host: &Host,
        process: u32,
    ) -> Result<(String, BTreeMap<String, u64>), String> {
        if matches!(host, Host::Remote(_)) {
            return Err(String::from("its process is on another machine"));
        }
        let first = process.to_string();
        let (binary, words): (_, &[&str]) = match self {
            Self::Status => (&system.binary, &["status", &first, "--json"]),
            // Of all programs that there are: the first process has no stack, but its workers.
            Self::Stackdump => (&system.runner, &["stackdump", "stats"]),
        };
        let binary = client::millstream(binary.as_deref(), host)?;
        let argv = [&[binary.as_str()], words].concat();
        if let Self::Stackdump = self {
            // Programs show their counters ten times a second, and with many connections once.
            pause(SHOWN_EVERY);
        }
        let text = errand::run_to(&Host::Local, &argv, None, &[0, HANGS_CODE]);
        let text = text.map_err(|error| error.to_string())?;
        let counts = match self {
            Self::Status => counts(&text)?,
            Self::Stackdump => {
                let its = descendants(&[process], &parents());
                dumped(&text, |process| its.contains(&process))?
            }
        };
        Ok((text, counts))
    }
}

/// What mill-preload promises, and a little more.
const SHOWN_EVERY: Duration = Duration::from_millis(1100);

/// Repeats the request until there are counters, up to a limit: on a busy machine a server may not reply at once.
/// Returns the output and its counters.
fn ask_patiently(
    mut ask: impl FnMut() -> Result<(String, BTreeMap<String, u64>), String>,
) -> Result<(String, BTreeMap<String, u64>), String> {
    let mut problem = None;
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            pause(BETWEEN_ATTEMPTS);
        }
        match ask() {
            Ok(heard) => return Ok(heard),
            Err(what) => problem = Some(what),
        }
    }
    Err(problem.unwrap_or_default())
}

/// `millstream status` itself waits 2 s for the server, and 2 s more for its workers.
const ATTEMPTS: u32 = 3;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(200);

/// Exit status of `millstream status` if a worker has not replied in time: its counters are included nevertheless.
const HANGS_CODE: i32 = 3;

/// Of `total.stack`.
fn counts(text: &str) -> Result<BTreeMap<String, u64>, String> {
    let status: Status = serde_json::from_str(text).map_err(|error| error.to_string())?;
    status
        .total
        .stack
        .ok_or_else(|| String::from("it has no stack of its own"))
}

/// Sums of `stats` of `millstream stackdump` over processes: a line with `stack NUMBER` begins each, `NAME: COUNT` follow.
fn dumped(text: &str, is_its: impl Fn(u32) -> bool) -> Result<BTreeMap<String, u64>, String> {
    let mut sums = BTreeMap::new();
    let mut counts = false;
    for line in text.lines() {
        if let Some((_, rest)) = line.split_once(" stack ") {
            let number = rest.split(' ').next().and_then(|word| word.parse().ok());
            counts = number.is_some_and(&is_its);
        } else if let Some((name, count)) = line.split_once(": ").filter(|_| counts) {
            let count: u64 = count.trim().parse().unwrap_or(0);
            *sums.entry(String::from(name)).or_insert(0) += count;
        }
    }
    match sums.is_empty() {
        true => Err(String::from("no process of it has a stack of its own")),
        false => Ok(sums),
    }
}

/// The part of the document that is read.
#[derive(serde::Deserialize)]
struct Status {
    total: Total,
}

#[derive(serde::Deserialize)]
struct Total {
    stack: Option<BTreeMap<String, u64>>,
}

/// Under the kernel's names where both count the same; other counters that are not 0 under their own.
fn figures(counts: &BTreeMap<String, u64>) -> Figures {
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of a trial are far below 2⁵³"
    )]
    let figure = |name: &str| counts.get(name).map(|count| *count as f64);
    let mut figures = Figures::new();
    for (kernel, ours) in SAME {
        if let Some(count) = figure(ours) {
            figures.insert(format!("{KERNEL}{kernel}"), count);
        }
    }
    if let (Some(again), Some(sent)) = (figure("segments_retransmitted"), figure("segments_sent"))
        && sent > 0.0
    {
        figures.insert(format!("{KERNEL}retransmitted_share"), again / sent);
    }
    for (name, _) in counts.iter().filter(|(_, count)| **count > 0) {
        figures.extend(figure(name).map(|count| (format!("own_stack.server.{name}"), count)));
    }
    figures
}

/// The kernel's name in our figures, and the name in `millstream status`.
const SAME: [(&str, &str); 12] = [
    ("segments_in", "segments_received"),
    ("segments_out", "segments_sent"),
    ("retransmitted_segments", "segments_retransmitted"),
    ("passive_opens", "opens_passive"),
    ("resets_sent", "resets_sent"),
    ("listen_overflows", "dropped_listen_queue_full"),
    ("syn_cookies_sent", "syn_cookies_sent"),
    ("timeouts", "timeouts"),
    ("fast_retransmits", "fast_retransmits"),
    ("lost_retransmits", "lost_retransmits"),
    ("out_of_order", "out_of_order"),
    ("time_wait", "time_wait"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_count_has_the_kernels_name() {
        let text = r#"{"format": 1, "server": {}, "workers": [], "total": {"server": {"requests": 7},
            "stack": {"segments_sent": 200, "segments_retransmitted": 3, "xdp_ring_full": 2, "timeouts": 0}}}"#;
        let figures = figures(&counts(text).unwrap());
        let check = |name: &str, expected: Option<f64>| {
            assert_eq!(figures.get(name).copied(), expected, "{name}");
        };
        check("tcp.server.retransmitted_segments", Some(3.0));
        check("tcp.server.retransmitted_share", Some(0.015));
        check("tcp.server.timeouts", Some(0.0));
        check("tcp.server.out_of_order", None);
        check("own_stack.server.xdp_ring_full", Some(2.0));
        check("own_stack.server.timeouts", None);
    }

    #[test]
    fn a_server_that_does_not_reply_is_asked_again_up_to_a_limit() {
        let counted = r#"{"total": {"stack": {"segments_sent": 2}}}"#;
        let check = |silent: u32, expected: Result<u64, &str>| {
            let mut asked = 0;
            let found = ask_patiently(|| {
                asked += 1;
                if asked <= silent {
                    return Err(String::from("silent"));
                }
                Ok((String::from(counted), counts(counted)?))
            });
            let found = found.map(|(text, counts)| {
                assert_eq!(text, counted);
                counts["segments_sent"]
            });
            assert_eq!(found, expected.map_err(String::from));
            assert_eq!(asked, (silent + 1).min(ATTEMPTS));
        };
        check(0, Ok(2));
        check(ATTEMPTS - 1, Ok(2));
        check(ATTEMPTS, Err("silent"));
    }

    #[test]
    fn counters_of_a_programs_own_processes_are_summed() {
        let text = "---- stack 7 nginx-c0 (nginx, ms0) ----\nsegments_sent: 200\ntimeouts: 0\n\
             ---- stack 8 nginx-c1 (nginx, ms0) ----\nsegments_sent: 20\n\
             ---- stack 9 wrk-c0 (wrk, ms0) ----\nsegments_sent: 1000\n";
        let sums = dumped(text, |process| process < 9).unwrap();
        assert_eq!(sums.get("segments_sent"), Some(&220));
        assert_eq!(sums.get("timeouts"), Some(&0));
        assert!(dumped(text, |process| process > 9).is_err());
    }

    #[test]
    fn a_server_without_counters_is_reported() {
        assert!(counts("{}").is_err());
        assert!(counts("no status").is_err());
        let without = r#"{"total": {"stack": null}}"#;
        assert_eq!(counts(without).unwrap_err(), "it has no stack of its own");
    }
}
