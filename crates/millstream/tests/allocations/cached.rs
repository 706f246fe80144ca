//! What a hit of a cache allocates.

use super::{REQUESTS, allocations_of};

const REQUEST: &[u8] =
    b"GET /a?b HTTP/1.1\r\nHost: example.org\r\nUser-Agent: test\r\nAccept: */*\r\n\r\n";

/// The fewest allocations of a round of hits of content with so many bytes.
fn least(len: usize, directives: &str) -> u64 {
    let content = "x".repeat(len - 3);
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nETag: \"0123456789\"\r\n\
         X-Name: a value of more than thirty bytes\r\nContent-Length: {len}\r\n\r\n{content}end"
    );
    let http = "access_log off; proxy_cache_path /cache keys_zone=site:1m memory=8m disk=off;";
    let directives = format!("proxy_cache site; proxy_cache_valid 1h; {directives}");
    let request = (REQUEST, &b"\r\n\r\n"[..]);
    let answer = (answer.as_bytes(), &b"end"[..]);
    let counted = allocations_of(http, &directives, request, answer);
    counted.into_iter().min().unwrap()
}

#[test]
fn an_answer_that_is_kept_allocates_nothing() {
    for len in [1000, 20_000, 100_000] {
        for directives in [
            "",
            "status_zone site;",
            "cache_status edge;",
            "cache_rules rfc9111;",
        ] {
            let least = least(len, directives);
            assert_eq!(
                least, 0,
                "{len} bytes, {directives}: in rounds of {REQUESTS}"
            );
        }
    }
}

#[test]
fn a_hit_that_is_not_kept_ready_allocates_its_key_and_what_is_noted_of_it() {
    for (len, directives, expected) in [
        // Too long to be kept ready.
        (1_000_000, "", 2),
        (1_000_000, "proxy_cache_key $uri$is_args$args;", 2),
        // It depends on more than the requests that a kept one answers, which shows in a filter: beside the value, what it would
        // have been kept ready by is made in vain.
        (1000, "add_header X-Agent $http_user_agent;", 4),
    ] {
        // A round may begin or end an allocation early or late; one more for each request would be REQUESTS more.
        let most = expected * u64::from(REQUESTS) + u64::from(REQUESTS) / 10;
        let least = least(len, directives);
        assert!(
            least <= most,
            "{len} bytes, {directives}: {least}, at most {most}"
        );
    }
}
