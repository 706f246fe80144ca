//! Clients that leave before their answer is whole.

use super::origin::{self, Act, ok, send};
use super::{KEPT, ORIGIN, OTHER, Proxy, content, get};
use crate::server::SECOND;
use mill_sim::link::Link;

const EVENTS: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

/// A location with these settings before a server that never answers, whose tries are logged with bytes and times.
fn hanging(settings: &str) -> Proxy {
    let directives = format!(
        "location / {{ proxy_pass http://{OTHER}; access_log /access.log times; {settings} }}"
    );
    let mut proxy = Proxy::new(&directives, |_, _| Vec::new());
    // It accepts connections in the system's queue, and never runs.
    let (turn, _) = origin::start(&proxy.server.world, OTHER, |_, _| Vec::new());
    let mut kept = Some(turn);
    proxy.server.add_peer(Box::new(move || {
        kept.as_mut();
    }));
    proxy
}

#[test]
fn a_client_that_leaves_between_two_events_ends_the_answer() {
    for (settings, streams) in [("", 0), ("proxy_ignore_client_abort on;", 2)] {
        let directives = format!(
            "location / {{ proxy_pass http://app; access_log /access.log times; {settings} }}"
        );
        let mut proxy = Proxy::new(&directives, |_, _| {
            vec![send(EVENTS), send("5\r\ndata\n\r\n"), Act::Hang]
        });
        let client = proxy.server.connect();
        client.send(get("/"));
        proxy.server.run();
        assert!(client.received().ends_with(b"5\r\ndata\n\r\n"));
        client.at(SECOND).finish();
        proxy.server.run();
        assert_eq!(proxy.server.streams(), streams, "{settings}");
        if streams == 0 {
            assert_eq!(proxy.access_log(), ["200 200 1.000 48"]);
            assert!(proxy.server.has_logged(
                "client prematurely closed connection, so upstream connection is closed too while reading upstream"
            ));
            assert_eq!(proxy.server.counters().connections_reset, 1);
            proxy.server.assert_nothing_left(0);
        }
    }
}

#[test]
fn an_answer_that_ends_with_the_connection_is_reset_for_a_client_that_has_sent_fin() {
    let mut proxy = Proxy::new("location / { proxy_pass http://app; }", |_, _| {
        vec![send(EVENTS), send("5\r\ndata\n\r\n"), Act::Hang]
    });
    let client = proxy.server.connect();
    client.send("GET / HTTP/1.0\r\n\r\n");
    proxy.server.run();
    assert!(client.received().ends_with(b"\r\n\r\ndata\n"));
    client.at(SECOND).finish();
    proxy.server.run();
    // It may still read, and an orderly end would say that this is all.
    assert!(client.was_reset());
}

#[test]
fn a_client_that_leaves_while_its_server_is_connected_to_ends_the_try() {
    for (settings, expected) in [
        ("", &["499 - 1.000 0"][..]),
        ("proxy_ignore_client_abort on;", &[]),
    ] {
        let mut proxy = hanging(settings);
        let client = proxy.server.connect();
        proxy.server.run();
        proxy.server.world.set_link(Link::delayed(30 * SECOND));
        client.send(get("/"));
        proxy.server.run_to(SECOND);
        client.finish();
        proxy.server.run_to(2 * SECOND);
        assert_eq!(proxy.access_log(), expected, "{settings}");
    }
}

#[test]
fn a_client_that_leaves_while_its_content_is_sent_ends_the_try() {
    let mut proxy = hanging("client_max_body_size 9m; client_body_buffer_size 9m;");
    proxy.server.world.set_link(Link::with_window(200_000));
    let client = proxy.server.connect();
    let content = "x".repeat(400_000);
    client.send(format!(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 400000\r\n\r\n{content}"
    ));
    proxy.server.run_to(SECOND);
    assert_eq!(proxy.access_log(), [""; 0]);
    client.finish();
    proxy.server.run_to(2 * SECOND);
    assert_eq!(proxy.access_log(), ["499 - 1.000 200000"]);
}

#[test]
fn a_client_that_resets_its_connection_while_its_streamed_content_waits_ends_the_try() {
    for (settings, expected) in [
        ("", &["499 - 1.000 200000"][..]),
        ("proxy_ignore_client_abort on;", &[]),
    ] {
        let settings = format!(
            "client_max_body_size 9m; proxy_http_version 1.1; proxy_request_buffering off; {settings}"
        );
        let mut proxy = hanging(&settings);
        proxy.server.world.set_link(Link::with_window(200_000));
        let client = proxy.server.connect();
        // More than a server reads ahead of the one behind it: only the reset itself can tell.
        let content = "x".repeat(800_000);
        client.send(format!(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 800000\r\n\r\n{content}"
        ));
        proxy.server.run_to(SECOND);
        client.reset();
        proxy.server.run_to(2 * SECOND);
        assert_eq!(proxy.access_log(), expected, "{settings}");
    }
}

#[test]
fn no_other_server_is_tried_for_a_client_that_has_left() {
    let upstream = format!("server {ORIGIN}; server {ORIGIN};");
    let mut proxy =
        Proxy::with_upstream(&upstream, KEPT, |_, _| vec![Act::Wait(SECOND), Act::Reset]);
    let client = proxy.server.connect();
    client.send(get("/"));
    client.at(SECOND).finish();
    proxy.server.run_until_idle();
    assert_eq!(proxy.asked().len(), 1);
    assert!(proxy.access_log()[0].starts_with("499 "));
}

#[test]
fn a_client_that_sends_fin_behind_streamed_content_has_it_sent_whole() {
    let directives = "location / { proxy_pass http://app; proxy_http_version 1.1;
        proxy_request_buffering off; proxy_ignore_client_abort on; }";
    let mut proxy = Proxy::new(directives, |_, _| vec![ok("x")]);
    let body = "x".repeat(300_000);
    let client = proxy.server.connect();
    client.send(format!(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n{body}"
    ));
    client.finish();
    proxy.server.run();
    assert_eq!(content(&proxy.asked()[0]), body);
}

#[test]
fn a_client_that_leaves_within_its_content_is_400_as_with_nginx() {
    let gone = "client prematurely closed connection";
    for (settings, line, text) in [
        ("", String::from("400 - - -"), format!("{gone}, client: ")),
        (
            "proxy_request_buffering off;",
            format!("400 {ORIGIN} - 0"),
            format!("{gone} while sending request to upstream, client: "),
        ),
    ] {
        let directives = format!("location / {{ proxy_pass http://app; {settings} }}");
        let mut proxy = Proxy::new(&directives, |_, _| vec![ok("x")]);
        let client = proxy.server.connect();
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabc");
        proxy.server.run();
        client.finish();
        proxy.server.run();
        assert_eq!(proxy.access_log(), [line], "{settings}");
        assert!(proxy.server.has_logged(&text), "{settings}");
    }
}
