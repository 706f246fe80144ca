//! /proc/stat: CPU time by class, in the classes of mpstat(1).

use std::collections::BTreeMap;

/// Time of one CPU, or of all, since boot, in ticks of 10 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    /// Guests included.
    pub user: u64,
    pub nice: u64,
    pub system: u64,
    pub idle: u64,
    pub iowait: u64,
    pub irq: u64,
    pub softirq: u64,
    pub steal: u64,
    pub guest: u64,
    pub guest_nice: u64,
}

/// The part of /proc/stat that the monitor uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    pub all: Times,
    pub cpus: BTreeMap<u32, Times>,
    pub interrupts: u64,
    pub context_switches: u64,
    /// By the names of `SOFTIRQS`.
    pub softirqs: [u64; SOFTIRQS.len()],
}

/// In the order of the line `softirq`, after the total; the kernel's interrupt.h has it.
pub(crate) const SOFTIRQS: [&str; 10] = [
    "hi", "timer", "net_tx", "net_rx", "block", "irq_poll", "tasklet", "sched", "hrtimer", "rcu",
];

/// The kernel counts time in /proc in hundredths of a second on every architecture that Millstream runs on.
pub(crate) const TICKS_PER_SECOND: f64 = 100.0;

/// None if it is not /proc/stat.
pub(crate) fn parse(text: &str) -> Option<Stat> {
    let mut stat = Stat::default();
    let mut found = false;
    for line in text.lines() {
        let Some((name, rest)) = line.split_once(' ') else {
            continue;
        };
        // The line `intr` goes on with hundreds of numbers, which are not needed.
        let mut numbers = rest.split_ascii_whitespace().map(|word| word.parse().ok());
        match name {
            "cpu" => {
                stat.all = times(numbers);
                found = true;
            }
            "intr" => stat.interrupts = numbers.next().flatten().unwrap_or(0),
            "ctxt" => stat.context_switches = numbers.next().flatten().unwrap_or(0),
            "softirq" => {
                for (slot, number) in stat.softirqs.iter_mut().zip(numbers.skip(1)) {
                    *slot = number.unwrap_or(0);
                }
            }
            _ => {
                if let Some(number) = name.strip_prefix("cpu").and_then(|n| n.parse().ok()) {
                    stat.cpus.insert(number, times(numbers));
                }
            }
        }
    }
    found.then_some(stat)
}

fn times(mut numbers: impl Iterator<Item = Option<u64>>) -> Times {
    // Old kernels have fewer columns.
    let mut next = || numbers.next().flatten().unwrap_or(0);
    Times {
        user: next(),
        nice: next(),
        system: next(),
        idle: next(),
        iowait: next(),
        irq: next(),
        softirq: next(),
        steal: next(),
        guest: next(),
        guest_nice: next(),
    }
}

impl Times {
    /// The difference since `earlier`. Idle and iowait are known to run backwards by a tick.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        self.with(earlier, u64::saturating_sub)
    }

    pub(crate) fn plus(&self, other: &Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    fn with(&self, other: &Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            user: of(self.user, other.user),
            nice: of(self.nice, other.nice),
            system: of(self.system, other.system),
            idle: of(self.idle, other.idle),
            iowait: of(self.iowait, other.iowait),
            irq: of(self.irq, other.irq),
            softirq: of(self.softirq, other.softirq),
            steal: of(self.steal, other.steal),
            guest: of(self.guest, other.guest),
            guest_nice: of(self.guest_nice, other.guest_nice),
        }
    }

    /// The sum; guests are in `user` and `nice` already.
    pub(crate) fn total(&self) -> u64 {
        self.processes() + self.idle + self.iowait + self.irq + self.softirq + self.steal
    }

    /// Time of processes, including guests and system calls.
    pub(crate) fn processes(&self) -> u64 {
        self.user + self.nice + self.system
    }

    /// Time of hardware and software interrupts.
    pub(crate) fn interrupts(&self) -> u64 {
        self.irq + self.softirq
    }

    /// mpstat's columns, in percent.
    pub(crate) fn percentages(&self) -> [(&'static str, f64); 10] {
        let total = self.total();
        let percent = |ticks: u64| {
            if total == 0 {
                0.0
            } else {
                float(ticks) * 100.0 / float(total)
            }
        };
        [
            ("usr", percent(self.user.saturating_sub(self.guest))),
            ("nice", percent(self.nice.saturating_sub(self.guest_nice))),
            ("sys", percent(self.system)),
            ("iowait", percent(self.iowait)),
            ("irq", percent(self.irq)),
            ("soft", percent(self.softirq)),
            ("steal", percent(self.steal)),
            ("guest", percent(self.guest)),
            ("gnice", percent(self.guest_nice)),
            ("idle", percent(self.idle)),
        ]
    }
}

/// A counter as a figure.
#[expect(
    clippy::cast_precision_loss,
    reason = "differences of counters are far below 2⁵³"
)]
pub(crate) fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const EARLIER: &str = "\
cpu  1333882 302556 497444 2244491 9427 0 122051 2587 0 0
cpu0 647838 120866 235230 1189374 2350 0 58472 1258 0 0
cpu1 686044 181690 262214 1055117 7076 0 63579 1329 0 0
intr 34260760 0 0 1189249 0 15114
ctxt 132781348
btime 1795224557
softirq 433349887 0 1415772 7 416286753 1193820 0 598 1274405 5185680 7992852
";
    const LATER: &str = "\
cpu  1333982 302556 497494 2244511 9427 0 122081 2587 0 0
cpu0 647838 120866 235230 1189474 2349 0 58472 1258 0 0
cpu1 686144 181690 262264 1055117 7076 0 63609 1349 40 0
intr 34261760 0 0 1189249 0 15114
ctxt 132791348
softirq 433349987 0 1415772 7 416286853 1193820 0 598 1274405 5185680 7992852
";

    #[test]
    fn classes_are_those_of_mpstat() {
        let earlier = parse(EARLIER).unwrap();
        let later = parse(LATER).unwrap();
        let busy = later.cpus[&1].since(&earlier.cpus[&1]);
        assert_eq!(busy.total(), 200);
        let expected = [
            ("usr", 30.0),
            ("nice", 0.0),
            ("sys", 25.0),
            ("iowait", 0.0),
            ("irq", 0.0),
            ("soft", 15.0),
            ("steal", 10.0),
            ("guest", 20.0),
            ("gnice", 0.0),
            ("idle", 0.0),
        ];
        assert_eq!(busy.percentages(), expected);
        let idle = later.cpus[&0].since(&earlier.cpus[&0]);
        assert_eq!(idle.percentages()[9], ("idle", 100.0), "iowait ran back");
    }

    #[test]
    fn counters_of_the_machine_are_found() {
        let stat = parse(EARLIER).unwrap();
        assert_eq!(stat.interrupts, 34_260_760);
        assert_eq!(stat.context_switches, 132_781_348);
        let named: Vec<_> = SOFTIRQS.iter().zip(stat.softirqs).collect();
        assert_eq!(named[3], (&"net_rx", 416_286_753));
        assert_eq!(named[9], (&"rcu", 7_992_852));
    }

    #[test]
    fn what_is_not_proc_stat_is_none() {
        for text in ["", "cpu", "hello world", "cpux 1 2\n"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
        assert_eq!(parse("cpu  1 x\n").unwrap().all.user, 1);
    }
}
