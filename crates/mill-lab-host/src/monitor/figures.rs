//! From samples to figures, under the names of the metric table.

use super::cpu::{SOFTIRQS, TICKS_PER_SECOND, Times, float};
use super::network::Traffic;
use super::sample::{Facts, Sample, Side};
use mill_lab::record::Figures;
use std::time::Duration;

/// Rates and shares between the first sample and the last; none of fewer than two.
pub(super) fn between(samples: &[Sample], facts: &Facts) -> Figures {
    let mut figures = Figures::new();
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
        return figures;
    };
    let seconds = last.at.saturating_sub(first.at).as_secs_f64();
    if seconds <= 0.0 {
        return figures;
    }
    machine(first, last, seconds, &mut figures);
    for cpu in &facts.cpus {
        if let (Some(before), Some(after)) = (first.stat.cpus.get(cpu), last.stat.cpus.get(cpu)) {
            classes(&format!("cpu{cpu}"), &after.since(before), &mut figures);
        }
    }
    let foreign = foreign_ticks(first, last);
    for ((name, of, other), mbit) in SIDES
        .into_iter()
        .zip([facts.server_mbit, facts.client_mbit])
    {
        let before = of(first);
        let after = of(last);
        processes(name, before, after, seconds, &mut figures);
        if let (Some(before_cpus), Some(after_cpus)) = (&before.cpus, &after.cpus) {
            let times = after_cpus.since(before_cpus);
            classes(name, &times, &mut figures);
            let neighbours = if facts.shared_cpus {
                other(last).usage.cpu_seconds - other(first).usage.cpu_seconds
            } else {
                0.0
            };
            let own = after.usage.cpu_seconds - before.usage.cpu_seconds;
            let softirq = softirq_seconds(&times, own + neighbours);
            figures.insert(format!("softirq_seconds.{name}"), softirq);
            // No process of the side is known, so its CPUs' work cannot be attributed.
            if after.usage.processes > 0 || before.usage.processes > 0 {
                let shared = facts.shared_cpus.then_some(neighbours);
                owners(name, &times, (own, softirq), shared, &mut figures);
            }
        }
        if let (Some(before), Some(after)) = (&before.traffic, &after.traffic) {
            interface(name, &after.since(before), seconds, mbit, &mut figures);
        }
        gauges(name, samples.iter().map(of), &mut figures);
        if let Some(rate) = interrupts(samples, of) {
            figures.insert(format!("interrupts_per_s.{name}"), rate);
        }
    }
    figures.insert(
        String::from("foreign_cpu_share"),
        foreign / capacity(first, last).max(1.0),
    );
    if let Some(ports) = facts.ports {
        let taken = samples.iter().map(|sample| taken_ports(sample, facts));
        figures.insert(
            String::from("ports_share"),
            taken.fold(0.0, f64::max) / ports,
        );
    }
    let free = samples
        .iter()
        .map(|sample| sample.free_memory.values().sum::<u64>());
    if let Some(least) = free.min().filter(|least| *least > 0) {
        figures.insert(String::from("free_memory_bytes"), float(least));
    }
    for node in last.free_memory.keys() {
        let least = samples
            .iter()
            .filter_map(|sample| sample.free_memory.get(node));
        if let Some(least) = least.min() {
            figures.insert(format!("free_memory_bytes.node{node}"), float(*least));
        }
    }
    figures
}

type Of = fn(&Sample) -> &Side;

/// Name, the side itself, the other one.
const SIDES: [(&str, Of, Of); 2] = [
    ("server", |sample| &sample.server, |sample| &sample.client),
    ("client", |sample| &sample.client, |sample| &sample.server),
];

/// Counts of TCP from the first sample to the last. They cover the whole load with its ramps: an overflow in the
/// first second causes the longest latencies.
pub(super) fn tcp(samples: &[Sample]) -> Figures {
    let mut figures = Figures::new();
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
        return figures;
    };
    for (name, of, ..) in SIDES {
        let before = &of(first).tcp.counters;
        let count = |counter: &str, after: u64| {
            float(after.saturating_sub(before.get(counter).copied().unwrap_or(0)))
        };
        for (counter, after) in &of(last).tcp.counters {
            figures.insert(format!("tcp.{name}.{counter}"), count(counter, *after));
        }
        let figure = |counter: &str| figures.get(&format!("tcp.{name}.{counter}")).copied();
        if let (Some(again), Some(sent)) =
            (figure("retransmitted_segments"), figure("segments_out"))
            && sent > 0.0
        {
            figures.insert(format!("tcp.{name}.retransmitted_share"), again / sent);
        }
    }
    figures
}

fn machine(first: &Sample, last: &Sample, seconds: f64, figures: &mut Figures) {
    let mut rate = |name: String, after: u64, before: u64| {
        figures.insert(name, float(after.saturating_sub(before)) / seconds);
    };
    let (before, after) = (&first.stat, &last.stat);
    rate(
        String::from("interrupts_per_s"),
        after.interrupts,
        before.interrupts,
    );
    rate(
        String::from("context_switches_per_s"),
        after.context_switches,
        before.context_switches,
    );
    for (index, name) in SOFTIRQS.iter().enumerate() {
        rate(
            format!("softirqs_per_s.{name}"),
            after.softirqs[index],
            before.softirqs[index],
        );
    }
    let all = after.all.since(&before.all);
    figures.insert(
        String::from("steal_share"),
        float(all.steal) / capacity(first, last).max(1.0),
    );
    if let (Some(before), Some(after)) = (first.pressure_us, last.pressure_us) {
        let waited = Duration::from_micros(after.saturating_sub(before)).as_secs_f64();
        figures.insert(String::from("pressure_share"), (waited / seconds).min(1.0));
    }
}

/// Between the first and the last sample that counted them; none if there were fewer than two.
fn interrupts(samples: &[Sample], of: Of) -> Option<f64> {
    let mut counted = samples
        .iter()
        .filter_map(|sample| Some((sample.at, of(sample).interrupts?)));
    let (first, before) = counted.next()?;
    let (last, after) = counted.next_back()?;
    Some(float(after.saturating_sub(before)) / last.saturating_sub(first).as_secs_f64())
}

/// Ticks of all CPUs.
fn capacity(first: &Sample, last: &Sample) -> f64 {
    float(last.stat.all.since(&first.stat.all).total())
}

/// Ticks of processes that are neither the server's nor the clients': all user, nice and system time of /proc/stat,
/// less what the two trees used. The lab itself is foreign. Interrupts count for no process; where the kernel does
/// not keep them apart from the processes they interrupted, they are in the trees' times, and the share comes out too
/// small by as much, never too large.
fn foreign_ticks(first: &Sample, last: &Sample) -> f64 {
    let all = float(last.stat.all.since(&first.stat.all).processes());
    let ours: f64 = SIDES
        .iter()
        .map(|(_, of, ..)| of(last).usage.cpu_seconds - of(first).usage.cpu_seconds)
        .sum();
    (all - ours * TICKS_PER_SECOND).max(0.0)
}

/// Interrupt time on a side's CPUs that its processes are not already charged with.
///
/// Without CONFIG_IRQ_TIME_ACCOUNTING a process is charged with interrupts that hit it, and adding the softirq class
/// to its time would count them twice. The result is the busy time of the CPUs less the time charged to processes, at
/// most the softirq class; the limit excludes other processes.
fn softirq_seconds(times: &Times, process_seconds: f64) -> f64 {
    let interrupts = float(times.interrupts()) / TICKS_PER_SECOND;
    let busy = float(times.processes()) / TICKS_PER_SECOND + interrupts;
    (busy - process_seconds).clamp(0.0, interrupts)
}

fn classes(name: &str, times: &Times, figures: &mut Figures) {
    for (class, percent) in times.percentages() {
        figures.insert(format!("cpu.{name}.{class}"), percent);
    }
}

/// Attributes the work of a side's CPUs, in percent of them: its own with the softirq there, the other side's where
/// they share CPUs, and that of unrelated processes. Time that the hypervisor took is a class of its own.
fn owners(
    name: &str,
    times: &Times,
    (own, softirq): (f64, f64),
    other_side: Option<f64>,
    figures: &mut Figures,
) {
    let all = float(times.total()) / TICKS_PER_SECOND;
    if all <= 0.0 {
        return;
    }
    let processes = float(times.processes()) / TICKS_PER_SECOND;
    // A process that is bound to other CPUs did not work here.
    let own = own.min(processes);
    let beside = other_side.map(|seconds| seconds.min(processes - own));
    let others = processes - own - beside.unwrap_or(0.0);
    let mut insert = |what: &str, seconds: f64| {
        let percent = (seconds * 100.0 / all).clamp(0.0, 100.0);
        figures.insert(format!("cpu.{name}.{what}"), percent);
    };
    insert("own", own + softirq);
    insert("others", others);
    if let Some(beside) = beside {
        insert("other_side", beside);
    }
}

fn processes(name: &str, before: &Side, after: &Side, seconds: f64, figures: &mut Figures) {
    if after.usage.processes == 0 && before.usage.processes == 0 {
        return;
    }
    let (before, after) = (&before.usage, &after.usage);
    let used = after.cpu_seconds - before.cpu_seconds;
    figures.insert(format!("cpu_seconds.{name}"), used);
    figures.insert(format!("process_cpu.{name}"), used * 100.0 / seconds);
    let rate = |after: u64, before: u64| float(after.saturating_sub(before)) / seconds;
    let voluntary = rate(after.voluntary_switches, before.voluntary_switches);
    let involuntary = rate(after.involuntary_switches, before.involuntary_switches);
    let stem = format!("context_switches_per_s.{name}");
    figures.insert(format!("{stem}.voluntary"), voluntary);
    figures.insert(format!("{stem}.involuntary"), involuntary);
    figures.insert(stem, voluntary + involuntary);
}

/// As in `sar -n DEV`, whose kB are 1024 bytes.
fn interface(name: &str, went: &Traffic, seconds: f64, mbit: Option<f64>, figures: &mut Figures) {
    let mut insert = |what: &str, value: f64| {
        figures.insert(format!("interface.{name}.{what}"), value);
    };
    insert("rx_packets_per_s", float(went.rx_packets) / seconds);
    insert("tx_packets_per_s", float(went.tx_packets) / seconds);
    insert("rx_kib_per_s", float(went.rx_bytes) / 1024.0 / seconds);
    insert("tx_kib_per_s", float(went.tx_bytes) / 1024.0 / seconds);
    insert("dropped", float(went.rx_dropped + went.tx_dropped));
    insert("errors", float(went.rx_errors + went.tx_errors));
    if let Some(mbit) = mbit {
        // Full duplex: the busier direction is the link's load.
        let bits = float(went.rx_bytes.max(went.tx_bytes)) * 8.0 / seconds;
        insert("utilisation_percent", bits * 100.0 / (mbit * 1e6));
    }
}

/// Gauges of an instant: the maximum over the samples.
fn gauges<'a>(name: &str, sides: impl Iterator<Item = &'a Side>, figures: &mut Figures) {
    let (mut memory, mut waiting, mut in_use, mut any) = (0, 0, 0, false);
    for side in sides {
        memory = memory.max(side.usage.resident_bytes);
        waiting = waiting.max(side.tcp.time_wait);
        in_use = in_use.max(side.tcp.in_use);
        any |= !side.tcp.counters.is_empty();
    }
    if memory > 0 {
        figures.insert(format!("memory_bytes.{name}"), float(memory));
    }
    if any {
        figures.insert(format!("tcp.{name}.time_wait"), float(waiting));
        figures.insert(format!("tcp.{name}.in_use"), float(in_use));
    }
}

/// Ephemeral ports that the fullest client host has taken. Where the server is in the same namespace, half of the
/// sockets are its own, and of those in TIME_WAIT all that it closed first: they hold the server's port, not the
/// client's.
fn taken_ports(sample: &Sample, facts: &Facts) -> f64 {
    if facts.shared_network {
        let tcp = &sample.client.tcp;
        float(tcp.in_use) / 2.0 + float(tcp.time_wait) * facts.client_waits
    } else {
        float(sample.client.fullest)
    }
}
