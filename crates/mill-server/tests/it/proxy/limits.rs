//! How much of an answer is read, and how fast.

use super::origin::{Act, ok, send};
use super::{ORIGIN, Proxy, content, get};
use crate::server::{BIG_BYTES, MS, SECOND, big};

fn large(directives: &str) -> Proxy {
    let content = std::str::from_utf8(big()).expect("it is ASCII");
    let directives =
        format!("proxy_temp_path /temp; location / {{ proxy_pass http://app; {directives} }}");
    Proxy::new(&directives, move |_, _| vec![ok(content)])
}

/// Bytes of a large answer that a client has received after half a second, and after each of the next seconds.
fn received(directives: &str, path: &str, seconds: usize) -> Vec<usize> {
    let mut proxy = large(directives);
    let client = proxy.server.connect();
    client.send(get(path));
    let mut counts = Vec::new();
    for second in 0..seconds {
        let second = u32::try_from(second).expect("it is small");
        proxy.server.run_to(SECOND * second + SECOND / 2);
        counts.push(client.received().len());
    }
    counts
}

#[test]
fn an_answer_is_read_at_the_limited_rate() {
    const RATE: usize = 100_000;
    let limits = ["proxy_limit_rate 100000;", "proxy_limit_rate $arg_rate;"];
    for directive in limits {
        let counts = received(directive, "/?rate=100000", 4);
        for (second, count) in counts.iter().enumerate() {
            let head = 1000;
            let at_most = RATE * (second + 1) + head;
            assert!(
                (RATE * second..at_most).contains(count),
                "{directive} {counts:?}"
            );
        }
        assert_eq!(counts[3] - counts[2], RATE);
    }
}

#[test]
fn nothing_is_limited_without_a_rate_or_without_buffering() {
    for directive in [
        "proxy_limit_rate 0;",
        "proxy_limit_rate $arg_none;",
        "proxy_limit_rate 1k; proxy_buffering off;",
    ] {
        let counts = received(directive, "/", 1);
        assert!(counts[0] > BIG_BYTES, "{directive} {counts:?}");
    }
}

#[test]
fn the_rate_holds_also_while_the_client_does_not_read() {
    let mut proxy = large("proxy_limit_rate 100000;");
    let client = proxy.server.connect();
    client.stop_reading().send(get("/"));
    proxy.server.run_to(SECOND * 3 + SECOND / 2);
    assert_eq!(proxy.server.streams(), 2, "the answer is not whole yet");
    proxy.server.run_to(SECOND * 15);
    assert_eq!(proxy.server.streams(), 1, "it is read without the client");
    client.read_on();
    proxy.server.run_until_idle();
    assert!(client.received().ends_with(big()));
}

#[test]
fn a_pause_of_the_limit_is_no_timeout_of_the_server() {
    let mut proxy = large("proxy_limit_rate 300000; proxy_read_timeout 100ms;");
    let client = proxy.server.connect();
    client.send(get("/"));
    proxy.server.run_until_idle();
    assert!(client.received().ends_with(big()));
}

const HEAD: &str = "HTTP/1.1 200 OK\r\nETag: \"e\"\r\nAccept-Ranges: bytes\r\n";

/// The answer to a request with these field lines, of an origin that sends `acts`.
fn ranged(directives: &str, fields: &str, acts: Vec<Act>) -> (String, Proxy) {
    let directives = format!(
        "location / {{ proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ''; {directives} }}"
    );
    let upstream = format!("server {ORIGIN}; keepalive 1;");
    let mut proxy = Proxy::with_upstream(&upstream, &directives, move |_, _| acts.clone());
    let client = proxy.server.connect();
    client.send(format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n"));
    proxy.server.run_to(SECOND);
    (
        String::from_utf8_lossy(&client.received()).into_owned(),
        proxy,
    )
}

#[test]
fn a_range_is_cut_out_of_what_arrives() {
    let check = |fields: &str, status: &str, expected: &str| {
        let parts = ["01", "2345", "678", "9"];
        let acts = parts.map(|part| [send(part), Act::Wait(MS)]).concat();
        let head = send(&format!("{HEAD}Content-Length: 10\r\n\r\n"));
        let acts = [vec![head], acts].concat();
        let (answer, _) = ranged("proxy_force_ranges on;", fields, acts);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{fields} {answer}"
        );
        assert_eq!(content(&answer), expected, "{fields}");
        let count = answer.matches("Accept-Ranges: bytes").count();
        assert_eq!(count, usize::from(status == "200"), "{fields}");
    };
    check("Range: bytes=2-4", "206", "234");
    check("Range: bytes=0-0", "206", "0");
    check("Range: bytes=-1", "206", "9");
    check("Range: bytes=5-", "206", "56789");
    check("Range: bytes=0-9", "206", "0123456789");
    check("Range: bytes=1-2\r\nIf-Range: \"e\"", "206", "12");
    check("Range: bytes=1-2\r\nIf-Range: \"f\"", "200", "0123456789");
    // Of what comes once, in its order, there is one range.
    check("Range: bytes=1-2,4-5", "200", "0123456789");
}

#[test]
fn a_range_outside_of_the_content_is_refused() {
    let acts = vec![send(&format!("{HEAD}Content-Length: 3\r\n\r\nabc"))];
    let (answer, _) = ranged("proxy_force_ranges on;", "Range: bytes=3-", acts);
    assert!(answer.starts_with("HTTP/1.1 416 "), "{answer}");
    assert!(
        answer.contains("\r\nContent-Range: bytes */3\r\n"),
        "{answer}"
    );
}

#[test]
fn the_page_of_a_refused_range_has_the_fields_of_the_server_once_and_is_not_compressed() {
    let date = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    let fields = format!("Server: origin\r\n{date}Content-Encoding: br\r\nX-Kept: 1\r\n");
    let check = |directives: &str, expected: [usize; 2]| {
        let acts = vec![send(&format!("{HEAD}{fields}Content-Length: 3\r\n\r\nabc"))];
        let directives = format!("proxy_force_ranges on; {directives}");
        let (answer, _) = ranged(&directives, "Range: bytes=3-", acts);
        assert!(answer.starts_with("HTTP/1.1 416 "), "{answer}");
        let count = |text: &str| answer.matches(text).count();
        assert_eq!([count("Server: origin\r\n"), count(date)], expected);
        let once = ["\r\nServer: ", "\r\nDate: ", "\r\nX-Kept: 1"].map(count);
        assert_eq!((once, count("Content-Encoding")), ([1; 3], 0), "{answer}");
    };
    check("", [0, 0]);
    check("proxy_pass_header Server; proxy_pass_header Date;", [1, 1]);
}

#[test]
fn ranges_are_the_servers_where_they_are_not_forced_or_its_length_is_unknown() {
    let length = "Content-Length: 3\r\n\r\nabc";
    let chunked = "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    for (directive, rest) in [("", length), ("proxy_force_ranges on;", chunked)] {
        let acts = vec![send(&format!("{HEAD}{rest}"))];
        let (answer, _) = ranged(directive, "Range: bytes=0-0", acts);
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert!(content(&answer).contains("abc"));
    }
    let partial =
        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-1/9\r\nContent-Length: 2\r\n\r\nab";
    let acts = vec![send(partial)];
    let (answer, _) = ranged("proxy_force_ranges on;", "Range: bytes=0-0", acts);
    assert!(answer.starts_with("HTTP/1.1 206 "), "{answer}");
    assert_eq!(content(&answer), "ab");
}

#[test]
fn a_connection_is_kept_behind_a_range_only_if_its_answer_was_read_whole() {
    let check = |fields: &str, connections: usize| {
        let big = std::str::from_utf8(big()).expect("it is ASCII");
        let (answer, mut proxy) = ranged("proxy_force_ranges on;", fields, vec![ok(big)]);
        assert!(answer.starts_with("HTTP/1.1 206 "), "{answer}");
        proxy.ask("GET / HTTP/1.1\r\nHost: a\r\nRange: bytes=0-0\r\n\r\n");
        assert_eq!(*proxy.seen.connections.borrow(), connections, "{fields}");
    };
    check("Range: bytes=-1", 1);
    check("Range: bytes=0-1", 2);
}
