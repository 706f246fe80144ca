//! What RFC 9111 says, where nginx says something else.

use super::super::origin::{Act, send};
use super::{Cached, content, field, with};
use crate::proxy::get;

fn cached(script: impl Fn(usize, &str) -> Vec<Act> + 'static) -> Cached {
    Cached::new(
        "cache_rules rfc9111; cache_status mill; location / { proxy_pass http://app; }",
        script,
    )
}

fn ask(cached: &mut Cached, line: &str) -> String {
    cached.ask(&format!("GET /a HTTP/1.1\r\nHost: a\r\n{line}\r\n\r\n"))
}

#[test]
fn age_grows_with_each_second_and_cache_status_tells_the_rest_of_the_time() {
    let mut cached = cached(|_, _| vec![with("Cache-Control: max-age=10\r\nAge: 2\r\n", "x")]);
    let first = cached.ask(&get("/a"));
    assert_eq!(field(&first, "Cache-Status"), "mill;fwd=uri-miss;stored");
    for (age, ttl) in [(2, 8), (5, 5)] {
        for _ in 0..3 {
            let answer = cached.ask(&get("/a"));
            assert_eq!(field(&answer, "Age"), age.to_string());
            assert_eq!(
                field(&answer, "Cache-Status"),
                format!("mill;hit;ttl={ttl}")
            );
        }
        cached.pass(3);
    }
    cached.pass(3);
    let late = cached.ask(&get("/a"));
    assert_eq!(field(&late, "Cache-Status"), "mill;fwd=stale;stored");
}

#[test]
fn directives_of_a_request_hold_also_where_its_answer_is_kept_ready() {
    let mut cached = cached(|_, _| vec![with("Cache-Control: max-age=100\r\n", "x")]);
    for _ in 0..4 {
        ask(&mut cached, "X: y");
    }
    assert_eq!(cached.asked(), 1);
    cached.pass(10);
    for (line, asked) in [
        ("Cache-Control: max-age=5", 2),
        ("Cache-Control: max-age=50", 2),
        ("Cache-Control: no-cache", 3),
        ("Pragma: no-cache", 4),
        ("Cache-Control: min-fresh=99", 4),
        ("Cache-Control: min-fresh=101", 5),
        ("X: y", 5),
    ] {
        let answer = ask(&mut cached, line);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert_eq!(cached.asked(), asked, "{line}");
    }
}

#[test]
fn a_request_that_wants_no_server_asked_gets_504_where_nothing_is_kept() {
    let mut cached = cached(|_, _| vec![with("Cache-Control: max-age=100\r\n", "x")]);
    let refused = ask(&mut cached, "Cache-Control: only-if-cached");
    assert!(refused.starts_with("HTTP/1.1 504"), "{refused}");
    assert_eq!(field(&refused, "Cache-Status"), "mill");
    assert_eq!(cached.asked(), 0);
    ask(&mut cached, "X: y");
    let kept = ask(&mut cached, "Cache-Control: only-if-cached");
    assert_eq!(content(&kept), "x");
}

#[test]
fn an_answer_to_one_client_alone_goes_to_no_other() {
    for (line, fields, is_kept) in [
        ("X: y", "Cache-Control: max-age=100, private\r\n", false),
        ("X: y", "Cache-Control: no-store, max-age=100\r\n", false),
        (
            "Authorization: Basic abc",
            "Cache-Control: max-age=100\r\n",
            false,
        ),
        (
            "Authorization: Basic abc",
            "Cache-Control: max-age=100, public\r\n",
            true,
        ),
        (
            "Authorization: Basic abc",
            "Cache-Control: s-maxage=100\r\n",
            true,
        ),
        (
            "Cache-Control: no-store",
            "Cache-Control: max-age=100\r\n",
            false,
        ),
    ] {
        let mut cached = cached(move |_, _| vec![with(fields, "x")]);
        ask(&mut cached, line);
        ask(&mut cached, "X: y");
        assert_eq!(
            cached.asked(),
            if is_kept { 1 } else { 2 },
            "{line} {fields}"
        );
    }
}

#[test]
fn an_answer_without_a_time_is_kept_by_a_heuristic_or_validated_each_time() {
    let modified = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    let mut cached = cached(move |_, _| vec![with(modified, "x")]);
    ask(&mut cached, "X: y");
    ask(&mut cached, "X: y");
    assert_eq!(cached.asked(), 1);
    let mut cached = super::rules::cached(|number, request| match number {
        0 => vec![with("ETag: \"a\"\r\nCache-Control: no-cache\r\n", "x")],
        _ => {
            assert!(request.contains("If-None-Match: \"a\""), "{request}");
            vec![send("HTTP/1.1 304 Not Modified\r\n\r\n")]
        }
    });
    for expected in [
        "mill;fwd=uri-miss;stored",
        "mill;fwd=stale;fwd-status=304;ttl=0",
    ] {
        let answer = ask(&mut cached, "X: y");
        assert_eq!(
            (field(&answer, "Cache-Status"), content(&answer)),
            (expected, "x")
        );
    }
}

#[test]
fn an_error_is_not_served_stale_where_the_answer_forbids_it() {
    for (fields, status) in [
        ("Cache-Control: max-age=1, stale-if-error=60\r\n", "200"),
        ("Cache-Control: max-age=1\r\n", "503"),
        (
            "Cache-Control: max-age=1, must-revalidate, stale-if-error=60\r\n",
            "503",
        ),
    ] {
        let mut cached = cached(move |number, _| match number {
            0 => vec![with(fields, "x")],
            _ => vec![send("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")],
        });
        ask(&mut cached, "X: y");
        cached.pass(3);
        let answer = ask(&mut cached, "X: y");
        assert_eq!(answer.get(9..12), Some(status), "{fields}{answer}");
    }
}

#[test]
fn stale_while_revalidate_answers_at_once_and_asks_behind_it() {
    let mut cached = cached(|number, _| {
        let fields = "Cache-Control: max-age=1, stale-while-revalidate=60\r\n";
        vec![with(fields, if number == 0 { "old" } else { "new" })]
    });
    ask(&mut cached, "X: y");
    cached.pass(3);
    assert_eq!(content(&ask(&mut cached, "X: y")), "old");
    assert_eq!(content(&ask(&mut cached, "X: y")), "new");
    assert_eq!(cached.asked(), 2);
}
