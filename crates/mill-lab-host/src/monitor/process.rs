//! /proc/PID: resources that processes used, a first process and all its descendants.

use super::cpu::float;
use crate::patience::wait_for;
use crate::process_stat::ProcessStat;
use mill_sys::clock::cpu_of_process;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

/// Running sums of a tree since its first sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Usage {
    /// User and system.
    pub cpu_seconds: f64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
    /// Resident now; pages that processes share are counted for each.
    pub resident_bytes: u64,
    /// Processes that run now.
    pub processes: usize,
}

/// Processes from one or more first ones downward.
///
/// A process that ends takes its counters with it: what it used after the last sample is lost, and a process that
/// lives shorter than the time between two scans is never seen.
#[derive(Debug)]
pub(super) struct Tree {
    roots: Vec<u32>,
    members: BTreeMap<(u32, u64), Member>,
    usage: Usage,
    begun: bool,
    searches: u32,
    ended: Vec<Ended>,
}

/// A worker that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub process: u32,
    pub name: String,
}

#[derive(Clone, Debug, Default)]
struct Member {
    seen: Seen,
    name: String,
    looks: u32,
    /// Forked by a process of the same name, and present from the beginning: such processes serve until the server
    /// ends.
    is_worker: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// CPU time.
    nanoseconds: u64,
    voluntary: u64,
    involuntary: u64,
}

impl Tree {
    pub(super) fn new(roots: Vec<u32>) -> Self {
        Self {
            roots,
            members: BTreeMap::new(),
            usage: Usage::default(),
            begun: false,
            searches: 0,
            ended: Vec::new(),
        }
    }

    /// Takes a sample. `parents` (child to parent, of the whole machine) finds members that started meanwhile.
    pub(super) fn look(&mut self, parents: Option<&BTreeMap<u32, u32>>) -> Usage {
        let mut numbers: BTreeSet<u32> = self.members.keys().map(|(number, _)| *number).collect();
        numbers.extend(&self.roots);
        if let Some(parents) = parents {
            numbers.extend(descendants(&self.roots, parents));
            self.searches += 1;
        }
        let mut members = BTreeMap::new();
        self.usage.resident_bytes = 0;
        for number in numbers {
            let Some((stat, seen, resident_bytes)) = read(number) else {
                continue;
            };
            let key = (number, stat.start);
            self.usage.resident_bytes += resident_bytes;
            // Processes of the first sample have used CPU time before; for later ones all of it counts.
            let known = self.members.remove(&key);
            let before = known.as_ref().map(|member| member.seen);
            let before = before.unwrap_or(if self.begun { Seen::default() } else { seen });
            let nanoseconds = seen.nanoseconds.saturating_sub(before.nanoseconds);
            self.usage.cpu_seconds += float(nanoseconds) / 1e9;
            self.usage.voluntary_switches += seen.voluntary.saturating_sub(before.voluntary);
            self.usage.involuntary_switches += seen.involuntary.saturating_sub(before.involuntary);
            let mut member = known.unwrap_or_else(|| Member {
                is_worker: self.searches <= SEARCHES_AT_FIRST && is_worker(number, &stat),
                name: stat.name,
                ..Member::default()
            });
            member.seen = seen;
            member.looks += 1;
            members.insert(key, member);
        }
        // What remains was in the last sample and is gone now.
        let gone = std::mem::take(&mut self.members).into_iter();
        self.ended.extend(
            gone.filter(|(_, member)| member.is_worker && member.looks > 1)
                .map(|((process, _), member)| Ended {
                    process,
                    name: member.name,
                }),
        );
        self.begun = true;
        self.members = members;
        self.usage.processes = self.members.len();
        self.usage
    }
}

impl Tree {
    /// Workers that ended between two samples. A server starts another one in its place, but the connections are cut,
    /// and the figures are of fewer workers for a while.
    pub(super) fn ended(&self) -> &[Ended] {
        &self.ended
    }
}

/// Searches in which workers are found: a server may listen a moment before it forks them.
const SEARCHES_AT_FIRST: u32 = 2;

/// Whether a process was forked by one of its own name and does not end by itself, as nginx's cache loader does a
/// minute after the start.
fn is_worker(process: u32, own: &ProcessStat) -> bool {
    let of_its_name = ProcessStat::of(own.parent).is_some_and(|parent| parent.name == own.name);
    let title = || fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    of_its_name && !String::from_utf8_lossy(&title()).contains("cache loader")
}

/// Every process below `roots`, themselves included.
pub(crate) fn descendants(roots: &[u32], parents: &BTreeMap<u32, u32>) -> BTreeSet<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (child, parent) in parents {
        children.entry(*parent).or_default().push(*child);
    }
    let mut found = BTreeSet::new();
    let mut open: Vec<u32> = roots.to_vec();
    while let Some(number) = open.pop() {
        if found.insert(number) {
            open.extend(children.get(&number).into_iter().flatten());
        }
    }
    found
}

/// Child to parent, of the whole machine.
pub(crate) fn parents() -> BTreeMap<u32, u32> {
    ProcessStat::all()
        .map(|stat| (stat.process, stat.parent))
        .collect()
}

fn read(number: u32) -> Option<(ProcessStat, Seen, u64)> {
    let stat = ProcessStat::of(number)?;
    let status = fs::read_to_string(format!("/proc/{number}/status")).ok()?;
    let mut seen = Seen {
        nanoseconds: nanoseconds(number)?,
        ..Seen::default()
    };
    if stat.threads > 1 {
        let tasks = fs::read_dir(format!("/proc/{number}/task")).ok();
        for task in tasks.into_iter().flatten().flatten().take(THREADS_MAX) {
            if let Ok(status) = fs::read_to_string(task.path().join("status")) {
                add_switches(&status, &mut seen);
            }
        }
    } else {
        add_switches(&status, &mut seen);
    }
    let resident_kib = status_field(&status, "VmRSS").unwrap_or(0);
    Some((stat, seen, resident_kib * 1024))
}

/// CPU time of a process and of its threads that have ended.
fn nanoseconds(number: u32) -> Option<u64> {
    u64::try_from(cpu_of_process(number).ok()?.as_nanos()).ok()
}

/// Waits until the processes are idle, or the timeout: a server whose clients have gone still has requests to answer
/// and connections to close.
pub(crate) fn wait_until_idle(pids: &[u32]) {
    let used = || -> u64 { pids.iter().filter_map(|pid| nanoseconds(*pid)).sum() };
    let (mut last, mut looks) = (used(), 0);
    let _or_patience_ends = wait_for(IDLE_TIMEOUT, || {
        let now = used();
        looks = if now == last { looks + 1 } else { 0 };
        last = now;
        (looks == IDLE_LOOKS).then_some(())
    });
}

const IDLE_TIMEOUT: Duration = Duration::from_secs(5);

/// This many samples without CPU time in between count as idle.
const IDLE_LOOKS: u32 = 6;

/// Memory of processes in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Memory {
    /// Shared pages counted in proportion (PSS).
    pub(crate) shared: f64,
    pub(crate) private: f64,
}

impl std::iter::Sum for Memory {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            shared: sum.shared + one.shared,
            private: sum.private + one.private,
        })
    }
}

/// By /proc/PID/smaps_rollup.
pub(crate) fn memory(number: u32) -> Option<Memory> {
    let text = fs::read_to_string(format!("/proc/{number}/smaps_rollup")).ok()?;
    let bytes = |name| status_field(&text, name).map_or(0.0, |kib| 1024.0 * float(kib));
    Some(Memory {
        shared: bytes("Pss"),
        private: bytes("Private_Clean") + bytes("Private_Dirty"),
    })
}

/// The most threads of a process whose switches are counted: reading a thread's status takes some 15 µs, and a sample
/// should not cost more than a millisecond.
const THREADS_MAX: usize = 64;

/// The counts of one thread: the file of a process covers its first thread only.
fn add_switches(status: &str, seen: &mut Seen) {
    seen.voluntary += status_field(status, "voluntary_ctxt_switches").unwrap_or(0);
    seen.involuntary += status_field(status, "nonvoluntary_ctxt_switches").unwrap_or(0);
}

/// The number after a name in /proc/PID/status.
fn status_field(status: &str, name: &str) -> Option<u64> {
    status.lines().find_map(|line| {
        let rest = line.strip_prefix(name)?.strip_prefix(':')?;
        rest.split_ascii_whitespace().next()?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_status_are_found_by_their_whole_name() {
        let status =
            "VmRSS:\t    1760 kB\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t7\n";
        assert_eq!(status_field(status, "VmRSS"), Some(1760));
        assert_eq!(status_field(status, "voluntary_ctxt_switches"), Some(12));
        assert_eq!(status_field(status, "nonvoluntary_ctxt_switches"), Some(7));
        assert_eq!(status_field(status, "Vm"), None);
    }

    #[test]
    fn cpu_time_is_finer_than_ticks_and_keeps_that_of_threads_that_have_ended() {
        let own = || nanoseconds(std::process::id()).unwrap();
        let used = own() + 1_000_000;
        let spent = std::thread::spawn(move || {
            while own() < used {}
            own()
        });
        let spent = spent.join().unwrap();
        assert!(own() >= spent);
        assert_ne!(spent % 10_000_000, 0);
        assert_eq!(nanoseconds(u32::MAX), None);
    }

    #[test]
    fn descendants_are_found_at_any_depth() {
        let parents = BTreeMap::from([(2, 1), (3, 2), (4, 3), (5, 1), (6, 9)]);
        let check = |roots: &[u32], expected: &[u32]| {
            let found: Vec<u32> = descendants(roots, &parents).into_iter().collect();
            assert_eq!(found, expected, "{roots:?}");
        };
        check(&[2], &[2, 3, 4]);
        check(&[1, 9], &[1, 2, 3, 4, 5, 6, 9]);
        check(&[7], &[7]);
        check(&[], &[]);
    }

    #[test]
    fn cpu_time_before_the_first_sample_does_not_count() {
        let mut tree = Tree::new(vec![std::process::id()]);
        let first = tree.look(Some(&parents()));
        assert!(first.cpu_seconds < 0.001, "{first:?}");
        assert!(first.resident_bytes > 100_000, "{first:?}");
        assert!(first.processes >= 1, "{first:?}");
        let gone = Tree::new(vec![u32::MAX]).look(None);
        assert_eq!(gone, Usage::default());
    }

    #[test]
    fn a_worker_that_ends_is_reported_and_another_program_is_not() {
        use std::io::{BufRead, BufReader, Write};
        use std::process::{Command, Stdio};
        // Two shells, one forked by the other, and a program that the outer one starts; a line ends what it names.
        let script = "exec 3<&0; (read x <&3) & worker=$!; sleep 1000 & other=$!; echo $worker $other; wait $worker; \
                      kill $other; wait $other; echo both; read x";
        let mut child = Command::new("bash")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        let numbers = said.next().unwrap().unwrap();
        let worker: u32 = numbers.split(' ').next().unwrap().parse().unwrap();
        let other: u32 = numbers.split(' ').nth(1).unwrap().parse().unwrap();
        // Until it has executed its program.
        while ProcessStat::of(other).is_some_and(|stat| stat.name != "sleep") {
            std::thread::yield_now();
        }
        let mut tree = Tree::new(vec![child.id()]);
        tree.look(Some(&parents()));
        tree.look(None);
        assert_eq!(tree.ended(), []);
        writeln!(child.stdin.as_mut().unwrap()).unwrap();
        assert_eq!(said.next().unwrap().unwrap(), "both");
        tree.look(Some(&parents()));
        let expected = Ended {
            process: worker,
            name: String::from("bash"),
        };
        assert_eq!(tree.ended(), [expected]);
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
