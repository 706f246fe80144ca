//! System calls by strace: exact, and where tracepoints are unavailable.

use crate::host::{Host, Line};
use crate::interrupt::Interrupt;
use crate::journal::Journal;
use crate::patience::wait_for;
use crate::process::{Process, Streams};
use std::path::Path;
use std::time::Duration;

/// Calls by name, and the number of requests in that time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counted {
    pub(crate) calls: Vec<(String, f64)>,
    pub(crate) requests: f64,
}

pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);

/// Attaches strace to processes; it is ready when it has seen all their threads.
pub(crate) fn attach(
    words: &[&str],
    pids: &[u32],
    folder: &Path,
    journal: &mut Journal,
) -> Result<Process, String> {
    let mut line = Line::new(words.iter().copied());
    for pid in pids {
        line.argv.extend([String::from("-p"), pid.to_string()]);
    }
    let (out, err) = (folder.join("strace.out"), folder.join("strace.err"));
    let streams = Streams {
        out: &out,
        err: &err,
    };
    let started = Process::start(&Host::Local, &line, "strace", streams, journal);
    let mut strace = started.map_err(|error| format!("strace: {error}"))?;
    let attached = wait_for(TIMEOUT, || {
        let ended = strace.ended().is_some();
        (ended || are_traced(pids)).then_some(!ended)
    });
    if attached == Some(true) {
        return Ok(strace);
    }
    let said = std::fs::read_to_string(&err).unwrap_or_default();
    strace.wait(Duration::ZERO, &Interrupt::default());
    Err(format!("strace does not attach: {}", said.trim()))
}

/// Whether another process traces all threads of these.
fn are_traced(pids: &[u32]) -> bool {
    let tasks = pids.iter().flat_map(|pid| {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
        tasks.into_iter().flatten().flatten()
    });
    let mut statuses = tasks.map(|task| std::fs::read_to_string(task.path().join("status")));
    statuses.all(|status| {
        status.is_ok_and(|text| {
            let tracer = text
                .lines()
                .find_map(|line| line.strip_prefix("TracerPid:"));
            tracer.is_some_and(|pid| pid.trim() != "0")
        })
    })
}

/// The rows of strace's table: share, seconds, microseconds, calls, errors if any, name.
pub(crate) fn parse(text: &str) -> Vec<(String, f64)> {
    let rows = text.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (&name, numbers) = words.split_last()?;
        let calls = numbers.get(3)?.parse().ok()?;
        (name != "total").then(|| (name.to_owned(), calls))
    });
    rows.collect()
}

impl Counted {
    /// By name, the most frequent first, without those of a shorter load.
    pub(crate) fn per_request(&self, less: &Self) -> Result<Vec<(String, f64)>, String> {
        let requests = self.requests - less.requests;
        if requests <= 0.0 {
            return Err(String::from("no request was served under strace"));
        }
        let calls = self.calls.iter().map(|(name, count)| {
            let less = less.calls.iter().find(|(other, _)| other == name);
            let count = count - less.map_or(0.0, |(_, count)| *count);
            (name.clone(), count / requests)
        });
        let mut calls: Vec<_> = calls.filter(|(_, calls)| *calls > 0.0).collect();
        calls.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        Ok(calls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.00    0.006000           3      2000           writev
 40.00    0.004000           2      2000         7 recvfrom
  0.00    0.000000           2        40           epoll_wait
------ ----------- ----------- --------- --------- ----------------
100.00    0.010000           2      4040         7 total
";

    #[test]
    fn calls_of_the_shorter_run_are_taken_off() {
        let counted = |calls: Vec<(String, f64)>, requests| Counted { calls, requests };
        let all = counted(parse(TABLE), 1500.0);
        let less = [("writev", 1000.0), ("epoll_wait", 40.0)];
        let less = less.map(|(name, calls)| (String::from(name), calls));
        let found = all.per_request(&counted(less.to_vec(), 500.0)).unwrap();
        let expected = [("recvfrom", 2.0), ("writev", 1.0)];
        assert_eq!(
            found,
            expected.map(|(name, calls)| (String::from(name), calls))
        );
        assert!(all.per_request(&all).is_err());
    }
}
