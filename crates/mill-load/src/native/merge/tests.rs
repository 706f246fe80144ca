//! Parts in, one result out.

use super::*;
use crate::failure::FailureKind;
use crate::native::answers::Answers;
use crate::native::measures::Measures;
use crate::platform::{LinkUse, ServerCpu, ThreadCpu};
use crate::tally::Tally;
use mill_runtime::time::UnixTime;

const MS: Duration = Duration::from_millis(1);

/// A part with these latencies, in two periods of a second.
pub(crate) fn part(latencies: &[Duration]) -> Results {
    let mut measures = Measures::new(false);
    let mut answers = Answers::default();
    for latency in latencies {
        measures.latency.record(*latency);
        answers.on_answer(200, 5);
    }
    let answered = latencies.len() as u64;
    let period = |second: u64| Period {
        begin: Duration::from_secs(second),
        end: Duration::from_secs(second + 1),
        started: answered / 2,
        answered: answered / 2,
        failed: 0,
        bytes_received: 100,
        connected: 0,
        open: 4,
        p50: measures.latency.percentile(50.0),
        p90: measures.latency.percentile(90.0),
        p99: measures.latency.percentile(99.0),
        max: measures.latency.max(),
        histogram: measures.latency.emit(),
    };
    Results {
        began: UnixTime::from_seconds(1000),
        measured: Duration::from_secs(2),
        tally: Tally {
            started: answered,
            answered,
            ..Tally::default()
        },
        periods: vec![period(0), period(1)],
        measures,
        answers,
        failures: Vec::new(),
        machine: Machine::default(),
        gaps: Vec::new(),
        interrupted: false,
        aborted: None,
    }
}

#[test]
fn histograms_are_added_and_percentiles_are_not_averaged() {
    let fast = part(&[MS; 98]);
    let slow = part(&[100 * MS; 2]);
    let sum = merge(&[fast, slow], Hosts::Same).unwrap();
    let latency = &sum.measures.latency;
    assert_eq!(latency.count(), 100);
    // The average would be 50 ms.
    assert!(latency.percentile(98.0) < 2 * MS);
    assert!(latency.percentile(99.0) >= 99 * MS);
    assert_eq!((sum.tally.answered, sum.rate()), (100, 50.0));
    assert_eq!(sum.answers.kinds().next().unwrap().count, 100);
    let period = &sum.periods[1];
    assert_eq!(
        (sum.periods.len(), period.answered, period.open),
        (2, 50, 8)
    );
    assert!(period.p50 < 2 * MS && period.p99 >= 99 * MS);
    assert_eq!(Histogram::parse(&period.histogram).unwrap().count(), 100);
}

#[test]
fn a_part_that_ended_early_leaves_the_later_periods_to_the_others() {
    let (mut early, late) = (part(&[MS; 4]), part(&[2 * MS; 4]));
    early.periods.truncate(1);
    early.measured = Duration::from_secs(1);
    early.interrupted = true;
    let sum = merge(&[early, late.clone()], Hosts::Same).unwrap();
    assert_eq!(sum.periods[0].answered, 4);
    assert_eq!(sum.periods[1], late.periods[1]);
    assert_eq!(sum.measured, Duration::from_secs(2));
    assert!(sum.interrupted);
}

#[test]
fn counters_of_one_machine_count_once_and_those_of_several_are_added() {
    let machine = |overflows, steal, share, user| Machine {
        threads: vec![ThreadCpu::default()],
        listen_overflows: Some(overflows),
        steal,
        link_use: Some(LinkUse {
            share,
            ..LinkUse::default()
        }),
        server: Some(ServerCpu {
            user,
            ..ServerCpu::default()
        }),
        ..Machine::default()
    };
    let parts = [
        machine(5, Some(0.01), None, 3 * MS),
        machine(7, None, Some(0.5), 2 * MS),
    ];
    let parts = parts.map(|machine| Results {
        machine,
        ..part(&[MS])
    });
    let check = |hosts, overflows| {
        let machine = merge(&parts, hosts).unwrap().machine;
        assert_eq!(machine.listen_overflows, Some(overflows));
        assert_eq!(machine.threads.len(), 2);
        assert_eq!(machine.steal, Some(0.01));
        assert_eq!(machine.link_use.unwrap().share, Some(0.5));
        assert_eq!(machine.server.unwrap().user, 3 * MS);
        assert_eq!(machine.sent_segments, None);
    };
    check(Hosts::Same, 7);
    check(Hosts::Several, 12);
}

#[test]
fn each_kind_of_failure_keeps_one_sentence() {
    let failed = |kind, sentence: &str| Results {
        failures: vec![(kind, String::from(sentence))],
        ..part(&[MS])
    };
    let parts = [
        failed(FailureKind::Timeout, "one"),
        failed(FailureKind::Timeout, "two"),
        failed(FailureKind::Reset, "three"),
    ];
    let sentences: Vec<String> = merge(&parts, Hosts::Same)
        .unwrap()
        .failures
        .into_iter()
        .map(|(_, sentence)| sentence)
        .collect();
    assert_eq!(sentences, ["one", "three"]);
    assert_eq!(merge(&[], Hosts::Same), None);
}

#[test]
fn the_odd_part_is_flagged_by_its_tail() {
    let (good, bad) = (part(&[MS; 100]), part(&[9 * MS; 100]));
    let named = |name: &str| String::from(name);
    let parts = [(named("a"), &good), (named("b"), &bad), (named("c"), &good)];
    let flags: Vec<bool> = part_lines(&parts)
        .iter()
        .map(|line| line.is_outlier)
        .collect();
    assert_eq!(flags, [false, true, false]);
}
