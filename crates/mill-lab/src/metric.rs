//! Names, units and directions of figures. A figure is a number under a dotted name; this is the one place that
//! defines the names.
//!
//! Families end in a part of their own: `cpu.server.usr`, `latency_s.p99`, `interface.server.rx_packets_per_s`.

mod family;

use Better::{Higher, Lower, Neither};
use Unit::{
    Bytes, BytesPerSecond, Count, GigabitsPerSecond, Microseconds, PerRequest, PerSecond, Percent,
    Seconds, Share,
};
use serde::{Deserialize, Serialize};

/// Which way is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    Higher,
    Lower,
    Neither,
}

/// How a figure is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// A plain number.
    Count,
    PerSecond,
    Seconds,
    /// Microseconds of CPU.
    Microseconds,
    Bytes,
    BytesPerSecond,
    GigabitsPerSecond,
    /// Of a hundred.
    Percent,
    /// Of one.
    Share,
    PerRequest,
}

/// What is known of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metric {
    /// As in the heading of a table.
    pub title: String,
    pub unit: Unit,
    pub better: Better,
    /// Default number of decimals.
    pub digits: usize,
}

/// What a name means; an unknown one is a plain count under its own name.
pub fn describe(name: &str) -> Metric {
    let (stem, rest) = name.split_once('.').unwrap_or((name, ""));
    let known = TABLE.iter().find(|(known, ..)| *known == stem);
    let Some(&(_, title, unit, better, digits)) = known else {
        return Metric {
            title: String::from(name),
            unit: Count,
            better: Neither,
            digits: 2,
        };
    };
    if rest.is_empty() {
        return Metric {
            title: String::from(title),
            unit,
            better,
            digits,
        };
    }
    let member = family::member(stem, title, rest);
    Metric {
        title: member.title,
        unit: member.unit.unwrap_or(unit),
        better,
        digits: member.digits.unwrap_or(digits),
    }
}

/// Whether a name, or the family it belongs to, is in the table.
pub fn is_known(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name);
    TABLE.iter().any(|(known, ..)| *known == stem)
}

/// The first parts of all names: what was probably meant by an unknown one.
pub fn stems() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|(stem, ..)| *stem)
}

/// Stem, title, unit, direction, decimals.
const TABLE: [(&str, &str, Unit, Better, usize); 60] = [
    // What the client printed.
    ("requests_per_s", "Requests/s", PerSecond, Higher, 2),
    ("requests", "Requests", Count, Neither, 0),
    ("seconds", "Time taken", Seconds, Neither, 3),
    (
        "transfer_bytes_per_s",
        "Transfer",
        BytesPerSecond,
        Higher,
        2,
    ),
    // True bits, 10⁹ a second.
    ("gbit_per_s", "Gb/s", GigabitsPerSecond, Higher, 2),
    // wrk's MiB/s × 8 / 1000, as some documents print it: 4.63 % less. Only beside the true one.
    (
        "gbit_per_s_from_mib",
        "\"Gb/s\" (MiB/s × 8 / 1000)",
        GigabitsPerSecond,
        Higher,
        2,
    ),
    (
        "bytes_per_response",
        "Bytes per response",
        Bytes,
        Neither,
        1,
    ),
    (
        "connections_asked",
        "Connections asked for",
        Count,
        Neither,
        0,
    ),
    ("threads", "Threads", Count, Neither, 0),
    // .mean .stdev .max .p50 .p75 .p90 .p99 .p999 …
    ("latency_s", "Latency", Seconds, Lower, 6),
    // ab's rows, and our own: .min .mean .stdev .median .max, and .p50 …
    ("connect_s", "Connect", Seconds, Lower, 6),
    ("processing_s", "Processing", Seconds, Lower, 6),
    ("waiting_s", "Waiting", Seconds, Lower, 6),
    ("total_s", "Total", Seconds, Lower, 6),
    // How much later than due requests began; .50us and .1ms: the share that began later than that, or never.
    ("lateness_s", "Lateness", Seconds, Lower, 6),
    ("late_share", "Late", Share, Lower, 5),
    // 1 of the word that `millstream load` ends in.
    ("verdict", "Verdict", Count, Neither, 0),
    ("connections_held", "Connections held", Count, Neither, 0),
    // wrk's Req/Sec a thread: .mean .stdev .max
    (
        "thread_requests_per_s",
        "Req/s a thread",
        PerSecond,
        Neither,
        2,
    ),
    // .connect .read .write .timeout .status .length .all
    ("errors", "Errors", Count, Lower, 0),
    ("failed_share", "Failed", Share, Lower, 6),
    (
        "spread_share",
        "Spread between client processes",
        Share,
        Lower,
        3,
    ),
    // Measured from outside, in the steady part. .server .client, and .both together
    (
        "cpu_us_per_request",
        "CPU per request",
        Microseconds,
        Lower,
        2,
    ),
    // user and system of the processes themselves: .server .client
    ("process_cpu", "CPU of processes", Percent, Neither, 2),
    // The same before the load began: what a server takes that has nothing to do. .server
    (
        "process_cpu_unloaded",
        "CPU of processes without load",
        Percent,
        Lower,
        1,
    ),
    // The same in seconds of the steady part, and that part's length: what costs of a request are computed from.
    (
        "cpu_seconds",
        "CPU seconds of processes",
        Seconds,
        Neither,
        3,
    ),
    // On a side's CPUs, beside what its processes are charged with: .server .client
    (
        "softirq_seconds",
        "CPU seconds of interrupts",
        Seconds,
        Neither,
        3,
    ),
    ("steady_seconds", "Steady part", Seconds, Neither, 2),
    // .server.usr .server.sys .server.soft .server.irq .server.steal .server.iowait .server.idle, the same of .client and of .cpuN
    ("cpu", "CPU", Percent, Neither, 2),
    // .server.rx_packets_per_s .rx_kib_per_s .tx_… .utilisation_percent
    ("interface", "Interface", Count, Neither, 2),
    ("interrupts_per_s", "Interrupts/s", PerSecond, Lower, 0),
    // .net_rx .net_tx …
    ("softirqs_per_s", "Softirqs/s", PerSecond, Lower, 0),
    (
        "context_switches_per_s",
        "Context switches/s",
        PerSecond,
        Lower,
        0,
    ),
    // .retransmitted_segments .listen_overflows .listen_drops .syn_retransmits .time_wait …, of .server and .client
    ("tcp", "TCP", Count, Lower, 0),
    // What a stack of our own has counted: .server and the names of `millstream status`; those that are 0 are left out.
    ("own_stack", "Own stack", Count, Neither, 0),
    ("memory_bytes", "Memory", Bytes, Lower, 0),
    // Of connections that are held: growth of the server's under load, and all of the client's: .server .client
    (
        "connection_bytes",
        "Memory of a connection",
        Bytes,
        Lower,
        0,
    ),
    ("free_memory_bytes", "Free memory", Bytes, Neither, 0),
    ("foreign_cpu_share", "CPU taken by others", Share, Lower, 3),
    (
        "steal_share",
        "CPU taken by the hypervisor",
        Share,
        Lower,
        3,
    ),
    ("pressure_share", "CPU pressure", Share, Lower, 3),
    ("ports_share", "Ephemeral ports in use", Share, Lower, 3),
    // What probes counted, in a pass of their own.
    (
        "system_calls_per_s",
        "System calls/s",
        PerSecond,
        Neither,
        0,
    ),
    (
        "system_calls_per_request",
        "System calls per request",
        PerRequest,
        Lower,
        2,
    ),
    ("malloc_per_s", "malloc calls/s", PerSecond, Neither, 0),
    (
        "malloc_per_request",
        "malloc calls per request",
        PerRequest,
        Lower,
        2,
    ),
    // malloc, calloc, realloc and their aligned variants together; .calloc .realloc … are those beside malloc
    (
        "allocations_per_s",
        "Allocator calls/s",
        PerSecond,
        Neither,
        0,
    ),
    (
        "allocations_per_request",
        "Allocator calls per request",
        PerRequest,
        Lower,
        2,
    ),
    // Growth of proportional memory (PSS) for each; .private
    (
        "idle_connection_bytes",
        "Memory of an idle connection",
        Bytes,
        Lower,
        0,
    ),
    (
        "tcp_receive_per_s",
        "tcp_recvmsg calls/s",
        PerSecond,
        Neither,
        0,
    ),
    // The column "content" of DragonFly's tables.
    (
        "contention_per_s",
        "Lock contentions/s",
        PerSecond,
        Lower,
        0,
    ),
    ("page_faults_per_s", "Page faults/s", PerSecond, Lower, 0),
    // .dtlb_loads .dtlb_misses .cache_misses .cycles .instructions …, each a second
    ("hardware", "Counter/s", Count, Neither, 0),
    // .round_trip.min … .bulk_gbit_per_s .bulk_retransmissions
    ("path", "Path", Count, Neither, 6),
    // .segments .retransmitted .out_of_order .duplicate_acks .connections .opened .resets .missed
    ("capture", "Capture", Count, Neither, 0),
    // .down .up, as the first client host sees it
    ("rate_mbit_per_s", "Mb/s", Count, Neither, 0),
    // .EXTERNAL_INTERRUPT.samples …
    ("vm_exits", "VM exits", Count, Neither, 2),
    // Only ever absent: .running_services …
    ("environment", "Environment", Count, Neither, 0),
    // Percent of the samples, by symbol.
    ("profile", "Profile", Percent, Neither, 2),
    ("memory_accesses", "Memory accesses", Count, Neither, 0),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_a_family_reads_as_a_person_would_write_it() {
        for (name, title, unit) in [
            ("cpu.server.usr", "CPU, usr, server", Percent),
            ("cpu.cpu1.soft", "CPU, soft, CPU 1", Percent),
            (
                "cpu_us_per_request.server",
                "CPU per request, server",
                Microseconds,
            ),
            ("latency_s.p99", "Latency p99", Seconds),
            ("latency_s.p999", "Latency p99.9", Seconds),
            ("latency_s.mean", "Latency, mean", Seconds),
            (
                "interface.server.utilisation_percent",
                "Link in use, server",
                Percent,
            ),
            (
                "interface.client.rx_packets_per_s",
                "Packets received/s, client",
                PerSecond,
            ),
            (
                "tcp.server.listen_overflows",
                "TCP listen overflows, server",
                Count,
            ),
            ("path.round_trip.mean", "Round trip, mean", Seconds),
            ("profile._raw_spin_lock", "_raw_spin_lock", Percent),
            (
                "vm_exits.MSR_WRITE.time_percent",
                "VM exits MSR_WRITE, time",
                Percent,
            ),
            ("free_memory_bytes.node0", "Free memory, node 0", Bytes),
        ] {
            let metric = describe(name);
            assert_eq!(metric.title, title, "{name}");
            assert_eq!(metric.unit, unit, "{name}");
            assert!(is_known(name));
        }
    }

    #[test]
    fn an_unknown_name_stands_for_itself() {
        assert_eq!(describe("frogs").title, "frogs");
        assert!(!is_known("frogs"));
    }
}
