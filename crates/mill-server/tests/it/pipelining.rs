//! Many requests at once, and requests in pieces.

use crate::answer::{answer, answers};
use crate::server::{BIG_BYTES, MS, Server, big};
use mill_sim::link::{Link, Segments};
use mill_sim::world::World;
use std::time::Duration;

/// The second answer to the same request of such a server is hot: the first one depends only on its key.
const HOT: &str = "open_file_cache max=100;";

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")
}

#[test]
fn three_requests_in_one_segment_are_answered_in_order() {
    for directives in ["", HOT] {
        let mut server = Server::new(1, directives);
        let client = server.connect();
        client.send(["/a.txt", "/", "/b.txt"].map(get).concat());
        server.run();
        let texts: Vec<String> = answers(&client.received())
            .iter()
            .map(|a| a.text())
            .collect();
        assert_eq!(texts, ["file a\n", "home\n", "file b\n"], "{directives}");
        assert!(!client.is_closed());
    }
}

#[test]
fn two_hundred_requests_at_once_are_answered_in_order() {
    for directives in ["", HOT] {
        let mut server = Server::new(1, directives);
        for number in 0..200 {
            server
                .files()
                .write(&format!("/site/{number}"), format!("number {number}"));
        }
        // Twice, so that the second time everything is hot.
        for round in 0..2 {
            let client = server.connect();
            let requests: String = (0..200).map(|number| get(&format!("/{number}"))).collect();
            client.send(requests);
            server.run();
            let answers = answers(&client.received());
            assert_eq!(answers.len(), 200);
            for (number, answer) in answers.iter().enumerate() {
                assert_eq!(answer.text(), format!("number {number}"), "round {round}");
                assert!(answer.keeps_alive());
            }
        }
        assert_eq!(server.counters().requests, 400);
        assert_eq!(server.counters().responses_2xx, 400);
    }
}

#[test]
fn a_thousand_requests_at_once_do_not_keep_others_waiting() {
    let mut server = Server::new(1, &format!("{HOT} keepalive_requests 100000;"));
    server.world.set_link(Link::with_window(1 << 24));
    server.ask(&get("/"));
    let (greedy, modest) = (server.connect(), server.connect());
    greedy.send(get("/").repeat(1000));
    modest.send(get("/"));
    server.run();
    assert_eq!(answers(&greedy.received()).len(), 1000);
    assert_eq!(answers(&modest.received()).len(), 1);
    let ladder = server.world.ladder();
    let lines: Vec<&str> = ladder.lines().collect();
    let modest_at = lines
        .iter()
        .position(|line| line.contains("  3 < "))
        .unwrap();
    let greedy_last = lines
        .iter()
        .rposition(|line| line.contains("  2 < "))
        .unwrap();
    assert!(
        modest_at < greedy_last,
        "the modest client is answered in between"
    );
}

#[test]
fn hot_and_slow_answers_keep_their_order() {
    let mut server = Server::new(
        1,
        &format!("{HOT} location /slow {{ open_file_cache off; }}"),
    );
    server.files().write("/site/slow.txt", "slow\n");
    server.ask(&get("/a.txt"));
    let paths = [
        "/a.txt",
        "/slow.txt",
        "/a.txt",
        "/big.bin",
        "/a.txt",
        "/none",
        "/a.txt",
    ];
    let client = server.connect();
    // Files take time from now on: the slow answer is not ready at once.
    server.files().set_latency(3 * MS);
    client.send(paths.map(get).concat());
    server.run();
    let answers = answers(&client.received());
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 404, 200]);
    for (index, text) in [
        (0, "file a\n"),
        (1, "slow\n"),
        (2, "file a\n"),
        (6, "file a\n"),
    ] {
        assert_eq!(answers[index].text(), text);
    }
    assert!(answers[3].content == big());
}

#[test]
fn requests_behind_the_last_answer_are_not_answered() {
    let close = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    for directives in ["", HOT] {
        let mut server = Server::new(1, directives);
        server.ask(&get("/"));
        let client = server.connect();
        client.send([&get("/"), close, &get("/a.txt")].concat());
        server.run_until_idle();
        assert_eq!(answers(&client.received()).len(), 2, "{directives}");
        assert!(client.is_closed() && !client.was_reset(), "{directives}");
        server.assert_nothing_left(1);
    }
}

#[test]
fn a_head_split_at_any_byte_is_the_same_head() {
    let request = "GET /a.txt?x=1 HTTP/1.1\r\nHost: a\r\nX-Long: some value\r\nAccept: */*\r\n\r\n";
    for directives in ["", HOT] {
        for split in 1..request.len() {
            let mut server = Server::new(split as u64, directives);
            let client = server.connect();
            client.send(&request[..split]);
            client.at(20 * MS).send(&request[split..]);
            client.at(40 * MS).send(&request[..split]);
            client
                .at(60 * MS)
                .send([&request[split..], request].concat());
            server.run();
            let answers = answers(&client.received());
            assert_eq!(answers.len(), 3, "split at {split}");
            for answer in answers {
                assert_eq!(answer.text(), "file a\n", "split at {split}");
            }
        }
    }
}

#[test]
fn each_byte_by_itself_makes_the_same_request() {
    let requests = [get("/a.txt"), get("/"), get("/b.txt")].concat();
    for gap in [Duration::ZERO, MS, 100 * MS] {
        let mut server = Server::new(1, HOT);
        let client = server.connect();
        client.send_each_byte(&requests, gap);
        server.run();
        let texts: Vec<String> = answers(&client.received())
            .iter()
            .map(|a| a.text())
            .collect();
        assert_eq!(texts, ["file a\n", "home\n", "file b\n"], "gap {gap:?}");
    }
}

#[test]
fn a_head_of_many_segments_is_read_whole() {
    let world = World::new(1);
    world.set_link(Link {
        segments: Segments::UpTo(100),
        ..Link::IDEAL
    });
    let text = crate::server::one_server("add_header X-Echo $http_x_long;");
    let mut server = Server::configured(world, &text, 1);
    let long = "v".repeat(8000);
    let received = server.ask(&format!(
        "GET / HTTP/1.1\r\nHost: a\r\nX-Long: {long}\r\n\r\n"
    ));
    let answer = answer(&received);
    assert_eq!(answer.field("X-Echo"), Some(&*long));
}

#[test]
fn large_answers_in_a_row_come_whole() {
    for directives in ["sendfile on;", "sendfile off;", HOT] {
        let mut server = Server::new(1, directives);
        let client = server.connect();
        client.send(get("/big.bin").repeat(5));
        server.run();
        let answers = answers(&client.received());
        assert_eq!(answers.len(), 5, "{directives}");
        for answer in answers {
            assert_eq!(answer.content.len(), BIG_BYTES);
            assert!(answer.content == big(), "{directives}");
        }
    }
}

#[test]
fn empty_lines_before_a_request_are_passed_over() {
    let mut server = Server::new(1, HOT);
    let client = server.connect();
    client.send(format!("\r\n{}\r\n\r\n{}", get("/"), get("/")));
    server.run();
    assert_eq!(answers(&client.received()).len(), 2);
}
