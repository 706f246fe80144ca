//! Bytes both ways.

use super::peer::Act;
use super::{Passing, payload};
use crate::server::{MS, SECOND};
use mill_sim::link::Link;

#[test]
fn bytes_go_both_ways_as_they_are() {
    let mut passing = Passing::new("", vec![Act::Echo]);
    let client = passing.connect();
    for piece in payload().chunks(100_000) {
        client.send(piece);
    }
    passing.server.run();
    assert!(client.received() == payload());
    assert!(passing.seen.received(0) == payload());
    client.finish();
    passing.server.run();
    assert!(client.is_closed() && !client.was_reset());
    let len = payload().len();
    let expected = format!("198.51.100.1 TCP 200 {len}/{len} 0.00");
    assert!(
        passing.sessions()[0].starts_with(&expected),
        "{:?}",
        passing.sessions()
    );
    let ended = format!(
        "client disconnected, bytes from/to client:{len}/{len}, bytes from/to upstream:{len}/{len}"
    );
    assert!(passing.server.has_logged(&ended));
    passing.server.assert_nothing_left(0);
    let counters = passing.server.counters();
    let counted = (counters.sessions, counters.session_bytes_received);
    assert_eq!(counted, (1, len as u64));
    assert_eq!(counters.session_bytes_sent, len as u64);
}

#[test]
fn the_server_may_speak_first_and_end_the_session() {
    let hello = b"220 ready\r\n".to_vec();
    let mut passing = Passing::new("", vec![Act::Send(hello.clone())]);
    let client = passing.connect();
    passing.server.run();
    assert_eq!(client.received(), hello);
    assert!(client.is_closed() && !client.was_reset());
    assert!(passing.server.has_logged(
        "upstream disconnected, bytes from/to client:0/11, bytes from/to upstream:11/0"
    ));
    passing.server.assert_nothing_left(0);
}

#[test]
fn the_end_of_one_direction_ends_both_unless_half_close_is_on() {
    let answer = || vec![Act::ReadAll, Act::Wait(SECOND), Act::Send(b"late".to_vec())];
    for (directives, expected) in [("", &b""[..]), ("proxy_half_close on;", b"late")] {
        let mut passing = Passing::new(directives, answer());
        let client = passing.connect();
        client.send("asked");
        passing.server.run_to(100 * MS);
        client.finish();
        passing.server.run_to(5 * SECOND);
        assert_eq!(passing.seen.received(0), b"asked", "{directives}");
        assert_eq!(client.received(), expected, "{directives}");
        assert!(client.is_closed(), "{directives}");
        passing.server.assert_nothing_left(0);
    }
}

#[test]
fn a_server_that_has_ended_its_direction_is_still_sent_to_with_half_close() {
    let acts = vec![Act::Send(b"done".to_vec()), Act::Finish, Act::ReadAll];
    let mut passing = Passing::new("proxy_half_close on;", acts);
    let client = passing.connect();
    passing.server.run_to(100 * MS);
    client.send("and more");
    passing.server.run_to(200 * MS);
    assert_eq!(passing.server.streams(), 2);
    client.finish();
    passing.server.run_to(SECOND);
    assert_eq!(client.received(), b"done");
    assert_eq!(passing.seen.received(0), b"and more");
    assert!(client.is_closed());
    passing.server.assert_nothing_left(0);
}

#[test]
fn a_reset_of_either_side_ends_the_session() {
    let mut passing = Passing::new("", vec![Act::ReadAll]);
    let client = passing.connect();
    client.send("x");
    passing.server.run();
    client.reset();
    passing.server.run();
    passing.server.assert_nothing_left(0);
    let line =
        "recv() failed (104: Connection reset by peer) while proxying and reading from client";
    assert!(
        passing.server.has_logged(line),
        "{:#?}",
        passing.server.error_log()
    );

    let mut passing = Passing::new("", vec![Act::Wait(SECOND), Act::Reset]);
    let client = passing.connect();
    passing.server.run_to(2 * SECOND);
    assert!(client.is_closed());
    let line =
        "recv() failed (104: Connection reset by peer) while proxying and reading from upstream";
    assert!(
        passing.server.has_logged(line),
        "{:#?}",
        passing.server.error_log()
    );
    passing.server.assert_nothing_left(0);
}

#[test]
fn a_side_that_takes_nothing_holds_the_other_back() {
    // What lies between the client and the server are the two windows, and the buffer of the session.
    let window = Link::IDEAL.window_bytes;
    let acts = vec![Act::Wait(SECOND), Act::ReadAll];
    let mut passing = Passing::new("proxy_buffer_size 4k;", acts);
    let client = passing.connect();
    client.send(payload());
    passing.server.run_to(SECOND - MS);
    let absorbed = payload().len() as u64 - client.unsent();
    let most = 2 * window + 2 * 4096;
    assert!((window..=most).contains(&absorbed), "{absorbed} {window}");
    passing.server.run_to(2 * SECOND);
    assert!(passing.seen.received(0) == payload());

    let acts = vec![Act::Send(payload()), Act::ReadAll];
    let mut passing = Passing::new("proxy_buffer_size 4k;", acts);
    let client = passing.connect();
    client.stop_reading();
    client.send("x");
    passing.server.run_to(SECOND);
    // The server is still sending, and has not come to reading.
    assert_eq!(passing.seen.received(0), b"");
    client.read_on();
    passing.server.run_to(2 * SECOND);
    assert!(client.received() == payload());
    assert_eq!(passing.seen.received(0), b"x");
}

#[test]
fn a_session_ends_so_long_after_its_last_byte() {
    let mut passing = Passing::new("proxy_timeout 10s;", vec![Act::Echo]);
    let client = passing.connect();
    client.at(6 * SECOND).send("x");
    passing.server.run_to(16 * SECOND - 100 * MS);
    assert!(!client.is_closed());
    passing.server.run_to(16 * SECOND + 100 * MS);
    assert!(client.is_closed());
    let line = "connection timed out (110: Connection timed out) while proxying connection, client: 198.51.100.1, \
        server: 10.0.0.1:80, upstream: \"10.0.0.2:1000\", bytes from/to client:1/1, bytes from/to upstream:1/1";
    assert!(
        passing.server.has_logged(line),
        "{:#?}",
        passing.server.error_log()
    );
    passing.server.assert_nothing_left(0);
}

#[test]
fn rates_hold_each_direction_to_so_many_bytes_a_second() {
    let sent = payload()[..50_000].to_vec();
    let acts = vec![Act::Send(sent.clone()), Act::ReadAll];
    let mut passing = Passing::new("proxy_download_rate 10000; proxy_upload_rate 5000;", acts);
    let client = passing.connect();
    client.send(&sent[..20_000]);
    passing.server.run_to(2 * SECOND);
    let (down, up) = (client.received().len(), passing.seen.received(0).len());
    assert!((29_000..=31_000).contains(&down), "{down}");
    assert!((14_000..=16_000).contains(&up), "{up}");
    passing.server.run_to(10 * SECOND);
    assert!(client.received() == sent);
    assert!(passing.seen.received(0) == sent[..20_000]);
}
