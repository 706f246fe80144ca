//! How long a connection stays open, and what closes it.

use crate::answer::{answer, answers};
use crate::server::{MS, SECOND, Server};
use std::time::Duration;

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn a_connection_is_kept_unless_either_side_asks_to_close_it() {
    let check = |request: &str, directives: &str, kept: bool| {
        let mut server = Server::new(1, directives);
        let client = server.connect();
        client.send(request);
        server.run();
        let answer = answer(&client.received());
        assert_eq!(
            (answer.status, answer.text()),
            (200, "home\n".into()),
            "{request}"
        );
        assert_eq!(answer.keeps_alive(), kept, "{request} {directives}");
        assert_eq!(client.is_closed(), !kept, "{request} {directives}");
        assert!(!client.was_reset());
    };
    check(GET, "", true);
    check(
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        "",
        false,
    );
    check(
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n",
        "",
        true,
    );
    check(
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: foo, Close\r\n\r\n",
        "",
        false,
    );
    check("GET / HTTP/1.0\r\n\r\n", "", false);
    check("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "", true);
    check("GET / HTTP/1.0\r\nConnection: close\r\n\r\n", "", false);
    check(GET, "keepalive_timeout 0;", false);
    check(GET, "keepalive_requests 1;", false);
    check(GET, "keepalive_requests 2;", true);
}

#[test]
fn the_answers_say_keep_alive_until_keepalive_requests_are_reached() {
    for directives in [
        "keepalive_requests 3;",
        "keepalive_requests 3; open_file_cache max=9;",
    ] {
        let mut server = Server::new(1, directives);
        let client = server.connect();
        for _ in 0..3 {
            client.send(GET);
            server.run();
        }
        let kept: Vec<bool> = answers(&client.received())
            .iter()
            .map(|answer| answer.keeps_alive())
            .collect();
        assert_eq!(kept, [true, true, false], "{directives}");
        assert!(client.is_closed());
        server.assert_nothing_left(1);
    }
}

#[test]
fn an_idle_connection_ends_exactly_keepalive_timeout_after_its_last_answer() {
    for directives in ["", "open_file_cache max=9;"] {
        let mut server = Server::new(1, &format!("keepalive_timeout 7s; {directives}"));
        let client = server.connect();
        for asked in [0, 3, 9, 15] {
            client.at(asked * SECOND).send(GET);
        }
        server.run_until_idle();
        assert_eq!(answers(&client.received()).len(), 4, "{directives}");
        assert_eq!(client.ended_at(), Some(22 * SECOND), "{directives}");
        assert!(client.is_closed() && !client.was_reset());
        assert_eq!(server.counters().timeout_keepalive, 1);
        server.assert_nothing_left(1);
    }
}

#[test]
fn the_default_keepalive_timeout_is_75_seconds() {
    let mut server = Server::new(1, "");
    let client = server.connect();
    client.at(10 * MS).send(GET);
    server.run_until_idle();
    assert_eq!(client.ended_at(), Some(75_010 * MS));
}

#[test]
fn a_request_that_comes_a_tick_before_the_timeout_is_answered() {
    let mut server = Server::new(1, "keepalive_timeout 5s;");
    let (early, late) = (server.connect(), server.connect());
    for client in [&early, &late] {
        client.send(GET);
    }
    early.at(4999 * MS).send(GET);
    late.at(5001 * MS).send(GET);
    server.run_to(6 * SECOND);
    assert_eq!(answers(&early.received()).len(), 2);
    assert_eq!(answers(&late.received()).len(), 1);
    assert_eq!(late.ended_at(), Some(5 * SECOND));
}

#[test]
fn after_keepalive_time_the_next_answer_is_the_last() {
    for directives in ["", "open_file_cache max=9 inactive=1h;"] {
        let mut server = Server::new(1, &format!("keepalive_time 10s; {directives}"));
        let client = server.connect();
        for asked in [0, 6, 12] {
            client.at(asked * SECOND).send(GET);
        }
        server.run_to(13 * SECOND);
        let kept: Vec<bool> = answers(&client.received())
            .iter()
            .map(|answer| answer.keeps_alive())
            .collect();
        assert_eq!(kept, [true, true, false], "{directives}");
        assert_eq!(client.ended_at(), Some(12 * SECOND), "{directives}");
    }
}

#[test]
fn a_connection_as_old_as_keepalive_time_is_still_kept() {
    for directives in ["", "open_file_cache max=9 inactive=1h;"] {
        let mut server = Server::new(1, &format!("keepalive_time 10s; {directives}"));
        let client = server.connect();
        for asked in [0, 10_000, 10_001] {
            client.at(asked * MS).send(GET);
        }
        server.run_to(11 * SECOND);
        let kept: Vec<bool> = answers(&client.received())
            .iter()
            .map(|answer| answer.keeps_alive())
            .collect();
        assert_eq!(kept, [true, true, false], "{directives}");
    }
}

#[test]
fn the_header_keep_alive_tells_the_timeout_that_is_configured_for_it() {
    let mut server = Server::new(1, "keepalive_timeout 60s 20s;");
    let received = server.ask(GET);
    assert_eq!(answer(&received).field("Keep-Alive"), Some("timeout=20"));
    let received = server.ask("GET / HTTP/1.0\r\n\r\n");
    assert_eq!(answer(&received).field("Keep-Alive"), None);
}

#[test]
fn a_client_that_finishes_sending_gets_its_answer_before_the_connection_ends() {
    for directives in ["", "open_file_cache max=9;"] {
        let mut server = Server::new(1, directives);
        server.ask(GET);
        let client = server.connect();
        client.send(GET).finish();
        server.run();
        assert_eq!(answer(&client.received()).text(), "home\n", "{directives}");
        assert!(client.is_closed() && !client.was_reset());
        assert_eq!(server.streams(), 1, "the first client's connection idles");
    }
}

#[test]
fn a_client_that_sends_nothing_is_disconnected_after_client_header_timeout() {
    let mut server = Server::new(1, "client_header_timeout 4s;");
    let client = server.connect();
    server.run_until_idle();
    assert_eq!(client.ended_at(), Some(4 * SECOND));
    assert_eq!(client.received(), b"");
    server.assert_nothing_left(0);
}

#[test]
fn connections_of_one_server_do_not_disturb_each_other() {
    let mut server = Server::new(1, "keepalive_timeout 5s;");
    let clients: Vec<_> = (0..100).map(|_| server.connect()).collect();
    for (index, client) in clients.iter().enumerate() {
        let at = Duration::from_millis(u64::try_from(index).unwrap() * 37);
        client.at(at).send(GET);
    }
    server.run_until_idle();
    for (index, client) in clients.iter().enumerate() {
        let at = Duration::from_millis(u64::try_from(index).unwrap() * 37);
        assert_eq!(answer(&client.received()).text(), "home\n");
        assert_eq!(client.ended_at(), Some(at + 5 * SECOND), "client {index}");
    }
    assert_eq!(server.counters().connections_accepted, 100);
    assert_eq!(server.counters().requests, 100);
    server.assert_nothing_left(0);
}
