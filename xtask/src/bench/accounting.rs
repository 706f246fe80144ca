//! What the kernel's accounts say about processes and CPUs, read from outside in /proc.

use std::fs;
use std::time::Duration;

/// The CPU time of processes, in nanoseconds: clock ticks are too coarse for a block of seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CpuTime {
    pub(super) ran: Duration,
    /// Ready to run, while the CPU was somebody else's.
    pub(super) waited: Duration,
}

/// What a CPU has spent its clock ticks on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuTicks {
    pub(super) total: u64,
    /// Of those that follow, nothing to do or waiting for a disk.
    pub(super) idle: u64,
    pub(super) softirq: u64,
    pub(super) steal: u64,
}

/// The memory of processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Memory {
    /// Shared pages counted in proportion.
    pub(super) pss_bytes: u64,
    pub(super) private_bytes: u64,
}

/// `root` and all that descend from it.
pub(super) fn descendants(root: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return vec![root];
    };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let parents: Vec<(u32, u32)> = pids
        .filter_map(|pid: u32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            Some((pid, parent_in_stat(&stat)?))
        })
        .collect();
    family(root, &parents)
}

/// The sum over all threads of the processes.
pub(super) fn cpu_time(pids: &[u32]) -> CpuTime {
    let tasks = pids.iter().flat_map(|pid| {
        let tasks = fs::read_dir(format!("/proc/{pid}/task"));
        tasks.into_iter().flatten().flatten()
    });
    let times = tasks.filter_map(|task| {
        parse_schedstat(&fs::read_to_string(task.path().join("schedstat")).ok()?)
    });
    times.fold(CpuTime::default(), |sum, time| CpuTime {
        ran: sum.ran + time.ran,
        waited: sum.waited + time.waited,
    })
}

pub(super) fn cpu_ticks(cpu: u16) -> CpuTicks {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    parse_cpu_line(&stat, cpu).unwrap_or_default()
}

/// The sum over the processes; `None` if one of them cannot be read.
pub(super) fn memory(pids: &[u32]) -> Option<Memory> {
    let mut sum = Memory::default();
    for pid in pids {
        let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
        let memory = parse_smaps_rollup(&text);
        sum.pss_bytes += memory.pss_bytes;
        sum.private_bytes += memory.private_bytes;
    }
    Some(sum)
}

impl CpuTime {
    pub(super) fn since(self, earlier: Self) -> Self {
        Self {
            ran: self.ran.saturating_sub(earlier.ran),
            waited: self.waited.saturating_sub(earlier.waited),
        }
    }
}

impl CpuTicks {
    pub(super) fn since(self, earlier: Self) -> Self {
        Self {
            total: self.total.saturating_sub(earlier.total),
            idle: self.idle.saturating_sub(earlier.idle),
            softirq: self.softirq.saturating_sub(earlier.softirq),
            steal: self.steal.saturating_sub(earlier.steal),
        }
    }

    /// Of 1: programs, the kernel for them, and what the kernel does between.
    pub(super) fn busy_share(self) -> f64 {
        let not_ours = self.idle + self.steal;
        share(self.total.saturating_sub(not_ours), self.total)
    }

    pub(super) fn softirq_share(self) -> f64 {
        share(self.softirq, self.total)
    }

    pub(super) fn steal_share(self) -> f64 {
        share(self.steal, self.total)
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

fn family(root: u32, parents: &[(u32, u32)]) -> Vec<u32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        let children = parents.iter().filter(|(_, of)| *of == parent);
        found.extend(children.map(|(child, _)| *child));
        next += 1;
    }
    found
}

/// The fourth field of proc_pid_stat(5); the second is a name in parentheses that may hold anything.
fn parent_in_stat(stat: &str) -> Option<u32> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(1)?.parse().ok()
}

/// "time-on-cpu time-waiting timeslices", the first two in nanoseconds.
fn parse_schedstat(text: &str) -> Option<CpuTime> {
    let mut numbers = text.split_whitespace().map(str::parse);
    Some(CpuTime {
        ran: Duration::from_nanos(numbers.next()?.ok()?),
        waited: Duration::from_nanos(numbers.next()?.ok()?),
    })
}

/// proc_stat(5): user nice system idle iowait irq softirq steal, then guest times that user holds too.
fn parse_cpu_line(stat: &str, cpu: u16) -> Option<CpuTicks> {
    let name = format!("cpu{cpu} ");
    let numbers = stat.lines().find_map(|line| line.strip_prefix(&name))?;
    let ticks: Vec<u64> = numbers
        .split_whitespace()
        .take(8)
        .filter_map(|number| number.parse().ok())
        .collect();
    let &[_, _, _, idle, iowait, _, softirq, steal] = ticks.as_slice() else {
        return None;
    };
    Some(CpuTicks {
        total: ticks.iter().sum(),
        idle: idle + iowait,
        softirq,
        steal,
    })
}

fn parse_smaps_rollup(text: &str) -> Memory {
    let bytes = |name| 1024 * number_after(text, name).unwrap_or(0);
    Memory {
        pss_bytes: bytes("\nPss:"),
        private_bytes: bytes("\nPrivate_Clean:") + bytes("\nPrivate_Dirty:"),
    }
}

fn number_after(text: &str, name: &str) -> Option<u64> {
    let (_, after) = text.split_once(name)?;
    after.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{
        CpuTicks, CpuTime, Memory, cpu_time, family, parent_in_stat, parse_cpu_line,
        parse_schedstat, parse_smaps_rollup,
    };

    #[test]
    fn a_family_is_the_root_with_all_that_descend_from_it() {
        let parents = [(2, 1), (10, 2), (11, 10), (12, 3), (13, 11)];
        assert_eq!(family(10, &parents), [10, 11, 13]);
        assert_eq!(family(99, &parents), [99]);
    }

    #[test]
    fn a_parent_is_found_behind_any_name() {
        assert_eq!(parent_in_stat("7 (nginx) S 5 7"), Some(5));
        assert_eq!(parent_in_stat("7 (a) b (c)) R 6 7"), Some(6));
        assert_eq!(parent_in_stat(""), None);
    }

    #[test]
    fn schedstat_is_two_times_in_nanoseconds() {
        let expected = CpuTime {
            ran: Duration::from_nanos(279_105_358),
            waited: Duration::from_nanos(177_634_511),
        };
        assert_eq!(parse_schedstat("279105358 177634511 52\n"), Some(expected));
        assert_eq!(parse_schedstat("x"), None);
    }

    #[test]
    fn this_process_has_used_cpu_time() {
        assert!(cpu_time(&[std::process::id()]).ran > Duration::ZERO);
    }

    #[test]
    fn a_cpu_line_is_told_from_that_of_a_cpu_whose_number_begins_alike() {
        let stat =
            "cpu  9 9 9 9 9 9 9 9 0 0\ncpu10 8 8 8 8 8 8 8 8 0 0\ncpu1 1 2 3 4 5 6 7 8 9 9\n";
        let expected = CpuTicks {
            total: 36,
            idle: 9,
            softirq: 7,
            steal: 8,
        };
        assert_eq!(parse_cpu_line(stat, 1), Some(expected));
        assert!((expected.busy_share() - 19.0 / 36.0).abs() < 1e-9);
        assert_eq!(parse_cpu_line(stat, 2), None);
        assert!((expected.steal_share() - 8.0 / 36.0).abs() < 1e-9);
    }

    #[test]
    fn memory_is_told_in_bytes() {
        let text = "0-1 [rollup]\nRss: 9 kB\nPss:   353 kB\nPss_Dirty: 1 kB\nPrivate_Clean: 72 kB\nPrivate_Dirty: 112 kB\n";
        let expected = Memory {
            pss_bytes: 353 * 1024,
            private_bytes: 184 * 1024,
        };
        assert_eq!(parse_smaps_rollup(text), expected);
    }
}
