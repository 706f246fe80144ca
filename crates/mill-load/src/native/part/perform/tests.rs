//! A part over a platform that only records its calls.

use super::*;
use crate::generator::Part;
use crate::plan::{Arrivals, Pace};
use crate::platform::{ChildProcesses, Machine, PlatformError, RunOutcome};
use crate::record::Record;
use crate::request::{Batch, Rendered, Requests};
use crate::tally::Tally;
use crate::target::Endpoint;
use core::net::SocketAddr;
use mill_runtime::time::{Instant, UnixTime};
use std::cell::Cell;

/// The conductor's messages, and the resulting calls.
#[derive(Default)]
struct Quiet {
    order: Option<String>,
    obeyed: Cell<bool>,
    begin: Cell<Option<Instant>>,
    fails: bool,
}

impl Launcher for Quiet {
    fn now(&self) -> Instant {
        Instant::default()
    }

    fn start(&self, _: &[Vec<Vec<u8>>]) -> Result<Box<dyn ChildProcesses>, String> {
        Err(String::from("a part starts no processes"))
    }

    fn order(&self) -> Option<String> {
        self.order.clone()
    }

    fn interrupt_on_input(&self) {
        self.obeyed.set(true);
    }
}

impl Platform for Quiet {
    fn resolve(&self, _: &str, _: u16) -> Result<Vec<SocketAddr>, String> {
        Ok(Vec::new())
    }

    fn accepts(&self, _: SocketAddr) -> bool {
        true
    }

    fn wall_clock(&self) -> UnixTime {
        UnixTime::from_seconds(77)
    }

    fn cpus(&self) -> u32 {
        1
    }

    fn launcher(&self) -> Result<&dyn Launcher, PlatformError> {
        Ok(self)
    }

    fn run<R: Record>(
        &self,
        plan: &Plan,
        inputs: Vec<ThreadInput<R>>,
        watch: &mut dyn Watch<R::Interval>,
    ) -> Result<RunOutcome<R>, PlatformError> {
        assert!(
            self.obeyed.get(),
            "an order to stop must be read from the beginning"
        );
        if self.fails {
            return Err(PlatformError(String::from("no thread left")));
        }
        self.begin.set(plan.begin);
        let tally = Tally {
            started: 5,
            answered: 5,
            ..Tally::default()
        };
        let parts = inputs.into_iter().zip(0..).map(|(mut input, thread)| {
            let interval = input.recorder.cut(Instant::default(), &tally);
            watch.on_interval(thread, plan.interval, interval);
            Part {
                recorder: input.recorder,
                tally,
                measured: plan.interval,
                aborted: None,
                gaps: Vec::new(),
                longest: Duration::ZERO,
                script: None,
            }
        });
        Ok(RunOutcome {
            parts: parts.collect(),
            measured: plan.interval,
            interrupted: false,
            machine: Machine::default(),
        })
    }
}

fn prepared() -> Result<(Plan, Vec<ThreadInput<Recorder>>), String> {
    let mut plan = Plan::new(Endpoint::example());
    plan.pace = Pace::Open {
        rate: 1000.0,
        arrivals: Arrivals::Uniform,
    };
    let input = ThreadInput {
        requests: Requests::always(Rendered {
            bytes: b"GET / HTTP/1.1\r\n\r\n".as_slice().into(),
            batch: Batch::ONE,
        }),
        recorder: Recorder::new(true),
    };
    Ok((plan, vec![input]))
}

/// Runs the second of two parts; returns its messages and whether it succeeded.
fn performed(
    platform: &Quiet,
    prepared: Result<(Plan, Vec<ThreadInput<Recorder>>), String>,
) -> (Vec<PartMessage>, bool) {
    let mut out = Vec::new();
    let place = PartIndex { index: 1, count: 2 };
    let done = perform(platform, place, prepared, &mut out);
    let said = String::from_utf8(out).unwrap();
    let said = said.lines().map(|line| PartMessage::parse(line).unwrap());
    (said.collect(), done.is_ok())
}

fn ordered_to_start() -> Quiet {
    Quiet {
        order: Some(Order::Start(Instant::from_nanos(1_000_000)).emit()),
        ..Quiet::default()
    }
}

#[test]
fn a_part_begins_when_ordered_and_reports_all_its_results() {
    let platform = ordered_to_start();
    let (said, done) = performed(&platform, prepared());
    assert!(done);
    let [
        PartMessage::Hello { .. },
        PartMessage::Ready,
        PartMessage::Interval(period),
        PartMessage::Result(results),
    ] = &said[..]
    else {
        panic!("{said:?}");
    };
    assert_eq!((period.answered, results.tally.answered), (5, 5));
    assert_eq!(results.began, UnixTime::from_seconds(77));
    // The other part begins at 1 ms; at 1000 a second each, the second one's arrivals are half-way between.
    assert_eq!(platform.begin.get(), Some(Instant::from_nanos(1_500_000)));
}

#[test]
fn every_failure_is_reported() {
    let check = |platform: &Quiet, prepared, expected: &str| {
        let (said, done) = performed(platform, prepared);
        let Some(PartMessage::Failed(sentence)) = said.last() else {
            panic!("{said:?}");
        };
        assert!(!done && sentence.contains(expected), "{sentence}");
    };
    check(
        &Quiet::default(),
        prepared(),
        "went away before the run began",
    );
    let stopped = Quiet {
        order: Some(Order::Stop.emit()),
        ..Quiet::default()
    };
    check(&stopped, prepared(), "went away before the run began");
    check(
        &ordered_to_start(),
        Err(String::from("no such name")),
        "no such name",
    );
    let failing = Quiet {
        fails: true,
        ..ordered_to_start()
    };
    check(&failing, prepared(), "no thread left");
}
