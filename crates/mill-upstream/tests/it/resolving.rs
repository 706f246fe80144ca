//! The resolver over servers that answer, fail, lie or are silent, in virtual time.

use crate::dns_world::{DnsWorld, Ended, Heard, options};
use crate::zone::{A, AAAA, Record};
use mill_config::config::NameServers;
use mill_runtime::time::Duration;
use mill_sim::world::Until;
use mill_upstream::resolver::counters::ResolverCounts;
use mill_upstream::resolver::error::ResolveError;
use std::cell::Cell;
use std::rc::Rc;

const NAME: &str = "www.example";
const START: Duration = Duration::ZERO;
const TIMEOUT: Duration = Duration::from_secs(30);

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// 10.0.0.1 for A, no record for AAAA, for a minute.
fn one_address(heard: &Heard) -> Vec<Vec<u8>> {
    vec![heard.asked.reply(&records(heard))]
}

fn records(heard: &Heard) -> Vec<Record> {
    match heard.asked.kind {
        A => vec![Record::a(&heard.asked.name, 60, [10, 0, 0, 1])],
        _ => Vec::new(),
    }
}

fn ipv4_only(servers: &[u8]) -> NameServers {
    NameServers {
        ipv6: false,
        ..options(servers)
    }
}

fn found(at: Duration, addresses: &[&str]) -> Ended {
    let addresses = addresses.iter().map(|text| (*text).to_owned());
    (at, Ok(addresses.collect()))
}

const fn failed(at: Duration, error: ResolveError) -> Ended {
    (at, Err(error))
}

/// When which server was asked, in seconds.
fn course(heard: &[Heard]) -> Vec<(u64, u8)> {
    let course = heard.iter().map(|heard| (heard.at.as_secs(), heard.server));
    course.collect()
}

#[test]
fn both_families_are_asked_for_and_ipv4_comes_first() {
    let mut world = DnsWorld::new(options(&[1]), |heard| {
        let name = &heard.asked.name;
        let record = match heard.asked.kind {
            A => Record::a(name, 60, [10, 0, 0, 1]),
            _ => Record::aaaa(name, 60, "fd00::1"),
        };
        vec![heard.asked.reply(&[record])]
    });
    world.ask_at(START, "WWW.example.", TIMEOUT);
    assert_eq!(world.run(), [found(START, &["10.0.0.1", "fd00::1"])]);
    let heard = world.heard();
    let mut kinds: Vec<u16> = heard.iter().map(|heard| heard.asked.kind).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, [A, AAAA]);
    assert_ne!(heard[0].port, heard[1].port);
    assert_ne!(heard[0].asked.id, heard[1].asked.id);
    assert!(heard.iter().all(|heard| heard.asked.name == NAME));
}

#[test]
fn a_family_that_is_off_is_not_asked_for() {
    for (ipv4, ipv6, kind) in [(true, false, A), (false, true, AAAA)] {
        let options = NameServers {
            ipv4,
            ipv6,
            ..options(&[1])
        };
        let mut world = DnsWorld::new(options, one_address);
        world.ask_at(START, NAME, TIMEOUT);
        world.run();
        let heard = world.heard();
        assert_eq!(heard.len(), 1);
        assert_eq!(heard[0].asked.kind, kind);
    }
}

#[test]
fn a_name_is_asked_for_again_when_its_time_to_live_has_ended() {
    let check = |valid: Option<u64>, asked_at: &[u64]| {
        let options = NameServers {
            valid: valid.map(seconds),
            ..ipv4_only(&[1])
        };
        let mut world = DnsWorld::new(options, one_address);
        for at in [0, 5, 9, 10, 59, 60, 61] {
            world.ask_at(seconds(at), NAME, TIMEOUT);
        }
        assert_eq!(world.run().len(), 7);
        let expected: Vec<(u64, u8)> = asked_at.iter().map(|at| (*at, 1)).collect();
        assert_eq!(course(&world.heard()), expected, "{valid:?}");
    };
    check(None, &[0, 60]);
    check(Some(10), &[0, 10, 59]);
    check(Some(3600), &[0]);
}

#[test]
fn the_shorter_time_to_live_of_the_two_families_counts() {
    for (ipv4, ipv6) in [(10, 20), (20, 10)] {
        let mut world = DnsWorld::new(options(&[1]), move |heard| {
            let record = match heard.asked.kind {
                A => Record::a(NAME, ipv4, [10, 0, 0, 1]),
                _ => Record::aaaa(NAME, ipv6, "fd00::1"),
            };
            vec![heard.asked.reply(&[record])]
        });
        for at in [0, 9, 10] {
            world.ask_at(seconds(at), NAME, TIMEOUT);
        }
        world.run();
        let expected = [(0, 1), (0, 1), (10, 1), (10, 1)];
        assert_eq!(course(&world.heard()), expected);
    }
}

#[test]
fn a_time_to_live_of_zero_serves_those_that_wait_and_is_not_kept() {
    let mut world = DnsWorld::new(ipv4_only(&[1]), |heard| {
        vec![heard.asked.reply(&[Record::a(NAME, 0, [10, 0, 0, 1])])]
    });
    world.ask_at(START, NAME, TIMEOUT);
    world.ask_at(START, NAME, TIMEOUT);
    world.ask_at(seconds(1), NAME, TIMEOUT);
    assert_eq!(world.run().len(), 3);
    assert_eq!(course(&world.heard()), [(0, 1), (1, 1)]);
    assert_eq!(world.resolver.cached_names(), 0);
}

#[test]
fn requests_that_ask_for_a_name_at_the_same_time_share_one_question() {
    let mut world = DnsWorld::new(ipv4_only(&[1]), |heard| {
        // The first three questions are lost.
        if heard.at < seconds(7) {
            return Vec::new();
        }
        one_address(heard)
    });
    for at in [0, 1, 2, 3, 4] {
        world.ask_at(seconds(at), NAME, TIMEOUT);
    }
    let expected = vec![found(seconds(7), &["10.0.0.1"]); 5];
    assert_eq!(world.run(), expected);
    assert_eq!(course(&world.heard()), [(0, 1), (1, 1), (3, 1), (7, 1)]);
}

#[test]
fn failures_are_told_at_once_and_not_kept() {
    let check = |code, error: ResolveError| {
        let fails = Rc::new(Cell::new(true));
        let fails_still = Rc::clone(&fails);
        let mut world = DnsWorld::new(options(&[1, 2]), move |heard| {
            if fails_still.get() {
                return vec![heard.asked.failure(code)];
            }
            one_address(heard)
        });
        world.ask_at(START, NAME, TIMEOUT);
        assert_eq!(world.run(), [failed(START, error)]);
        assert_eq!(world.heard().len(), 2);
        fails.set(false);
        world.ask_at(START, NAME, TIMEOUT);
        assert_eq!(world.run()[0].1, Ok(vec!["10.0.0.1".to_owned()]));
    };
    check(1, ResolveError::FormatError);
    check(2, ResolveError::ServerFailure);
    check(3, ResolveError::NotFound);
    check(4, ResolveError::NotImplemented);
    check(5, ResolveError::Refused);
}

#[test]
fn a_failure_of_one_family_is_one_of_the_name() {
    let mut world = DnsWorld::new(options(&[1]), |heard| match heard.asked.kind {
        A => one_address(heard),
        _ => vec![heard.asked.failure(2)],
    });
    world.ask_at(START, NAME, TIMEOUT);
    assert_eq!(world.run(), [failed(START, ResolveError::ServerFailure)]);
}

#[test]
fn a_name_without_addresses_is_not_found() {
    let mut world = DnsWorld::new(options(&[1]), |heard| vec![heard.asked.reply(&[])]);
    world.ask_at(START, NAME, TIMEOUT);
    world.ask_at(START, "no..name", TIMEOUT);
    let expected = [
        failed(START, ResolveError::NotFound),
        failed(START, ResolveError::NotFound),
    ];
    assert_eq!(world.run(), expected);
    assert_eq!(world.heard().len(), 2);
}

#[test]
fn a_literal_address_is_not_asked_for() {
    let mut world = DnsWorld::new(options(&[1]), one_address);
    for text in ["10.1.2.3", "fd00::3", "[fd00::4]"] {
        world.ask_at(START, text, TIMEOUT);
    }
    let expected = ["10.1.2.3", "fd00::3", "fd00::4"].map(|text| found(START, &[text]));
    assert_eq!(world.run(), expected);
    assert!(world.heard().is_empty());
}

#[test]
fn silent_servers_take_turns_until_the_request_has_waited_long_enough() {
    let mut world = DnsWorld::new(ipv4_only(&[1, 2]), |_| Vec::new());
    world.ask_at(START, NAME, seconds(12));
    world.ask_at(seconds(1), NAME, seconds(1));
    let expected = [
        failed(seconds(2), ResolveError::TimedOut),
        failed(seconds(12), ResolveError::TimedOut),
    ];
    assert_eq!(world.run(), expected);
    assert_eq!(course(&world.heard()), [(0, 1), (1, 2), (3, 1), (7, 2)]);
    assert_eq!(world.counters.counts().timedout, 2);
    // With nothing to wait for, the look-up has ended at its next pause.
    assert!(world.world.elapsed() <= seconds(15));
}

#[test]
fn a_server_that_is_not_there_is_passed_over_at_once() {
    let mut world = DnsWorld::new(ipv4_only(&[9, 1]), one_address);
    world.ask_at(START, NAME, TIMEOUT);
    assert_eq!(world.run(), [found(START, &["10.0.0.1"])]);
    // Where none is there, they are asked again and again.
    let mut world = DnsWorld::new(ipv4_only(&[8, 9]), one_address);
    world.ask_at(START, NAME, seconds(7));
    assert_eq!(world.run(), [failed(seconds(7), ResolveError::TimedOut)]);
}

#[test]
fn a_server_that_starts_late_is_asked_again_within_a_second() {
    let mut world = DnsWorld::new(ipv4_only(&[1]), |heard| {
        match heard.at < Duration::from_millis(700) {
            true => Vec::new(),
            false => one_address(heard),
        }
    });
    world.ask_at(START, NAME, TIMEOUT);
    assert_eq!(world.run(), [found(seconds(1), &["10.0.0.1"])]);
}

#[test]
fn names_go_to_the_servers_in_turn() {
    let mut world = DnsWorld::new(options(&[1, 2]), one_address);
    for (at, name) in [(0, "a"), (1, "b"), (2, "c")] {
        world.ask_at(seconds(at), name, TIMEOUT);
    }
    world.run();
    let expected = [(0, 1), (0, 1), (1, 2), (1, 2), (2, 1), (2, 1)];
    assert_eq!(course(&world.heard()), expected);
}

#[test]
fn lies_are_passed_over_and_the_true_reply_counts() {
    let lies: [fn(&Heard) -> Vec<u8>; 5] = [
        |heard| heard.asked.with_id(heard.asked.id ^ 1, &[lie()]),
        |heard| heard.asked.to_other_question("other.example", &[lie()]),
        |heard| heard.asked.failure(9),
        |_| b"no message".to_vec(),
        |_| Vec::new(),
    ];
    let mut world = DnsWorld::new(ipv4_only(&[1]), move |heard| {
        let mut replies: Vec<_> = lies.iter().map(|lie| lie(heard)).collect();
        replies.extend(one_address(heard));
        replies
    });
    world.ask_at(START, NAME, TIMEOUT);
    assert_eq!(world.run(), [found(START, &["10.0.0.1"])]);
    let counts = world.counters.counts();
    assert_eq!(
        (counts.mismatched, counts.unknown, counts.noerror),
        (4, 1, 1)
    );
}

fn lie() -> Record {
    Record::a(NAME, 60, [10, 6, 6, 6])
}

#[test]
fn a_flood_of_guesses_ends_the_attempt_and_the_next_one_has_another_port() {
    let mut world = DnsWorld::new(ipv4_only(&[1]), |heard| {
        if heard.at >= Duration::from_millis(250) {
            return one_address(heard);
        }
        let guess = |number: u16| {
            heard
                .asked
                .with_id(heard.asked.id.wrapping_add(number), &[lie()])
        };
        // The guess after 64 wrong ones is right, and comes too late.
        (1..=64).chain([0]).map(guess).collect()
    });
    world.ask_at(START, NAME, TIMEOUT);
    // A lone server is given a pause, as after a refusal.
    let pause = Duration::from_millis(250);
    assert_eq!(world.run(), [found(pause, &["10.0.0.1"])]);
    let heard = world.heard();
    assert_eq!(course(&heard), [(0, 1), (0, 1)]);
    assert_ne!(heard[0].port, heard[1].port);
    assert_ne!(heard[0].asked.id, heard[1].asked.id);
}

#[test]
fn a_truncated_reply_is_asked_for_again_over_tcp() {
    let mut world = DnsWorld::new(ipv4_only(&[1]), |heard| {
        if !heard.over_tcp {
            return vec![heard.asked.truncated()];
        }
        let record = |last| Record::a(NAME, 60, [10, 0, 1, last]);
        vec![
            heard
                .asked
                .reply(&(0..=255).map(record).collect::<Vec<_>>()),
        ]
    });
    world.ask_at(START, NAME, TIMEOUT);
    let ended = world.run();
    assert_eq!(ended[0].1.as_ref().unwrap().len(), 256);
    assert_eq!(world.counters.counts().truncated, 1);
    let transports: Vec<bool> = world.heard().iter().map(|heard| heard.over_tcp).collect();
    assert_eq!(transports, [false, true]);
}

#[test]
fn a_server_that_is_silent_over_tcp_is_followed_by_the_next_one() {
    let mut world = DnsWorld::new(ipv4_only(&[1, 2]), |heard| {
        match (heard.server, heard.over_tcp) {
            (1, false) => vec![heard.asked.truncated()],
            (1, true) => Vec::new(),
            _ => one_address(heard),
        }
    });
    world.ask_at(START, NAME, TIMEOUT);
    assert_eq!(world.run(), [found(seconds(5), &["10.0.0.1"])]);
}

#[test]
fn an_alias_whose_addresses_are_missing_is_asked_for() {
    let mut world = DnsWorld::new(ipv4_only(&[1]), |heard| {
        let record = match heard.asked.name.as_str() {
            NAME => Record::cname(NAME, 20, "a.example"),
            "a.example" => Record::cname("a.example", 40, "b.example"),
            name => Record::a(name, 30, [10, 0, 0, 1]),
        };
        vec![heard.asked.reply(&[record])]
    });
    for at in [0, 19, 20] {
        world.ask_at(seconds(at), NAME, TIMEOUT);
    }
    assert_eq!(world.run().len(), 3);
    let heard = world.heard();
    assert_eq!(
        course(&heard),
        [(0, 1), (0, 1), (0, 1), (20, 1), (20, 1), (20, 1)]
    );
    assert_eq!(heard[2].asked.name, "b.example");
}

#[test]
fn aliases_in_a_circle_through_several_messages_end() {
    let mut world = DnsWorld::new(ipv4_only(&[1]), |heard| {
        let other = if heard.asked.name == NAME {
            "a.example"
        } else {
            NAME
        };
        vec![
            heard
                .asked
                .reply(&[Record::cname(&heard.asked.name, 20, other)]),
        ]
    });
    world.ask_at(START, NAME, TIMEOUT);
    assert_eq!(world.run(), [failed(START, ResolveError::NotFound)]);
    assert_eq!(world.heard().len(), 17);
}

#[test]
fn a_changed_name_is_followed_once_its_former_addresses_have_ended() {
    let mut world = DnsWorld::new(ipv4_only(&[1]), |heard| {
        let last = if heard.at < seconds(30) { 1 } else { 2 };
        vec![heard.asked.reply(&[Record::a(NAME, 20, [10, 0, 0, last])])]
    });
    for at in [0, 19, 20, 39, 40] {
        world.ask_at(seconds(at), NAME, TIMEOUT);
    }
    let ended = world.run();
    let addresses = ended.into_iter().map(|(_, found)| found.unwrap().remove(0));
    let expected = ["10.0.0.1", "10.0.0.1", "10.0.0.1", "10.0.0.1", "10.0.0.2"];
    assert!(addresses.eq(expected));
}

#[test]
fn a_request_that_goes_leaves_the_look_up_to_the_others() {
    let mut world = DnsWorld::new(ipv4_only(&[1]), |heard| {
        if heard.at < seconds(5) {
            return Vec::new();
        }
        one_address(heard)
    });
    world.ask_at(START, NAME, seconds(2));
    world.ask_at(seconds(1), NAME, TIMEOUT);
    let expected = [
        failed(seconds(2), ResolveError::TimedOut),
        found(seconds(7), &["10.0.0.1"]),
    ];
    assert_eq!(world.run(), expected);
}

#[test]
fn ten_thousand_requests_for_a_name_without_answer_do_not_delay_another() {
    let mut world = DnsWorld::new(ipv4_only(&[1]), |heard| match heard.asked.name.as_str() {
        NAME => Vec::new(),
        _ => one_address(heard),
    });
    for _ in 0..10_000 {
        world.ask_at(START, NAME, seconds(6));
    }
    world.ask_at(START, "other.example", TIMEOUT);
    let ended = world.run();
    assert_eq!(ended[0], found(START, &["10.0.0.1"]));
    let timed_out = failed(seconds(6), ResolveError::TimedOut);
    assert!(ended.len() == 10_001 && ended[1..].iter().all(|one| *one == timed_out));
    assert_eq!(course(&world.heard()), [(0, 1), (0, 1), (1, 1), (3, 1)]);
}

#[test]
fn no_more_names_are_looked_up_at_once_than_may_be() {
    let mut world = DnsWorld::new(ipv4_only(&[1]), |_| Vec::new());
    for number in 0..513 {
        world.ask_at(START, &format!("n{number}.example"), seconds(4));
    }
    let ended = world.run_until(Until::At(seconds(1)));
    assert_eq!(ended, [failed(START, ResolveError::Busy)]);
    assert_eq!(world.run().len(), 512);
    world.ask_at(START, NAME, seconds(1));
    assert_eq!(world.run()[0].1, Err(ResolveError::TimedOut));
    let counts = world.counters.counts();
    assert_eq!((counts.busy, counts.timedout, counts.names), (1, 513, 513));
}

#[test]
fn the_addresses_of_a_cached_name_begin_at_any_of_them() {
    let mut world = DnsWorld::new(ipv4_only(&[1]), |heard| {
        let record = |last| Record::a(NAME, 60, [10, 0, 0, last]);
        vec![heard.asked.reply(&[record(1), record(2), record(3)])]
    });
    let firsts = Rc::new(Cell::new([false; 3]));
    let (resolver, seen) = (Rc::clone(&world.resolver), Rc::clone(&firsts));
    world.spawn(async move {
        for _ in 0..50 {
            let addresses = resolver.resolve(NAME.as_bytes(), TIMEOUT).await.unwrap();
            let first = addresses.iter().next().unwrap();
            let place = addresses.as_slice().iter().position(|one| *one == first);
            let mut all = seen.get();
            all[place.unwrap()] = true;
            seen.set(all);
        }
    });
    world.run();
    assert_eq!(firsts.get(), [true; 3]);
}

#[test]
fn services_are_asked_for_by_their_own_name() {
    let mut world = DnsWorld::new(options(&[1]), |heard| {
        let name = &heard.asked.name;
        if name != "_http._tcp.backend.example" {
            return vec![heard.asked.failure(3)];
        }
        let record = Record::srv(name, 20, [1, 2, 8080], "one.example");
        vec![heard.asked.reply(&[record])]
    });
    let resolver = Rc::clone(&world.resolver);
    let (checked, started) = (Rc::new(Cell::new(false)), world.scheduler.now());
    let done = Rc::clone(&checked);
    world.spawn(async move {
        let services = resolver.resolve_service(b"http", b"backend.example", TIMEOUT);
        let services = services.await.unwrap();
        assert_eq!(services.valid_until, started + seconds(20));
        assert_eq!((services.all.len(), services.all[0].port), (1, 8080));
        let missing = resolver.resolve_service(b"ftp", b"backend.example", TIMEOUT);
        assert_eq!(missing.await, Err(ResolveError::NotFound));
        done.set(true);
    });
    world.run();
    assert!(checked.get());
    let expected = ResolverCounts {
        services: 2,
        noerror: 1,
        nxdomain: 1,
        ..ResolverCounts::default()
    };
    assert_eq!(world.counters.counts(), expected);
}
