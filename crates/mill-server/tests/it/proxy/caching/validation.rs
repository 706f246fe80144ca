//! What a 304, or the answer to a HEAD, says of what is kept (RFC 9111 4.3.4, 4.3.5).

use super::super::origin::{Act, send};
use super::{Cached, content, field, with};
use crate::proxy::get;
use std::time::Duration;

const RFC: &str = "cache_rules rfc9111; cache_status mill; location / { proxy_pass http://app; proxy_cache_convert_head off; }";

fn not_modified(fields: &str) -> Act {
    send(&format!("HTTP/1.1 304 Not Modified\r\n{fields}\r\n"))
}

/// Of each request the conditional fields that it has.
fn conditions(cached: &Cached) -> Vec<String> {
    let requests = cached.seen.requests.borrow();
    let fields = |request: &String| {
        let names = ["If-None-Match", "If-Modified-Since"];
        names.map(|name| field(request, name).to_owned()).concat()
    };
    requests.iter().map(fields).collect()
}

#[test]
fn a_304_that_names_something_else_has_the_server_asked_again_without_conditions() {
    for (kept, answer, is_ours) in [
        ("ETag: \"a\"\r\n", "ETag: \"a\"\r\n", true),
        ("ETag: \"a\"\r\n", "", true),
        ("ETag: \"a\"\r\n", "ETag: W/\"a\"\r\n", true),
        ("ETag: \"a\"\r\n", "ETag: \"b\"\r\n", false),
        ("ETag: \"a\"\r\n", "ETag: W/\"b\"\r\n", false),
        ("ETag: W/\"a\"\r\n", "ETag: W/\"a\"\r\n", true),
        ("ETag: W/\"a\"\r\n", "ETag: \"a\"\r\n", false),
        (
            "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
            "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
            true,
        ),
        (
            "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
            "Last-Modified: Sun, 06 Nov 1994 08:49:38 GMT\r\n",
            false,
        ),
        ("Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n", "", true),
    ] {
        let first = format!("{kept}Cache-Control: max-age=2\r\n");
        let mut cached = Cached::new(RFC, move |_, request| {
            let is_conditional =
                request.contains("If-None-Match") || request.contains("If-Modified-Since");
            vec![match is_conditional {
                true => not_modified(answer),
                false => with(&first, "x"),
            }]
        });
        assert_eq!(cached.outcome("/a"), "MISS");
        cached.pass(3);
        let outcome = cached.outcome("/a");
        let expected = match is_ours {
            true => ("REVALIDATED", 2),
            false => ("EXPIRED", 3),
        };
        assert_eq!((&*outcome, cached.asked()), expected, "{kept} {answer}");
        let asked = conditions(&cached);
        assert!(
            !asked[1].is_empty() && asked.get(2).is_none_or(String::is_empty),
            "{asked:?}"
        );
        assert_eq!(
            cached.outcome("/a"),
            "HIT",
            "what the server has sent is kept"
        );
    }
}

#[test]
fn nginxs_rules_look_at_no_validators_of_a_304() {
    let directives = "location / { proxy_pass http://app; proxy_cache_revalidate on; }";
    let mut cached = Cached::new(directives, |number, _| {
        vec![match number {
            0 => with("ETag: \"a\"\r\nCache-Control: max-age=2\r\n", "x"),
            _ => not_modified("ETag: \"b\"\r\n"),
        }]
    });
    cached.outcome("/a");
    cached.pass(4);
    assert_eq!(cached.outcome("/a"), "REVALIDATED");
    assert_eq!(cached.asked(), 2);
}

#[test]
fn a_304_renews_all_that_have_the_same_strong_validator() {
    for (tag, renewed) in [("\"a\"", "HIT"), ("W/\"a\"", "REVALIDATED")] {
        let mut cached = Cached::new(RFC, move |_, request| {
            vec![match request.contains("If-None-Match") {
                true => not_modified(&format!("ETag: {tag}\r\nCache-Control: max-age=5\r\n")),
                false => with(
                    &format!("ETag: {tag}\r\nVary: X-V\r\nCache-Control: max-age=2\r\n"),
                    "x",
                ),
            }]
        });
        let request = |value: u8| format!("GET /a HTTP/1.1\r\nHost: a\r\nX-V: {value}\r\n\r\n");
        for value in 0..3 {
            cached.ask(&request(value));
        }
        cached.pass(3);
        let first = cached.ask(&request(1));
        assert_eq!(field(&first, "X-Cache"), "REVALIDATED");
        for value in [0, 2] {
            let other = cached.ask(&request(value));
            assert_eq!(
                (field(&other, "X-Cache"), content(&other)),
                (renewed, "x"),
                "{tag}"
            );
        }
    }
}

#[test]
fn the_answer_to_a_head_renews_what_it_agrees_with_and_makes_stale_what_it_does_not() {
    for (head, expected) in [
        (
            "200 OK\r\nETag: \"a\"\r\nContent-Length: 5\r\nX-Own: new\r\nCache-Control: max-age=9\r\n",
            ("HIT", "new"),
        ),
        (
            "200 OK\r\nETag: \"a\"\r\nX-Own: new\r\nCache-Control: max-age=9\r\n",
            ("HIT", "new"),
        ),
        (
            "200 OK\r\nETag: \"b\"\r\nContent-Length: 5\r\nX-Own: new\r\nCache-Control: max-age=9\r\n",
            ("EXPIRED", "old"),
        ),
        (
            "200 OK\r\nETag: \"a\"\r\nContent-Length: 6\r\nX-Own: new\r\nCache-Control: max-age=9\r\n",
            ("EXPIRED", "old"),
        ),
        (
            "404 Not Found\r\nContent-Length: 5\r\nX-Own: new\r\n",
            ("HIT", "old"),
        ),
        (
            "200 OK\r\nETag: \"a\"\r\nCache-Control: no-store\r\n",
            ("HIT", "old"),
        ),
    ] {
        let mut cached = Cached::new(RFC, move |_, request| {
            vec![match request.starts_with("HEAD") {
                true => send(&format!("HTTP/1.1 {head}\r\n")),
                false => with(
                    "ETag: \"a\"\r\nX-Own: old\r\nCache-Control: max-age=6\r\n",
                    "01234",
                ),
            }]
        });
        cached.outcome("/a");
        cached.pass(2);
        let asks = "HEAD /a HTTP/1.1\r\nHost: a\r\nCache-Control: no-cache\r\n\r\n";
        cached.ask(asks);
        assert_eq!(cached.asked(), 2);
        let answer = cached.ask(&get("/a"));
        assert_eq!(
            (field(&answer, "X-Cache"), field(&answer, "X-Own")),
            expected,
            "{head}"
        );
        assert_eq!(content(&answer), "01234");
    }
}

#[test]
fn a_head_that_was_asked_before_what_is_kept_came_tells_nothing_of_it() {
    let mut cached = Cached::new(RFC, |_, request| match request.starts_with("HEAD") {
        true => vec![
            Act::Wait(Duration::from_secs(4)),
            send(
                "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nX-Own: late\r\nCache-Control: max-age=60\r\n\r\n",
            ),
        ],
        false => vec![with(
            "ETag: \"a\"\r\nX-Own: own\r\nCache-Control: max-age=6\r\n",
            "01234",
        )],
    });
    let head = cached.server.connect();
    head.send("HEAD /a HTTP/1.1\r\nHost: a\r\nCache-Control: no-cache\r\n\r\n");
    cached.pass(2);
    assert_eq!(cached.outcome("/a"), "MISS");
    cached.pass(3);
    assert!(head.received().starts_with(b"HTTP/1.1 200"));
    let answer = cached.ask(&get("/a"));
    assert_eq!(
        (field(&answer, "X-Cache"), field(&answer, "X-Own")),
        ("HIT", "own")
    );
}

#[test]
fn an_answer_for_other_fields_is_told_as_the_reason() {
    for rules in ["", "cache_rules rfc9111;"] {
        let directives =
            format!("{rules} cache_status mill; location / {{ proxy_pass http://app; }}");
        let mut cached = Cached::new(&directives, |_, _| {
            vec![with("Vary: X-V\r\nCache-Control: max-age=5\r\n", "x")]
        });
        let mut ask = |value: &str| {
            let answer = cached.ask(&format!(
                "GET /a HTTP/1.1\r\nHost: a\r\nX-V: {value}\r\n\r\n"
            ));
            field(&answer, "Cache-Status").to_owned()
        };
        assert_eq!(ask("1"), "mill;fwd=uri-miss;stored");
        assert_eq!(ask("2"), "mill;fwd=vary-miss;stored");
        assert!(ask("1").starts_with("mill;hit"));
    }
}
