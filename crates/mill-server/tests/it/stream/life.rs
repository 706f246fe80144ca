//! How sessions begin and end: rules, `return`, headers of the PROXY protocol, reloads.

use super::peer::Act;
use super::{A, B, Passing, in_stream};
use crate::server::{ADDRESS, SECOND, Server};
use mill_server::worker::Order;
use mill_sim::world::World;

#[test]
fn a_text_is_returned_and_the_connection_closed() {
    let text = in_stream(&format!(
        "server {{ listen {ADDRESS}; set $a \"you are $remote_addr\"; return '$a at $server_port\n'; }}"
    ));
    let mut server = Server::configured(World::new(1), &text, 1);
    let client = server.connect();
    server.run();
    assert_eq!(client.received(), b"you are 198.51.100.1 at 80\n");
    assert!(client.is_closed() && !client.was_reset());
    assert!(
        server.logs.lines("/sessions.log")[0].starts_with("198.51.100.1 TCP 200 0/27 0.000 - ")
    );
    server.assert_nothing_left(0);
}

#[test]
fn clients_are_admitted_by_rules() {
    let mut passing = Passing::new("deny 198.51.100.0/24; allow all;", vec![Act::Echo]);
    let client = passing.connect();
    client.send("hi");
    passing.server.run();
    assert!(client.ended_at().is_some());
    assert_eq!(client.received(), b"");
    assert_eq!(passing.seen.connections(), 0);
    assert!(passing.sessions()[0].starts_with("198.51.100.1 TCP 403 0/0 "));
    assert!(
        passing
            .server
            .has_logged("access forbidden by rule while initializing session, client: 198.51.100.1, server: 10.0.0.1:80")
    );
    assert_eq!(passing.server.counters().sessions_refused, 1);
}

#[test]
fn a_header_of_the_proxy_protocol_tells_the_client_and_is_passed_on() {
    let text = in_stream(&format!(
        "server {{ listen {ADDRESS} proxy_protocol; set_real_ip_from 198.51.100.0/24; proxy_pass {A}; proxy_protocol on; }}"
    ));
    let mut passing = Passing::configured(&text, vec![Act::ReadAll]);
    let client = passing.connect();
    client.send("PROXY TCP4 192.0.2.7 192.0.2.8 4000 443\r\nhello");
    passing.server.run();
    assert_eq!(
        String::from_utf8_lossy(&passing.seen.received(0)),
        "PROXY TCP4 192.0.2.7 10.0.0.1 4000 80\r\nhello"
    );
    client.finish();
    passing.server.run();
    assert!(
        passing.sessions()[0].starts_with("192.0.2.7 TCP 200 5/0 "),
        "{:?}",
        passing.sessions()
    );

    let broken = passing.connect();
    broken.send("hello\r\n");
    passing.server.run();
    assert!(broken.is_closed());
    assert!(passing.server.has_logged(
        "broken header: \"hello\" while reading PROXY protocol, client: 198.51.100.1, server: 10.0.0.1:80"
    ));
    passing.server.assert_nothing_left(0);
}

#[test]
fn a_session_keeps_its_server_when_the_configuration_changes() {
    let mut passing = Passing::new("", vec![Act::Echo]);
    let other = passing.add(B, vec![Act::Echo]);
    let before = passing.connect();
    before.send("1");
    passing.server.run();
    passing.server.adopt(&in_stream(&format!(
        "server {{ listen {ADDRESS}; proxy_pass {B}; }}"
    )));
    passing.server.run();
    let after = passing.connect();
    after.send("2");
    before.send("3");
    passing.server.run();
    assert_eq!(
        (before.received(), after.received()),
        (b"13".to_vec(), b"2".to_vec())
    );
    assert_eq!(
        (passing.seen.received(0), other.received(0)),
        (b"13".to_vec(), b"2".to_vec())
    );
    // Neither does it end when its listener goes.
    passing.server.adopt("events { }");
    before.send("4");
    passing.server.run();
    assert_eq!(before.received(), b"134");
    before.finish();
    after.finish();
    passing.server.run();
    passing.server.assert_nothing_left(0);
}

#[test]
fn an_address_may_go_over_from_http_to_stream_and_back() {
    let mut passing = Passing::new("", vec![Act::Echo]);
    let http = crate::server::one_server("return 200 http;");
    passing.server.adopt(&http);
    passing.server.run();
    let answer = passing.server.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"));
    passing.server.adopt(&in_stream(&format!(
        "server {{ listen {ADDRESS}; proxy_pass {A}; }}"
    )));
    passing.server.run();
    let client = passing.connect();
    client.send("GET / HTTP/1.1\r\n\r\n");
    passing.server.run();
    assert_eq!(client.received(), b"GET / HTTP/1.1\r\n\r\n");
}

#[test]
fn a_worker_that_drains_waits_for_its_sessions() {
    let mut passing = Passing::new("", vec![Act::Echo]);
    let client = passing.connect();
    passing.server.run();
    passing.server.order(|| Order::Drain { limit: None });
    passing.server.run();
    client.send("still here");
    passing.server.run();
    assert_eq!(client.received(), b"still here");
    assert!(!passing.server.workers[0].has_ended());
    client.finish();
    passing.server.run();
    assert!(passing.server.workers[0].has_ended());

    let mut passing = Passing::new("", vec![Act::Echo]);
    let client = passing.connect();
    passing.server.run();
    passing.server.order(|| Order::Drain {
        limit: Some(5 * SECOND),
    });
    passing.server.run_to(4 * SECOND);
    assert!(!client.is_closed());
    passing.server.run_to(6 * SECOND);
    assert!(client.is_closed() && passing.server.workers[0].has_ended());
}

#[test]
fn sessions_count_among_the_connections_of_a_worker() {
    let text = format!(
        "error_log /error.log info; events {{ worker_connections 4; }} stream {{ server {{ listen {ADDRESS}; proxy_pass {A}; }} }}"
    );
    let mut passing = Passing::configured(&text, vec![Act::Echo]);
    let clients: Vec<_> = (0..6).map(|_| passing.connect()).collect();
    passing.server.run();
    assert_eq!(passing.seen.connections(), 4);
    assert!(
        passing
            .server
            .has_logged("4 worker_connections are not enough")
    );
    clients[0].finish();
    passing.server.run();
    assert!(passing.seen.connections() > 4);
}

#[test]
fn connections_to_servers_come_from_the_bound_address() {
    let mut passing = Passing::new(
        "proxy_bind 10.0.0.77; proxy_socket_keepalive on;",
        vec![Act::Echo],
    );
    let _client = passing.connect();
    passing.server.run();
    assert!(passing.seen.peers.borrow()[0].starts_with("10.0.0.77:"));
    assert!(passing.server.world.opened_last().keepalive);
    let mut passing = Passing::new("proxy_bind $remote_addr transparent;", vec![Act::Echo]);
    let _client = passing.connect();
    passing.server.run();
    assert!(passing.seen.peers.borrow()[0].starts_with("198.51.100.1:"));
    assert!(passing.server.world.opened_last().transparent);
}

#[test]
fn servers_of_groups_are_counted() {
    let text = format!(
        "{} http {{ server {{ listen 10.0.0.1:81; location / {{ millstream_metrics; }} }} }}",
        in_stream(&format!(
            "upstream u {{ server {B}; server {A}; }} server {{ listen {ADDRESS}; proxy_pass u; }}"
        ))
    );
    let mut passing = Passing::configured(&text, vec![Act::Echo]);
    let client = passing.connect();
    client.send("hello");
    passing.server.run();
    client.finish();
    passing.server.run();
    let asked = passing.server.world.connect("10.0.0.1:81");
    asked.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    passing.server.run();
    let text = String::from_utf8_lossy(&asked.received()).into_owned();
    let labels = format!("{{upstream=\"u\",server=\"{A}\"}}");
    for line in [
        format!("millstream_stream_upstream_connections_total{labels} 1\n"),
        format!("millstream_stream_upstream_sent_bytes_total{labels} 5\n"),
        format!("millstream_stream_upstream_received_bytes_total{labels} 5\n"),
        format!("millstream_stream_upstream_active{labels} 0\n"),
        format!("millstream_stream_upstream_connect_seconds_count{labels} 1\n"),
        format!("millstream_stream_upstream_session_seconds_count{labels} 1\n"),
        format!("millstream_stream_upstream_fails_total{{upstream=\"u\",server=\"{B}\"}} 1\n"),
        String::from("millstream_sessions_total{worker=\"0\"} 1\n"),
        String::from("millstream_session_bytes_received_total{worker=\"0\"} 5\n"),
    ] {
        assert!(text.contains(&line), "{line}: {text}");
    }
    assert!(!text.contains("millstream_upstream_up{"));
}
