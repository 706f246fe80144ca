//! `slice`: answers that are asked for, and kept, in pieces.

use super::super::origin::{Act, send};
use super::{Cached, content, field};
use crate::proxy::get;
use std::fmt::Write as _;

const SLICED: &str =
    "location / { slice 10; proxy_pass http://app; proxy_cache_key $uri$slice_range;
     proxy_set_header Range $slice_range; proxy_cache_valid 200 206 10s; }";

/// Twenty-five bytes.
const WHOLE: &str = "0123456789abcdefghijABCDE";

/// What the origin has: `WHOLE` under a tag.
fn part(tag: &str, request: &str) -> Act {
    let range = field(request, "Range").strip_prefix("bytes=");
    let Some((first, last)) = range.and_then(|range| range.split_once('-')) else {
        return whole();
    };
    let (first, last): (usize, usize) = (
        first.parse().expect("a number"),
        last.parse().expect("a number"),
    );
    let end = (last + 1).min(WHOLE.len());
    if first >= end {
        return send(
            "HTTP/1.1 416 Too Far\r\nContent-Range: bytes */25\r\nContent-Length: 0\r\n\r\n",
        );
    }
    told(
        tag,
        &format!("bytes {first}-{}/25", end - 1),
        &WHOLE[first..end],
    )
}

fn told(tag: &str, range: &str, content: &str) -> Act {
    let len = content.len();
    send(&format!(
        "HTTP/1.1 206 Partial Content\r\nContent-Type: text/plain\r\nETag: \"{tag}\"\r\nContent-Range: {range}\r\nContent-Length: {len}\r\n\r\n{content}"
    ))
}

fn whole() -> Act {
    send(&format!(
        "HTTP/1.1 200 OK\r\nContent-Length: 25\r\n\r\n{WHOLE}"
    ))
}

fn with_ranges() -> Cached {
    Cached::new(SLICED, |_, request| vec![part("a", request)])
}

/// The ranges that the origin was asked for, since the first `known` requests.
fn asked(cached: &Cached, known: usize) -> String {
    let requests = cached.seen.requests.borrow();
    let mut text = String::new();
    for request in requests.iter().skip(known) {
        let range = field(request, "Range").trim_start_matches("bytes=");
        write!(text, "{range} ").expect("a string takes all");
    }
    text
}

fn ranged(fields: &str) -> String {
    format!("GET /a HTTP/1.1\r\nHost: a\r\n{fields}\r\n")
}

#[test]
fn a_whole_answer_is_put_together_of_slices_that_are_kept_each_by_itself() {
    for workers in [1, 2] {
        let mut cached =
            Cached::with_workers(workers, SLICED, |_, request| vec![part("a", request)]);
        for outcome in ["MISS", "HIT", "HIT"] {
            let answer = cached.ask(&get("/a"));
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
            assert_eq!(field(&answer, "Content-Length"), "25");
            assert_eq!(field(&answer, "Content-Range"), "");
            assert_eq!(field(&answer, "Accept-Ranges"), "bytes");
            assert_eq!(
                (field(&answer, "X-Cache"), content(&answer)),
                (outcome, WHOLE)
            );
        }
        assert_eq!(asked(&cached, 0), "0-9 10-19 20-29 ", "{workers} workers");
    }
}

#[test]
fn a_range_needs_its_own_slices_alone() {
    for (fields, status, expected, slices) in [
        ("Range: bytes=0-4\r\n", 206, "01234", "0-9 "),
        ("Range: bytes=12-13\r\n", 206, "cd", "10-19 "),
        ("Range: bytes=8-11\r\n", 206, "89ab", "0-9 10-19 "),
        ("Range: bytes=10-19\r\n", 206, "abcdefghij", "10-19 "),
        ("Range: bytes=19-\r\n", 206, "jABCDE", "10-19 20-29 "),
        ("Range: bytes=24-99\r\n", 206, "E", "20-29 "),
        // Where the end is, the first slice tells.
        ("Range: bytes=-2\r\n", 206, "DE", "0-9 20-29 "),
        (
            "Range: bytes=-12\r\n",
            206,
            "defghijABCDE",
            "0-9 10-19 20-29 ",
        ),
        ("Range: bytes=0-1,3-4\r\n", 200, WHOLE, "0-9 10-19 20-29 "),
        ("Range: items=3-4\r\n", 200, WHOLE, "0-9 10-19 20-29 "),
        (
            "Range: bytes=12-13\r\nIf-Range: \"a\"\r\n",
            206,
            "cd",
            "0-9 10-19 ",
        ),
        (
            "Range: bytes=12-13\r\nIf-Range: \"b\"\r\n",
            200,
            WHOLE,
            "0-9 10-19 20-29 ",
        ),
        ("If-None-Match: \"a\"\r\n", 304, "", "0-9 "),
    ] {
        let mut cached = with_ranges();
        let answer = cached.ask(&ranged(fields));
        let found = (answer.get(9..12), content(&answer), &*asked(&cached, 0));
        assert_eq!(
            found,
            (Some(&*status.to_string()), expected, slices),
            "{fields}"
        );
        let known = cached.asked();
        let again = cached.ask(&ranged(fields));
        assert_eq!(
            (content(&again), &*asked(&cached, known)),
            (expected, ""),
            "{fields}"
        );
    }
}

#[test]
fn slices_serve_requests_for_other_ranges() {
    let mut cached = with_ranges();
    cached.ask(&ranged("Range: bytes=12-13\r\n"));
    let answer = cached.ask(&ranged("Range: bytes=5-24\r\n"));
    assert_eq!(field(&answer, "Content-Range"), "bytes 5-24/25");
    assert_eq!(content(&answer), &WHOLE[5..]);
    assert_eq!(asked(&cached, 0), "10-19 0-9 20-29 ");
}

#[test]
fn what_is_no_slice_is_passed_on_or_ends_the_answer() {
    let check = |first: fn() -> Act, expected: &str| {
        let mut cached = Cached::new(SLICED, move |_, _| vec![first()]);
        let answer = cached.ask(&get("/a"));
        let status = answer.get(9..12).unwrap_or("closed");
        assert_eq!(status, expected, "{answer}");
    };
    check(whole, "200");
    check(
        || send("HTTP/1.1 416 No\r\nContent-Range: bytes */5\r\nContent-Length: 0\r\n\r\n"),
        "416",
    );
    check(
        || send("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"),
        "404",
    );
    check(|| told("a", "bytes 0-8/25", "012345678"), "closed");
    check(|| told("a", "bytes 1-9/25", "123456789"), "closed");
    check(|| told("a", "bytes 0-9/*", "0123456789"), "closed");
    check(|| told("a", "bytes 0-9", "0123456789"), "closed");
    check(|| told("a", "bytes 0-4/5", "01234"), "200");
}

#[test]
fn a_later_slice_that_does_not_fit_cuts_the_answer() {
    for (second, reason) in [
        ("b", "etag mismatch in slice response"),
        ("", "unexpected status code 200 in slice response"),
        ("short", "unexpected range in slice response: 10-15"),
        ("star", "no complete length in slice response"),
        ("longer", "unexpected range in slice response: 10-20"),
        ("500", "unexpected status code 500 in slice response"),
        ("reset", "unexpected status code 502 in slice response"),
    ] {
        let mut cached = Cached::new(SLICED, move |number, request| match (number, second) {
            (0, _) => vec![part("a", request)],
            (_, "") => vec![whole()],
            (_, "short") => vec![told("a", "bytes 10-14/25", "abcde")],
            (_, "star") => vec![told("a", "bytes 10-19/*", "abcdefghij")],
            (_, "longer") => vec![told("a", "bytes 10-19/30", "abcdefghij")],
            (_, "500") => vec![send("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")],
            (_, "reset") => vec![Act::Reset],
            (_, tag) => vec![part(tag, request)],
        });
        let client = cached.server.connect();
        client.send(get("/a"));
        cached.server.run();
        let received = String::from_utf8_lossy(&client.received()).into_owned();
        assert_eq!(content(&received), "0123456789", "{second}");
        assert!(
            client.is_closed(),
            "{second}: the client sees that it is cut"
        );
        let log = cached.server.error_log();
        let is_logged = cached.server.has_logged(reason);
        assert!(is_logged, "{second}: {log:?}");
    }
}

#[test]
fn a_head_tells_the_length_of_the_whole_and_asks_for_one_slice() {
    let mut cached = with_ranges();
    let answer = cached.ask("HEAD /a HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(field(&answer, "Content-Length"), "25");
    assert_eq!(asked(&cached, 0), "0-9 ");
}

#[test]
fn slices_need_no_cache_and_stay_in_other_requests_out_of_the_way() {
    let directives = "location / { slice 10; proxy_cache off; proxy_pass http://app; proxy_set_header Range $slice_range; }
         location /unnamed { slice 10; proxy_cache off; proxy_pass http://app; }
         location /none { proxy_cache off; proxy_pass http://app; proxy_set_header Range $slice_range; }";
    let mut cached = Cached::new(directives, |_, request| vec![part("a", request)]);
    assert_eq!(content(&cached.ask(&get("/a"))), WHOLE);
    assert_eq!(asked(&cached, 0), "0-9 10-19 20-29 ");
    for path in ["/unnamed", "/none"] {
        let known = cached.asked();
        assert_eq!(content(&cached.ask(&get(path))), WHOLE);
        assert_eq!(asked(&cached, known), " ", "{path}");
    }
    let known = cached.asked();
    let post = "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx";
    assert_eq!(content(&cached.ask(post)), WHOLE);
    assert_eq!(
        asked(&cached, known),
        " ",
        "what changes something is done once"
    );
}

#[test]
fn a_client_that_leaves_has_no_further_slices_asked_for() {
    let mut cached = Cached::new(SLICED, |number, request| {
        let wait = std::time::Duration::from_secs(if number == 1 { 1 } else { 0 });
        vec![Act::Wait(wait), part("a", request)]
    });
    let client = cached.server.connect();
    client.send(get("/a"));
    let elapsed = cached.server.world.elapsed() + std::time::Duration::from_millis(500);
    cached.server.run_to(elapsed);
    client.reset();
    cached.pass(5);
    assert_eq!(asked(&cached, 0), "0-9 10-19 ");
}

#[test]
fn a_large_answer_in_slices_is_compressed_as_a_whole() {
    let directives =
        "gzip on; gzip_types *; gzip_min_length 1; gzip_proxied any; ".to_owned() + SLICED;
    let mut cached = Cached::new(&directives, |_, request| vec![part("a", request)]);
    let client = cached.server.connect();
    client.send("GET /a HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
    cached.server.run();
    let received = client.received();
    let head = String::from_utf8_lossy(&received).into_owned();
    assert_eq!(field(&head, "Content-Encoding"), "gzip", "{head}");
    assert_eq!(field(&head, "ETag"), "W/\"a\"");
    assert_eq!(asked(&cached, 0), "0-9 10-19 20-29 ");
}
