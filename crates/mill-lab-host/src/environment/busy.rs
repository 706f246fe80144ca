//! The processes that use the machine now.

use crate::patience::pause;
use std::collections::BTreeMap;
use std::time::Duration;

/// Processes that used more than a twentieth of a CPU between two samples, the busiest first.
pub(super) fn running() -> Vec<String> {
    let before = ticks();
    pause(LOOK);
    let mut busy: Vec<(u64, String)> = ticks()
        .into_iter()
        .filter_map(|(pid, (name, after))| {
            let used = after.saturating_sub(before.get(&pid)?.1);
            (used >= BUSY_TICKS && pid != std::process::id())
                .then(|| (used, format!("{name} ({pid})")))
        })
        .collect();
    busy.sort_by(|a, b| b.cmp(a));
    let shown = busy.into_iter().take(SHOWN_MAX);
    shown
        .map(|(used, name)| format!("{name} {} % of a CPU", used * 100 / TICKS_IN_LOOK))
        .collect()
}

/// Name and CPU time of each process, in ticks of 10 ms.
fn ticks() -> BTreeMap<u32, (String, u64)> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return BTreeMap::new();
    };
    let pids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some((pid, used(&stat)?))
    })
    .collect()
}

/// proc_pid_stat(5): the name is in parentheses, utime and stime are fields 14 and 15.
fn used(stat: &str) -> Option<(String, u64)> {
    let (head, fields) = stat.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let mut fields = fields.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some((String::from(name), user + system))
}

const LOOK: Duration = Duration::from_millis(250);

/// USER_HZ is 100 on every architecture of Linux.
const TICKS_IN_LOOK: u64 = 25;

const BUSY_TICKS: u64 = 2;

/// Lines of a report.
const SHOWN_MAX: usize = 10;

#[cfg(test)]
mod tests {
    use super::used;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194560 1 0 0 0 12 30 0 0 20 0 1 0 55";
        assert_eq!(used(stat), Some((String::from("a (b) c"), 42)));
    }
}
