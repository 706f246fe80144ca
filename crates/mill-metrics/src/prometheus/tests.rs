//! The text is checked against the rules of the format, by a reader of our own.

use super::*;
use crate::board::Beginning;
use std::collections::{BTreeMap, BTreeSet};

/// Samples by name and labels, as a scraper reads them; panics where the format is broken.
fn read(text: &str) -> BTreeMap<String, f64> {
    let mut samples = BTreeMap::new();
    let mut families = BTreeSet::new();
    let mut current = (String::new(), String::new());
    let mut helped = String::new();
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (family, help) = rest.split_once(' ').unwrap();
            assert!(!help.is_empty(), "{line}");
            family.clone_into(&mut helped);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (family, kind) = rest.split_once(' ').unwrap();
            assert_eq!(family, helped, "help goes before the type");
            assert!(families.insert(family.to_owned()), "{family} begins twice");
            assert_eq!(kind == "counter", family.ends_with("_total"), "{line}");
            assert!(matches!(kind, "counter" | "gauge"), "{line}");
            current = (family.to_owned(), kind.to_owned());
        } else {
            let (name, value) = line.rsplit_once(' ').unwrap();
            let family = name.split_once('{').map_or(name, |(family, _)| family);
            assert_eq!(family, current.0, "samples of a family stand together");
            let is_word = |char: char| char.is_ascii_alphanumeric() || char == '_';
            assert!(family.chars().all(is_word), "{family}");
            if let Some((_, labels)) = name.split_once('{') {
                let labels = labels.strip_suffix('}').unwrap();
                for label in labels.split(',') {
                    let (label, value) = label.split_once('=').unwrap();
                    assert!(label.chars().all(is_word), "{label}");
                    let value = value.strip_prefix('"').unwrap().strip_suffix('"').unwrap();
                    assert!(!value.contains(['"', '\\']), "{value}");
                }
            }
            let value: f64 = value.parse().unwrap();
            assert!(
                samples.insert(name.to_owned(), value).is_none(),
                "{name} stands twice"
            );
        }
    }
    samples
}

fn worker(number: u32, stack: bool) -> WorkerFigures {
    let server = ServerCounters {
        requests: 10 + u64::from(number),
        connections_active: 3,
        responses_2xx: 8,
        responses_4xx: 2,
        refused_host: 1,
        ..Default::default()
    };
    let counters = StackCounters {
        dropped_checksum: 5,
        steering_passed: 100 + u64::from(number),
        connections: 7,
        ..Default::default()
    };
    WorkerFigures {
        number,
        beginning: Beginning::default(),
        turn_at_ns: 1_000_000_000,
        turns: 20,
        turns_busy: 10,
        server,
        stack: stack.then_some(counters),
        ..Default::default()
    }
}

#[test]
fn every_figure_is_there_once_for_each_worker() {
    let workers = [worker(0, true), worker(1, false)];
    let samples = read(&render(&workers, 2_500_000_000));
    let check = |name: &str, expected: f64| {
        let found = samples.get(name).copied();
        assert_eq!(found, Some(expected), "{name}");
    };
    check("millstream_requests_total{worker=\"0\"}", 10.0);
    check("millstream_requests_total{worker=\"1\"}", 11.0);
    check("millstream_connections_active{worker=\"1\"}", 3.0);
    check(
        "millstream_responses_total{worker=\"0\",class=\"2xx\"}",
        8.0,
    );
    check(
        "millstream_responses_total{worker=\"0\",class=\"4xx\"}",
        2.0,
    );
    check(
        "millstream_refused_total{worker=\"1\",reason=\"host\"}",
        1.0,
    );
    check(
        "millstream_stack_dropped_total{worker=\"0\",reason=\"checksum\"}",
        5.0,
    );
    check("millstream_stack_connections{worker=\"0\"}", 7.0);
    check("millstream_stack_steering_total{outcome=\"passed\"}", 100.0);
    check("millstream_turns_total{worker=\"0\"}", 20.0);
    check("millstream_silent_seconds{worker=\"0\"}", 1.5);
    check("millstream_workers", 2.0);
    assert!(!samples.contains_key("millstream_stack_connections{worker=\"1\"}"));
}

#[test]
fn steering_counters_are_the_sum_over_all_workers() {
    let samples = read(&render(&[worker(0, true), worker(1, true)], 2_500_000_000));
    let passed = samples.get("millstream_stack_steering_total{outcome=\"passed\"}");
    assert_eq!(passed, Some(&201.0));
}

#[test]
fn a_sleeping_worker_is_not_silent_and_an_ended_one_is_left_out() {
    let mut sleeping = worker(0, false);
    sleeping.parked_until_ns = u64::MAX;
    let mut ended = worker(1, false);
    ended.has_ended = true;
    let samples = read(&render(&[sleeping, ended], 9_000_000_000));
    assert_eq!(
        samples.get("millstream_silent_seconds{worker=\"0\"}"),
        Some(&0.0)
    );
    assert!(!samples.contains_key("millstream_silent_seconds{worker=\"1\"}"));
    assert_eq!(samples.get("millstream_workers"), Some(&1.0));
    // Its counts stay part of the sum.
    assert!(samples.contains_key("millstream_requests_total{worker=\"1\"}"));
}

#[test]
fn no_workers_make_a_page_too() {
    assert_eq!(read(&render(&[], 0)).get("millstream_workers"), Some(&0.0));
}
