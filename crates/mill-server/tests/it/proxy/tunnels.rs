//! Connections that carry anything after 101.

use super::origin::{Act, send};
use super::{Proxy, content};
use crate::server::{SECOND, one_server};
use mill_server::worker::Order;
use mill_sim::client::Client;
use std::time::Duration;

const UPGRADES: &str = "location / { proxy_pass http://app; proxy_http_version 1.1;
    proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; proxy_read_timeout 10s; }";
const REQUEST: &str = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";
pub(super) const SWITCH: &str =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";

#[test]
fn bytes_go_both_ways_after_101() {
    let mut proxy = Proxy::new(UPGRADES, |_, _| vec![send(SWITCH), Act::Echo]);
    let client = proxy.server.connect();
    client.send(REQUEST);
    proxy.server.run();
    let answer = String::from_utf8_lossy(&client.take_received()).into_owned();
    assert!(
        answer.starts_with("HTTP/1.1 101 Switching Protocols\r\n"),
        "{answer}"
    );
    assert!(
        answer.contains("\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n"),
        "{answer}"
    );
    assert_eq!(content(&answer), "");
    for _ in 0..3 {
        client.send("some bytes");
        proxy.server.run();
        assert_eq!(client.take_received(), b"some bytes");
    }
    assert_eq!(proxy.access_log(), [""; 0]);
    client.finish();
    proxy.server.run();
    assert!(client.is_closed());
    assert_eq!(proxy.access_log(), ["101 10.0.0.2:80 101 30"]);
    proxy.server.assert_nothing_left(0);
}

/// A tunnel, just begun, to a server that does these acts behind its 101.
fn tunnel_to(acts: &'static [fn() -> Act]) -> (Proxy, Client) {
    let script = |_: usize, _: &str| {
        let acts = acts.iter().map(|act| act());
        [send(SWITCH)].into_iter().chain(acts).collect()
    };
    let proxy = Proxy::new(UPGRADES, script);
    let client = proxy.server.connect();
    client.send(REQUEST);
    (proxy, client)
}

/// A tunnel ends so long after the last byte in either direction, and not before.
#[track_caller]
fn assert_ends_at(proxy: &mut Proxy, client: &Client, seconds: u32) {
    proxy
        .server
        .run_to(seconds * SECOND - Duration::from_millis(100));
    assert_eq!(proxy.server.streams(), 2);
    proxy
        .server
        .run_to(seconds * SECOND + Duration::from_millis(100));
    assert!(client.is_closed());
    proxy.server.assert_nothing_left(0);
    assert_eq!(proxy.access_log().len(), 1);
}

#[test]
fn an_idle_tunnel_ends_after_the_read_timeout() {
    let (mut proxy, client) = tunnel_to(&[|| Act::Hang]);
    assert_ends_at(&mut proxy, &client, 10);
}

#[test]
fn a_byte_in_either_direction_keeps_a_tunnel() {
    let (mut proxy, client) = tunnel_to(&[|| Act::Hang]);
    client.at(6 * SECOND).send("x");
    assert_ends_at(&mut proxy, &client, 16);
    let (mut proxy, client) = tunnel_to(&[|| Act::Wait(6 * SECOND), || send("x"), || Act::Hang]);
    assert_ends_at(&mut proxy, &client, 16);
}

#[test]
fn a_tunnel_has_a_timeout_of_its_own_where_one_is_written() {
    let directives = UPGRADES.replace(
        "proxy_read_timeout",
        "proxy_tunnel_timeout 90s; proxy_read_timeout",
    );
    let mut proxy = Proxy::new(&directives, |_, _| vec![send(SWITCH), Act::Echo]);
    let client = proxy.server.connect();
    client.send(REQUEST);
    assert_ends_at(&mut proxy, &client, 90);
}

#[test]
fn a_half_closed_tunnel_ends_after_the_read_timeout() {
    let (mut proxy, client) = tunnel_to(&[|| Act::Wait(30 * SECOND)]);
    client.at(SECOND).finish();
    assert_ends_at(&mut proxy, &client, 10);
    let (mut proxy, client) = tunnel_to(&[|| Act::Finish, || Act::Hang]);
    assert_ends_at(&mut proxy, &client, 10);
}

#[test]
fn bytes_still_go_to_a_client_that_has_sent_fin() {
    let (mut proxy, client) =
        tunnel_to(&[|| Act::Wait(3 * SECOND), || send("late"), || Act::Close]);
    proxy.server.run_to(SECOND);
    client.finish();
    proxy.server.run_to(2 * SECOND);
    assert!(!client.is_closed());
    proxy.server.run_to(4 * SECOND);
    assert!(client.is_closed() && !client.was_reset());
    assert!(client.received().ends_with(b"\r\n\r\nlate"));
    assert_eq!(proxy.access_log(), ["101 10.0.0.2:80 101 4"]);
}

#[test]
fn bytes_still_go_to_a_server_that_has_sent_fin() {
    let (mut proxy, client) = tunnel_to(&[|| Act::Finish, || Act::Hang]);
    proxy.server.run_to(SECOND);
    client.send("late");
    proxy.server.run_to(2 * SECOND);
    assert_eq!(*proxy.seen.bytes_behind.borrow(), 4);
    assert_eq!(proxy.server.streams(), 2);
    client.finish();
    proxy.server.run_to(3 * SECOND);
    proxy.server.assert_nothing_left(0);
}

#[test]
fn a_reset_ends_a_half_closed_tunnel_at_once() {
    let (mut proxy, client) = tunnel_to(&[|| Act::Wait(30 * SECOND)]);
    client.at(SECOND).finish();
    client.at(2 * SECOND).reset();
    proxy.server.run_to(3 * SECOND);
    assert_eq!(proxy.access_log(), ["101 10.0.0.2:80 101 0"]);
    let (mut proxy, client) = tunnel_to(&[|| Act::Wait(2 * SECOND), || Act::Reset]);
    client.at(SECOND).finish();
    proxy.server.run_to(3 * SECOND);
    assert_eq!(proxy.access_log(), ["101 10.0.0.2:80 101 0"]);
    let error = "recv() failed (104: Connection reset by peer) while proxying upgraded connection";
    assert!(proxy.server.has_logged(error));
}

#[test]
fn no_other_protocol_is_switched_to_than_the_server_was_asked_for() {
    // The client asks, and the configuration does not pass it on.
    let directives = "location / { proxy_pass http://app; proxy_http_version 1.1; }";
    let mut proxy = Proxy::new(directives, |_, _| vec![send(SWITCH), Act::Echo]);
    let answer = proxy.ask(REQUEST);
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert!(!proxy.asked()[0].contains("Upgrade"));
}

#[test]
fn a_tunnel_waits_for_no_request_and_makes_no_room() {
    let mut proxy = Proxy::new(UPGRADES, |_, _| vec![send(SWITCH), Act::Echo]);
    let client = proxy.server.connect();
    client.send(REQUEST);
    proxy.server.run();
    let counters = proxy.server.counters();
    assert_eq!(
        (counters.connections_waiting, counters.connections_writing),
        (0, 1)
    );
    client.finish();
    proxy.server.run();
    proxy.server.assert_nothing_left(0);
}

#[test]
fn the_file_of_a_tunnels_request_goes_when_the_tunnel_ends() {
    let directives =
        format!("client_body_temp_path /temp; client_body_in_file_only clean; {UPGRADES}");
    let mut proxy = Proxy::new(&directives, |_, _| vec![send(SWITCH), Act::Hang]);
    let client = proxy.server.connect();
    client.send(
        "POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\nContent-Length: 1\r\n\r\nx",
    );
    proxy.server.run();
    assert_eq!(proxy.server.files().names("/temp"), ["0000000001"]);
    client.finish();
    proxy.server.run();
    assert!(client.is_closed());
    assert_eq!(proxy.server.files().names("/temp"), [""; 0]);
}

/// A tunnel to a server that sends back what it gets.
fn tunnel() -> (Proxy, Client) {
    let mut proxy = Proxy::new(UPGRADES, |_, _| vec![send(SWITCH), Act::Echo]);
    let client = proxy.server.connect();
    client.send(REQUEST);
    proxy.server.run();
    assert!(client.take_received().starts_with(b"HTTP/1.1 101 "));
    (proxy, client)
}

fn assert_echoes(proxy: &mut Proxy, client: &Client) {
    client.send("some bytes");
    proxy.server.run();
    assert_eq!(client.take_received(), b"some bytes");
}

#[test]
fn a_tunnel_survives_a_reload_that_takes_its_server_away() {
    let (mut proxy, client) = tunnel();
    proxy.server.adopt(&one_server(""));
    proxy.server.run();
    assert_echoes(&mut proxy, &client);
    client.finish();
    proxy.server.run();
    assert_eq!(proxy.access_log(), ["101 10.0.0.2:80 101 10"]);
    proxy.server.assert_nothing_left(0);
}

#[test]
fn a_worker_that_ends_waits_for_tunnels() {
    let (mut proxy, client) = tunnel();
    proxy.server.order(|| Order::Drain { limit: None });
    proxy.server.run_to(5 * SECOND);
    assert_echoes(&mut proxy, &client);
    assert!(!proxy.server.workers[0].has_ended());
    client.finish();
    proxy.server.run();
    assert!(proxy.server.workers[0].has_ended());
    assert_eq!(proxy.access_log(), ["101 10.0.0.2:80 101 10"]);
}

#[test]
fn a_worker_that_ends_waits_for_tunnels_no_longer_than_worker_shutdown_timeout() {
    let (mut proxy, client) = tunnel();
    let limit = Some(5 * SECOND);
    proxy.server.order(|| Order::Drain { limit });
    proxy.server.run_to(4 * SECOND);
    assert_echoes(&mut proxy, &client);
    proxy.server.run_to(6 * SECOND);
    assert!(proxy.server.workers[0].has_ended() && client.is_closed());
}

#[test]
fn a_tunnel_ends_only_when_all_of_it_has_arrived() {
    let big = String::from_utf8(crate::server::big().to_vec()).expect("text");
    let expected = big.clone();
    let mut proxy = Proxy::new(UPGRADES, move |_, _| {
        vec![send(SWITCH), send(&big), Act::Close]
    });
    let client = proxy.server.connect();
    client.read_at_rate(50_000).send(REQUEST);
    proxy.server.run_to(SECOND);
    client.finish();
    proxy.server.run_until_idle();
    assert!(client.received().ends_with(expected.as_bytes()));
}

#[test]
fn a_tunnel_is_under_way_in_its_zones_until_it_ends() {
    let directives = format!("status_zone s; {UPGRADES}").replace("/ {", "/ { status_zone l;");
    let mut proxy = Proxy::new(&directives, |_, _| vec![send(SWITCH), Act::Echo]);
    let client = proxy.server.connect();
    client.send(REQUEST);
    proxy.server.run();
    client.send("some bytes");
    proxy.server.run();
    let zones = |proxy: &Proxy| {
        let zones = &proxy.server.site.zones;
        let all = zones.servers().chain(zones.locations());
        let all = all.map(|zone| {
            let figures = zone.figures();
            let counts = (figures.requests, figures.processing, figures.discarded);
            (counts, figures.by_class(), figures.sent_bytes)
        });
        all.collect::<Vec<_>>()
    };
    assert_eq!(
        zones(&proxy),
        [((1, 1, 0), [0; 5], 0), ((0, 0, 0), [0; 5], 0)]
    );
    client.finish();
    proxy.server.run();
    let sent = client.received().len() as u64;
    let expected = ((1, 0, 0), [1, 0, 0, 0, 0], sent);
    assert_eq!(zones(&proxy), [expected, expected]);
}
