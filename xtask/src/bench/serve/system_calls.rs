//! System calls per request, counted by strace in a short run of its own.

use std::time::Duration;

use super::case::{Case, Connections};
use super::server::{Programs, Server, Subject};
use super::wrk;
use crate::bench::accounting::cpu_time;
use crate::bench::failure::Result;
use crate::bench::lab::Lab;
use crate::bench::patience::wait_for;
use crate::bench::strace::{Counts, Strace, SystemCalls, per_request};

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

/// The calls of a server under load, and the requests that they served.
fn count(
    lab: &Lab,
    programs: &Programs,
    case: &Case,
    subject: Subject,
    seconds: u32,
) -> Result<(Counts, u64)> {
    let server = Server::start(lab, programs, subject, case, &[])?;
    let strace = Strace::attach(lab, &server.pids)?;
    let load = wrk::run(lab, case, server.port, seconds);
    wait_until_idle(&server.pids);
    let counts = strace.finish();
    let requests = load?.requests;
    let counts = counts?;
    server.stop()?;
    Ok((counts, requests))
}

/// When wrk has gone, the server still has as many requests before it as there were connections, and
/// the connections to close. Left alone until it is done with all, it makes the same calls for them
/// in a short run and in a long one.
fn wait_until_idle(pids: &[u32]) {
    let mut last = cpu_time(pids);
    let mut looks = 0;
    let _or_patience_ends = wait_for(IDLE_TIMEOUT, || {
        let time = cpu_time(pids);
        looks = if time == last { looks + 1 } else { 0 };
        last = time;
        (looks == IDLE_LOOKS).then_some(())
    });
}

const IDLE_TIMEOUT: Duration = Duration::from_secs(5);

/// This many looks without CPU time in between, 5 ms apart, are taken for idleness.
const IDLE_LOOKS: u32 = 10;
