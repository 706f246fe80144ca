//! Servers that break off, are slow, or are all gone.

use super::origin::{Act, ok, send};
use super::{KEPT, ORIGIN, OTHER, Proxy, content, get};
use crate::server::SECOND;

/// What a client has received in the end of an origin that does this.
fn received(directives: &str, acts: Vec<Act>) -> (String, Proxy) {
    let directives =
        format!("location / {{ proxy_pass http://app; proxy_http_version 1.1; {directives} }}");
    let mut proxy = Proxy::new(&directives, move |_, _| acts.clone());
    let client = proxy.server.connect();
    client.send(get("/"));
    proxy.server.run_until_idle();
    let answer = String::from_utf8_lossy(&client.received()).into_owned();
    (answer, proxy)
}

/// The client can tell each of these from a whole answer.
#[test]
fn an_answer_that_is_reset_in_its_content_is_cut() {
    for (fields, end) in [
        ("Content-Length: 9\r\n\r\nabc", "\r\n\r\nabc"),
        (
            "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
            "\r\n3\r\nabc\r\n",
        ),
        ("Connection: close\r\n\r\nabc", "\r\n3\r\nabc\r\n"),
    ] {
        for settings in ["", "proxy_buffering off;", "gzip on; gzip_min_length 0;"] {
            let head = format!("HTTP/1.1 200 OK\r\n{fields}");
            let acts = vec![send(&head), Act::Wait(SECOND), Act::Reset];
            let (answer, proxy) = received(settings, acts);
            assert!(answer.ends_with(end), "{settings} {answer}");
            let line = "recv() failed (104: Connection reset by peer) while reading upstream";
            assert!(proxy.server.has_logged(line), "{fields}");
        }
    }
}

#[test]
fn a_kept_connection_that_was_reset_behind_its_answer_carries_no_other_request() {
    let upstream = format!("server {ORIGIN}; keepalive 4;");
    let mut proxy = Proxy::with_upstream(&upstream, KEPT, |number, _| {
        vec![ok(&number.to_string()), Act::Reset]
    });
    let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx";
    for (request, expected) in [(get("/").as_str(), "0"), (post, "1"), (post, "2")] {
        assert_eq!(content(&proxy.ask(request)), expected);
    }
    assert_eq!(proxy.asked().len(), 3);
    assert_eq!(*proxy.seen.connections.borrow(), 3);
}

#[test]
fn a_slow_server_is_waited_for_as_long_as_something_comes_every_read_timeout() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
    let drips = |gap| {
        let drip = |byte: char| [Act::Wait(gap), send(&byte.to_string())];
        answer.chars().flat_map(drip).collect::<Vec<_>>()
    };
    let settings = "proxy_read_timeout 5s; send_timeout 1h;";
    let (whole, _) = received(settings, drips(SECOND * 4));
    assert!(
        whole.starts_with("HTTP/1.1 200 ") && whole.ends_with("\r\n\r\nabc"),
        "{whole}"
    );
    let (late, proxy) = received(settings, drips(SECOND * 6));
    assert!(late.starts_with("HTTP/1.1 504 "), "{late}");
    assert!(
        proxy
            .server
            .has_logged("while reading response header from upstream")
    );
}

#[test]
fn a_server_that_falls_silent_in_its_content_has_its_answer_cut() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc";
    let acts = vec![send(head), Act::Wait(SECOND * 6), send("defghi"), Act::Hang];
    let (answer, proxy) = received("proxy_read_timeout 5s;", acts);
    assert!(answer.ends_with("\r\n\r\nabc"), "{answer}");
    let line = "upstream timed out (110: Connection timed out) while reading upstream";
    assert!(proxy.server.has_logged(line));
}

#[test]
fn where_all_servers_are_down_each_is_tried_and_then_none_until_fail_timeout_is_over() {
    let upstream = format!("server {OTHER}; server 10.0.0.4:80;");
    let mut proxy = Proxy::with_upstream(&upstream, KEPT, |_, _| Vec::new());
    for _ in 0..2 {
        assert!(proxy.ask(&get("/")).starts_with("HTTP/1.1 502 "));
    }
    assert_eq!(
        proxy.access_log(),
        [
            "502 10.0.0.3:80, 10.0.0.4:80 502, 502 0, 0",
            "502 app 502 0"
        ]
    );
    assert!(
        proxy
            .server
            .has_logged("no live upstreams while connecting to upstream")
    );
}
