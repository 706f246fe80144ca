//! Answers that become useless together: groups (RFC 9875), and purges by the API.

use super::super::origin::send;
use super::{Cached, field, with};
use crate::proxy::get;

/// Answers to GET are of the groups that `?g=` names, divided by `+`; those to other methods invalidate them.
fn grouped(directives: &str) -> Cached {
    Cached::new(directives, |_, request| {
        let line = request.lines().next().unwrap_or_default();
        let target = line.split(' ').nth(1).unwrap_or_default();
        let groups = target.split_once("?g=").map_or("", |(_, groups)| groups);
        let names: Vec<String> = groups
            .split('+')
            .map(|name| format!("\"{name}\""))
            .collect();
        let names = names.join(", ");
        let status = if target.contains("bad") { 400 } else { 200 };
        vec![match request.starts_with("GET") {
            true => with(
                &format!("Cache-Groups: {names}\r\nCache-Control: max-age=100\r\n"),
                "x",
            ),
            false => send(&format!(
                "HTTP/1.1 {status} Done\r\nCache-Group-Invalidation: {names}\r\nContent-Length: 0\r\n\r\n"
            )),
        }]
    })
}

fn ask(cached: &mut Cached, method: &str, target: &str, host: &str) -> String {
    let answer = cached.ask(&format!(
        "{method} {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"
    ));
    field(&answer, "X-Cache").to_owned()
}

const RFC: &str =
    "proxy_cache_key $host$request_uri; location / { cache_rules rfc9111; proxy_pass http://app; }
    location /nginx { proxy_pass http://app; }";

#[test]
fn a_change_takes_the_groups_of_its_origin_that_its_answer_names() {
    let kept = [
        ("/1?g=a", "a"),
        ("/2?g=a+b", "a"),
        ("/3?g=c", "a"),
        ("/4", "a"),
        ("/1?g=a", "other"),
    ];
    for (method, target, host, gone) in [
        ("POST", "/?g=a", "a", "/1?g=a /2?g=a+b"),
        ("POST", "/?g=a", "A", "/1?g=a /2?g=a+b"),
        ("DELETE", "/?g=b+c", "a", "/2?g=a+b /3?g=c"),
        ("POST", "/?g=a", "third", ""),
        ("POST", "/bad?g=a", "a", ""),
        ("OPTIONS", "/?g=a", "a", ""),
        ("POST", "/nginx?g=a", "a", ""),
        // What shares a group with the target goes with it.
        ("POST", "/1?g=a", "a", "/1?g=a /2?g=a+b"),
        ("POST", "/4", "a", "/4"),
    ] {
        let mut cached = grouped(RFC);
        for (target, host) in kept {
            ask(&mut cached, "GET", target, host);
        }
        ask(&mut cached, method, target, host);
        let missing = kept.map(|(target, host)| (target, ask(&mut cached, "GET", target, host)));
        let missing = missing.iter().filter(|(_, outcome)| outcome == "MISS");
        let missing: Vec<&str> = missing.map(|(target, _)| *target).collect();
        assert_eq!(missing.join(" "), gone, "{method} {target} {host}");
    }
}

#[test]
fn the_api_removes_by_key_prefix_host_and_tag() {
    let site = "proxy_cache_key $scheme://$http_host$request_uri; cache_tags Surrogate-Key;
        location / { proxy_pass http://app; } location /api { proxy_cache off; api write=on; }
        location /read { proxy_cache off; api; }";
    let kept = [("/a", "one"), ("/a/b", "one"), ("/b", "one"), ("/a", "two")];
    for (document, status, gone) in [
        (r#"{"key": "http://one/a"}"#, "204", "one/a"),
        (
            r#"{"key": ["http://one/a", "http://two/a"]}"#,
            "204",
            "one/a two/a",
        ),
        (r#"{"prefix": "http://one/a"}"#, "204", "one/a one/a/b"),
        (r#"{"host": "ONE"}"#, "204", "one/a one/a/b one/b"),
        (r#"{"tag": "t/b"}"#, "204", "one/b"),
        (r#"{"all": true}"#, "204", "one/a one/a/b one/b two/a"),
        (
            r#"{"key": "http://one/b", "host": "two"}"#,
            "204",
            "one/b two/a",
        ),
        (r#"{"key": "http://one/none"}"#, "204", ""),
        (r#"{"key": "http://one/a", "nosuch": "x"}"#, "400", ""),
        (r#"{"all": false}"#, "400", ""),
        (r#"{"key": 5}"#, "400", ""),
        (r#"{"key": ""}"#, "400", ""),
        ("[]", "400", ""),
        ("{}", "400", ""),
        ("{", "415", ""),
    ] {
        let mut cached = Cached::new(site, |_, request| {
            let path = request.split(' ').nth(1).unwrap_or_default();
            vec![with(
                &format!("Surrogate-Key: t{path}\r\nCache-Control: max-age=9\r\n"),
                "x",
            )]
        });
        for (target, host) in kept {
            ask(&mut cached, "GET", target, host);
        }
        let len = document.len();
        let call = |path: &str| {
            format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {len}\r\n\r\n{document}")
        };
        let answer = cached.ask(&call("/api/9/http/caches/one"));
        assert_eq!(answer.get(9..12), Some(status), "{document} {answer}");
        let missing =
            kept.map(|(target, host)| (target, host, ask(&mut cached, "GET", target, host)));
        let missing = missing.iter().filter(|(_, _, outcome)| outcome == "MISS");
        let missing: Vec<String> = missing
            .map(|(target, host, _)| format!("{host}{target}"))
            .collect();
        assert_eq!(missing.join(" "), gone, "{document}");
        let refused = cached.ask(&call("/read/9/http/caches/one"));
        assert_eq!(refused.get(9..12), Some("405"), "{refused}");
        let unknown = cached.ask(&call("/api/9/http/caches/two"));
        assert_eq!(unknown.get(9..12), Some("404"), "{unknown}");
    }
}

#[test]
fn a_purge_with_the_hosts_part_of_the_key_takes_all_of_the_host() {
    let site = "proxy_cache_key $host$request_uri; proxy_cache_purge $http_x_purge;
        location / { proxy_pass http://app; }";
    let mut cached = Cached::new(site, |_, _| vec![with("Cache-Control: max-age=9\r\n", "x")]);
    for host in ["one", "two"] {
        ask(&mut cached, "GET", "/a", host);
    }
    cached.ask("PURGE /* HTTP/1.1\r\nHost: one\r\nX-Purge: 1\r\n\r\n");
    assert_eq!(ask(&mut cached, "GET", "/a", "one"), "MISS");
    assert_eq!(ask(&mut cached, "GET", "/a", "two"), "HIT");
    assert!(cached.ask(&get("/a")).contains("MISS"));
}
