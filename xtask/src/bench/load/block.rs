//! One timed block: a fresh server, one client for some seconds, the accounts before and after.

use super::case::{CONCURRENCY, Case};
use super::client::{Client, Files, Programs};
use super::run;
use super::server::{Kind, Server, Service};
use crate::bench::accounting::{CpuTime, SoftirqAccount, cpu_ticks, cpu_time};
use crate::bench::failure::{Failure, Result};
use crate::bench::lab::Lab;
use crate::bench::timed::Timed;
use crate::bench::told::{Latency, Told};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Block {
    pub(super) client: Client,
    /// Blocks with the same number were measured next to each other and are compared as pairs.
    pub(super) pass: u32,
    pub(super) requests: u64,
    pub(super) requests_per_s: f64,
    /// The client's, user and system.
    pub(super) cpu_us_per_request: f64,
    pub(super) latency: Latency,
    pub(super) errors: u64,
    /// Of 1, of the client's life: how long client and server ran, and waited for their CPUs.
    pub(super) client_ran: f64,
    pub(super) client_waited: f64,
    pub(super) server_ran: f64,
    pub(super) server_waited: f64,
    /// Of 1: how long the machine below kept the client's CPU for itself.
    pub(super) steal: f64,
}

impl Timed for Block {
    type Subject = Client;

    fn subject(&self) -> Client {
        self.client
    }

    fn pass(&self) -> u32 {
        self.pass
    }

    fn errors(&self) -> u64 {
        self.errors
    }
}

/// What is the same for all blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting<'a> {
    pub(super) lab: &'a Lab,
    pub(super) programs: &'a Programs,
    pub(super) files: &'a Files,
    pub(super) server: Kind,
    pub(super) seconds: u64,
}

/// Measures `client` once.
pub(super) fn measure(
    setting: Setting<'_>,
    case: &Case,
    client: Client,
    pass: u32,
) -> Result<Block> {
    let Setting {
        lab,
        programs,
        files,
        seconds,
        ..
    } = setting;
    let service = Service::of_bytes(case.body_bytes);
    let server = Server::start(lab, programs, setting.server, &service)?;
    run::forget(files);
    let line = client.command_line(programs, files, case, seconds, &server.url());
    let ticks_before = cpu_ticks(lab.client_cpu);
    let server_before = cpu_time(&server.pids);
    let ended = run::run(lab, &line, seconds)?;
    let server_time = cpu_time(&server.pids).since(server_before);
    let ticks = cpu_ticks(lab.client_cpu).since(ticks_before);
    let told = run::told(client, files, &ended)?;
    check(&told, server.answer_bytes)
        .map_err(|what| Failure(format!("{} in {}: {what}", client.name(), case.name)))?;
    server.stop()?;
    let softirq = told.duration.mul_f64(ticks.softirq_share());
    let ran = match lab.softirq_account {
        SoftirqAccount::Apart => ended.time.ran + softirq,
        SoftirqAccount::InTask | SoftirqAccount::Unknown => ended.time.ran,
    };
    let seconds = told.duration.as_secs_f64();
    let share = |time: CpuTime| {
        let of = |part| run::share(part, ended.lasted);
        (of(time.ran), of(time.waited))
    };
    let (client_ran, client_waited) = share(ended.time);
    let (server_ran, server_waited) = share(server_time);
    Ok(Block {
        client,
        pass,
        requests: told.requests,
        requests_per_s: told.requests as f64 / seconds,
        cpu_us_per_request: ran.as_secs_f64() * 1e6 / told.requests as f64,
        latency: told.latency,
        errors: told.errors,
        client_ran,
        client_waited,
        server_ran,
        server_waited,
        steal: ticks.steal_share(),
    })
}

/// "Connection: close" and "Connection: keep-alive" differ by five bytes, HTTP versions by none.
const HEAD_DIFFERENCE_BYTES: f64 = 32.0;

/// Whether the bytes that came are those of so many answers. Each connection may have an unfinished
/// one. A client that counts what it did not get has not done the work.
fn check(told: &Told, answer_bytes: usize) -> std::result::Result<(), String> {
    let (requests, bytes) = (told.requests as f64, told.bytes as f64);
    let answer = answer_bytes as f64;
    if told.requests == 0 || told.duration.is_zero() {
        return Err("no request was answered".to_owned());
    }
    let at_least = requests * (answer - HEAD_DIFFERENCE_BYTES);
    let at_most = (requests + f64::from(CONCURRENCY)) * (answer + HEAD_DIFFERENCE_BYTES);
    if bytes < at_least || bytes > at_most {
        return Err(format!(
            "{bytes} bytes cannot be {requests} answers of {answer} bytes"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::check;
    use crate::bench::told::Told;

    #[test]
    fn answers_are_counted_when_their_bytes_came() {
        for (requests, bytes, expected) in [
            (1000, 1_000_000, true),
            (1000, 980_000, true),
            (1000, 1_064_000, true),
            (1000, 900_000, false),
            (1000, 2_000_000, false),
            (0, 0, false),
        ] {
            let told = Told {
                requests,
                bytes,
                duration: Duration::from_secs(1),
                ..Told::default()
            };
            assert_eq!(check(&told, 1000).is_ok(), expected, "{requests} {bytes}");
        }
    }
}
