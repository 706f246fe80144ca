//! Fast connections leave other ones their turns.

use super::origin::{Act, ok, send};
use super::{ORIGIN, Proxy, get};
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
