//! One timed block: a fresh server, a client for some seconds, the accounts of both CPUs in their midst.

use std::time::Duration;

use mill_sys::clock;

use super::cell::Cell;
use super::client::{Client, Told};
use super::exchange::Exchange;
use super::server::{Server, head_bytes};
use super::setting::Setting;
use super::subject::{Kind, Subject};
use crate::bench::accounting::{CpuTicks, CpuTime, cpu_ticks, cpu_time, descendants, memory};
use crate::bench::failure::{Failure, Result};
use crate::bench::patience::pause;
use crate::bench::timed::Timed;
use crate::bench::told::Latency;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Block {
    pub(super) subject: Subject,
    /// Blocks with the same number were measured next to each other and are compared as a pair.
    pub(super) pass: u32,
    pub(super) requests_per_s: f64,
    /// Of the answers' content.
    pub(super) bytes_per_s: f64,
    pub(super) errors: u64,
    pub(super) latency: Latency,
    /// How much later than due requests were begun; at a pace only.
    pub(super) lateness: Latency,
    /// Open at the end; if the client tells.
    pub(super) connections_held: Option<u64>,
    /// Memory for each of these connections, or of the cell's if it does not tell: what the server has more of than after
    /// its first answer, and all that the client has. Not a number where it can't be read.
    pub(super) server_bytes: f64,
    pub(super) client_bytes: f64,
    pub(super) server_core: CoreUse,
    pub(super) client_core: CoreUse,
    /// Of 1: how long the processes ran.
    pub(super) server_ran: f64,
    pub(super) client_ran: f64,
    /// Of 1: how long they were kept waiting for their CPUs, by others or by each other.
    pub(super) server_waited: f64,
    pub(super) client_waited: f64,
}

/// What a CPU did, of 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct CoreUse {
    pub(super) busy: f64,
    pub(super) softirq: f64,
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

impl Block {
    /// Of a share of the time.
    pub(super) fn us_per_request(&self, share: f64) -> f64 {
        share * 1e6 / self.requests_per_s
    }
}

/// Until then clients start and connect.
const SETTLING: Duration = Duration::from_millis(250);

/// Before its end a client may be about to end.
const ENDING: Duration = Duration::from_millis(50);

/// How long a client may last beyond its seconds.
const PATIENCE_PAST_END: Duration = Duration::from_secs(15);

/// Measures `subject` once.
pub(super) fn measure(
    setting: Setting<'_>,
    cell: &Cell,
    subject: Subject,
    client: Client,
    pass: u32,
) -> Result<Block> {
    let mut server = Server::start(setting, cell, subject.kind)?;
    let block = load(setting, cell, subject, client, pass, &server);
    // A server that has died tells more than the client that it has left alone.
    server.check()?;
    let block = block?;
    server.stop()?;
    Ok(block)
}

/// How many requests a second this client brings out of a server.
pub(super) fn rate(
    setting: Setting<'_>,
    cell: &Cell,
    subject: Subject,
    client: Client,
) -> Result<f64> {
    let block = measure(setting, cell, subject, client, 0)?;
    Ok(block.requests_per_s)
}

fn load(
    setting: Setting<'_>,
    cell: &Cell,
    subject: Subject,
    client: Client,
    pass: u32,
    server: &Server<'_>,
) -> Result<Block> {
    let bytes_before = bytes_of(&server.pids);
    let mut child = client.start(setting, cell, server)?;
    pause(client.warm_up(cell) + SETTLING);
    let client_pids = descendants(child.pid());
    let before = Sample::take(setting, &server.pids, &client_pids);
    let seconds = Duration::from_secs(cell.seconds(setting.seconds).into());
    pause(seconds.saturating_sub(SETTLING + ENDING));
    let after = Sample::take(setting, &server.pids, &client_pids);
    let server_bytes = bytes_of(&server.pids) - bytes_before;
    let client_bytes = bytes_of(&client_pids);
    if child.wait(PATIENCE_PAST_END).is_none() {
        return Err(Failure(format!("{} did not end", client.name())));
    }
    let told = client.told(setting, cell)?;
    let connections = told
        .open
        .map_or(f64::from(cell.concurrency), |open| open as f64);
    let seconds = told.duration.as_secs_f64();
    let requests = answered(cell, subject.kind, &told, server.answer_bytes)
        .map_err(|what| Failure(format!("{} told {what}", client.name())))?;
    let [server_core, client_core] = [0, 1].map(|side| before.core_use(&after, side));
    let [server_time, client_time] = [0, 1].map(|side| after.times[side].since(before.times[side]));
    let share = |time: Duration| {
        let window = after.at.saturating_sub(before.at);
        time.as_secs_f64() / window.as_secs_f64()
    };
    Ok(Block {
        subject,
        pass,
        requests_per_s: requests / seconds,
        bytes_per_s: requests * cell.body_bytes as f64 / seconds,
        errors: told.errors,
        latency: told.latency,
        lateness: told.lateness,
        connections_held: told.open,
        server_bytes: server_bytes / connections,
        client_bytes: client_bytes / connections,
        server_core,
        client_core,
        server_ran: share(server_time.ran),
        client_ran: share(client_time.ran),
        server_waited: share(server_time.waited),
        client_waited: share(client_time.waited),
    })
}

/// Shared memory counts in proportion, as that of memif's two ends.
fn bytes_of(pids: &[u32]) -> f64 {
    memory(pids).map_or(f64::NAN, |memory| memory.pss_bytes as f64)
}

/// The accounts of server and client at a moment.
struct Sample {
    at: Duration,
    ticks: [CpuTicks; 2],
    times: [CpuTime; 2],
}

impl Sample {
    fn take(setting: Setting<'_>, server: &[u32], client: &[u32]) -> Self {
        let lab = setting.lab;
        Self {
            at: clock::monotonic(),
            ticks: [lab.server_cpu, lab.client_cpu].map(cpu_ticks),
            times: [server, client].map(cpu_time),
        }
    }

    fn core_use(&self, after: &Self, side: usize) -> CoreUse {
        let ticks = after.ticks[side].since(self.ticks[side]);
        CoreUse {
            busy: ticks.busy_share(),
            softirq: ticks.softirq_share(),
            steal: ticks.steal_share(),
        }
    }
}

/// How many requests were answered, if what came are those answers. Each connection may have an unfinished answer at the
/// end, and one whose first part came before the warm-up ended; those count as fractions where answers are large.
pub(super) fn answered(
    cell: &Cell,
    kind: Kind,
    told: &Told,
    answer_bytes: usize,
) -> std::result::Result<f64, String> {
    if let Some(wrong) = &told.wrong {
        return Err(wrong.clone());
    }
    let requests = told.requests as f64;
    if kind == Kind::Raw {
        let head = head_bytes(answer_bytes, cell);
        return Ok(requests * Exchange::of(cell, head).answers(cell, head));
    }
    let (bytes, answer) = (told.bytes as f64, answer_bytes as f64);
    let unfinished = f64::from(cell.concurrency);
    let at_least = (requests - unfinished) * (answer - HEAD_DIFFERENCE_BYTES);
    let at_most = (requests + unfinished) * (answer + HEAD_DIFFERENCE_BYTES);
    if bytes < at_least || bytes > at_most {
        return Err(format!(
            "{bytes} bytes, which cannot be {requests} answers of {answer} bytes"
        ));
    }
    let answered = if cell.counts_fractions() {
        bytes / answer
    } else {
        requests
    };
    if answered > 0.0 {
        Ok(answered)
    } else {
        Err("no answer".to_owned())
    }
}

/// "Connection: close" and "Connection: keep-alive" differ by five bytes.
const HEAD_DIFFERENCE_BYTES: f64 = 16.0;

#[cfg(test)]
mod tests {
    use super::{Kind, Told, answered};
    use crate::bench::bypass::cell::full;

    /// How many answers of 1000 bytes with heads `requests` finished ones and `bytes` are.
    fn check(name: &str, requests: u64, bytes: u64, expected: Option<f64>) {
        let cell = full().into_iter().find(|cell| cell.name == name).unwrap();
        let told = Told {
            requests,
            bytes,
            ..Told::default()
        };
        let found = answered(&cell, Kind::Nginx, &told, 1000).ok();
        assert_eq!(found, expected, "{name} {requests} {bytes}");
    }

    #[test]
    fn answers_are_counted_when_their_bytes_came() {
        check("ka-0B-64", 100, 100_000, Some(100.0));
        check("ka-0B-64", 100, 99_500, Some(100.0));
        check("ka-0B-64", 100, 164_000, Some(100.0));
        check("ka-0B-64", 100, 36_000, Some(100.0));
        check("ka-0B-64", 100, 35_000, None);
        check("ka-0B-64", 100, 200_000, None);
        check("ka-0B-64", 0, 0, None);
        check("ka-1M-16", 0, 0, None);
    }

    #[test]
    fn unfinished_large_answers_count_as_fractions() {
        check("ka-1M-16", 100, 105_500, Some(105.5));
        check("ka-1M-16", 0, 500, Some(0.5));
    }

    #[test]
    fn other_answers_than_those_asked_for_are_no_answers() {
        let cell = full().swap_remove(0);
        let told = Told {
            requests: 10,
            bytes: 10_000,
            wrong: Some("1 answer with status 404".to_owned()),
            ..Told::default()
        };
        assert!(answered(&cell, Kind::Xdp, &told, 1000).is_err());
    }
}
