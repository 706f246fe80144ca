//! /proc/PID/stat: names, families and CPU time of processes.

use std::fs;

/// What of it is used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessStat {
    pub process: u32,
    pub name: String,
    pub(crate) state: char,
    pub parent: u32,
    pub(crate) group: u32,
    pub(crate) session: u32,
    /// User and system. The kernel takes both from the scheduler's exact sum; interrupts are in it where the kernel
    /// does not keep them apart (CONFIG_IRQ_TIME_ACCOUNTING).
    pub ticks: u64,
    pub threads: u64,
    /// In ticks since the boot: a process id and a start are one process until the next boot.
    pub start: u64,
}

impl ProcessStat {
    /// None if there is no such process.
    pub fn of(process: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
    }

    /// Those of all processes.
    pub fn all() -> impl Iterator<Item = Self> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter_map(|entry| Self::of(entry.file_name().to_str()?.parse().ok()?))
    }

    /// Whether it still runs: a zombie has ended, and only its parent has not waited for it.
    pub(crate) fn is_living(&self) -> bool {
        !matches!(self.state, 'Z' | 'X')
    }

    fn parse(text: &str) -> Option<Self> {
        // A program's name may hold blanks and parentheses; nothing after it does.
        let (head, tail) = text.rsplit_once(')')?;
        let (process, name) = head.split_once(" (")?;
        let fields: Vec<&str> = tail.split_ascii_whitespace().collect();
        // proc_pid_stat(5) counts from 1, and the name is its second: field 3 is our 0.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let id = |number: usize| u32::try_from(field(number)?).ok();
        Some(Self {
            process: process.parse().ok()?,
            name: name.to_owned(),
            state: fields.first()?.chars().next()?,
            parent: id(4)?,
            group: id(5)?,
            session: id(6)?,
            ticks: field(14)? + field(15)?,
            threads: field(20)?,
            start: field(22)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_with_blanks_and_parentheses_is_read() {
        let text = "473 (a) (b c) S 469 468 467 0 -1 4194304 101 0 0 0 7 5 90 80 20 0 3 0 2287083 3133440 380 1";
        let expected = ProcessStat {
            process: 473,
            name: String::from("a) (b c"),
            state: 'S',
            parent: 469,
            group: 468,
            session: 467,
            ticks: 12,
            threads: 3,
            start: 2_287_083,
        };
        assert_eq!(ProcessStat::parse(text), Some(expected));
        for text in ["", "1 (x", "1 (x) S", "1 (x) S 2 3 4 x"] {
            assert_eq!(ProcessStat::parse(text), None, "{text:?}");
        }
    }
}
