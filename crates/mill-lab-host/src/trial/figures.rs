//! From tools' output and samples to figures to compare: costs per request, the limit, whether the trial counts.

use crate::probe::Looked;
use mill_lab::limit;
use mill_lab::recipe::Repeat;
use mill_lab::record::{Figures, Status, TrialRecord};

/// Adds what follows from two figures.
pub(super) fn derive(figures: &mut Figures) {
    let figure = |name: &str| figures.get(name).copied();
    let mut more = Vec::new();
    if let (Some(rate), Some(seconds)) = (figure("requests_per_s"), figure("steady_seconds")) {
        let requests = rate * seconds;
        for side in ["server", "client"] {
            let process = figure(&format!("cpu_seconds.{side}"));
            // Softirq work that a process's own clock does not have: packets of veth and lo are handled in it.
            let softirq = figure(&format!("softirq_seconds.{side}")).unwrap_or(0.0);
            if let Some(process) = process.filter(|_| requests > 0.0) {
                let micros = (process + softirq) * 1e6 / requests;
                more.push((format!("cpu_us_per_request.{side}"), micros));
            }
        }
        // Packets between namespaces are processed on one side's CPUs or the other's: only the sum is the cost of a
        // request.
        if let [(_, server), (_, client)] = more.as_slice() {
            let both = server + client;
            more.push((String::from("cpu_us_per_request.both"), both));
        }
    }
    figures.extend(more);
}

/// A server that left the foreground is not a descendant of the lab: its time would count as other programs', and the
/// trial as disturbed.
pub(super) fn forget_server(record: &mut TrialRecord) {
    let reason = "the server left the foreground: which processes are its own is not known";
    for name in [
        "foreign_cpu_share",
        "process_cpu.server",
        "cpu.server.own",
        "cpu.server.others",
        "cpu.client.other_side",
        "cpu_seconds.server",
        "cpu_us_per_request.server",
        "memory_bytes.server",
    ] {
        record.figures.remove(name);
        record
            .absent
            .insert(String::from(name), String::from(reason));
    }
}

/// What a probe counted per second, also per request; its own rate is dropped, because probing slows the server.
pub(super) fn add_probe(
    record: &mut TrialRecord,
    looked: Looked,
    rate: Result<Option<f64>, String>,
) {
    // Looking slows the server, and the load lasts longer than the look: what was received while counting is the number of
    // requests, one each, as seed 004 has it (1,027,994 malloc to 256,699 tcp_recvmsg).
    let received = looked.figures.get("tcp_receive_per_s").copied();
    let rate = match received.filter(|rate| *rate > 0.0) {
        Some(received) => Ok(received),
        None => rate.and_then(|rate| {
            let rate = rate.filter(|rate| *rate > 0.0);
            rate.ok_or_else(|| String::from("the load under the probe had no rate"))
        }),
    };
    for (name, per_request) in PER_REQUEST {
        let Some(count) = looked.figures.get(name) else {
            continue;
        };
        match &rate {
            Ok(rate) => {
                record
                    .figures
                    .insert(String::from(per_request), count / rate);
            }
            Err(reason) => {
                record
                    .absent
                    .insert(String::from(per_request), reason.clone());
            }
        }
    }
    record.figures.extend(looked.figures);
    record.absent.extend(looked.absent);
    record.artefacts.extend(looked.artefacts);
    record.commands.extend(looked.commands);
    record.notes.extend(looked.notes);
}

const PER_REQUEST: [(&str, &str); 3] = [
    ("system_calls_per_s", "system_calls_per_request"),
    ("malloc_per_s", "malloc_per_request"),
    ("allocations_per_s", "allocations_per_request"),
];

/// Names the side that was the limit, and whether other programs disturbed the trial.
pub(super) fn judge(record: &mut TrialRecord, repeat: &Repeat, server_polls: bool) {
    if record.figures.is_empty() && record.artefacts.is_empty() {
        record.status = Status::Absent {
            reason: nothing_because(record),
        };
        return;
    }
    record.limit = limit::judge(&record.figures, server_polls);
    let share = |name: &str| record.figures.get(name).copied().unwrap_or(0.0);
    let (foreign, steal) = (share("foreign_cpu_share"), share("steal_share"));
    let reason = if foreign > repeat.foreign_cpu {
        format!(
            "other programs took {:.1} % of the machine's CPU time",
            foreign * 100.0
        )
    } else if steal > repeat.steal {
        format!(
            "the hypervisor took {:.1} % of the machine's CPU time",
            steal * 100.0
        )
    } else {
        return;
    };
    record.status = Status::Disturbed { reason };
}

/// Why a trial without an error has no figure.
fn nothing_because(record: &TrialRecord) -> String {
    match record.absent.iter().next() {
        Some((metric, reason)) => format!("{metric}: {reason}"),
        None => {
            String::from("no load and no probe in this trial: probes look once, in the first block")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_divided_by_the_requests_received_while_counting() {
        let counted = |figures: &[(&str, f64)]| {
            let mut record = TrialRecord::default();
            let looked = Looked {
                figures: figures
                    .iter()
                    .map(|(name, value)| (String::from(*name), *value))
                    .collect(),
                ..Looked::default()
            };
            // Before and after the look the server was faster.
            add_probe(&mut record, looked, Ok(Some(12_600.0)));
            record.figures["malloc_per_request"]
        };
        let seen = [("malloc_per_s", 29_477.0), ("tcp_receive_per_s", 7_369.25)];
        assert!((counted(&seen) - 4.0).abs() < 1e-9);
        assert!((counted(&seen[..1]) - 29_477.0 / 12_600.0).abs() < 1e-9);
    }

    #[test]
    fn a_trial_without_a_figure_is_not_called_measured() {
        let mut empty = TrialRecord::default();
        empty
            .absent
            .insert(String::from("profile"), String::from("needs perf"));
        judge(&mut empty, &Repeat::default(), false);
        let reason = String::from("profile: needs perf");
        assert_eq!(empty.status, Status::Absent { reason });
        let mut kept = TrialRecord::default();
        kept.artefacts.push(String::from("environment.txt"));
        judge(&mut kept, &Repeat::default(), false);
        assert_eq!(kept.status, Status::Measured);
    }

    #[test]
    fn a_probe_counts_for_each_request_only_under_a_load_that_outlived_it() {
        let looked = || Looked {
            figures: [(String::from("malloc_per_s"), 3000.0)].into(),
            ..Looked::default()
        };
        let mut good = TrialRecord::default();
        add_probe(&mut good, looked(), Ok(Some(1000.0)));
        assert_eq!(good.figures.get("malloc_per_request"), Some(&3.0));
        for rate in [Ok(None), Ok(Some(0.0)), Err(String::from("it ended"))] {
            let mut bad = TrialRecord::default();
            add_probe(&mut bad, looked(), rate);
            assert!(!bad.figures.contains_key("malloc_per_request"));
            assert!(bad.absent.contains_key("malloc_per_request"));
        }
    }

    #[test]
    fn a_requests_cost_is_the_processes_time_and_the_softirq_done_for_them() {
        let mut figures: Figures = [
            ("requests_per_s", 1000.0),
            ("steady_seconds", 2.0),
            ("cpu_seconds.server", 0.01),
            ("softirq_seconds.server", 0.004),
        ]
        .map(|(name, value)| (String::from(name), value))
        .into();
        derive(&mut figures);
        assert!((figures["cpu_us_per_request.server"] - 7.0).abs() < 1e-9);
        assert!(!figures.contains_key("cpu_us_per_request.client"));
        assert!(!figures.contains_key("cpu_us_per_request.both"));
        figures.insert(String::from("cpu_seconds.client"), 0.006);
        derive(&mut figures);
        assert!((figures["cpu_us_per_request.both"] - 10.0).abs() < 1e-9);
    }
}
