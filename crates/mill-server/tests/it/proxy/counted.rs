//! What logs and variables tell of an upstream server's answer.

use super::origin::{Act, ok, send};
use super::{KEPT, ORIGIN, Proxy, content, get};

/// The columns that `log` adds to the access log, for one request.
fn logged(directives: &str, log: &str, acts: Vec<Act>) -> String {
    let directives = format!("log_format own '{log}'; access_log /own.log own; {directives}");
    let (http, server) = directives.split_at(directives.find("access_log").unwrap_or(0));
    let text = format!("server {ORIGIN}; }} {http} upstream unused {{ server {ORIGIN};");
    let mut proxy = Proxy::with_upstream(&text, server, move |_, _| acts.clone());
    proxy.ask(&get("/"));
    proxy.server.logs.lines("/own.log").join("|")
}

const LOG: &str = "$status $upstream_response_length $upstream_bytes_sent $upstream_bytes_received";

/// Bytes of the request that [`KEPT`] sends.
const SENT: usize = "GET / HTTP/1.1\r\nHost: app\r\n\r\n".len();

#[test]
fn the_length_of_chunks_is_that_behind_the_head() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunks = "3\r\nabc\r\n0\r\n\r\n";
    let (all, len) = (head.len() + chunks.len(), chunks.len());
    let found = logged(KEPT, LOG, vec![send(&format!("{head}{chunks}"))]);
    assert_eq!(found, format!("200 {len} {SENT} {all}"));
}

#[test]
fn a_try_that_fails_has_sent_and_received_bytes_too() {
    let check = |answer: &str, received: usize| {
        let found = logged(KEPT, LOG, vec![send(answer), Act::Close]);
        assert_eq!(found, format!("502 0 {SENT} {received}"), "{answer}");
    };
    check("", 0);
    check("HTTP/1.1 200", 12);
    check("no answer at all", 16);
    // No more than a head may have.
    check(&format!("HTTP/1.1 200 OK\r\nA: {}", "a".repeat(9000)), 4096);
}

#[test]
fn bytes_behind_an_answer_are_logged_and_counted() {
    let check = |answer: &str, text: &str, len: usize| {
        let bytes = answer.to_owned();
        let mut proxy = Proxy::new(KEPT, move |_, _| vec![send(&bytes)]);
        proxy.ask(&get("/"));
        let text = format!("upstream sent {text} while reading upstream");
        let log = proxy.server.error_log();
        assert_eq!(proxy.server.has_logged(&text), len > 0, "{answer} {log:?}");
        if len > 0 {
            let line = format!("200 {ORIGIN} 200 {len}");
            assert_eq!(proxy.access_log(), [line]);
        }
    };
    let length = "more data than specified in \"Content-Length\" header";
    let chunks = "data after final chunk";
    check(
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokmore",
        length,
        6,
    );
    check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", length, 0);
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    check(&format!("{chunked}more"), chunks, 9);
    check(chunked, chunks, 0);
}

#[test]
fn an_answer_that_is_cut_counts_what_was_sent() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc";
    let found = logged(
        KEPT,
        "$status $body_bytes_sent",
        vec![send(head), Act::Close],
    );
    assert_eq!(found, "200 3");
}

#[test]
fn a_connection_is_kept_behind_an_answer_without_content_that_leads_elsewhere() {
    let upstream = format!("server {ORIGIN}; keepalive 4;");
    let check = |length: usize, connections: usize| {
        let directives = format!("location /other {{ return 200 other; }} {KEPT}");
        let mut proxy = Proxy::with_upstream(&upstream, &directives, move |_, _| {
            let rest = "x".repeat(length);
            vec![send(&format!(
                "HTTP/1.1 200 OK\r\nX-Accel-Redirect: /other\r\nContent-Length: {length}\r\n\r\n{rest}"
            ))]
        });
        for _ in 0..2 {
            assert_eq!(content(&proxy.ask(&get("/"))), "other");
        }
        assert_eq!(*proxy.seen.connections.borrow(), connections, "{length}");
    };
    check(0, 1);
    check(1, 2);
}

#[test]
fn a_named_location_passes_the_target_on_as_it_was_sent() {
    let directives = "location / { rewrite ^/re /re/%20written; proxy_intercept_errors on; error_page 404 = @named;
            error_page 403 = /page; proxy_pass http://app; }
        location @named { proxy_pass http://app; }
        location /page { proxy_pass http://app; }";
    let mut proxy = Proxy::new(directives, |_, request| {
        let target = request.split(' ').nth(1).unwrap_or_default();
        match target {
            "/a/../403" => vec![send("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n")],
            _ if request.contains("X-First: 1") && target.contains("404") => {
                vec![send("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")]
            }
            target => vec![ok(target)],
        }
    });
    proxy.ask("GET /a/../404 HTTP/1.1\r\nHost: a\r\nX-First: 1\r\n\r\n");
    proxy.ask(&get("/a/../403"));
    let targets: Vec<String> = proxy
        .asked()
        .iter()
        .map(|asked| asked.split(' ').nth(1).unwrap_or_default().to_owned())
        .collect();
    assert_eq!(targets, ["/a/../404", "/a/../404", "/a/../403", "/page"]);
}
