//! `perf stat`: system calls, calls of malloc, contention, TLB and caches, of a side's processes.

use super::allocations::Allocations;
use super::tool::{self, GRACE};
use super::tracing;
use super::{Looked, Scene, Target};
use crate::host::{Host, Line};
use mill_lab::recipe::{Counter, Probe, Where};
use std::time::Duration;

/// Counts for `seconds`, all counters in one `perf stat`.
pub(super) fn look(probe: &Probe, scene: &Scene, seconds: f64, looked: &mut Looked) {
    let asked = wanted(&probe.counters);
    let ready = scene.target(probe.at).and_then(|target| {
        if tool::find("perf").is_none() {
            return Err(tool::missing("perf"));
        }
        Ok(target)
    });
    let target = match ready {
        Ok(target) => target,
        Err(reason) => {
            for counter in asked {
                looked.miss(metric_of(counter), reason.clone());
            }
            return;
        }
    };
    // Held until perf has ended: dropping removes its events.
    let mut allocations = None;
    let mut events: Vec<Event> = Vec::new();
    for counter in asked {
        let found = if counter == Counter::Malloc {
            allocation_events(scene, &target, &mut allocations, looked)
        } else {
            events_of(counter, looked)
        };
        match found {
            Ok(found) => events.extend(found),
            Err(reason) => looked.miss(metric_of(counter), reason),
        }
    }
    if events.is_empty() {
        return;
    }
    let names: Vec<&str> = events.iter().map(|event| event.perf.as_str()).collect();
    let mut line = Line::new(["perf", "stat", "-x,", "-e"]);
    line.argv.push(names.join(","));
    line.argv.extend(target.arguments());
    // Counts are divided by the seconds given to sleep, not by the unrounded time.
    let seconds = tenths(seconds);
    let span = format!("{seconds:.1}");
    line.argv.extend(["--", "sleep", &span].map(String::from));
    looked.ran(&Host::Local, &line);
    let began = mill_sys::clock::monotonic();
    let patience = Duration::from_secs_f64(seconds) + GRACE;
    let printed = tool::run(&Host::Local, &line, patience);
    let took = (mill_sys::clock::monotonic() - began).as_secs_f64();
    let counted = printed.and_then(|printed| {
        let counted = parse(&printed.err);
        if counted.is_empty() {
            Err(format!("perf stat: {}", printed.complaint()))
        } else {
            Ok(counted)
        }
    });
    // perf counts from the start of sleep to its end; if that took much longer, processes were starved.
    if took > seconds + 1.0 {
        looked.notes.push(format!(
            "perf stat took {took:.1} s for {seconds:.1} s: the machine was busy"
        ));
    }
    record(&events, counted, seconds, looked);
}

fn tenths(seconds: f64) -> f64 {
    (seconds * 10.0).round().max(1.0) / 10.0
}

/// One event of perf's and the figure that it adds to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Event {
    perf: String,
    figures: Vec<String>,
}

impl Event {
    fn new(perf: &str, figure: &str) -> Self {
        Self {
            perf: String::from(perf),
            figures: vec![String::from(figure)],
        }
    }
}

/// The recipe's counters, or a set that every machine can count.
fn wanted(counters: &[Counter]) -> Vec<Counter> {
    if counters.is_empty() {
        return vec![
            Counter::SystemCalls,
            Counter::ContextSwitches,
            Counter::PageFaults,
        ];
    }
    let all: std::collections::BTreeSet<Counter> = counters.iter().copied().collect();
    all.into_iter().collect()
}

/// The figure that is absent if a counter is unavailable.
fn metric_of(counter: Counter) -> String {
    match counter {
        Counter::SystemCalls => String::from("system_calls_per_s"),
        Counter::Malloc => String::from("malloc_per_s"),
        Counter::TcpReceive => String::from("tcp_receive_per_s"),
        Counter::LockContention => String::from("contention_per_s"),
        Counter::ContextSwitches => String::from(SWITCHES),
        Counter::PageFaults => String::from("page_faults_per_s"),
        Counter::Tlb => String::from("hardware.dtlb_loads"),
        Counter::Cache => String::from("hardware.cache_misses"),
        Counter::Cycles => String::from("hardware.cycles"),
        Counter::MemoryAccess => String::from("memory_accesses.loads"),
    }
}

/// Other names than the monitor's: what a probe counted never replaces what was measured without one.
const SWITCHES: &str = "context_switches_per_s.counted";

fn events_of(counter: Counter, looked: &mut Looked) -> Result<Vec<Event>, String> {
    let tracepoint = |system: &str, name: &str, figure: &str| {
        tracing::has(system, name).map(|()| vec![Event::new(&format!("{system}:{name}"), figure)])
    };
    match counter {
        Counter::SystemCalls => tracepoint("raw_syscalls", "sys_enter", "system_calls_per_s"),
        Counter::LockContention => tracepoint("lock", "contention_begin", "contention_per_s"),
        Counter::ContextSwitches => Ok(vec![Event::new("context-switches", SWITCHES)]),
        Counter::PageFaults => Ok(vec![Event::new("page-faults", "page_faults_per_s")]),
        Counter::Tlb => Ok(vec![
            Event::new("dTLB-loads", "hardware.dtlb_loads"),
            Event::new("dTLB-load-misses", "hardware.dtlb_misses"),
        ]),
        Counter::Cache => Ok(vec![
            Event::new("cache-references", "hardware.cache_references"),
            Event::new("cache-misses", "hardware.cache_misses"),
        ]),
        Counter::Cycles => Ok(vec![
            Event::new("cycles", "hardware.cycles"),
            Event::new("instructions", "hardware.instructions"),
        ]),
        Counter::MemoryAccess => memory_accesses(),
        Counter::TcpReceive => {
            // A tracepoint in tcp_recvmsg itself: no kprobe has to be placed or removed.
            let found = tracepoint("tcp", "tcp_rcv_space_adjust", "tcp_receive_per_s")?;
            looked.notes.push(String::from(
                "tcp_recvmsg is counted where it has copied data (tracepoint tcp:tcp_rcv_space_adjust): calls that found none are not in it",
            ));
            Ok(found)
        }
        Counter::Malloc => Ok(Vec::new()),
    }
}

/// Loads and stores, sampled by the processor: what `perf mem` records.
fn memory_accesses() -> Result<Vec<Event>, String> {
    let folder = std::path::Path::new("/sys/bus/event_source/devices/cpu/events");
    if !folder.join("mem-loads").exists() {
        return Err(String::from(
            "the processor offers no memory events here: needs Intel PEBS (mem-loads), which virtual machines seldom pass on",
        ));
    }
    Ok(vec![
        Event::new("cpu/mem-loads,ldlat=30/", "memory_accesses.loads"),
        Event::new("cpu/mem-stores/", "memory_accesses.stores"),
    ])
}

fn allocation_events(
    scene: &Scene,
    target: &Target,
    held: &mut Option<Allocations>,
    looked: &mut Looked,
) -> Result<Vec<Event>, String> {
    let processes = match target {
        Target::Processes(processes) => processes.clone(),
        Target::Machine => match scene.target(Where::Server)? {
            Target::Processes(processes) => processes,
            Target::Machine => Vec::new(),
        },
    };
    let allocations = Allocations::add(&processes)?;
    for line in &allocations.lines {
        looked.ran(&Host::Local, line);
    }
    let files: Vec<&str> = allocations.files.iter().map(String::as_str).collect();
    looked
        .notes
        .push(format!("malloc was counted in {}", files.join(", ")));
    let events = allocations.events.iter().map(|event| {
        let mut figures = vec![String::from("allocations_per_s")];
        figures.push(if event.function == "malloc" {
            String::from("malloc_per_s")
        } else {
            format!("allocations_per_s.{}", event.function)
        });
        Event {
            perf: allocations.name(event),
            figures,
        }
    });
    let events = events.collect();
    *held = Some(allocations);
    Ok(events)
}

/// perf's result for an event: a count, or the reason why there is none.
type Counted = (String, Result<f64, String>);

/// Lines of `perf stat -x,`: value, unit, event, time on the counter, its share in percent, more. The event of a raw
/// description holds commas itself.
fn parse(text: &str) -> Vec<Counted> {
    text.lines()
        .filter_map(|line| {
            let (value, rest) = line.split_once(',')?;
            let (_unit, rest) = rest.split_once(',')?;
            let event = event_name(rest);
            let value = match value {
                "<not supported>" => Err(String::from(
                    "perf says <not supported>: the processor's counters are not passed on to this machine; needs a host without virtualisation, or one that does",
                )),
                // No event happened, or the processes were never on a CPU.
                "<not counted>" => Ok(0.0),
                number => Ok(number.parse().ok()?),
            };
            Some((String::from(event), value))
        })
        .collect()
}

fn event_name(rest: &str) -> &str {
    if rest.starts_with("cpu/") {
        let end = rest.match_indices('/').nth(1).map(|(index, _)| index + 1);
        return &rest[..end.unwrap_or(rest.len())];
    }
    rest.split(',').next().unwrap_or(rest)
}

fn record(
    events: &[Event],
    counted: Result<Vec<Counted>, String>,
    seconds: f64,
    looked: &mut Looked,
) {
    for event in events {
        let value = match &counted {
            Ok(counted) => counted
                .iter()
                .find(|(name, _)| *name == event.perf)
                .map_or_else(
                    || Err(format!("perf stat printed nothing of {}", event.perf)),
                    |(_, value)| value.clone(),
                ),
            Err(reason) => Err(reason.clone()),
        };
        match value {
            Ok(count) => {
                for figure in &event.figures {
                    *looked.figures.entry(figure.clone()).or_insert(0.0) += count / seconds;
                }
            }
            Err(reason) => {
                for figure in &event.figures {
                    looked.miss(figure.clone(), reason.clone());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_what_sleep_is_told() {
        for (seconds, expected) in [(1.25, 1.3), (3.0, 3.0), (0.04, 0.1)] {
            assert_eq!(tenths(seconds), expected);
        }
    }

    const STAT: &str = "\
# started on Sat Nov 21 08:00:00 2026

4321,,raw_syscalls:sys_enter,3003000000,100.00,,
<not counted>,,context-switches,0,100.00,,
<not supported>,,dTLB-loads,0,100.00,,
1027994,,millstream_42:malloc_42_0,8000000,71.49,128499.250,/sec
97,,cpu/mem-loads,ldlat=30/,8000000,100.00,,
";

    #[test]
    fn lines_of_perf_are_counts_or_reasons() {
        let counted = parse(STAT);
        let check = |name: &str, expected: Option<f64>| {
            let found = counted.iter().find(|(event, _)| event == name);
            let (_, value) = found.unwrap_or_else(|| panic!("{name}"));
            assert_eq!(value.clone().ok(), expected, "{name}");
        };
        check("raw_syscalls:sys_enter", Some(4321.0));
        check("context-switches", Some(0.0));
        check("dTLB-loads", None);
        check("millstream_42:malloc_42_0", Some(1_027_994.0));
        check("cpu/mem-loads,ldlat=30/", Some(97.0));
        assert_eq!(counted.len(), 5);
    }

    #[test]
    fn functions_of_allocators_add_up_and_keep_their_reasons() {
        let mut looked = Looked::default();
        let event = |perf: &str, figures: &[&str]| Event {
            perf: String::from(perf),
            figures: figures.iter().copied().map(String::from).collect(),
        };
        let events = [
            event("a", &["allocations_per_s", "malloc_per_s"]),
            event("b", &["allocations_per_s", "allocations_per_s.calloc"]),
            event("dTLB-loads", &["hardware.dtlb_loads"]),
            event("gone", &["page_faults_per_s"]),
        ];
        let text = "80,,a,1,100,,\n8,,b,1,100,,\n<not supported>,,dTLB-loads,0,100,,\n";
        record(&events, Ok(parse(text)), 8.0, &mut looked);
        assert_eq!(looked.figures["allocations_per_s"], 11.0);
        assert_eq!(looked.figures["malloc_per_s"], 10.0);
        assert_eq!(looked.figures["allocations_per_s.calloc"], 1.0);
        let absent: Vec<&str> = looked
            .absent
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(absent, ["hardware.dtlb_loads", "page_faults_per_s"]);
    }

    #[test]
    fn text_that_is_not_perfs_counts_nothing() {
        for text in ["", "x", "a,b", "a,b,c", ",,,", "event syntax error: 'x'"] {
            assert_eq!(parse(text), [], "{text:?}");
        }
    }

    #[test]
    fn a_recipe_that_names_no_counter_gets_those_of_every_machine() {
        assert_eq!(wanted(&[]).len(), 3);
        assert_eq!(wanted(&[Counter::Tlb, Counter::Tlb]), [Counter::Tlb]);
    }
}
