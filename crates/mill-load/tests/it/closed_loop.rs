//! Closed loops: counts, times, ends.

use crate::keep::Keep;
use crate::server::{Act, Then};
use crate::sim_platform::{SERVER, SimPlatform};
use mill_load::plan::{Pace, Plan};
use mill_load::platform::{Platform, RunOutcome, ThreadInput, Unwatched, Watch};
use mill_load::request::{Batch, Rendered, Requests};
use mill_load::tally::Tally;
use mill_load::target::Endpoint;
use mill_runtime::time::Duration;
use std::sync::Arc;

pub(crate) const MS: Duration = Duration::from_millis(1);

pub(crate) fn plan() -> Plan {
    Plan::new(Endpoint::Ip(SERVER.parse().expect("an address")))
}

pub(crate) fn get() -> Requests {
    Requests::always(Rendered {
        bytes: Arc::from(&b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..]),
        batch: Batch::ONE,
    })
}

pub(crate) fn run(platform: &SimPlatform, plan: &Plan) -> RunOutcome<Keep> {
    run_watched(platform, plan, &mut Unwatched)
}

fn run_watched(
    platform: &SimPlatform,
    plan: &Plan,
    watch: &mut dyn Watch<Tally>,
) -> RunOutcome<Keep> {
    let inputs = (0..plan.threads)
        .map(|_| ThreadInput {
            requests: get(),
            recorder: Keep::default(),
        })
        .collect();
    let ran = platform
        .run(plan, inputs, watch)
        .expect("a simulated run begins");
    let tally = ran.tally();
    assert_eq!(
        tally.started,
        tally.answered + tally.failed() + tally.unfinished(),
        "every request is accounted for"
    );
    ran
}

#[test]
fn a_connection_asks_again_when_it_was_answered() {
    let platform = SimPlatform::new(|_| Act::answer("hello").after(8 * MS)).with_delay(MS);
    let mut plan = plan();
    plan.stop.after = Some(100 * MS);
    let ran = run(&platform, &plan);
    let tally = ran.tally();
    // Two one-way delays to connect, then ten milliseconds for each answer: the tenth is in progress at the end.
    assert_eq!(
        (tally.answered, tally.started, tally.unfinished()),
        (9, 10, 1)
    );
    assert_eq!((tally.connects, tally.connected, tally.open_max), (1, 1, 1));
    assert_eq!(tally.content_bytes, 9 * 5);
    assert_eq!(tally.statuses[1], 9);
    assert_eq!(ran.measured, 100 * MS);
    let samples = &ran.parts[0].recorder.samples;
    assert_eq!(samples[0].connect_time(), Some(2 * MS));
    assert_eq!(samples[0].latency(), 12 * MS);
    assert_eq!(samples[1].connect_time(), None);
    assert!(
        samples
            .iter()
            .all(|sample| sample.service_time() == 10 * MS)
    );
    assert!(
        samples
            .iter()
            .all(|sample| sample.first_byte_time() == 10 * MS)
    );
}

#[test]
fn a_count_ends_the_run_exactly_whatever_threads_and_connections() {
    for (threads, connections, requests) in [(1, 1, 1), (2, 5, 100), (3, 7, 2), (2, 4, 99)] {
        let platform = SimPlatform::new(|_| Act::answer("x").after(MS));
        let mut plan = plan();
        (plan.threads, plan.connections) = (threads, connections);
        plan.stop.after = None;
        plan.stop.requests = Some(requests);
        let tally = run(&platform, &plan).tally();
        assert_eq!(tally.answered, requests);
        assert_eq!(tally.unfinished(), 0);
        assert_eq!(platform.log.requests.borrow().len() as u64, requests);
    }
}

#[test]
fn a_connection_thinks_between_answer_and_question() {
    let platform = SimPlatform::new(|_| Act::answer("x"));
    let mut plan = plan();
    plan.pace = Pace::Closed { think: 10 * MS };
    plan.stop.after = Some(95 * MS);
    assert_eq!(run(&platform, &plan).tally().answered, 10);
}

#[test]
fn warm_up_is_not_recorded_and_what_is_under_way_then_is_accounted_for() {
    let platform = SimPlatform::new(|_| Act::answer("x").after(10 * MS));
    let mut plan = plan();
    plan.warm_up = 25 * MS;
    plan.stop.after = Some(50 * MS);
    let ran = run(&platform, &plan);
    let recorder = &ran.parts[0].recorder;
    assert_eq!(recorder.samples.len(), 5);
    assert_eq!(ran.tally().answered, 5);
    assert_eq!(ran.measured, 50 * MS);
}

#[test]
fn a_server_that_closes_after_its_answer_gets_a_new_connection_each_time() {
    let close = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi";
    let platform = SimPlatform::new(move |_| Act::raw(close).then(Then::Close)).with_delay(MS);
    let mut plan = plan();
    plan.stop.requests = Some(5);
    let ran = run(&platform, &plan);
    assert_eq!(platform.log.connections.get(), 5);
    assert_eq!(ran.tally().connected, 5);
    let samples = &ran.parts[0].recorder.samples;
    assert!(
        samples
            .iter()
            .all(|sample| sample.connect_time() == Some(2 * MS))
    );
    assert!(samples.iter().all(|sample| !sample.keep_alive));
}

#[test]
fn a_connection_that_was_closed_while_it_idled_is_opened_again_without_a_failure() {
    let platform = SimPlatform::new(|_| Act::answer("x").then(Then::Close));
    let mut plan = plan();
    plan.pace = Pace::Closed { think: 5 * MS };
    plan.stop.requests = Some(3);
    let tally = run(&platform, &plan).tally();
    assert_eq!((tally.answered, tally.failed(), tally.connected), (3, 0, 3));
}

#[test]
fn intervals_come_in_time_and_never_count_backwards() {
    struct Intervals(Vec<(Duration, u64)>);
    impl Watch<Tally> for Intervals {
        fn on_interval(&mut self, _thread: u32, elapsed: Duration, tally: Tally) {
            self.0.push((elapsed, tally.answered));
        }
    }
    let platform = SimPlatform::new(|_| Act::answer("x").after(MS));
    let mut plan = plan();
    plan.interval = 10 * MS;
    plan.stop.after = Some(45 * MS);
    let mut intervals = Intervals(Vec::new());
    run_watched(&platform, &plan, &mut intervals);
    let times: Vec<Duration> = intervals.0.iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [10 * MS, 20 * MS, 30 * MS, 40 * MS]);
    assert!(intervals.0.windows(2).all(|pair| pair[0].1 < pair[1].1));
}
