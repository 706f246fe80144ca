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
        let mut cached = Cached::new(RFC, move |number, request| {
            // The first three are asked about what is kept for one another, too.
            vec![match number > 2 && request.contains("If-None-Match") {
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

/// The origin has two states, and says by `If-None-Match` which of them a language gets.
fn languages(request: &str) -> Vec<Act> {
    let tag = match field(request, "Accept-Language") {
        "de" | "at" => "\"german\"",
        _ => "\"english\"",
    };
    let fields = format!("ETag: {tag}\r\nVary: Accept-Language\r\nCache-Control: max-age=10\r\n");
    vec![match field(request, "If-None-Match").contains(tag) {
        true => not_modified(&fields),
        false => with(&fields, tag),
    }]
}

#[test]
fn a_304_says_which_of_several_variants_is_right_for_other_requests() {
    let mut cached = Cached::new(RFC, |_, request| languages(request));
    let mut ask = |language: &str| {
        let text = format!("GET /a HTTP/1.1\r\nHost: a\r\nAccept-Language: {language}\r\n\r\n");
        let answer = cached.ask(&text);
        let asked = conditions(&cached).last().cloned().unwrap_or_default();
        let told = field(&answer, "Cache-Status").to_owned();
        (content(&answer).to_owned(), told, asked)
    };
    let check = |found: (String, String, String), expected: [&str; 3]| {
        assert_eq!([&*found.0, &*found.1, &*found.2], expected);
    };
    let (german, english) = ("\"german\"", "\"english\"");
    check(ask("de"), [german, "mill;fwd=uri-miss;stored", ""]);
    check(ask("en"), [english, "mill;fwd=vary-miss;stored", german]);
    // Neither its content nor its fields come again.
    let (english_first, german_first) = ("\"english\", \"german\"", "\"german\", \"english\"");
    let told = "mill;fwd=vary-miss;fwd-status=304;ttl=10";
    check(ask("at"), [german, told, english_first]);
    check(ask("us"), [english, told, german_first]);
    for (language, expected) in [
        ("de", german),
        ("at", german),
        ("en", english),
        ("us", english),
    ] {
        let (content, told, _) = ask(language);
        assert_eq!(
            (&*content, &*told),
            (expected, "mill;hit;ttl=10"),
            "{language}"
        );
    }
    assert_eq!(cached.asked(), 4);
    // What is stale is asked about first, and a 304 renews all with the same tag.
    cached.pass(20);
    let mut ask = |language: &str| {
        let text = format!("GET /a HTTP/1.1\r\nHost: a\r\nAccept-Language: {language}\r\n\r\n");
        field(&cached.ask(&text), "X-Cache").to_owned()
    };
    assert_eq!(
        [ask("at"), ask("de"), ask("us")],
        ["REVALIDATED", "HIT", "REVALIDATED"]
    );
    assert_eq!(conditions(&cached)[4], german_first);
}

#[test]
fn variants_of_codings_without_tags_and_under_nginxs_rules_are_not_asked_about_for_others() {
    let nginx = "location / { proxy_pass http://app; proxy_cache_revalidate on; }";
    for (directives, fields) in [
        (RFC, "ETag: \"a\"\r\nVary: Accept-Encoding, X-V\r\n"),
        (RFC, "ETag: a\r\nVary: X-V\r\n"),
        (
            RFC,
            "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nVary: X-V\r\n",
        ),
        (nginx, "ETag: \"a\"\r\nVary: X-V\r\n"),
    ] {
        let mut cached = Cached::new(directives, move |_, _| {
            vec![with(&format!("{fields}Cache-Control: max-age=10\r\n"), "x")]
        });
        for value in 0..2 {
            cached.ask(&format!(
                "GET /a HTTP/1.1\r\nHost: a\r\nX-V: {value}\r\n\r\n"
            ));
        }
        assert_eq!(conditions(&cached), ["", ""], "{fields}");
    }
}

#[test]
fn a_304_that_names_no_variant_that_was_asked_about_has_the_server_asked_again() {
    let mut cached = Cached::new(RFC, |_, request| {
        let fields = "Vary: X-V\r\nCache-Control: max-age=10\r\n";
        vec![match field(request, "If-None-Match") {
            "" => with(
                &format!("ETag: \"{}\"\r\n{fields}", field(request, "X-V")),
                "x",
            ),
            _ => not_modified("ETag: \"other\"\r\n"),
        }]
    });
    for value in 0..2 {
        let answer = cached.ask(&format!(
            "GET /a HTTP/1.1\r\nHost: a\r\nX-V: {value}\r\n\r\n"
        ));
        assert_eq!(field(&answer, "ETag"), format!("\"{value}\""));
    }
    assert_eq!(conditions(&cached), ["", "\"0\"", ""]);
}
