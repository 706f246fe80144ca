//! Results to JSON and back.

use super::*;
use crate::native::merge::tests::part;
use crate::platform::{LinkUse, Machine, ProgramsCpu, ServerCpu, ThreadCpu};
use crate::tally::Tally;

const MS: Duration = Duration::from_millis(1);

/// Results in which no field is zero or empty.
fn full() -> Results {
    let mut results = part(&[MS, 3 * MS, 7 * MS, Duration::from_secs(4000)]);
    results.measures.raw = Some(results.measures.latency.clone());
    results.measures.lateness = Some(Histogram::new());
    results.measures.service.record(2 * MS);
    results.measures.connect.record(5 * MS);
    results.tally = Tally {
        started: 9,
        answered: 4,
        failures: core::array::from_fn(|n| n as u64),
        statuses: [1, 2, 3, 4, 5],
        waited_1ms: 17,
        never_started: u64::MAX,
        lost_us: 18,
        hanging: 19,
        ..Tally::default()
    };
    results.gaps = vec![
        Gap {
            begin: MS,
            waiting_from: 2 * MS,
            end: 300 * MS,
        },
        Gap {
            begin: 900 * MS,
            waiting_from: Duration::MAX,
            end: Duration::MAX,
        },
    ];
    results.answers.count_others(3);
    results.failures = vec![(FailureKind::Timeout, String::from("no answer in time"))];
    results.interrupted = true;
    results.aborted = Some(String::from("script.lua:3: oh"));
    results.began.nanos = 999_999_999;
    results.machine = Machine {
        threads: vec![ThreadCpu {
            user: MS,
            system: 2 * MS,
            wall: 10 * MS,
            involuntary_switches: 4,
        }],
        listen_overflows: Some(0),
        retransmitted_segments: None,
        sent_segments: Some(12),
        link_use: Some(LinkUse {
            interface: String::from("eth0"),
            bits_per_second: 1.5e9,
            share: Some(0.15),
        }),
        steal: Some(0.001),
        programs: Some(ProgramsCpu {
            used: Duration::from_millis(30),
            available: Duration::from_millis(200),
        }),
        server: Some(ServerCpu {
            process: 77,
            command: String::from("nginx"),
            user: MS,
            system: MS,
            busiest_thread: 0.5,
        }),
    };
    results
}

#[test]
fn results_come_back_as_they_were() {
    for results in [full(), part(&[])] {
        let text = emit(&results).to_string();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(parse(&value), Some(results));
    }
}

#[test]
fn a_field_that_is_missing_or_of_another_type_is_no_result() {
    let whole = emit(&full());
    for name in whole.as_object().unwrap().keys() {
        let mut missing = whole.clone();
        missing.as_object_mut().unwrap().remove(name);
        // Older documents of the same schema have no gaps.
        assert_eq!(parse(&missing).is_some(), name == "gaps", "without {name}");
        let mut wrong = whole.clone();
        wrong[name] = json!(-1.5);
        assert_eq!(parse(&wrong), None, "{name} of another type");
    }
    for inner in [
        "/tally/waited_1ms",
        "/tally/failures/timeout",
        "/measures/latency/v2",
        "/machine/server/process",
        "/periods/0/histogram",
        "/answers/kinds/0/2",
    ] {
        let mut wrong = whole.clone();
        *wrong.pointer_mut(inner).unwrap() = json!("x");
        assert_eq!(parse(&wrong), None, "{inner}");
    }
}
