//! When to probe, what an answer must be, and what follows from it.

use super::examination::{Test, examine_content, examine_head};
use super::verdict::{Verdict, combined};
use super::{delay, jitter};
use crate::group::{Group, PeerSet};
use crate::peer::{Health, Peer, PeerState};
use mill_config::config::template::Part;
use mill_config::config::{Config, HealthCheck, Template};
use mill_config::{Memory, Options, load};
use mill_runtime::time::{Duration, Instant};
use std::sync::Arc;

const HEALTHY: Health = Health::Healthy;
const CHECKING: Health = Health::Checking;
const UNHEALTHY: Health = Health::Unhealthy;

fn config(http: &str) -> Config {
    let options = Options::default();
    let text = format!("events {{ }} http {{ {http} }}");
    let source = Memory::new().with(&*options.conf_file(), text);
    load(&source, &options).expect("the text is valid").config
}

fn check(parameters: &str, more: &str) -> HealthCheck {
    let config = config(&format!(
        "{more} server {{ location / {{ health_check {parameters}; proxy_pass http://127.0.0.1; }} }}"
    ));
    let http = config.http.as_ref().expect("there is an http block");
    http.probing[0].location.health_checks[0].clone()
}

/// The verdict after each result: `+` passed, `-` failed.
fn verdicts(parameters: &str, known: Health, results: &str) -> Vec<Health> {
    let check = check(parameters, "");
    let mut verdict = Verdict::new(&check, known);
    let results = results.bytes().map(|result| {
        let before = verdict.health();
        let has_changed = verdict.on_result(&check, result == b'+');
        assert_eq!(has_changed, verdict.health() != before);
        verdict.health()
    });
    results.collect()
}

#[test]
fn one_result_decides_by_default() {
    let expected = [HEALTHY, UNHEALTHY, UNHEALTHY, HEALTHY];
    assert_eq!(verdicts("", HEALTHY, "+--+"), expected);
}

#[test]
fn failures_and_passes_count_in_a_row() {
    let expected = [HEALTHY, HEALTHY, HEALTHY, HEALTHY, UNHEALTHY];
    assert_eq!(verdicts("fails=2", HEALTHY, "-+--")[..], expected[1..]);
    let expected = [UNHEALTHY, UNHEALTHY, UNHEALTHY, UNHEALTHY, HEALTHY];
    assert_eq!(verdicts("passes=3", UNHEALTHY, "+-+++")[..], expected);
}

#[test]
fn a_mandatory_check_waits_for_its_passes_and_an_optional_one_does_not() {
    let parameters = "mandatory fails=2 passes=2";
    let expected = [CHECKING, HEALTHY];
    assert_eq!(verdicts(parameters, CHECKING, "++"), expected);
    let expected = [CHECKING, UNHEALTHY];
    assert_eq!(verdicts(parameters, CHECKING, "--"), expected);
    assert_eq!(verdicts("passes=2", CHECKING, "+"), [HEALTHY]);
    let optional = Verdict::new(&check("", ""), CHECKING);
    assert_eq!(optional.health(), HEALTHY);
}

#[test]
fn one_check_that_fails_is_enough() {
    let of = |verdicts: &[Health]| combined(verdicts.iter().copied());
    assert_eq!(of(&[HEALTHY, UNHEALTHY, CHECKING]), UNHEALTHY);
    assert_eq!(of(&[HEALTHY, CHECKING]), CHECKING);
    assert_eq!(of(&[HEALTHY, HEALTHY]), HEALTHY);
}

#[test]
fn jitter_delays_up_to_its_limit() {
    let check = check("interval=3 jitter=10ms", "");
    let ms = Duration::from_millis(10);
    let delays =
        (0..100_000u64).map(|step| delay(&check, step.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    let (least, most) = delays.fold((Duration::MAX, Duration::ZERO), |(least, most), delay| {
        (least.min(delay), most.max(delay))
    });
    let base = Duration::from_secs(3);
    assert!(least >= base && least < base + ms / 100, "{least:?}");
    assert!(most <= base + ms && most > base + ms * 99 / 100, "{most:?}");
    assert_eq!(jitter(&self::check("", ""), 12345), Duration::ZERO);
}

/// Examines an answer whose fields are `lines`.
fn examine(block: &str, status: u16, lines: &[(&str, &str)], content: &str) -> Result<Test, Test> {
    let check = check("match=m", &format!("match m {{ {block} }}"));
    let matching = check.matching.as_deref().expect("it is written");
    let lines = lines
        .iter()
        .map(|(name, value)| (name.as_bytes(), value.as_bytes()))
        .collect::<Vec<_>>();
    let evaluate = |template: &Template| match template.parts() {
        [Part::Literal(text)] => text.to_vec(),
        _ => b"evaluated".to_vec(),
    };
    let last = examine_head(Some(matching), status, &lines, evaluate)?;
    let variable = |variable: &_| {
        format!("{variable:?}")
            .contains("good")
            .then(|| b"1".to_vec())
    };
    let content = examine_content(matching, content.as_bytes(), |name| {
        variable(name).unwrap_or_else(|| b"0".to_vec())
    })?;
    Ok(content.unwrap_or(last))
}

#[test]
fn without_a_block_the_status_is_200_to_399() {
    let of = |status| examine_head(None, status, &[], |_| Vec::new());
    for (status, expected) in [(199, false), (200, true), (399, true), (400, false)] {
        let expected = if expected {
            Ok(Test::Status)
        } else {
            Err(Test::Status)
        };
        assert_eq!(of(status), expected, "{status}");
    }
}

#[test]
fn header_tests_look_at_all_lines_of_a_field() {
    let lines = [("A", "1"), ("a", "two"), ("B", ""), ("C", "evaluated")];
    let check = |block: &str, holds: bool| {
        let expected = if holds {
            Ok(Test::Header)
        } else {
            Err(Test::Header)
        };
        assert_eq!(examine(block, 200, &lines, ""), expected, "{block}");
    };
    for (positive, negative, holds) in [
        ("header A;", "header ! A;", true),
        ("header B;", "header ! B;", true),
        ("header D;", "header ! D;", false),
        ("header a = 1;", "header a != 1;", true),
        ("header A = two;", "header A != two;", true),
        ("header A = TWO;", "header A != TWO;", false),
        (
            "header C = $upstream_addr;",
            "header C != $upstream_addr;",
            true,
        ),
        ("header D = 1;", "header D != 1;", false),
        ("header A ~ ^t;", "header A !~ ^t;", true),
        ("header D ~ .;", "header D !~ .;", false),
    ] {
        check(positive, holds);
        check(negative, !holds);
    }
}

#[test]
fn all_tests_must_hold_and_the_failing_one_is_told() {
    let block = "status 200-204 500; header A; body ~ \"^ok\"; require $upstream_http_good;";
    let lines = [("A", "")];
    assert_eq!(examine(block, 500, &lines, "ok"), Ok(Test::Variables));
    assert_eq!(examine(block, 205, &lines, "ok"), Err(Test::Status));
    assert_eq!(examine(block, 200, &[], "ok"), Err(Test::Header));
    assert_eq!(examine(block, 200, &lines, "not ok"), Err(Test::Body));
    let bad = block.replace("good", "bad");
    assert_eq!(examine(&bad, 200, &lines, "ok"), Err(Test::Variables));
    assert_eq!(examine("body ~ ok;", 404, &[], "is ok"), Ok(Test::Body));
    assert_eq!(examine("body !~ ok;", 404, &[], "is ok"), Err(Test::Body));
    assert_eq!(examine("status ! 404;", 200, &[], ""), Ok(Test::Status));
}

#[test]
fn new_peers_of_a_mandatory_check_wait_for_it_and_known_ones_go_on() {
    let config = config("upstream a { server 10.0.0.1; server 10.0.0.2; }");
    let upstream = &config
        .http
        .as_ref()
        .expect("there is an http block")
        .upstreams[0];
    let now = Instant::from_nanos(1);
    let states = |group: &Group| -> Vec<PeerState> {
        let peers = group.peers();
        peers.all().map(|peer| peer.state(now)).collect()
    };
    let plain = Group::new(upstream, None);
    assert_eq!(states(&plain), [PeerState::Up, PeerState::Up]);
    let group = Group::checked(upstream, None, true);
    assert_eq!(states(&group), [PeerState::Checking, PeerState::Checking]);
    group.peers().primary[0].load().set_health(HEALTHY, now);
    // A reload, then a server that is added.
    let group = Group::checked(upstream, Some(&group), true);
    assert_eq!(states(&group), [PeerState::Up, PeerState::Checking]);
    group.change(|peers| PeerSet {
        primary: vec![
            Arc::clone(&peers.primary[0]),
            Arc::new(Peer::new(
                peers.primary[1].address.clone(),
                &peers.primary[1].settings,
            )),
        ],
        backup: Vec::new(),
    });
    assert_eq!(states(&group), [PeerState::Up, PeerState::Checking]);
    let group = Group::checked(upstream, Some(&plain), true);
    assert_eq!(states(&group), [PeerState::Up, PeerState::Up]);
}
