//! When runs end, and what counts then.

use crate::closed_loop::{MS, plan, run};
use crate::server::Act;
use crate::sim_platform::SimPlatform;
use mill_load::failure::FailureKind;
use mill_load::plan::{AfterFailure, Arrivals, Opening, Pace, Plan};
use mill_load::source::Sources;
use mill_load::tally::Tally;
use mill_runtime::time::Duration;

fn answering() -> SimPlatform {
    SimPlatform::new(|_| Act::answer("x").after(MS))
}

/// The run takes `expected`, and its requests are answered.
#[track_caller]
fn check_takes(plan: &Plan, expected: Duration) {
    let ran = run(&answering(), plan);
    assert_eq!(ran.tally().answered, plan.stop.requests.unwrap_or(0));
    assert_eq!(ran.measured, expected);
}

#[test]
fn a_run_ends_with_its_last_answer_whatever_its_connections_wait_for() {
    let mut plan = plan();
    plan.stop.requests = Some(5);
    plan.stop.after = Some(Duration::from_secs(60));
    plan.connections = 20;

    let mut idle = plan.clone();
    idle.pace = Pace::Open {
        rate: 10.0,
        arrivals: Arrivals::Uniform,
    };
    check_takes(&idle, 401 * MS);

    let mut staggered = plan.clone();
    staggered.opening = Opening::Staggered(Duration::from_secs(1));
    check_takes(&staggered, 5 * MS);

    let mut thinking = plan;
    thinking.pace = Pace::Closed {
        think: Duration::from_secs(1),
    };
    check_takes(&thinking, MS);
}

#[test]
fn a_run_does_not_wait_to_connect_again_for_nothing() {
    let mut platform = answering();
    platform.listens = false;
    let mut plan = plan();
    plan.stop.requests = Some(3);
    // Refused at 0, 10 and 30 ms.
    let ran = run(&platform, &plan);
    assert_eq!((ran.tally().failed(), ran.measured), (3, 30 * MS));
}

#[test]
fn a_run_without_a_time_ends_when_all_its_connections_have_given_up() {
    let mut platform = answering();
    platform.streams_max = 0;
    let mut plan = plan();
    plan.connections = 3;
    (plan.stop.after, plan.stop.requests) = (None, Some(10));
    plan.after_failure = AfterFailure::GiveUpConnecting;
    let tally = run(&platform, &plan).tally();
    assert_eq!(tally.failures_of(FailureKind::NoDescriptor), 3);
}

#[test]
fn of_a_run_that_ends_before_its_warm_up_nothing_is_measured() {
    let mut plan = plan();
    plan.stop.requests = Some(7);
    plan.warm_up = Duration::from_secs(10);
    let ran = run(&answering(), &plan);
    let nothing = Tally {
        open: 1,
        open_max: 1,
        ..Tally::default()
    };
    assert_eq!(ran.tally(), nothing);
    assert_eq!(ran.measured, Duration::ZERO);
    assert!(ran.parts[0].recorder.samples.is_empty());
}

#[test]
fn connects_that_fail_at_once_let_the_others_work() {
    for after_failure in [
        AfterFailure::Retry {
            pause: Duration::ZERO,
        },
        AfterFailure::AbortOn(&[]),
    ] {
        let mut platform = answering();
        platform.streams_max = 1;
        let mut plan = plan();
        plan.connections = 2;
        plan.stop.after = Some(100 * MS);
        plan.after_failure = after_failure;
        assert_eq!(run(&platform, &plan).tally().answered, 99);
    }
}

#[test]
fn a_thread_without_a_source_port_of_its_own_takes_none() {
    let mut plan = plan();
    (plan.connections, plan.threads) = (2, 2);
    plan.stop.after = Some(50 * MS);
    plan.sources = Sources {
        addresses: Vec::new(),
        ports: Some(5000..=5000),
    };
    let platform = answering();
    let ran = run(&platform, &plan);
    assert_eq!(ran.parts[1].tally.connected, 0);
    assert!(ran.parts[1].tally.failures_of(FailureKind::NoPort) > 0);
    assert!(
        platform
            .log
            .peers
            .borrow()
            .iter()
            .all(|peer| peer.ends_with(":5000"))
    );
}
