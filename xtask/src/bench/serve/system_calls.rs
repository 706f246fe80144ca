//! System calls per request, counted by strace in a short run of its own.

use std::fs;
use std::process::Command;
use std::time::Duration;

use super::accounting::{all_traced, cpu_time};
use super::case::{Case, Connections};
use super::child::{Child, SIGTERM};
use super::failure::{Failure, Result};
use super::lab::Lab;
use super::patience::wait_for;
use super::server::{Programs, Server, Subject};
use super::wrk;

/// Calls per request, by name, the most frequent first.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SystemCalls {
    pub(super) by_name: Vec<(String, f64)>,
}

impl SystemCalls {
    pub(super) fn total(&self) -> f64 {
        self.by_name.iter().map(|(_, calls)| calls).sum()
    }
}

pub(super) fn measure(
    lab: &Lab,
    programs: &Programs,
    case: &Case,
    subject: Subject,
) -> Result<SystemCalls> {
    let short = count(lab, programs, case, subject, SHORT_SECONDS)?;
    // Connections that stay are opened once, however long a block is: the difference of two runs
    // holds requests only.
    if case.connections == Connections::KeepAlive {
        let seconds = if case.concurrency > FEW_CONNECTIONS {
            LONG_SECONDS_OF_MANY
        } else {
            LONG_SECONDS
        };
        let long = count(lab, programs, case, subject, seconds)?;
        per_request(&long.0, &short.0, long.1.saturating_sub(short.1))
    } else {
        per_request(&short.0, &[], short.1)
    }
}

const SHORT_SECONDS: u32 = 1;
const LONG_SECONDS: u32 = 2;

/// Thousands of connections take up much of the first second under strace.
const LONG_SECONDS_OF_MANY: u32 = 5;
const FEW_CONNECTIONS: u32 = 256;

const ATTACH_PATIENCE: Duration = Duration::from_secs(5);

type Counts = Vec<(String, u64)>;

/// The calls of a server under load, and the requests that they served.
fn count(
    lab: &Lab,
    programs: &Programs,
    case: &Case,
    subject: Subject,
    seconds: u32,
) -> Result<(Counts, u64)> {
    let server = Server::start(lab, programs, subject, case, &[])?;
    let (report, output) = (lab.file("strace.txt"), lab.file("strace-output.txt"));
    let mut command = Command::new("strace");
    command.args(["-f", "-c", "-o"]).arg(&report);
    for pid in &server.pids {
        command.args(["-p", &pid.to_string()]);
    }
    let mut strace = Child::start(&lab.caretaker, &mut command, &output)?;
    let attached = wait_for(ATTACH_PATIENCE, || {
        let ended = strace.ended().is_some();
        (ended || all_traced(&server.pids)).then_some(!ended)
    });
    if attached != Some(true) {
        let said = fs::read_to_string(&output).unwrap_or_default();
        return Err(Failure(format!("strace does not attach: {}", said.trim())));
    }
    let load = wrk::run(lab, case, server.port, seconds);
    wait_until_idle(&server.pids);
    let ended = strace.end(SIGTERM, ATTACH_PATIENCE);
    let load = load?;
    if ended.is_none() {
        return Err(Failure("strace does not end".to_owned()));
    }
    let text = fs::read_to_string(&report).map_err(Failure::during(report.display()))?;
    server.stop()?;
    Ok((parse(&text), load.requests))
}

/// When wrk has gone, the server still has as many requests before it as there were connections, and
/// the connections to close. Left alone until it is done with all, it makes the same calls for them
/// in a short run and in a long one.
fn wait_until_idle(pids: &[u32]) {
    let mut last = cpu_time(pids);
    let mut looks = 0;
    let _or_patience_ends = wait_for(IDLE_PATIENCE, || {
        let time = cpu_time(pids);
        looks = if time == last { looks + 1 } else { 0 };
        last = time;
        (looks == IDLE_LOOKS).then_some(())
    });
}

const IDLE_PATIENCE: Duration = Duration::from_secs(5);

/// This many looks without CPU time in between, 5 ms apart, are taken for idleness.
const IDLE_LOOKS: u32 = 10;

/// The rows of strace's table: share, seconds, microseconds, calls, errors if any, name.
fn parse(text: &str) -> Counts {
    let rows = text.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (&name, numbers) = words.split_last()?;
        let calls = numbers.get(3)?.parse().ok()?;
        (name != "total").then(|| (name.to_owned(), calls))
    });
    rows.collect()
}

fn per_request(
    calls: &[(String, u64)],
    less: &[(String, u64)],
    requests: u64,
) -> Result<SystemCalls> {
    if requests == 0 {
        return Err(Failure("no request was served under strace".to_owned()));
    }
    let mut by_name: Vec<(String, f64)> = calls
        .iter()
        .map(|(name, count)| {
            let less = less.iter().find(|(other, _)| other == name);
            let count = *count as f64 - less.map_or(0.0, |(_, count)| *count as f64);
            (name.clone(), count / requests as f64)
        })
        .filter(|(_, calls)| *calls > 0.0)
        .collect();
    by_name.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    Ok(SystemCalls { by_name })
}

#[cfg(test)]
mod tests {
    use super::{parse, per_request};

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
    fn each_row_is_counted_and_the_total_is_not() {
        let calls = parse(TABLE);
        let names: Vec<_> = calls
            .iter()
            .map(|(name, count)| (name.as_str(), *count))
            .collect();
        assert_eq!(
            names,
            [("writev", 2000), ("recvfrom", 2000), ("epoll_wait", 40)]
        );
    }

    #[test]
    fn calls_of_the_shorter_run_are_taken_off() {
        let less = [("writev".to_owned(), 1000), ("epoll_wait".to_owned(), 40)];
        let calls = per_request(&parse(TABLE), &less, 1000).unwrap();
        assert_eq!(
            calls.by_name,
            [("recvfrom".to_owned(), 2.0), ("writev".to_owned(), 1.0)]
        );
        assert!((calls.total() - 3.0).abs() < 1e-9);
        assert!(per_request(&parse(TABLE), &[], 0).is_err());
    }
}
