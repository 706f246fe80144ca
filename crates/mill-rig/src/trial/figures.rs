//! From what was printed and seen to what is compared: costs per request, the limit, whether the trial counts.

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
    }
    figures.extend(more);
}

/// What a probe counted a second, also for each request; its own rate is not kept: looking costs.
pub(super) fn add_probe(record: &mut TrialRecord, looked: Looked, rate: Option<f64>) {
    for (name, per_request) in PER_REQUEST {
        let Some(count) = looked.figures.get(name) else {
            continue;
        };
        match rate.filter(|rate| *rate > 0.0) {
            Some(rate) => {
                record
                    .figures
                    .insert(String::from(per_request), count / rate);
            }
            None => {
                let reason = "the load ended before the probe did";
                record
                    .absent
                    .insert(String::from(per_request), String::from(reason));
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

/// Says which side was the limit, and whether others disturbed.
pub(super) fn judge(record: &mut TrialRecord, repeat: &Repeat) {
    record.limit = limit::judge(&record.figures);
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
    record.status = Status::Void { reason };
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }
}
