//! Names that are followed while they change: the servers of a group with `resolve`.

use crate::dns_world::{DnsWorld, Heard, options};
use crate::zone::{A, AAAA, Record, SRV};
use mill_config::config::NameServers;
use mill_runtime::time::Duration;
use mill_sim::world::Until;
use mill_upstream::resolver::members::{FollowedName, Member, Members};
use std::cell::RefCell;
use std::rc::Rc;

const HOST: &str = "backend.example";

fn name(service: Option<&str>, backup: bool) -> FollowedName {
    FollowedName {
        host: HOST.as_bytes().into(),
        port: 80,
        service: service.map(|service| service.as_bytes().into()),
        backup,
    }
}

/// What was told until so many seconds had passed, a line each.
fn check(
    name: FollowedName,
    valid: Option<Duration>,
    seconds: u64,
    script: fn(&Heard) -> Vec<Vec<u8>>,
    expected: &[&str],
) -> Vec<Heard> {
    let options = NameServers {
        valid,
        ..options(&[1])
    };
    let mut world = DnsWorld::new(options, script);
    let told = Rc::new(RefCell::new(Vec::new()));
    let (note, clock) = (Rc::clone(&told), Rc::clone(&world.world));
    let follow = Rc::clone(&world.resolver).follow(name, Duration::from_secs(4), move |members| {
        let at = clock.elapsed().as_secs();
        note.borrow_mut().push(format!("{at} {}", line(members)));
    });
    world.spawn(follow);
    world.run_until(Until::At(Duration::from_secs(seconds)));
    assert_eq!(*told.borrow(), expected);
    world.heard()
}

fn line(members: Members<'_>) -> String {
    match members {
        Members::Failed(error) => error.to_string(),
        Members::Are(members) => members.iter().map(text).collect::<Vec<_>>().join(" "),
    }
}

fn text(member: &Member) -> String {
    let backup = if member.backup { "b" } else { "" };
    let weight = member.weight.map(|weight| format!("*{weight}"));
    format!("{}{backup}{}", member.address, weight.unwrap_or_default())
}

fn addresses(heard: &Heard, lasts: &[u8]) -> Vec<Vec<u8>> {
    let records = lasts
        .iter()
        .map(|last| Record::a(&heard.asked.name, 10, [10, 0, 0, *last]));
    let records: Vec<_> = records.collect();
    let records = if heard.asked.kind == A {
        &records[..]
    } else {
        &[]
    };
    vec![heard.asked.reply(records)]
}

#[test]
fn only_changes_are_told_and_the_order_of_records_is_none() {
    let heard = check(
        name(None, false),
        None,
        55,
        |heard| match heard.at.as_secs() {
            0..10 => addresses(heard, &[1, 2]),
            10..20 => addresses(heard, &[2, 1]),
            20..40 => addresses(heard, &[2, 3]),
            _ => addresses(heard, &[3]),
        },
        &[
            "0 10.0.0.1:80 10.0.0.2:80",
            "20 10.0.0.2:80 10.0.0.3:80",
            "40 10.0.0.3:80",
        ],
    );
    let mut at: Vec<u64> = heard.iter().map(|heard| heard.at.as_secs()).collect();
    at.dedup();
    assert_eq!(at, [0, 10, 20, 30, 40, 50]);
}

#[test]
fn a_name_that_vanishes_has_no_members_and_one_that_fails_keeps_them() {
    check(
        name(None, true),
        None,
        60,
        |heard| match heard.at.as_secs() {
            10 => vec![heard.asked.failure(2)],
            // After the failure the question comes when `resolver_timeout` is over.
            14 => vec![heard.asked.failure(3)],
            24 => vec![heard.asked.failure(3)],
            _ => addresses(heard, &[1]),
        },
        &[
            "0 10.0.0.1:80b",
            "10 2: Server failure",
            "14 3: Host not found",
            "14 ",
            "24 3: Host not found",
            "34 10.0.0.1:80b",
        ],
    );
}

#[test]
fn a_dead_server_of_dns_leaves_the_members_as_they_are() {
    check(
        name(None, false),
        None,
        30,
        |heard| match heard.at.as_secs() {
            10..22 => Vec::new(),
            _ => addresses(heard, &[1]),
        },
        &[
            "0 10.0.0.1:80",
            "14 110: Operation timed out",
            "22 110: Operation timed out",
        ],
    );
}

#[test]
fn a_time_to_live_of_zero_asks_once_a_second_and_valid_overrides_it() {
    let script: fn(&Heard) -> Vec<Vec<u8>> = |heard| {
        let record = Record::a(&heard.asked.name, 0, [10, 0, 0, 1]);
        let records = if heard.asked.kind == A {
            vec![record]
        } else {
            Vec::new()
        };
        vec![heard.asked.reply(&records)]
    };
    for (valid, questions) in [(None, 11), (Some(Duration::from_secs(5)), 3)] {
        let heard = check(name(None, false), valid, 10, script, &["0 10.0.0.1:80"]);
        assert_eq!(heard.len(), 2 * questions, "{valid:?}");
    }
}

/// Two targets of the first priority, of which one has no address, and one of the second.
fn services(heard: &Heard) -> Vec<Vec<u8>> {
    let asked = &heard.asked;
    let reply = match (asked.name.as_str(), asked.kind) {
        ("_http._tcp.backend.example", SRV) => {
            let record = |numbers, target| Record::srv(&asked.name, 20, numbers, target);
            asked.reply(&[
                record([20, 1, 8081], "b.example"),
                record([10, 5, 8080], "a.example"),
                record([10, 0, 8082], "a.example"),
                record([10, 7, 8083], "missing.example"),
            ])
        }
        ("a.example", A) => asked.reply(&[Record::a("a.example", 30, [10, 0, 0, 1])]),
        ("a.example", AAAA) => asked.reply(&[Record::aaaa("a.example", 30, "fd00::1")]),
        ("b.example", A) => asked.reply(&[Record::a("b.example", 30, [10, 0, 0, 2])]),
        ("b.example", AAAA) => asked.reply(&[]),
        _ => asked.failure(3),
    };
    vec![reply]
}

#[test]
fn services_bring_ports_and_weights_and_the_next_priority_is_backup() {
    let expected = concat!(
        "0 10.0.0.1:8080*5 10.0.0.1:8082*1 10.0.0.2:8081b*1 ",
        "[fd00::1]:8080*5 [fd00::1]:8082*1"
    );
    check(name(Some("http"), false), None, 59, services, &[expected]);
    let expected = concat!(
        "0 10.0.0.1:8080b*5 10.0.0.1:8082b*1 ",
        "[fd00::1]:8080b*5 [fd00::1]:8082b*1"
    );
    check(name(Some("http"), true), None, 59, services, &[expected]);
    let expected = ["0 3: Host not found", "0 "];
    check(name(Some("ftp"), false), None, 9, services, &expected);
}

#[test]
fn a_target_that_fails_for_a_while_leaves_the_members_as_they_are() {
    check(
        name(Some("http"), true),
        None,
        60,
        |heard| {
            let fails = heard.at.as_secs() == 30 && heard.asked.name == "a.example";
            if fails {
                return vec![heard.asked.failure(2)];
            }
            services(heard)
        },
        &[
            concat!(
                "0 10.0.0.1:8080b*5 10.0.0.1:8082b*1 ",
                "[fd00::1]:8080b*5 [fd00::1]:8082b*1"
            ),
            "30 2: Server failure",
        ],
    );
}
