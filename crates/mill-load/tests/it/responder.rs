//! The responder, driven by a generator in a simulated world.

use crate::closed_loop::{MS, get, plan};
use crate::keep::Keep;
use crate::sim_platform::SERVER;
use mill_load::failure::FailureKind;
use mill_load::generator::{Part, Progress, generator};
use mill_load::origin::Origin;
use mill_load::plan::Plan;
use mill_load::request::{Batch, Rendered, Requests};
use mill_load::responder::{Conduct, Fault, Law, Served, responder};
use mill_runtime::engine::{Engine, ListenOptions};
use mill_runtime::time::Duration;
use mill_sim::world::World;
use std::sync::Arc;

/// One generator and one responder in a world of their own.
fn run(plan: Plan, requests: Requests, conduct: &Conduct) -> (Part<Keep>, Served) {
    let world = World::new(7);
    let mut responder = responder(world.engine(), conduct);
    let options = ListenOptions::new(world.address(SERVER));
    responder.listen(&options).expect("the address is free");
    let share = plan.shares().next().expect("a plan has a thread");
    let part = (Arc::new(plan), share);
    let mut generator = generator(world.engine(), part, world.now(), requests, Keep::default());
    loop {
        responder.turn(world.now() + 20 * MS);
        if let Progress::Ended = generator.turn(world.now(), world.now() + 20 * MS) {
            return (generator.finish(), responder.served());
        }
    }
}

fn requests(text: &'static str, responses: u32) -> Requests {
    Requests::always(Rendered {
        bytes: Arc::from(text.as_bytes()),
        batch: Batch {
            responses,
            is_head: text.starts_with("HEAD"),
        },
    })
}

fn counted(requests: u64) -> Plan {
    let mut plan = plan();
    plan.stop.requests = Some(requests);
    plan.stop.after = Some(Duration::from_secs(60));
    plan.connections = 2;
    plan
}

fn law(text: &str) -> Conduct {
    Conduct {
        law: Law::parse(text).expect("a law"),
        ..Conduct::default()
    }
}

#[test]
fn both_sides_count_the_same() {
    let check = |text, responses, connections: u64, content_bytes: u64| {
        let (part, served) = run(counted(10), requests(text, responses), &Conduct::default());
        assert_eq!(part.tally.answered, 10, "{text}");
        let answers = 10 * u64::from(responses);
        assert_eq!(
            (served.answered, served.connections),
            (answers, connections),
            "{text}"
        );
        assert_eq!(part.tally.bytes_received, served.bytes, "{text}");
        assert_eq!(part.tally.content_bytes, content_bytes * answers, "{text}");
        assert_eq!(part.tally.surplus, 0);
    };
    check("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 1, 2, 6);
    check("GET / HTTP/1.1\r\nConnection: close\r\n\r\n", 1, 10, 6);
    check("GET / HTTP/1.0\r\n\r\n", 1, 10, 6);
    check("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 1, 2, 6);
    check("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", 1, 2, 0);
    check("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\na\n\n", 1, 2, 6);
    let three = concat!(
        "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /2 HTTP/1.1\r\nContent-Length: 20\r\n\r\n....................",
        "GET /3 HTTP/1.1\r\nHost: a\r\n\r\n",
    );
    check(three, 3, 2, 6);
}

#[test]
fn every_answer_has_its_delay() {
    let (part, served) = run(counted(20), get(), &law("7ms"));
    assert_eq!(part.tally.answered, 20);
    for sample in &part.recorder.samples {
        assert_eq!(sample.service_time(), 7 * MS);
    }
    assert_eq!(served.given.count(), 20);
    let given = served.given.percentile(50.0);
    assert!(given.abs_diff(7 * MS) < MS / 100, "{given:?}");
    assert_eq!(served.late.max(), Duration::ZERO);
}

#[test]
fn a_stall_delays_what_falls_into_it_and_nothing_else() {
    let (part, _) = run(counted(40), get(), &law("7ms+stall:50ms,30ms"));
    let times = |wanted: Duration| {
        let samples = part.recorder.samples.iter();
        samples
            .filter(|sample| sample.service_time() == wanted)
            .count()
    };
    // Each of both connections is answered at 7, 14, … 49 ms, then at 80 instead of 56.
    assert_eq!((times(7 * MS), times(31 * MS)), (38, 2));
}

#[test]
fn faults_are_what_clients_see() {
    let check = |fault: &str, kind| {
        let conduct = Conduct {
            fault: Some(Fault::parse(fault).expect("a fault")),
            ..Conduct::default()
        };
        let mut plan = counted(4);
        plan.timeout = Some(100 * MS);
        let (part, _) = run(plan, get(), &conduct);
        assert_eq!(part.tally.failures_of(kind), 4, "{fault}: {:?}", part.tally);
    };
    check("garbage", FailureKind::Garbage);
    check("silence", FailureKind::Timeout);
    check("close-after:30", FailureKind::EndedEarly);
    check("length:100", FailureKind::Timeout);
    check("reset", FailureKind::Reset);
}

#[test]
fn a_length_that_is_too_small_leaves_a_surplus() {
    let conduct = Conduct {
        fault: Some(Fault::Length(2)),
        ..Conduct::default()
    };
    let (part, _) = run(counted(4), get(), &conduct);
    assert_eq!((part.tally.answered, part.tally.surplus), (4, 4));
}

#[test]
fn a_thread_that_sends_requests_also_answers_them() {
    let world = World::new(7);
    let engine = world.engine();
    let options = ListenOptions::new(world.address(SERVER));
    let listening = engine.listen(&options).expect("the address is free");
    let mut plan = counted(10);
    plan.origin = Some(Origin {
        port: 80,
        content_bytes: 1000,
    });
    let share = plan.shares().next().expect("a plan has a thread");
    let part = (Arc::new(plan), share);
    let mut generator = generator(engine, part, world.now(), get(), Keep::default());
    generator.add_listener(listening.id);
    while !matches!(
        generator.turn(world.now(), world.now() + 20 * MS),
        Progress::Ended
    ) {}
    let part = generator.finish();
    let tally = part.tally;
    assert_eq!(
        (tally.answered, tally.content_bytes),
        (10, 10_000),
        "{tally:?}"
    );
}
