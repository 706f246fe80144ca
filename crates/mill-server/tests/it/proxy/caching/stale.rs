//! What is stale.

use super::super::origin::{Act, ok, send};
use super::{Cached, content, field, with};
use crate::proxy::get;
use std::time::Duration;

fn cached(directives: &str, script: impl Fn(usize, &str) -> Vec<Act> + 'static) -> Cached {
    let text =
        format!("location / {{ proxy_pass http://app; proxy_cache_valid 200 5s; {directives} }}");
    Cached::new(&text, script)
}

#[test]
fn something_stale_serves_where_use_stale_names_the_failure() {
    let fails = || vec![send("HTTP/1.1 503 Busy\r\nContent-Length: 1\r\n\r\nb")];
    let closes = || vec![Act::Close];
    type Answer = fn() -> Vec<Act>;
    let failures: [(&str, Answer, &str); 5] = [
        ("", fails, "EXPIRED b"),
        ("proxy_cache_use_stale http_503;", fails, "STALE x"),
        ("proxy_cache_use_stale http_500;", fails, "EXPIRED b"),
        ("proxy_cache_use_stale error;", closes, "STALE x"),
        ("proxy_cache_use_stale timeout;", closes, ""),
    ];
    for (directives, fault, expected) in failures {
        let mut cached = cached(directives, move |number, _| match number {
            0 => vec![ok("x")],
            _ => fault(),
        });
        cached.outcome("/a");
        cached.pass(7);
        let answer = cached.ask(&get("/a"));
        if expected.is_empty() {
            assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
        } else {
            let found = format!("{} {}", field(&answer, "X-Cache"), content(&answer));
            assert_eq!(found, expected, "{directives}");
        }
    }
}

#[test]
fn a_stale_answer_serves_while_one_request_asks_for_its_successor() {
    let mut cached = cached(
        "proxy_cache_use_stale updating;",
        |number, _| match number {
            0 => vec![ok("old")],
            _ => vec![Act::Wait(Duration::from_secs(2)), ok("new")],
        },
    );
    cached.outcome("/a");
    cached.pass(7);
    let first = cached.server.connect();
    first.send(get("/a"));
    cached.server.run();
    let second = cached.ask(&get("/a"));
    assert_eq!(
        (field(&second, "X-Cache"), content(&second)),
        ("UPDATING", "old")
    );
    assert_eq!(first.received(), b"");
    cached.pass(3);
    assert!(first.received().ends_with(b"new"));
    assert_eq!(cached.asked(), 2);
    assert_eq!(cached.outcome("/a"), "HIT");
}

#[test]
fn a_background_update_keeps_no_client_waiting() {
    let directives = "proxy_cache_use_stale updating; proxy_cache_background_update on;";
    let mut cached = cached(directives, |number, _| match number {
        0 => vec![ok("old")],
        _ => vec![Act::Wait(Duration::from_secs(2)), ok("new")],
    });
    cached.outcome("/a");
    cached.pass(7);
    for expected in ["STALE", "UPDATING"] {
        let answer = cached.ask(&get("/a"));
        assert_eq!(
            (field(&answer, "X-Cache"), content(&answer)),
            (expected, "old")
        );
    }
    cached.pass(3);
    let answer = cached.ask(&get("/a"));
    assert_eq!(
        (field(&answer, "X-Cache"), content(&answer)),
        ("HIT", "new")
    );
    assert_eq!(cached.asked(), 2);
}

#[test]
fn what_is_still_valid_is_not_sent_again() {
    let fields = "ETag: \"v1\"\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    let mut cached = cached("proxy_cache_revalidate on;", move |number, request| {
        if number == 0 {
            return vec![with(fields, "content")];
        }
        assert!(request.contains("If-None-Match: \"v1\"\r\n"), "{request}");
        assert!(request.contains("If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n"));
        vec![send("HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\n\r\n")]
    });
    cached.outcome("/a");
    for _ in 0..2 {
        cached.pass(7);
        let answer = cached.ask(&get("/a"));
        assert_eq!(
            (field(&answer, "X-Cache"), content(&answer)),
            ("REVALIDATED", "content")
        );
        assert_eq!(cached.outcome("/a"), "HIT");
    }
    cached.pass(7);
    let same = cached.ask("GET /a HTTP/1.1\r\nHost: a\r\nIf-None-Match: \"v1\"\r\n\r\n");
    assert!(same.starts_with("HTTP/1.1 304"), "{same}");
}

#[test]
fn any_status_of_an_error_may_have_something_stale_in_its_place() {
    let check = |directives: &str, status: u16, expected: &str| {
        let mut cached = cached(directives, move |number, _| match number {
            0 => vec![ok("x")],
            _ => vec![send(&format!(
                "HTTP/1.1 {status} Error\r\nContent-Length: 1\r\n\r\nb"
            ))],
        });
        cached.outcome("/a");
        cached.pass(7);
        let answer = cached.ask(&get("/a"));
        let found = format!("{} {}", field(&answer, "X-Cache"), content(&answer));
        assert_eq!(found, expected, "{directives} {status}");
    };
    let directives = "proxy_cache_use_stale http_410 http_599;";
    check(directives, 410, "STALE x");
    check(directives, 599, "STALE x");
    check(directives, 411, "EXPIRED b");
    check(directives, 503, "EXPIRED b");
    let inner = "proxy_cache_use_stale http_410 http_503;";
    check(inner, 410, "STALE x");
    check(inner, 503, "STALE x");
}

/// What is stale while it is still on its way turns out to be too large: it is given to those alone that read it already.
#[test]
fn where_something_stale_cannot_be_read_the_servers_own_failure_is_the_answer() {
    for (named, expected) in [
        ("timeout", "HTTP/1.1 504 "),
        ("error", "HTTP/1.1 502 "),
        ("http_503", "HTTP/1.1 503 Busy"),
    ] {
        let directives = format!(
            "cache_object_max 100k; proxy_read_timeout 5s; proxy_cache_use_stale {named}; proxy_next_upstream off;"
        );
        let mut cached = cached(&directives, move |number, _| match number {
            0 => vec![
                send(
                    "HTTP/1.1 200 OK\r\nCache-Control: max-age=1\r\nTransfer-Encoding: chunked\r\n\r\n",
                ),
                send(&format!("{:x}\r\n{}\r\n", 50_000, "x".repeat(50_000))),
                Act::Wait(Duration::from_secs(4)),
                send(&format!("{:x}\r\n{}\r\n", 90_000, "x".repeat(90_000))),
                Act::Wait(Duration::from_secs(20)),
                send("0\r\n\r\n"),
            ],
            _ => {
                let fails = match named {
                    "timeout" => Act::Wait(Duration::from_secs(20)),
                    "error" => Act::Close,
                    _ => send("HTTP/1.1 503 Busy\r\nContent-Length: 1\r\n\r\nb"),
                };
                vec![Act::Wait(Duration::from_secs(3)), fails]
            }
        });
        let first = cached.server.connect();
        first.send(get("/a"));
        cached.pass(3);
        let second = cached.server.connect();
        second.send(get("/a"));
        cached.pass(8);
        let answer = String::from_utf8_lossy(&second.received()).into_owned();
        assert!(answer.starts_with(expected), "{named}: {answer}");
        assert_eq!(field(&answer, "X-Cache"), "EXPIRED", "{named}");
        assert!(first.received().len() > 140_000, "it is still read");
    }
}
