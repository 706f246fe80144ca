//! Fast connections leave other ones their turns.

use super::origin::{Act, ok, send};
use super::{ORIGIN, Proxy, get};
use crate::server::SECOND;
use mill_sim::client::Client;
use mill_sim::link::{Link, Segments};
use mill_sim::world::Until;
use std::rc::Rc;

/// Bytes that several turns carry.
const HUGE: usize = 16 << 20;

const SWITCH: &str =
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n";

/// A proxy over links that take everything at once, with a kept connection to its server. `/small` has a small answer.
fn proxy(settings: &str) -> Proxy {
    let directives = format!(
        "client_max_body_size 0; client_body_temp_path /temp; proxy_http_version 1.1;
         proxy_set_header Connection $http_connection; proxy_set_header Upgrade $http_upgrade;
         location / {{ proxy_pass http://app; {settings} }} location /small {{ return 200 small; }}"
    );
    let upstream = format!("server {ORIGIN}; keepalive 1;");
    let mut proxy = Proxy::with_upstream(&upstream, &directives, |_, request| {
        if request.contains("Upgrade: x") {
            return vec![send(SWITCH), Act::Hang];
        }
        vec![ok("x")]
    });
    proxy.server.world.set_link(Link {
        window_bytes: 2 * HUGE as u64,
        segments: Segments::UpTo(1 << 20),
        ..Link::IDEAL
    });
    proxy.ask(&get("/"));
    proxy
}

/// Sends this on the client's connection, and asks for `/small`; returns what `measure` says at the end of the round of
/// turns in which the small answer comes.
fn when_small_is_answered(
    proxy: &mut Proxy,
    large: &Client,
    sent: &[u8],
    measure: impl Fn() -> usize,
) -> usize {
    let small = proxy.server.connect();
    proxy.server.run();
    large.send(sent);
    small.send(get("/small"));
    let mut measured = None;
    proxy.server.run_each(Until::Quiet, || {
        if measured.is_none() && !small.received().is_empty() {
            measured = Some(measure());
        }
    });
    measured.expect("it is answered")
}

fn large_request() -> Vec<u8> {
    let head = format!("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: {HUGE}\r\n\r\n");
    [head.as_bytes(), &vec![b'x'; HUGE]].concat()
}

#[test]
fn content_that_is_stored_leaves_other_clients_their_turns() {
    let mut proxy = proxy("");
    let (large, files) = (proxy.server.connect(), proxy.server.files().clone());
    let stored = when_small_is_answered(&mut proxy, &large, &large_request(), || {
        files.disk_bytes_peak()
    });
    assert!(stored < HUGE / 2, "{stored} bytes are in the file");
    assert_eq!(files.disk_bytes_peak(), HUGE);
}

#[test]
fn content_that_is_passed_on_leaves_other_clients_their_turns() {
    let mut proxy = proxy("proxy_request_buffering off;");
    let (large, seen) = (proxy.server.connect(), Rc::clone(&proxy.seen));
    let requests = when_small_is_answered(&mut proxy, &large, &large_request(), || {
        seen.requests.borrow().len()
    });
    assert_eq!(requests, 1, "the first one");
    assert_eq!(proxy.asked().len(), 2);
}

#[test]
fn what_a_program_writes_to_standard_error_leaves_other_clients_their_turns() {
    let record = |kind: u8, content: &str| {
        let len = u16::try_from(content.len()).expect("it fits a record");
        let [high, low] = len.to_be_bytes();
        let head = [1, kind, 0, 1, high, low, 0, 0];
        format!("{}{content}", std::str::from_utf8(&head).expect("ASCII"))
    };
    // The lengths are ASCII: the origin sends text.
    let noise = record(7, &"x".repeat(0x7f7f)).repeat(HUGE / 0x7f7f);
    let answer = record(6, "Status: 200 OK\r\n\r\n");
    let end = record(3, "\0\0\0\0\0\0\0\0");
    for text in [
        format!("{noise}{answer}{end}"),
        format!("{answer}{noise}{end}"),
    ] {
        let directives = "location / { fastcgi_pass app; fastcgi_param A b; }
             location /small { return 200 small; }";
        let mut proxy = Proxy::new(directives, |_, _| Vec::new());
        proxy.hint(&text);
        proxy.server.world.set_link(Link {
            window_bytes: 2 * HUGE as u64,
            segments: Segments::UpTo(1 << 20),
            ..Link::delayed(SECOND)
        });
        let (large, small) = (proxy.server.connect(), proxy.server.connect());
        proxy.server.run();
        large.send(get("/"));
        // It arrives with what the program has written: after a handshake, the request, and the way back.
        let logs = proxy.server.logs.clone();
        small
            .at(proxy.server.world.elapsed() + 4 * SECOND)
            .send(get("/small"));
        let mut first = None;
        proxy.server.run_each(Until::Quiet, || {
            let lines = logs.lines("/access.log");
            if first.is_none() && !lines.is_empty() {
                first = Some(lines);
            }
        });
        assert_eq!(first.expect("both are answered"), ["200 - - -"]);
        assert_eq!(proxy.access_log().len(), 2);
    }
}

#[test]
fn a_tunnel_leaves_other_clients_their_turns() {
    let mut proxy = proxy("");
    let (large, seen) = (proxy.server.connect(), Rc::clone(&proxy.seen));
    large.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n");
    proxy.server.run();
    assert!(large.received().starts_with(b"HTTP/1.1 101 "));
    let carried = when_small_is_answered(&mut proxy, &large, &vec![b'x'; HUGE], || {
        *seen.bytes_behind.borrow()
    });
    assert!(carried < HUGE / 2, "{carried} bytes were carried");
    assert_eq!(*seen.bytes_behind.borrow(), HUGE);
}
