//! Which servers are tried, and what is told when none can be reached.

use super::peer::Act;
use super::{A, B, Passing, in_stream};
use crate::server::{ADDRESS, MS, SECOND};
use mill_sim::link::Link;

/// A group of both servers, of which only the second one is there unless it is started.
fn group(directives: &str, servers: &str) -> String {
    in_stream(&format!(
        "upstream u {{ {servers} }} server {{ listen {ADDRESS}; proxy_pass u; {directives} }}"
    ))
}

fn both() -> String {
    format!("server {B}; server {A};")
}

fn echo(passing: &mut Passing) -> Vec<u8> {
    let client = passing.connect();
    client.send("hi");
    passing
        .server
        .run_to(passing.server.world.elapsed() + SECOND);
    client.finish();
    passing
        .server
        .run_to(passing.server.world.elapsed() + SECOND);
    client.received()
}

#[test]
fn another_server_is_tried_when_one_refuses() {
    let mut passing = Passing::configured(&group("", &both()), vec![Act::Echo]);
    assert_eq!(echo(&mut passing), b"hi");
    let line = &passing.sessions()[0];
    assert!(line.contains(" 200 2/2 "), "{line}");
    assert!(
        line.contains(&format!("{B}, {A} 0, 2/0, 2 -, 0.00")),
        "{line}"
    );
    for text in [
        "connect() failed (111: Connection refused) while connecting to upstream, client: 198.51.100.1, server: \
         10.0.0.1:80, upstream: \"10.0.0.3:1000\", bytes from/to client:0/0, bytes from/to upstream:0/0",
        "upstream server temporarily disabled while connecting to upstream",
    ] {
        assert!(
            passing.server.has_logged(text),
            "{:#?}",
            passing.server.error_log()
        );
    }
    // The one that has refused is not tried for `fail_timeout`.
    assert_eq!(echo(&mut passing), b"hi");
    assert!(passing.sessions()[1].contains(&format!(" {A} 2/2 ")));
    passing.server.assert_nothing_left(0);
}

#[test]
fn no_other_server_is_tried_beyond_what_the_words_say() {
    for directives in ["proxy_next_upstream off;", "proxy_next_upstream_tries 1;"] {
        let mut passing = Passing::configured(&group(directives, &both()), vec![Act::Echo]);
        assert_eq!(echo(&mut passing), b"");
        let line = &passing.sessions()[0];
        assert!(
            line.contains(&format!(" 502 0/0 0.000 {B} ")),
            "{directives}: {line}"
        );
        assert_eq!(passing.seen.connections(), 0);
        assert_eq!(passing.server.counters().sessions_failed, 1);
    }
}

#[test]
fn without_a_live_server_the_session_fails() {
    let text = group("", &format!("server {B}; server 10.0.0.4:1;"));
    let mut passing = Passing::configured(&text, Vec::new());
    echo(&mut passing);
    echo(&mut passing);
    assert!(passing.sessions()[1].contains(" 502 0/0 0.000 u 0/0 -"));
    let text = "no live upstreams while connecting to upstream, client: 198.51.100.1, server: 10.0.0.1:80, upstream: \
        \"u\", bytes from/to client:0/0, bytes from/to upstream:0/0";
    assert!(
        passing.server.has_logged(text),
        "{:#?}",
        passing.server.error_log()
    );
}

#[test]
fn a_backup_takes_over_and_weights_share_sessions() {
    let text = group(
        "",
        &format!("server {B} weight=3; server {A}; server 10.0.0.4:1 backup;"),
    );
    let mut passing = Passing::configured(&text, vec![Act::Echo]);
    let heavy = passing.add(B, vec![Act::Echo]);
    let backup = passing.add("10.0.0.4:1", vec![Act::Echo]);
    for _ in 0..8 {
        assert_eq!(echo(&mut passing), b"hi");
    }
    let counts = (
        heavy.connections(),
        passing.seen.connections(),
        backup.connections(),
    );
    assert_eq!(counts, (6, 2, 0));
    let text = group("", &format!("server {B} down; server {A} backup;"));
    let mut passing = Passing::configured(&text, vec![Act::Echo]);
    assert_eq!(echo(&mut passing), b"hi");
}

#[test]
fn methods_choose_by_key_or_by_load() {
    for (method, all_to_one) in [
        ("hash $remote_addr;", true),
        ("hash $remote_addr consistent;", true),
        ("least_conn;", false),
        ("random;", false),
        ("", false),
    ] {
        let text = group("", &format!("{method} server {B}; server {A};"));
        let mut passing = Passing::configured(&text, vec![Act::Echo]);
        let other = passing.add(B, vec![Act::Echo]);
        for _ in 0..20 {
            assert_eq!(echo(&mut passing), b"hi");
        }
        let counts = (passing.seen.connections(), other.connections());
        assert_eq!(counts.0 + counts.1, 20, "{method}");
        assert_eq!(
            counts.0 == 0 || counts.1 == 0,
            all_to_one,
            "{method}: {counts:?}"
        );
    }
}

#[test]
fn a_server_that_does_not_answer_is_given_up_after_the_connect_timeout() {
    let directives = "proxy_connect_timeout 5s; proxy_next_upstream_timeout 8s;";
    let text = group(directives, &format!("{} server 10.0.0.4:1;", both()));
    let mut passing = Passing::configured(&text, vec![Act::Echo]);
    let client = passing.connect();
    passing.server.world.set_link(Link {
        delay: 60 * SECOND,
        ..Link::IDEAL
    });
    passing.server.run_to(10 * SECOND - 100 * MS);
    assert!(!client.is_closed());
    passing.server.run_to(10 * SECOND + 100 * MS);
    assert!(client.is_closed());
    let line = &passing.sessions()[0];
    assert!(
        line.contains(&format!(" 502 0/0 10.000 {B}, {A} 0, 0/0, 0 -, -")),
        "{line}"
    );
    assert!(passing.server.has_logged(
        "upstream timed out (110: Connection timed out) while connecting to upstream, client: "
    ));
}
