//! Ending processes by their ids: SIGTERM first, SIGKILL after a while.

use crate::process_stat::ProcessStat;
use mill_sys::process::Pid;
use mill_sys::signal::Signal;
use mill_sys::{clock, descriptor};
use std::time::Duration;

/// Ends the process with this start time, and the group that it leads. `session` is the lab's. True when they are
/// gone.
pub(super) fn end_started(process: u32, start: u64, session: u32) -> bool {
    end(|| {
        group_of(
            process,
            start,
            session,
            &ProcessStat::all().collect::<Vec<_>>(),
        )
    })
}

/// Ends these processes; true when they are gone.
pub(super) fn end_all(mut list: impl FnMut() -> Vec<u32>) -> bool {
    end(|| list().into_iter().filter_map(ProcessStat::of).collect())
}

/// Sends SIGTERM, and SIGKILL to what still runs after a while; `list` returns the processes that still run.
fn end(mut list: impl FnMut() -> Vec<ProcessStat>) -> bool {
    for (signal, patience) in [
        (Signal::Terminate, TERM_TIMEOUT),
        (Signal::Kill, KILL_TIMEOUT),
    ] {
        let deadline = clock::monotonic() + patience;
        let mut told: Vec<(u32, u64)> = Vec::new();
        loop {
            let mut living = list();
            living.retain(ProcessStat::is_living);
            if living.is_empty() {
                return true;
            }
            for stat in living {
                // SIGTERM is sent once: some programs take a second one for "at once".
                if !told.contains(&(stat.process, stat.start)) {
                    told.push((stat.process, stat.start));
                    signal_to(&stat, signal);
                }
            }
            if clock::monotonic() >= deadline {
                break;
            }
            // Without descriptors poll only sleeps; an error only makes the pause shorter.
            let _ = descriptor::wait_readable(&[], Some(LOOK_INTERVAL));
        }
    }
    false
}

fn signal_to(stat: &ProcessStat, signal: Signal) {
    let pid = i32::try_from(stat.process).ok().and_then(Pid::new);
    if let Some(pid) = pid
        && pid != Pid::own()
    {
        // An error means that it has just ended or belongs to another user: the next look at /proc shows which.
        let _ = pid.kill(signal.number());
    }
}

/// The process itself and the members of the group that it leads. After the leader has ended, its id stays reserved
/// for the group as long as that has members; they count if they are in the lab's session or in one that the leader
/// made.
fn group_of(process: u32, start: u64, session: u32, all: &[ProcessStat]) -> Vec<ProcessStat> {
    let leader = all.iter().find(|stat| stat.process == process);
    if leader.is_some_and(|stat| stat.start != start) {
        return Vec::new();
    }
    let is_member = |stat: &&ProcessStat| {
        let is_ours = stat.session == session || stat.session == process;
        stat.process == process || (stat.group == process && stat.start >= start && is_ours)
    };
    all.iter().filter(is_member).cloned().collect()
}

/// A server with open connections may take seconds to end on SIGTERM; after Ctrl-C the user should not wait longer.
const TERM_TIMEOUT: Duration = Duration::from_secs(5);

/// The kernel ends a killed process at once, unless it waits for a disk.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

const LOOK_INTERVAL: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    fn stat(process: u32, group: u32, session: u32, start: u64) -> ProcessStat {
        ProcessStat {
            process,
            group,
            session,
            start,
            ..ProcessStat::default()
        }
    }

    fn check(all: &[ProcessStat], expected: &[u32]) {
        let group = group_of(70, 1000, 5, all);
        let numbers: Vec<u32> = group.iter().map(|stat| stat.process).collect();
        assert_eq!(numbers, expected, "{all:?}");
    }

    #[test]
    fn a_leader_and_its_group_are_ended_together() {
        check(
            &[
                stat(70, 70, 5, 1000),
                stat(71, 70, 5, 1001),
                stat(72, 69, 5, 1001),
            ],
            &[70, 71],
        );
    }

    #[test]
    fn another_process_under_the_same_number_is_left_alone() {
        check(&[stat(70, 70, 5, 2000), stat(71, 70, 5, 2001)], &[]);
    }

    #[test]
    fn processes_of_an_ended_leader_are_ended_unless_in_another_session() {
        check(
            &[
                stat(71, 70, 5, 1001),
                stat(72, 70, 70, 1002),
                stat(73, 70, 9, 1003),
            ],
            &[71, 72],
        );
    }

    #[test]
    fn a_process_that_ignores_sigterm_is_killed() {
        let mut child = Command::new("sh")
            .args(["-c", "trap '' TERM; echo; while :; do sleep 1; done"])
            .process_group(0)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = [0_u8; 1];
        // Until the trap is set.
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
        let own = ProcessStat::of(child.id()).unwrap();
        assert!(end_started(child.id(), own.start, own.session));
        assert!(!child.wait().unwrap().success());
    }
}
