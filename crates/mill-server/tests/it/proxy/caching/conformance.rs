//! RFC 9111 and its kin, requirement by requirement: two requests for one target, some seconds apart, and what becomes of the
//! second one.

use super::super::origin::send;
use super::{Cached, field, with};
use std::fmt::Write as _;

/// A line a case: the clause; the fields of the origin's answer; those of the first request; seconds; those of the second
/// request; and what becomes of that: `hit`, `forwarded`, `validated` (the origin says 304), or a status. Fields are divided
/// by `;`, in which `,` stays; `-` is none.
const CASES: &str = include_str!("conformance.txt");

fn lines(fields: &str) -> String {
    let mut text = String::new();
    for line in fields.split(';').map(str::trim).filter(|line| *line != "-") {
        write!(text, "{line}\r\n").expect("a string takes all");
    }
    text
}

/// What becomes of the second request.
fn second(columns: &[&str]) -> String {
    let &[_, answer, first, seconds, second, _] = columns else {
        panic!("six columns: {columns:?}");
    };
    let answer = lines(answer);
    let etag = field(&answer, "ETag").to_owned();
    let modified = field(&answer, "Last-Modified").to_owned();
    let directives = "cache_rules rfc9111; cache_status mill; cache_targeted Mill-Cache-Control;
         location / { proxy_pass http://app; proxy_set_header X-Number ''; }";
    let mut cached = Cached::new(directives, move |_, request| {
        let is_same = |name: &str, own: &str| !own.is_empty() && field(request, name) == own;
        if is_same("If-None-Match", &etag) || is_same("If-Modified-Since", &modified) {
            return vec![send("HTTP/1.1 304 Not Modified\r\n\r\n")];
        }
        vec![with(&answer, "x")]
    });
    let request = |fields: &str| format!("GET /a HTTP/1.1\r\nHost: a\r\n{}\r\n", lines(fields));
    cached.ask(&request(first));
    let before = cached.asked();
    cached.pass(seconds.parse().expect("seconds"));
    let answer = cached.ask(&request(second));
    let status = answer.get(9..12).unwrap_or_default();
    if status != "200" {
        return status.to_owned();
    }
    let requests = cached.seen.requests.borrow();
    match requests.get(before..).unwrap_or_default() {
        [] => "hit",
        [asked] if asked.contains("If-None-Match") || asked.contains("If-Modified-Since") => {
            "validated"
        }
        [_] => "forwarded",
        _ => "asked more than once",
    }
    .to_owned()
}

#[test]
fn each_requirement_on_two_requests_is_met() {
    let mut failed = String::new();
    let cases = CASES
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut count = 0;
    for case in cases {
        let columns: Vec<&str> = case.split('|').map(str::trim).collect();
        let found = second(&columns);
        count += 1;
        if columns.last() != Some(&&*found) {
            writeln!(failed, "{case}\n    found: {found}").expect("a string takes all");
        }
    }
    assert!(failed.is_empty(), "\n{failed}");
    assert!(count > 100, "{count} cases");
}

#[test]
fn a_change_of_a_target_takes_what_is_kept_of_it_and_of_those_it_names() {
    for (method, status, fields, gone) in [
        ("POST", 200, "", "/a"),
        ("PUT", 204, "", "/a"),
        ("DELETE", 200, "", "/a"),
        ("PATCH", 303, "Location: /b\r\n", "/a /b"),
        (
            "POST",
            201,
            "Location: http://a/b\r\nContent-Location: /c?d\r\n",
            "/a /b /c?d",
        ),
        ("POST", 201, "Location: http://other/b\r\n", "/a"),
        ("POST", 201, "Location: b\r\n", "/a /b"),
        ("POST", 400, "Location: /b\r\n", ""),
        ("POST", 500, "", ""),
        ("OPTIONS", 200, "", ""),
        ("UNKNOWN", 200, "", "/a"),
    ] {
        let mut cached = Cached::new(
            "cache_rules rfc9111; location / { proxy_pass http://app; }",
            move |_, request| match request.starts_with("GET") {
                true => vec![with("Cache-Control: max-age=100\r\n", "x")],
                false => vec![send(&format!(
                    "HTTP/1.1 {status} Done\r\n{fields}Content-Length: 0\r\n\r\n"
                ))],
            },
        );
        let paths = ["/a", "/b", "/c?d"];
        for path in paths {
            cached.outcome(path);
        }
        cached.ask(&format!(
            "{method} /a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"
        ));
        let missing = paths.map(|path| (path, cached.outcome(path)));
        let missing: Vec<&str> = missing
            .iter()
            .filter(|(_, outcome)| outcome == "MISS")
            .map(|(path, _)| *path)
            .collect();
        assert_eq!(missing.join(" "), gone, "{method} {status} {fields}");
    }
}

#[test]
fn a_304_that_forbids_to_keep_an_answer_takes_it_away() {
    let mut cached = Cached::new(
        "cache_rules rfc9111; location / { proxy_pass http://app; }",
        |number, _| match number {
            1 => vec![send(
                "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nCache-Control: no-store\r\n\r\n",
            )],
            _ => vec![with("ETag: \"a\"\r\nCache-Control: max-age=1\r\n", "x")],
        },
    );
    assert_eq!(cached.outcome("/a"), "MISS");
    cached.pass(3);
    assert_eq!(cached.outcome("/a"), "REVALIDATED");
    assert_eq!(cached.outcome("/a"), "MISS");
}
