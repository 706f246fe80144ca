//! /proc/stat: the CPU times of all CPUs together.

/// Times in ticks, since boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CpuTimes {
    pub(crate) total: u64,
    /// Used by programs and by the kernel for them, kernel threads included; no interrupts.
    pub(crate) programs: u64,
    /// A guest was ready to run while the hypervisor ran others.
    pub(crate) steal: u64,
}

/// Parses the first line.
pub(crate) fn parse(text: &str) -> Option<CpuTimes> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let times: Option<Vec<u64>> = line
        .split_ascii_whitespace()
        .take(TIMES)
        .map(|time| time.parse().ok())
        .collect();
    let times = times?;
    Some(CpuTimes {
        total: times.iter().sum(),
        programs: times.iter().take(PROGRAMS).sum(),
        steal: times.get(STEAL).copied()?,
    })
}

/// user, nice, system, idle, iowait, irq, softirq, steal; the time of guests, which follows, is part of user.
const TIMES: usize = 8;
const STEAL: usize = 7;
/// The first three of them.
const PROGRAMS: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_a_part_of_all_time_and_guests_are_counted_once() {
        let text = "cpu  100 2 30 4000 5 6 7 8 90 10\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 5\n";
        let times = CpuTimes {
            total: 4158,
            programs: 132,
            steal: 8,
        };
        assert_eq!(parse(text), Some(times));
    }

    #[test]
    fn other_texts_have_no_times() {
        for text in [
            "",
            "cpu0 1 2 3 4 5 6 7 8\n",
            "cpu 1 2 3\n",
            "cpu a b c d e f g h\n",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
