//! Open loops: arrivals, lateness, what was never started.

use crate::closed_loop::{MS, plan, run};
use crate::server::Act;
use crate::sim_platform::SimPlatform;
use mill_load::plan::{Arrivals, Opening, Pace, Plan};
use mill_load::sample::Sample;
use mill_runtime::time::Duration;

fn open(rate: f64, arrivals: Arrivals) -> Plan {
    let mut plan = plan();
    plan.pace = Pace::Open { rate, arrivals };
    plan.stop.after = Some(Duration::from_secs(1));
    plan
}

#[test]
fn requests_start_when_they_are_due_and_not_when_the_last_was_answered() {
    let platform = SimPlatform::new(|_| Act::answer("x").after(3 * MS));
    let mut plan = open(1000.0, Arrivals::Uniform);
    (plan.connections, plan.threads) = (10, 2);
    let ran = run(&platform, &plan);
    assert_eq!(ran.tally().started, 1000);
    assert_eq!(ran.tally().never_started, 0);
    assert_eq!(ran.tally().late_50us, 0);
    let samples: Vec<Sample> = ran
        .parts
        .iter()
        .flat_map(|part| part.recorder.samples.clone())
        .collect();
    assert!(
        samples
            .iter()
            .all(|sample| sample.lateness() == Duration::ZERO)
    );
    assert!(samples.iter().all(|sample| sample.latency() == 3 * MS));
}

#[test]
fn a_stall_is_in_the_latency_of_every_request_that_was_due_meanwhile() {
    // One connection, 100 requests a second; the 50th is answered after a second.
    let stall = |number| if number == 49 { 1000 * MS } else { MS };
    let platform = SimPlatform::new(move |number| Act::answer("x").after(stall(number)));
    let mut plan = open(100.0, Arrivals::Uniform);
    plan.stop.after = Some(Duration::from_secs(3));
    let ran = run(&platform, &plan);
    let samples = &ran.parts[0].recorder.samples;
    let hidden = samples
        .iter()
        .filter(|sample| sample.service_time() > 500 * MS);
    assert_eq!(
        hidden.count(),
        1,
        "the closed loop's figure knows one slow request"
    );
    let seen = samples.iter().filter(|sample| sample.latency() > 500 * MS);
    let seen = seen.count();
    assert!(
        (50..60).contains(&seen),
        "half of the stall's requests wait half of it: {seen}"
    );
    assert_eq!(samples[49].latency(), 1000 * MS);
    assert_eq!(samples[50].latency(), 991 * MS);
}

#[test]
fn due_requests_that_could_not_be_started_are_counted() {
    let platform = SimPlatform::new(|_| Act::answer("x").after(100 * MS));
    let plan = open(100.0, Arrivals::Uniform);
    let tally = run(&platform, &plan).tally();
    assert_eq!((tally.answered, tally.started), (9, 10));
    assert_eq!(tally.never_started, 90);
    assert_eq!(tally.late_1ms, 9);
    assert_eq!(
        tally.waited_1ms, 9,
        "for the connection, not for the thread"
    );
}

#[test]
fn poisson_arrivals_keep_the_rate_and_are_the_same_for_the_same_seed() {
    let starts = |seed| {
        let platform = SimPlatform::new(|_| Act::answer("x"));
        let mut plan = open(2000.0, Arrivals::Poisson);
        (plan.connections, plan.seed) = (50, seed);
        let ran = run(&platform, &plan);
        let samples = &ran.parts[0].recorder.samples;
        samples
            .iter()
            .map(|sample| sample.intended)
            .collect::<Vec<_>>()
    };
    let first = starts(1);
    assert!((1800..2200).contains(&first.len()), "{}", first.len());
    assert_eq!(first, starts(1));
    assert_ne!(first, starts(2));
}

#[test]
fn connections_are_opened_before_their_first_request_is_due() {
    let platform = SimPlatform::new(|_| Act::answer("x")).with_delay(2 * MS);
    let mut plan = open(100.0, Arrivals::Uniform);
    plan.connections = 4;
    let ran = run(&platform, &plan);
    let samples = &ran.parts[0].recorder.samples;
    assert!(samples.iter().all(|sample| sample.connected.is_none()));
    // The first request was due at once, before any connection was open.
    assert_eq!(samples[0].latency(), 8 * MS);
    assert!(samples[1..].iter().all(|sample| sample.latency() == 4 * MS));
}

#[test]
fn each_connection_keeps_its_own_schedule_and_catches_up_alone() {
    let platform =
        SimPlatform::new(|number| Act::answer("x").after(if number == 0 { 200 * MS } else { MS }));
    let mut plan = plan();
    plan.pace = Pace::Each { rate: 200.0 };
    plan.connections = 2;
    plan.opening = Opening::Staggered(5 * MS);
    plan.stop.after = Some(Duration::from_secs(1));
    let ran = run(&platform, &plan);
    let samples = &ran.parts[0].recorder.samples;
    let late = |connection| {
        let own = samples
            .iter()
            .filter(|sample| sample.connection == connection);
        own.filter(|sample| sample.latency() > 2 * MS).count()
    };
    assert!(late(0) > 15, "{}", late(0));
    assert_eq!(late(1), 0);
    assert!((195..=200).contains(&ran.tally().answered));
}
