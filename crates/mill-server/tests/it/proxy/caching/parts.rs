//! Parts of answers under the RFC's rules: kept, and put together (RFC 9111 3.3, 3.4).

use super::super::origin::{Act, send};
use super::{Cached, content, field};

/// What a client asks for reaches the origin.
const PASSED: &str = "cache_rules rfc9111; cache_status mill; location / { proxy_pass http://app; proxy_cache_max_range_offset 0; }";

/// Twenty-five bytes.
const WHOLE: &str = "0123456789abcdefghijABCDE";

fn ranged(range: &str, fields: &str) -> String {
    let range = match range {
        "" => String::new(),
        range => format!("Range: bytes={range}\r\n"),
    };
    format!("GET /a HTTP/1.1\r\nHost: a\r\n{range}{fields}\r\n")
}

/// What is asked for of `WHOLE`, with these fields.
fn part(request: &str, fields: &str) -> Act {
    let range = field(request, "Range").strip_prefix("bytes=");
    let Some((first, last)) = range.and_then(|range| range.split_once('-')) else {
        return send(&format!(
            "HTTP/1.1 200 OK\r\n{fields}Content-Length: 25\r\n\r\n{WHOLE}"
        ));
    };
    let (start, end) = match (first, last) {
        ("", last) => (25 - last.parse::<usize>().expect("a number"), 25),
        (first, "") => (first.parse().expect("a number"), 25),
        (first, last) => (
            first.parse().expect("a number"),
            last.parse::<usize>().expect("a number").min(24) + 1,
        ),
    };
    let bytes = &WHOLE[start..end];
    send(&format!(
        "HTTP/1.1 206 Partial Content\r\n{fields}Content-Range: bytes {start}-{}/25\r\nContent-Length: {}\r\n\r\n{bytes}",
        end - 1,
        bytes.len(),
    ))
}

fn with_fields(fields: &'static str) -> Cached {
    Cached::new(PASSED, move |_, request| vec![part(request, fields)])
}

const TAGGED: &str = "ETag: \"a\"\r\nCache-Control: max-age=10\r\n";

/// What these ranges, one after the other, come to: `h` is answered by the cache, `f` by the origin.
fn outcomes(cached: &mut Cached, ranges: &[(&str, &str)]) -> String {
    let mut found = String::new();
    for (range, expected) in ranges {
        let known = cached.asked();
        let answer = cached.ask(&ranged(range, ""));
        assert_eq!(content(&answer), *expected, "{range} {answer}");
        found.push(if cached.asked() == known { 'h' } else { 'f' });
    }
    found
}

#[test]
fn what_was_asked_for_once_answers_for_all_that_is_within() {
    for (ranges, expected) in [
        (
            &[
                ("5-9", "56789"),
                ("5-9", "56789"),
                ("6-7", "67"),
                ("4-5", "45"),
            ][..],
            "fhhf",
        ),
        // One after the other, and overlapping.
        (
            &[
                ("5-9", "56789"),
                ("10-12", "abc"),
                ("8-11", "89ab"),
                ("5-12", "56789abc"),
            ],
            "ffhh",
        ),
        (
            &[
                ("5-12", "56789abc"),
                ("8-15", "89abcdef"),
                ("5-15", "56789abcdef"),
            ],
            "ffh",
        ),
        (
            &[
                ("8-9", "89"),
                ("5-15", "56789abcdef"),
                ("8-9", "89"),
                ("5-6", "56"),
            ],
            "ffhh",
        ),
        (
            &[("5-9", "56789"), ("12-14", "cde"), ("5-14", "56789abcde")],
            "fff",
        ),
        // The end counts from the length that the parts tell.
        (
            &[
                ("20-24", "ABCDE"),
                ("-3", "CDE"),
                ("22-", "CDE"),
                ("23-99", "DE"),
                ("-6", "jABCDE"),
            ],
            "fhhhf",
        ),
        // All of it makes the whole.
        (
            &[
                ("0-9", "0123456789"),
                ("10-", "abcdefghijABCDE"),
                ("", WHOLE),
            ],
            "ffh",
        ),
        (&[("0-9", "0123456789"), ("", WHOLE), ("3-4", "34")], "ffh"),
    ] {
        let mut cached = with_fields(TAGGED);
        assert_eq!(outcomes(&mut cached, ranges), expected, "{ranges:?}");
    }
}

#[test]
fn an_answer_of_parts_is_as_one_of_the_whole() {
    let mut cached = with_fields(TAGGED);
    cached.ask(&ranged("0-9", ""));
    cached.pass(3);
    cached.ask(&ranged("10-24", ""));
    cached.pass(2);
    let answer = cached.ask(&ranged("8-11", ""));
    assert!(
        answer.starts_with("HTTP/1.1 206 Partial Content\r\n"),
        "{answer}"
    );
    let fields = [
        "Content-Range",
        "Content-Length",
        "ETag",
        "Age",
        "Cache-Status",
    ];
    let found = fields.map(|name| field(&answer, name));
    assert_eq!(
        found,
        ["bytes 8-11/25", "4", "\"a\"", "5", "mill;hit;ttl=5"]
    );
    let answer = cached.ask(&ranged("", ""));
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let found = fields.map(|name| field(&answer, name));
    assert_eq!(found, ["", "25", "\"a\"", "5", "mill;hit;ttl=5"]);
    let not_modified = cached.ask(&ranged("", "If-None-Match: \"a\"\r\n"));
    assert!(not_modified.starts_with("HTTP/1.1 304"), "{not_modified}");
    // The first part is stale, and answers nothing; the second one is not.
    cached.pass(6);
    let late = cached.ask(&ranged("8-11", ""));
    assert_eq!(field(&late, "Cache-Status"), "mill;fwd=partial;stored");
}

#[test]
fn a_part_that_could_not_be_put_together_with_others_is_not_kept() {
    for (fields, expected) in [
        ("ETag: \"a\"\r\nCache-Control: max-age=10\r\n", "fh"),
        (
            "Last-Modified: Thu, 01 Jan 2015 00:00:00 GMT\r\nCache-Control: max-age=10\r\n",
            "fh",
        ),
        ("ETag: W/\"a\"\r\nCache-Control: max-age=10\r\n", "ff"),
        ("Cache-Control: max-age=10\r\n", "ff"),
        ("ETag: \"a\"\r\nCache-Control: no-store\r\n", "ff"),
        ("ETag: \"a\"\r\nCache-Control: private\r\n", "ff"),
        (
            "ETag: \"a\"\r\nCache-Control: max-age=10\r\nVary: *\r\n",
            "ff",
        ),
    ] {
        let mut cached = with_fields(fields);
        let found = outcomes(&mut cached, &[("5-9", "56789"), ("5-9", "56789")]);
        assert_eq!(found, expected, "{fields}");
    }
}

#[test]
fn parts_of_two_states_are_never_put_together() {
    let mut cached = Cached::new(PASSED, |number, request| {
        let fields = match number {
            0 => "ETag: \"a\"\r\nCache-Control: max-age=10\r\n",
            _ => "ETag: \"b\"\r\nCache-Control: max-age=10\r\n",
        };
        vec![part(request, fields)]
    });
    let ranges = [
        ("0-9", "0123456789"),
        ("10-14", "abcde"),
        ("8-11", "89ab"),
        ("0-1", "01"),
    ];
    // The part of the former state is gone with the first one of the new.
    assert_eq!(outcomes(&mut cached, &ranges), "ffff");
}

#[test]
fn conditions_and_variants_decide_about_parts_too() {
    let mut cached = with_fields("ETag: \"a\"\r\nVary: X-V\r\nCache-Control: max-age=10\r\n");
    for (fields, expected) in [
        ("X-V: 1\r\n", "f"),
        ("X-V: 1\r\n", "h"),
        ("X-V: 2\r\n", "f"),
        ("X-V: 1\r\nIf-Range: \"a\"\r\n", "h"),
        ("X-V: 1\r\nCache-Control: no-cache\r\n", "f"),
        ("X-V: 1\r\nIf-Range: \"b\"\r\n", "f"),
    ] {
        let known = cached.asked();
        cached.ask(&ranged("5-9", fields));
        let found = if cached.asked() == known { "h" } else { "f" };
        assert_eq!(found, expected, "{fields}");
    }
}

#[test]
fn a_purge_and_a_change_take_the_parts_too() {
    for change in ["PURGE /a", "PURGE /*", "PURGE-TAG /", "DELETE /a"] {
        let directives = format!(
            "proxy_cache_key $uri; cache_tags Surrogate-Key; proxy_cache_purge $http_x_purge; {PASSED}"
        );
        let mut cached = Cached::new(&directives, |_, request| {
            vec![part(
                request,
                "Surrogate-Key: t\r\nETag: \"a\"\r\nCache-Control: max-age=10\r\n",
            )]
        });
        assert_eq!(
            outcomes(&mut cached, &[("5-9", "56789"), ("5-9", "56789")]),
            "fh"
        );
        let (method, path) = change.split_once(' ').expect("a method and a path");
        let fields = match method {
            "PURGE" => "X-Purge: 1\r\n",
            "PURGE-TAG" => "X-Purge: 1\r\nSurrogate-Key: t\r\n",
            _ => "",
        };
        cached.ask(&format!(
            "{method} {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n"
        ));
        assert_eq!(outcomes(&mut cached, &[("5-9", "56789")]), "f", "{change}");
    }
}

#[test]
fn slices_are_parts_where_the_rfcs_rules_hold() {
    let directives = "cache_rules rfc9111; location / { slice 10; proxy_pass http://app; proxy_set_header Range $slice_range; }";
    let mut cached = Cached::new(directives, |_, request| vec![part(request, TAGGED)]);
    let ranges = [
        ("12-13", "cd"),
        ("", WHOLE),
        ("", WHOLE),
        ("8-11", "89ab"),
        ("-3", "CDE"),
    ];
    assert_eq!(outcomes(&mut cached, &ranges), "ffhhh");
    assert_eq!(cached.asked(), 3);
}

#[test]
fn a_part_of_another_length_than_it_says_is_not_kept() {
    let mut cached = Cached::new(PASSED, |_, _| {
        let head =
            format!("HTTP/1.1 206 Partial Content\r\n{TAGGED}Content-Range: bytes 5-9/25\r\n");
        vec![send(&format!("{head}Content-Length: 3\r\n\r\n567"))]
    });
    assert_eq!(
        outcomes(&mut cached, &[("5-9", "567"), ("5-9", "567")]),
        "ff"
    );
}

#[test]
fn nginxs_rules_keep_a_206_as_any_other_answer() {
    let directives = "proxy_cache_valid 206 10s; location / { proxy_pass http://app; proxy_cache_key $uri$http_range; proxy_set_header Range $http_range; }";
    let mut cached = Cached::new(directives, |_, request| vec![part(request, "")]);
    let ranges = [("5-9", "56789"), ("5-9", "56789"), ("6-7", "67")];
    assert_eq!(outcomes(&mut cached, &ranges), "fhf");
}

#[test]
fn a_part_on_its_way_answers_for_what_is_within_and_the_origin_is_asked_once() {
    let directives = "cache_rules rfc9111; location / { slice 10; proxy_pass http://app; proxy_cache_key $uri$slice_range; proxy_set_header Range $slice_range; }";
    for (directives, range, expected) in [(PASSED, "5-14", "56789abcde"), (directives, "", WHOLE)] {
        let mut cached = Cached::new(directives, |_, request| {
            let Act::Send(bytes) = part(request, TAGGED) else {
                return Vec::new();
            };
            let (first, rest) = bytes.split_at(bytes.len() - 3);
            let wait = Act::Wait(std::time::Duration::from_secs(1));
            vec![Act::Send(first.to_vec()), wait, Act::Send(rest.to_vec())]
        });
        let mut clients = Vec::new();
        for _ in 0..3 {
            let client = cached.server.connect();
            client.send(ranged(range, ""));
            clients.push(client);
            let elapsed = cached.server.world.elapsed() + std::time::Duration::from_millis(100);
            cached.server.run_to(elapsed);
        }
        cached.pass(6);
        for client in &clients {
            let answer = String::from_utf8_lossy(&client.received()).into_owned();
            assert_eq!(content(&answer), expected, "{range}");
        }
        let slices = if range.is_empty() { 3 } else { 1 };
        assert_eq!(cached.asked(), slices, "{range}");
    }
}
