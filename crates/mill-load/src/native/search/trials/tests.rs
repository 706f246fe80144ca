//! Searches over a platform that simulates a server of known capacity.

use super::*;
use crate::failure::{Failure, FailureKind};
use crate::generator::Part;
use crate::native::search::Limit;
use crate::platform::{Machine, RunOutcome, Watch};
use crate::record::Record;
use crate::request::{Batch, Rendered, Requests};
use crate::sample::Sample;
use crate::tally::Tally;
use crate::target::Endpoint;
use core::net::SocketAddr;
use core::time::Duration;
use mill_runtime::time::{Instant, UnixTime};
use std::cell::Cell;

/// Answers in a millisecond up to `capacity`, in twenty above it; above `sendable` not all can be sent.
struct Model {
    capacity: f64,
    sendable: f64,
    /// The run of this number is interrupted.
    interrupted_in: u32,
    /// One request in so many fails.
    failing: u64,
    runs: Cell<u32>,
}

fn model() -> Model {
    Model {
        capacity: 9000.0,
        sendable: 1e9,
        interrupted_in: u32::MAX,
        failing: u64::MAX,
        runs: Cell::new(0),
    }
}

impl Platform for Model {
    fn resolve(&self, _: &str, _: u16) -> Result<Vec<SocketAddr>, String> {
        Ok(Vec::new())
    }

    fn accepts(&self, _: SocketAddr) -> bool {
        true
    }

    fn wall_clock(&self) -> UnixTime {
        UnixTime::default()
    }

    fn cpus(&self) -> u32 {
        1
    }

    fn run<R: Record>(
        &self,
        plan: &Plan,
        inputs: Vec<ThreadInput<R>>,
        _: &mut dyn Watch<R::Interval>,
    ) -> Result<RunOutcome<R>, PlatformError> {
        let Pace::Open { rate, .. } = plan.pace else {
            return Err(PlatformError(String::from("a trial is an open loop")));
        };
        let time = if rate <= self.capacity { 1 } else { 20 };
        let sent = if rate <= self.sendable { 100 } else { 98 };
        let parts = inputs.into_iter().map(|input| {
            let mut recorder = input.recorder;
            let mut tally = Tally {
                started: sent,
                never_started: 100 - sent,
                ..Tally::default()
            };
            for number in 1..=sent {
                if number % self.failing == 0 {
                    tally.on_failure(FailureKind::Timeout);
                    recorder.on_failure(Failure::Timeout, Instant::default());
                } else {
                    tally.answered += 1;
                    let begin = Instant::from_nanos(1_000_000);
                    recorder.on_sample(&Sample {
                        done: begin + Duration::from_millis(time),
                        ..Sample::example(begin)
                    });
                }
            }
            Part {
                recorder,
                tally,
                measured: plan.stop.after.unwrap_or_default(),
                aborted: None,
                gaps: Vec::new(),
                longest: Duration::ZERO,
                script: None,
            }
        });
        let run = self.runs.replace(self.runs.get() + 1);
        Ok(RunOutcome {
            parts: parts.collect(),
            measured: plan.stop.after.unwrap_or_default(),
            interrupted: run == self.interrupted_in,
            machine: Machine::default(),
        })
    }
}

fn searched(model: &Model, objective: &str) -> Searched {
    let plan = Plan::new(Endpoint::example());
    let inputs = || {
        vec![ThreadInput {
            requests: Requests::always(Rendered {
                bytes: b"GET / HTTP/1.1\r\n\r\n".as_slice().into(),
                batch: Batch::ONE,
            }),
            recorder: Recorder::new(true),
        }]
    };
    let objective = Objective::parse(objective).unwrap();
    let mut reported = 0;
    let searched = search(
        model,
        (&plan, Arrivals::Uniform),
        &inputs,
        (&objective, Settings::default()),
        &mut |_| reported += 1,
    )
    .unwrap();
    assert_eq!(reported, searched.points.len());
    searched
}

#[test]
fn the_capacity_of_a_server_is_found_by_running() {
    let searched = searched(&model(), "p99<5ms,errors<0.1%");
    let rate = searched.found.rate.unwrap();
    assert!((8800.0..=9000.0).contains(&rate), "{rate}");
    assert_eq!(searched.found.limit, Limit::Objective);
    assert_eq!(searched.points.len(), searched.found.trials as usize);
    let results = searched.results.unwrap();
    assert_eq!(results.measured, Settings::default().long);
    let bend = searched
        .points
        .iter()
        .find(|point| point.rate > 9000.0)
        .unwrap();
    assert!(bend.p99 > Duration::from_millis(19));
}

#[test]
fn a_rate_that_could_not_be_sent_is_not_met_however_fast_the_rest_was() {
    let limited = Model {
        capacity: 1e9,
        sendable: 3000.0,
        ..model()
    };
    let found = searched(&limited, "p99<5ms").found;
    assert_eq!(found.limit, Limit::Sending);
    assert!(
        (2900.0..=3000.0).contains(&found.rate.unwrap()),
        "{found:?}"
    );
}

#[test]
fn errors_miss_the_objective_too() {
    let limited = Model {
        failing: 50,
        ..model()
    };
    let outcome = searched(&limited, "p99<5ms,errors<1%");
    assert_eq!(outcome.found.rate, None);
    assert!((outcome.points[0].errors - 0.02).abs() < 1e-9);
    assert!(searched(&limited, "p99<5ms,errors<3%").found.rate.is_some());
}

#[test]
fn an_interrupt_ends_the_search_with_what_is_known() {
    let limited = Model {
        interrupted_in: 2,
        ..model()
    };
    let searched = searched(&limited, "p99<5ms");
    assert!(searched.interrupted && searched.results.is_none());
    assert_eq!((searched.points.len(), searched.found.rate), (2, None));
}
