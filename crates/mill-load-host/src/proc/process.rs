//! /proc/PID/stat and /proc/PID/task/TID/stat: the CPU time of a process or a thread.

use std::time::Duration;

/// One line of figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProcessTimes {
    /// The name of the program, at most 15 bytes.
    pub(crate) command: String,
    pub(crate) user: Duration,
    pub(crate) system: Duration,
}

/// Parses the line. The command stands in parentheses and may contain any character.
pub(crate) fn parse(text: &str) -> Option<ProcessTimes> {
    let (before, after) = text.rsplit_once(')')?;
    let (_, command) = before.split_once('(')?;
    let mut figures = after.split_ascii_whitespace();
    Some(ProcessTimes {
        command: String::from(command),
        user: ticks(figures.nth(UTIME)?)?,
        system: ticks(figures.next()?)?,
    })
}

fn ticks(text: &str) -> Option<Duration> {
    let ticks: u64 = text.parse().ok()?;
    Some(Duration::from_millis(ticks.checked_mul(TICK_MS)?))
}

/// Field 14 of proc(5), counted from field 3, the first after the command; stime follows.
const UTIME: usize = 11;

/// A tick of user space: USER_HZ is 100 wherever Linux runs today.
const TICK_MS: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_stand_behind_the_command_whatever_its_name_is() {
        let check = |command: &str| {
            let text = format!(
                "4711 ({command}) S 1 4711 4711 0 -1 4194560 98 0 0 0 250 31 0 0 20 0 3 0 99 0\n"
            );
            let times = ProcessTimes {
                command: String::from(command),
                user: Duration::from_millis(2500),
                system: Duration::from_millis(310),
            };
            assert_eq!(parse(&text), Some(times));
        };
        check("nginx");
        check("a b) (c");
    }

    #[test]
    fn half_a_line_has_no_times() {
        for text in ["", "1 (a) S 1", "1 a S 1 2 3 4 5 6 7 8 9 10 11 12 13 14"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
