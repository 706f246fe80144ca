//! Servers that send garbage, never answer, answer slowly, with wrong lengths, or close early.

use crate::closed_loop::{MS, plan, run};
use crate::server::{Act, Then};
use crate::sim_platform::SimPlatform;
use mill_load::failure::FailureKind;
use mill_load::local::Abort;
use mill_load::plan::{AfterFailure, Ending, Pace, Plan};
use mill_runtime::time::Duration;
use std::sync::Arc;

fn for_100_ms() -> Plan {
    let mut plan = plan();
    plan.stop.after = Some(100 * MS);
    plan
}

#[track_caller]
fn check(platform: &SimPlatform, plan: &Plan, kind: FailureKind, answered: u64, failed: u64) {
    let tally = run(platform, plan).tally();
    assert_eq!(
        (tally.answered, tally.failures_of(kind), tally.failed()),
        (answered, failed, failed)
    );
}

/// Every second answer is the given one.
fn every_second(bad: Act) -> SimPlatform {
    SimPlatform::new(move |number| {
        if number % 2 == 0 {
            Act::answer("x").after(10 * MS)
        } else {
            bad.clone().after(10 * MS)
        }
    })
}

#[test]
fn garbage_is_a_failure_and_the_connection_is_opened_again() {
    let platform = every_second(Act::raw("What?\r\n\r\n"));
    check(&platform, &for_100_ms(), FailureKind::Garbage, 5, 4);
    assert_eq!(platform.log.connections.get(), 5);
}

#[test]
fn an_answer_that_ends_early_is_a_failure() {
    let short = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort";
    let platform = every_second(Act::raw(short).then(Then::Close));
    check(&platform, &for_100_ms(), FailureKind::EndedEarly, 5, 4);
}

#[test]
fn an_answer_with_other_content_than_expected_is_a_failure() {
    let raw = |text: &str| Act::raw(text);
    let check_with = |bad: Act, kind, answered, failed| {
        let mut plan = for_100_ms();
        plan.expected = Some(Arc::from(&b"x"[..]));
        check(&every_second(bad), &plan, kind, answered, failed);
    };
    let wrong = FailureKind::WrongContent;
    check_with(Act::answer("y"), wrong, 5, 4);
    check_with(Act::answer("xx"), wrong, 5, 4);
    check_with(Act::answer(""), wrong, 5, 4);
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n";
    check_with(raw(&format!("{chunked}1\r\nx\r\n0\r\n\r\n")), wrong, 5, 4);
    check_with(raw(&format!("{chunked}0\r\n\r\n")), wrong, 9, 0);
    let until_close = "HTTP/1.0 200 OK\r\n\r\n";
    check_with(raw(until_close).then(Then::Close), wrong, 5, 4);
    check_with(
        raw(&format!("{until_close}x")).then(Then::Close),
        wrong,
        9,
        0,
    );
    // An answer that is counted by its status is not compared.
    let missing = "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno";
    check_with(raw(missing), wrong, 9, 0);
}

#[test]
fn a_reset_is_a_failure() {
    let platform = every_second(Act::raw("").then(Then::Reset));
    check(&platform, &for_100_ms(), FailureKind::Reset, 5, 4);
}

#[test]
fn a_server_that_never_answers_is_given_up_after_the_timeout() {
    let platform = SimPlatform::new(|_| Act::answer("x").after(Duration::from_secs(3600)));
    let mut plan = for_100_ms();
    plan.timeout = Some(30 * MS);
    check(&platform, &plan, FailureKind::Timeout, 0, 3);
}

#[test]
fn without_a_timeout_a_request_that_is_never_answered_is_unfinished() {
    let platform = SimPlatform::new(|_| Act::answer("x").after(Duration::from_secs(3600)));
    let tally = run(&platform, &for_100_ms()).tally();
    assert_eq!(
        (tally.answered, tally.failed(), tally.unfinished()),
        (0, 0, 1)
    );
}

#[test]
fn a_refused_connection_is_tried_again_ever_more_slowly() {
    let mut platform = SimPlatform::new(|_| Act::answer("x"));
    platform.listens = false;
    // After 10, 20 and 40 ms: at 0, 10, 30 and 70 ms.
    check(&platform, &for_100_ms(), FailureKind::Connect, 0, 4);
}

#[test]
fn a_connection_that_this_side_cant_open_is_given_up_if_planned() {
    let mut platform = SimPlatform::new(|_| Act::answer("x").after(10 * MS));
    platform.streams_max = 2;
    let mut plan = for_100_ms();
    plan.connections = 5;
    plan.after_failure = AfterFailure::GiveUpConnecting;
    check(&platform, &plan, FailureKind::NoDescriptor, 18, 3);
}

#[test]
fn a_refused_connection_is_tried_again_every_millisecond_by_such_a_plan() {
    let mut platform = SimPlatform::new(|_| Act::answer("x"));
    platform.listens = false;
    let mut plan = for_100_ms();
    plan.after_failure = AfterFailure::GiveUpConnecting;
    check(&platform, &plan, FailureKind::Connect, 0, 100);
}

#[test]
fn a_failure_ends_the_run_if_planned() {
    let platform = every_second(Act::raw("").then(Then::Reset));
    let mut plan = for_100_ms();
    plan.after_failure = AfterFailure::Abort;
    let ran = run(&platform, &plan);
    assert!(matches!(ran.parts[0].aborted, Some(Abort::Failure(_))));
    assert_eq!(ran.tally().failed(), 1);
    assert_eq!(ran.measured, 20 * MS);
}

#[test]
fn nothing_is_started_after_what_ended_the_run() {
    let mut platform = SimPlatform::new(|_| Act::answer("x").after(10 * MS));
    platform.streams_max = 2;
    let mut plan = for_100_ms();
    plan.connections = 5;
    plan.after_failure = AfterFailure::Abort;
    check(&platform, &plan, FailureKind::NoDescriptor, 0, 1);
}

#[test]
fn connections_beyond_the_descriptors_fail_as_such_and_the_others_work() {
    let mut platform = SimPlatform::new(|_| Act::answer("x").after(10 * MS));
    platform.streams_max = 2;
    let mut plan = for_100_ms();
    plan.connections = 3;
    let tally = run(&platform, &plan).tally();
    assert!(tally.failures_of(FailureKind::NoDescriptor) > 0);
    assert_eq!((tally.open_max, tally.answered), (2, 18));
}

#[test]
fn an_answer_that_ends_with_the_connection_is_complete_when_the_plan_reads_until_then() {
    let platform = SimPlatform::new(|_| {
        Act::raw("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhello").then(Then::Close)
    });
    let mut plan = plan();
    plan.ending = Ending::Close;
    plan.stop.requests = Some(2);
    let ran = run(&platform, &plan);
    assert_eq!((ran.tally().answered, ran.tally().content_bytes), (2, 10));
}

#[test]
fn bytes_beyond_an_answer_are_counted_and_not_taken_for_the_next_one() {
    let platform =
        SimPlatform::new(|_| Act::raw("HTTP/1.1 204 No Content\r\n\r\nextra").after(10 * MS));
    let tally = run(&platform, &for_100_ms()).tally();
    assert_eq!((tally.answered, tally.failed()), (9, 0));
    assert_eq!((tally.surplus, tally.connected), (9, 10));
}

#[test]
fn bytes_received_before_a_request_do_not_answer_it() {
    let goodbye = "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n";
    for then in [Then::Keep, Then::Close] {
        let platform =
            SimPlatform::new(move |_| Act::answer("x").besides(3 * MS, goodbye).then(then));
        let mut plan = for_100_ms();
        plan.pace = Pace::Closed { think: 10 * MS };
        let tally = run(&platform, &plan).tally();
        assert_eq!((tally.answered, tally.failed()), (10, 0));
        assert_eq!((tally.statuses[1], tally.statuses_bad), (10, 0));
        assert_eq!((tally.surplus, tally.connected), (9, 10));
    }
}

/// The bytes received until then count, and an incomplete head has no status.
#[test]
fn where_any_end_ends_a_response_a_server_that_closes_early_is_no_failure() {
    let cut_off = [
        ("", 0, 0),
        ("HTTP/1.1 200 OK\r\nConte", 0, 22),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", 5, 43),
    ];
    for ending in [Ending::Close, Ending::FramedOrClose] {
        for (raw, content, bytes) in cut_off {
            let platform = SimPlatform::new(move |_| Act::raw(raw).then(Then::Close));
            let mut plan = plan();
            plan.ending = ending;
            plan.stop.requests = Some(2);
            let ran = run(&platform, &plan);
            let tally = ran.tally();
            assert_eq!((tally.answered, tally.failed()), (2, 0), "{raw:?}");
            assert_eq!(tally.content_bytes, 2 * content, "{raw:?}");
            assert_eq!(tally.bytes_received, 2 * bytes, "{raw:?}");
            let status = if content == 0 { 0 } else { 200 };
            let samples = &ran.parts[0].recorder.samples;
            assert!(samples.iter().all(|sample| sample.status == status));
        }
    }
}

#[test]
fn a_run_is_ended_by_the_kinds_of_failure_that_it_names_and_by_no_other() {
    let ended = |kinds| {
        let platform = every_second(Act::raw("").then(Then::Reset));
        let mut plan = plan();
        plan.stop.requests = Some(6);
        plan.after_failure = AfterFailure::AbortOn(kinds);
        let ran = run(&platform, &plan);
        let tally = ran.tally();
        (
            ran.parts[0].aborted.is_some(),
            tally.answered,
            tally.failed(),
        )
    };
    assert_eq!(ended(&[FailureKind::Reset]), (true, 1, 1));
    assert_eq!(ended(&[FailureKind::Timeout]), (false, 3, 3));
}
