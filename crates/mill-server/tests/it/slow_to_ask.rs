//! Clients that send slowly.

use crate::answer::{answer, answers};
use crate::server::{MS, SECOND, Server};

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn a_head_that_is_not_whole_after_client_header_timeout_ends_the_connection() {
    for begun in ["G", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: a\r\n"] {
        let mut server = Server::new(1, "client_header_timeout 3s;");
        let client = server.connect();
        client.at(500 * MS).send(begun);
        server.run_until_idle();
        assert_eq!(client.received(), b"", "{begun}");
        assert_eq!(client.ended_at(), Some(3500 * MS), "{begun}");
        assert!(client.is_closed() && !client.was_reset(), "{begun}");
        assert_eq!(server.counters().timeout_header, 1);
        server.assert_nothing_left(0);
    }
}

#[test]
fn drops_of_bytes_do_not_prolong_client_header_timeout() {
    let mut server = Server::new(1, "client_header_timeout 3s;");
    let client = server.connect();
    client.send_each_byte("GET / HTTP/1.1\r\nHost: aaaaaaaaa", 500 * MS);
    server.run_to(60 * SECOND);
    assert_eq!(client.ended_at(), Some(3 * SECOND));
    server.assert_nothing_left(0);
}

#[test]
fn the_second_head_has_client_header_timeout_from_its_first_byte() {
    let mut server = Server::new(1, "client_header_timeout 3s; keepalive_timeout 60s;");
    let client = server.connect();
    client.send(GET);
    client.at(20 * SECOND).send("GET /");
    server.run_until_idle();
    assert_eq!(answer(&client.received()).status, 200);
    assert_eq!(client.ended_at(), Some(23 * SECOND));
}

#[test]
fn a_client_that_finishes_within_a_head_is_left_at_once() {
    let mut server = Server::new(1, "");
    let client = server.connect();
    client.send("GET / HTTP/1.1\r\nHo").finish();
    server.run();
    assert_eq!(client.received(), b"");
    assert!(client.is_closed());
    server.assert_nothing_left(0);
}

#[test]
fn the_rest_of_content_is_waited_for_as_long_as_lingering_timeout_says() {
    let mut server = Server::new(1, "lingering_timeout 2s; lingering_time 30s;");
    let client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nab");
    client.at(1900 * MS).send("cd");
    server.run_until_idle();
    assert_eq!(
        answer(&client.received()).status,
        200,
        "the answer does not wait for the content"
    );
    assert_eq!(client.ended_at(), Some(3900 * MS));
    assert_eq!(server.counters().timeout_body, 1);
    server.assert_nothing_left(0);
}

#[test]
fn the_rest_of_content_is_taken_for_lingering_time_at_most() {
    let mut server = Server::new(1, "lingering_timeout 2s; lingering_time 5s;");
    let client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n");
    client.at(SECOND).send_each_byte("0123456789", SECOND);
    server.run_until_idle();
    assert_eq!(answer(&client.received()).status, 200);
    assert_eq!(client.ended_at(), Some(5 * SECOND));
}

#[test]
fn content_that_comes_slowly_but_comes_leaves_the_connection_open() {
    let mut server = Server::new(1, "lingering_timeout 2s; lingering_time 30s;");
    let client = server.connect();
    client.send("GET /a.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n");
    client.at(SECOND).send_each_byte("abcd", SECOND);
    client.at(4 * SECOND).send(GET);
    server.run();
    let texts: Vec<String> = answers(&client.received())
        .iter()
        .map(|a| a.text())
        .collect();
    assert_eq!(texts, ["file a\n", "home\n"]);
    assert!(!client.is_closed());
}
