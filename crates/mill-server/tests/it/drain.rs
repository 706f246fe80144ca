//! Draining a worker.

use crate::answer::{answer, answers};
use crate::server::{BIG_BYTES, MS, SECOND, Server};
use mill_server::worker::{Order, Report};
use mill_sim::link::Link;
use std::time::Duration;

const GET: &str = "GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n";

/// How long kept connections stay when draining begins.
const GRACE: Duration = Duration::from_millis(100);

fn drain(server: &Server, limit: Option<Duration>) {
    server.order(|| Order::Drain { limit });
}

#[test]
fn idle_connections_end_and_with_them_the_worker() {
    let mut server = Server::new(1, "open_file_cache max=9;");
    let clients: Vec<_> = (0..5).map(|_| server.connect()).collect();
    for client in &clients {
        client.send(GET);
    }
    server.run();
    drain(&server, None);
    server.run_until_idle();
    for client in &clients {
        assert!(client.is_closed() && !client.was_reset());
    }
    assert!(server.workers[0].has_ended());
    let reports = server.workers[0].reports();
    assert_eq!(reports.last(), Some(&Report::Ended { index: 0 }));
    assert_eq!(
        server.world.elapsed(),
        GRACE,
        "requests that are on their way are waited for, and nothing else"
    );
    assert_eq!(server.counters().connections_active, 0);
    assert_eq!(server.files().open_files(), 0);
    let late = server.connect();
    server.run();
    assert!(late.was_refused());
}

/// The client has sent it on a kept connection before the order came, and it arrives after that.
#[test]
fn a_request_that_was_on_its_way_on_a_kept_connection_is_answered() {
    for directives in ["", "open_file_cache max=9;"] {
        for delay in [MS, 30 * MS, 90 * MS] {
            let mut server = Server::new(1, directives);
            server.world.set_link(Link::delayed(delay));
            let client = server.connect();
            client.send(GET);
            client.at(SECOND).send(GET);
            server.run_to(SECOND + delay / 2);
            drain(&server, None);
            server.run_until_idle();
            let answers = answers(&client.received());
            assert_eq!(answers.len(), 2, "{delay:?} {directives}");
            assert!(!answers[1].keeps_alive() && !client.was_reset());
            assert!(server.workers[0].has_ended());
        }
    }
}

#[test]
fn a_request_under_way_is_answered_and_the_answer_says_close() {
    let mut server = Server::new(1, "");
    server.files().set_latency(10 * MS);
    let client = server.connect();
    client.send(GET);
    server.run_to(5 * MS);
    drain(&server, None);
    server.run();
    let answer = answer(&client.received());
    assert_eq!((answer.status, answer.text()), (200, "file a\n".into()));
    assert!(!answer.keeps_alive());
    assert!(client.is_closed() && !client.was_reset());
    assert!(server.workers[0].has_ended());
}

#[test]
fn a_large_answer_is_sent_to_its_end() {
    for way in ["", "sendfile off;"] {
        let mut server = Server::new(1, way);
        let client = server.connect();
        client
            .read_at_rate(100_000)
            .send("GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n");
        server.run_to(SECOND);
        drain(&server, None);
        server.run();
        assert_eq!(answer(&client.received()).content.len(), BIG_BYTES, "{way}");
        assert!(server.workers[0].has_ended(), "{way}");
        assert!(client.is_closed() && !client.was_reset(), "{way}");
    }
}

#[test]
fn the_last_hot_answer_says_close() {
    let mut server = Server::new(1, "open_file_cache max=9;");
    server.world.set_link(Link::delayed(2 * MS));
    let client = server.connect();
    client.send(GET);
    server.run();
    let busy = server.connect();
    busy.send(GET);
    drain(&server, None);
    server.run_until_idle();
    for answer in answers(&busy.received()) {
        assert_eq!(answer.text(), "file a\n");
    }
    assert!(server.workers[0].has_ended());
}

#[test]
fn a_client_that_waits_to_be_accepted_is_answered() {
    let mut server = Server::new(1, "");
    server.run();
    let clients: Vec<_> = (0..20).map(|_| server.connect()).collect();
    for client in &clients {
        client.send(GET);
    }
    drain(&server, None);
    server.run_until_idle();
    for (index, client) in clients.iter().enumerate() {
        assert_eq!(answer(&client.received()).status, 200, "client {index}");
        assert!(client.is_closed() && !client.was_reset(), "client {index}");
    }
    assert!(server.workers[0].has_ended());
}

#[test]
fn a_head_that_has_begun_may_still_be_finished() {
    let mut server = Server::new(1, "");
    let client = server.connect();
    client.send("GET /a.txt HT");
    server.run();
    drain(&server, None);
    client.at(2 * SECOND).send("TP/1.1\r\nHost: a\r\n\r\n");
    server.run();
    assert_eq!(answer(&client.received()).status, 200);
    assert!(server.workers[0].has_ended());
}

#[test]
fn the_limit_ends_the_worker_whatever_is_under_way() {
    let mut server = Server::new(1, "");
    let client = server.connect();
    client
        .read_at_rate(1000)
        .send("GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n");
    server.run_to(SECOND);
    drain(&server, Some(5 * SECOND));
    server.run_to(5999 * MS);
    assert!(!server.workers[0].has_ended());
    server.run_to(6001 * MS);
    assert!(server.workers[0].has_ended());
    assert_eq!(server.files().open_files(), 0);
}

#[test]
fn a_connection_without_a_request_does_not_keep_the_worker_running() {
    let mut server = Server::new(1, "client_header_timeout 7s;");
    let client = server.connect();
    server.run();
    drain(&server, None);
    server.run_until_idle();
    assert!(client.is_closed());
    assert!(server.workers[0].has_ended());
    assert!(server.world.elapsed() <= 7 * SECOND);
}

#[test]
fn a_lingering_connection_ends_in_its_time() {
    let mut server = Server::new(1, "lingering_timeout 2s;");
    let client = server.connect();
    client.send("nonsense\r\n");
    server.run();
    drain(&server, None);
    server.run_until_idle();
    assert_eq!(answer(&client.received()).status, 400);
    assert!(server.workers[0].has_ended());
    assert_eq!(server.world.elapsed(), 2 * SECOND);
}

#[test]
fn the_order_to_stop_ends_the_worker_at_once() {
    let mut server = Server::new(1, "");
    let client = server.connect();
    client
        .stop_reading()
        .send("GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n");
    server.run();
    server.order(|| Order::Stop);
    server.run();
    assert!(server.workers[0].has_ended());
    assert_eq!(server.files().open_files(), 0);
    assert_eq!(server.world.elapsed(), Duration::ZERO);
}

#[test]
fn requests_of_every_moment_are_answered_while_the_worker_drains() {
    for seed in 0..50_u32 {
        for directives in ["", "open_file_cache max=9;"] {
            let mut server = Server::new(seed.into(), directives);
            server.world.set_link(Link::delayed(3 * MS));
            let clients: Vec<_> = (0..20).map(|_| server.connect()).collect();
            for (client, index) in clients.iter().zip(0..) {
                client.at((10 + index) * MS).send(GET);
            }
            server.run_to((10 + seed % 25) * MS);
            drain(&server, None);
            server.run_until_idle();
            for (index, client) in clients.iter().enumerate() {
                // Each was accepted, or waited in the queue, before the order came.
                let answers = answers(&client.received());
                assert_eq!(answers.len(), 1, "client {index}, seed {seed} {directives}");
                assert!(client.is_closed() && !client.was_reset(), "client {index}");
            }
            assert!(server.workers[0].has_ended());
        }
    }
}
