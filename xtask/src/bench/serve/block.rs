//! One timed block: a fresh server, wrk for some seconds, the accounts before and after.

use std::time::Duration;

use super::case::{Case, Connections};
use super::server::{Programs, Server, Subject};
use super::wrk::{self, Latency, Load};
use crate::bench::accounting::{CpuTime, SoftirqAccount, cpu_ticks, cpu_time, time_wait};
use crate::bench::failure::{Failure, Result};
use crate::bench::lab::Lab;
use crate::bench::timed::Timed;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Block {
    pub(super) subject: Subject,
    /// Blocks with the same number were measured next to each other and are compared as a pair.
    pub(super) pass: u32,
    pub(super) requests: f64,
    pub(super) requests_per_s: f64,
    pub(super) cpu_us_per_request: f64,
    pub(super) softirq_us_per_request: f64,
    pub(super) bytes_per_s: f64,
    /// One answer with its head and framing.
    pub(super) answer_bytes: usize,
    pub(super) errors: u64,
    pub(super) latency: Latency,
    pub(super) client_cpu_us_per_request: f64,
    /// Of 1: how long the server and the client ran.
    pub(super) server_ran: f64,
    pub(super) client_ran: f64,
    /// Of 1: how long they were kept waiting for their CPUs by others.
    pub(super) server_waited: f64,
    pub(super) client_waited: f64,
    /// Of 1: how long the machine below kept the server's CPU for itself.
    pub(super) steal: f64,
}

impl Timed for Block {
    type Subject = Subject;

    fn subject(&self) -> Subject {
        self.subject
    }

    fn pass(&self) -> u32 {
        self.pass
    }

    fn errors(&self) -> u64 {
        self.errors
    }
}

/// Measures `subject` once.
pub(super) fn measure(
    lab: &Lab,
    programs: &Programs,
    case: &Case,
    subject: Subject,
    pass: u32,
    seconds: u32,
) -> Result<Block> {
    let server = Server::start(lab, programs, subject, case, &[])?;
    let ticks_before = cpu_ticks(lab.server_cpu);
    let time_before = cpu_time(&server.pids);
    let load = wrk::run(lab, case, server.port, seconds)?;
    let time = cpu_time(&server.pids).since(time_before);
    let ticks = cpu_ticks(lab.server_cpu).since(ticks_before);
    let requests = answered(case, &load, server.answer_bytes)
        .map_err(|what| Failure(format!("{} in {}: {what}", subject.name(), case.name)))?;
    let answer_bytes = server.answer_bytes;
    server.stop()?;
    let softirq = load.duration.mul_f64(ticks.softirq_share());
    let ran = ran_with_softirq(time, softirq, lab.softirq_account);
    let duration_s = load.duration.as_secs_f64();
    Ok(Block {
        subject,
        pass,
        requests,
        requests_per_s: requests / duration_s,
        cpu_us_per_request: micros(ran) / requests,
        softirq_us_per_request: micros(softirq) / requests,
        bytes_per_s: load.bytes as f64 / duration_s,
        answer_bytes,
        errors: load.errors,
        latency: load.latency,
        client_cpu_us_per_request: micros(load.client_time.ran) / requests,
        server_ran: time.ran.as_secs_f64() / duration_s,
        client_ran: load.client_time.ran.as_secs_f64() / duration_s,
        server_waited: time.waited.as_secs_f64() / duration_s,
        client_waited: load.client_time.waited.as_secs_f64() / duration_s,
        steal: ticks.steal_share(),
    })
}

/// Fills the machine's table of connections in TIME-WAIT before connections are measured. While it
/// fills, closing a connection costs more than when it is full, and the first blocks would be
/// slower than the later ones.
pub(super) fn fill_time_wait(lab: &Lab, programs: &Programs, case: &Case) -> Result<()> {
    let (waiting, most) = time_wait();
    if case.connections == Connections::KeepAlive || waiting as f64 > FULL * most as f64 {
        return Ok(());
    }
    let closing = Case::filling();
    let server = Server::start(lab, programs, Subject::Nginx, &closing, &[])?;
    wrk::run(lab, &closing, server.port, FILLING_SECONDS)?;
    server.stop()?;
    Ok(())
}

/// Connections leave the table after 60 seconds (TCP_TIMEWAIT_LEN), hence it is never quite full.
const FULL: f64 = 0.9;

/// At 30 000 connections a second, enough for the usual 131 072 places.
const FILLING_SECONDS: u32 = 5;

/// How many requests were answered, if the bytes that came are those of that many answers. Each
/// connection may have an unfinished answer; those count as fractions where answers are large.
fn answered(case: &Case, load: &Load, answer_bytes: usize) -> std::result::Result<f64, String> {
    let (requests, bytes) = (load.requests as f64, load.bytes as f64);
    let answer = answer_bytes as f64;
    let at_least = requests * (answer - HEAD_DIFFERENCE_BYTES);
    let at_most = (requests + f64::from(case.concurrency)) * (answer + HEAD_DIFFERENCE_BYTES);
    if bytes < at_least || bytes > at_most {
        return Err(format!(
            "{bytes} bytes cannot be {requests} answers of {answer} bytes"
        ));
    }
    let answered = if case.counts_fractions() {
        bytes / answer
    } else {
        requests
    };
    if answered > 0.0 {
        Ok(answered)
    } else {
        Err("no request was answered".to_owned())
    }
}

/// "Connection: close" and "Connection: keep-alive" differ by five bytes; content lengths in chunk
/// sizes by a few.
const HEAD_DIFFERENCE_BYTES: f64 = 16.0;

/// The time that the server's processes used, with the softirq's if the kernel keeps that apart.
fn ran_with_softirq(time: CpuTime, softirq: Duration, account: SoftirqAccount) -> Duration {
    match account {
        SoftirqAccount::Apart => time.ran + softirq,
        SoftirqAccount::InTask | SoftirqAccount::Unknown => time.ran,
    }
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{CpuTime, answered};
    use crate::bench::serve::case::full;
    use crate::bench::serve::wrk::{Latency, Load};

    /// How many answers of 1000 bytes `requests` finished ones and `bytes` are, with 64 connections.
    fn check(name: &str, requests: u64, bytes: u64, expected: Option<f64>) {
        let case = full().into_iter().find(|case| case.name == name).unwrap();
        let load = Load {
            requests,
            duration: Duration::from_secs(1),
            bytes,
            errors: 0,
            latency: Latency::default(),
            client_time: CpuTime::default(),
        };
        assert_eq!(
            answered(&case, &load, 1000).ok(),
            expected,
            "{name} {requests} {bytes}"
        );
    }

    #[test]
    fn answers_are_counted_when_their_bytes_came() {
        check("keep-alive-600", 100, 100_000, Some(100.0));
        check("keep-alive-600", 100, 99_500, Some(100.0));
        check("keep-alive-600", 100, 164_000, Some(100.0));
        check("keep-alive-600", 100, 50_000, None);
        check("keep-alive-600", 100, 200_000, None);
        check("keep-alive-600", 0, 0, None);
    }

    #[test]
    fn unfinished_large_answers_count_as_fractions() {
        check("keep-alive-100k", 100, 132_500, Some(132.5));
        check("keep-alive-100k", 0, 500, Some(0.5));
    }
}
