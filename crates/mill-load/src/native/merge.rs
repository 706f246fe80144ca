//! Merges several results: histograms are added, percentiles never averaged.
//!
//! A part that differs from the others is reported, because it dominates the tail of the sum: Treadmill (Zhang et al.,
//! ISCA 2016) found one bad client among good ones to be a common reason for wrong percentiles.

/// `millstream load merge`.
mod command;
/// Compares the parts.
mod spread;

pub use command::main;
pub use spread::{PartLine, emit_parts, part_lines};

use crate::native::results::Results;
use crate::native::series::Period;
use crate::platform::{Machine, ProgramsCpu};
use crate::silence;
use core::time::Duration;
use mill_metrics::Histogram;

/// Where the parts of a result ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// On one machine: each part read the same counters.
    Same,
    /// On several: each machine's counters are added.
    Several,
}

/// Merges parts that ran at the same time; `None` without any.
pub fn merge(parts: &[Results], hosts: Hosts) -> Option<Results> {
    let (first, others) = parts.split_first()?;
    let mut sum = first.clone();
    for part in others {
        sum.began = sum.began.min(part.began);
        sum.measured = sum.measured.max(part.measured);
        sum.tally += part.tally;
        sum.measures.add(&part.measures);
        sum.answers.add(&part.answers);
        for failure in &part.failures {
            if !sum.failures.iter().any(|(kind, _)| *kind == failure.0) {
                sum.failures.push(failure.clone());
            }
        }
        add_machine(&mut sum.machine, &part.machine, hosts);
        sum.interrupted |= part.interrupted;
        sum.aborted = sum.aborted.or_else(|| part.aborted.clone());
    }
    sum.periods = merge_periods(parts);
    sum.gaps = silence::common(parts.iter().map(|part| part.gaps.as_slice()));
    Some(sum)
}

/// Periods of the same number are merged: the parts began together and have the same interval.
fn merge_periods(parts: &[Results]) -> Vec<Period> {
    let longest = parts.iter().map(|part| part.periods.len()).max();
    (0..longest.unwrap_or(0))
        .filter_map(|index| {
            let same: Vec<&Period> = parts
                .iter()
                .filter_map(|part| part.periods.get(index))
                .collect();
            merge_period(&same)
        })
        .collect()
}

/// The sum of periods of one number; `None` without any.
pub(super) fn merge_period(same: &[&Period]) -> Option<Period> {
    let (first, others) = same.split_first()?;
    if others.is_empty() {
        return Some((*first).clone());
    }
    let mut sum = (*first).clone();
    let mut latency = Histogram::new();
    for period in same {
        // A part's own histogram is valid: it was written by us, or checked when its file was read.
        if let Ok(own) = Histogram::parse(&period.histogram) {
            latency.add(&own);
        }
    }
    for period in others {
        sum.begin = sum.begin.min(period.begin);
        sum.end = sum.end.max(period.end);
        sum.started += period.started;
        sum.answered += period.answered;
        sum.failed += period.failed;
        sum.bytes_received += period.bytes_received;
        sum.connected += period.connected;
        sum.open += period.open;
        sum.max = sum.max.max(period.max);
    }
    [sum.p50, sum.p90, sum.p99] = [50.0, 90.0, 99.0].map(|percent| latency.percentile(percent));
    sum.histogram = latency.emit();
    Some(sum)
}

fn add_machine(sum: &mut Machine, part: &Machine, hosts: Hosts) {
    sum.threads.extend_from_slice(&part.threads);
    let count = |one: Option<u64>, other: Option<u64>| match (one, other) {
        (Some(one), Some(other)) if hosts == Hosts::Several => Some(one + other),
        (one, other) => one.max(other),
    };
    sum.listen_overflows = count(sum.listen_overflows, part.listen_overflows);
    sum.retransmitted_segments = count(sum.retransmitted_segments, part.retransmitted_segments);
    sum.sent_segments = count(sum.sent_segments, part.sent_segments);
    // The worst machine decides whether the run was disturbed or a link full.
    sum.steal = larger(sum.steal, part.steal);
    sum.programs = match (sum.programs, part.programs) {
        (Some(one), Some(other)) if hosts == Hosts::Several => Some(ProgramsCpu {
            used: one.used + other.used,
            available: one.available + other.available,
        }),
        // Each part read the counters of the same programs; the longest reading is the best one.
        (Some(one), Some(other)) if one.available > other.available => Some(one),
        (one, other) => other.or(one),
    };
    let share = |machine: &Machine| machine.link_use.as_ref().and_then(|link| link.share);
    if sum.link_use.is_none() || share(part) > share(sum) {
        sum.link_use = part.link_use.clone().or_else(|| sum.link_use.take());
    }
    let busy = |machine: &Machine| server_time(machine);
    if busy(part) > busy(sum) {
        sum.server = part.server.clone();
    }
}

fn larger(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.max(other)),
        (one, other) => one.or(other),
    }
}

fn server_time(machine: &Machine) -> Option<Duration> {
    let server = machine.server.as_ref()?;
    Some(server.user + server.system)
}

#[cfg(test)]
pub(crate) mod tests;
