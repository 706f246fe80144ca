//! Fixed results for the tests of all output forms: two seconds, a thousand answers, three failures.

use crate::failure::FailureKind;
use crate::native::answers::Answers;
use crate::native::measures::Measures;
use crate::native::options::{self, LoadCommand, Options};
use crate::native::outcome::Outcome;
use crate::native::preparation::{Prepared, Sending};
use crate::native::recorder::Interval;
use crate::native::results::Results;
use crate::native::series::Series;
use crate::plan::{Arrivals, Pace, Plan};
use crate::platform::{Machine, ServerCpu, ThreadCpu};
use crate::request::{Batch, Rendered};
use crate::tally::Tally;
use core::time::Duration;
use mill_metrics::Histogram;
use mill_runtime::time::UnixTime;
use std::net::SocketAddr;

/// Latencies of 10 µs, 20 µs, … 6 ms in the first second, up to 4 ms in the second one. In an open loop they
/// are raw, and the longest hundred waited 20 ms longer.
pub(super) fn results(open_loop: bool) -> Results {
    let mut series = Series::new(1, Duration::from_secs(1));
    series.on_interval(0, Duration::from_secs(1), &interval(600, 603, 2, 10));
    series.on_interval(0, Duration::from_secs(2), &interval(400, 400, 1, 0));
    let mut tally = Tally {
        started: 1003 + 4,
        answered: 1000,
        statuses: [0, 990, 0, 10, 0],
        statuses_bad: 10,
        connects: 11,
        connected: 10,
        open: 10,
        open_max: 10,
        bytes_sent: 40_000,
        bytes_received: 100_000,
        content_bytes: 10_000,
        ..Tally::default()
    };
    for kind in [
        FailureKind::Timeout,
        FailureKind::Timeout,
        FailureKind::Reset,
    ] {
        tally.on_failure(kind);
    }
    let mut answers = Answers::default();
    for nth in 0..1000 {
        answers.on_answer(if nth % 100 == 99 { 404 } else { 200 }, 10);
    }
    Results {
        began: UnixTime {
            seconds: 1_700_000_000,
            nanos: 250_000_000,
        },
        measured: Duration::from_secs(2),
        tally,
        measures: measures(open_loop),
        answers,
        failures: vec![
            (
                FailureKind::Reset,
                String::from("connection lost: reset by the peer"),
            ),
            (FailureKind::Timeout, String::from("no answer in time")),
        ],
        periods: series.finish(Duration::from_secs(2), &[]),
        machine: machine(),
        gaps: Vec::new(),
        interrupted: false,
        aborted: None,
    }
}

fn measures(open_loop: bool) -> Measures {
    let mut measures = Measures::new(open_loop);
    for tens in 1..=1000_u64 {
        let raw = Duration::from_micros(tens * 10);
        let waited = Duration::from_millis(if tens > 900 { 20 } else { 0 });
        if let (Some(histogram), Some(lateness)) = (&mut measures.raw, &mut measures.lateness) {
            histogram.record(raw);
            lateness.record(waited);
            measures.latency.record(raw + waited);
        } else {
            measures.latency.record(raw);
        }
        measures.service.record(raw);
        measures.first_byte.record(raw / 2);
    }
    for _ in 0..10 {
        measures.connect.record(Duration::from_micros(85));
    }
    measures
}

fn machine() -> Machine {
    Machine {
        threads: vec![ThreadCpu {
            user: Duration::from_millis(4),
            system: Duration::from_millis(16),
            wall: Duration::from_secs(2),
            involuntary_switches: 3,
        }],
        server: Some(ServerCpu {
            process: 4711,
            command: String::from("nginx"),
            user: Duration::from_millis(10),
            system: Duration::from_millis(20),
            busiest_thread: 0.97,
        }),
        ..Machine::default()
    }
}

fn interval(answered: u64, started: u64, failed: u64, connected: u64) -> Interval {
    let mut latency = Histogram::new();
    for tens in 1..=answered {
        latency.record(Duration::from_micros(tens * 10));
    }
    Interval {
        latency,
        started,
        answered,
        failed,
        bytes_received: answered * 100,
        connected,
        open: 10,
    }
}

/// The options of `line`.
pub(super) fn options(line: &str) -> Options {
    let arguments: Vec<Vec<u8>> = line
        .split_whitespace()
        .map(|word| word.as_bytes().to_vec())
        .collect();
    match options::parse(&arguments) {
        Ok(LoadCommand::Load(options)) => *options,
        other => panic!("{line}: {other:?}"),
    }
}

/// A plan with one request, for `options`.
pub(super) fn prepared(options: &Options) -> Prepared {
    let mut plan = Plan::new(SocketAddr::from(([192, 0, 2, 1], 80)).into());
    plan.connections = options.connections;
    plan.life = options.life.clone();
    plan.stop.after = options.duration;
    if let Some(rate) = options.rate {
        plan.pace = Pace::Open {
            rate,
            arrivals: Arrivals::Uniform,
        };
    }
    let rendered = Rendered {
        bytes: (*b"GET / HTTP/1.1\r\n\r\n").into(),
        batch: Batch::ONE,
    };
    Prepared {
        plan,
        sending: Sending::Mix(vec![(rendered, 1.0)]),
    }
}

/// Passes the outcome of a command line, with results of its kind of loop, to `check`.
pub(super) fn with_outcome(line: &str, check: impl FnOnce(&Outcome<'_>)) {
    let options = options(line);
    let prepared = prepared(&options);
    let results = results(options.rate.is_some());
    check(&Outcome::new(&options, &prepared, &results));
}
