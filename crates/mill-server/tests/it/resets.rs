//! Clients that disappear.

use crate::answer::answer;
use crate::server::{MS, SECOND, Server};
use mill_sim::link::{Link, Segments};

const DIRECTIVES: [&str; 4] = [
    "",
    "sendfile off;",
    "open_file_cache max=9;",
    "gzip on; gzip_min_length 1; gzip_types *;",
];

#[test]
fn a_reset_at_any_byte_of_a_request_leaves_nothing() {
    let request = "GET /a.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody";
    for directives in DIRECTIVES {
        for len in 0..=request.len() {
            let mut server = Server::new(len as u64, directives);
            let client = server.connect();
            client.send(&request[..len]);
            client.at(MS).reset();
            server.run_to(SECOND);
            server.assert_nothing_left(1);
        }
    }
}

#[test]
fn a_fin_at_any_byte_of_a_request_leaves_nothing() {
    let request = "GET /a.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody";
    for directives in DIRECTIVES {
        for len in 0..=request.len() {
            let mut server = Server::new(len as u64, directives);
            let client = server.connect();
            client.send(&request[..len]).finish();
            server.run_to(SECOND);
            server.assert_nothing_left(1);
            let head_len = request.find("body").unwrap();
            assert_eq!(
                client.received().is_empty(),
                len < head_len,
                "after {len} bytes"
            );
        }
    }
}

#[test]
fn a_reset_at_any_byte_of_an_answer_leaves_nothing() {
    for directives in DIRECTIVES {
        let request = "GET /page HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n";
        let page = "a page of some length, with words ".repeat(20);
        let mut len = 1;
        loop {
            let mut server = Server::new(1, directives);
            server.files().write("/site/page", &page);
            // One byte a millisecond.
            server.world.set_link(Link {
                segments: Segments::UpTo(1),
                bytes_per_second: Some(1000),
                window_bytes: 64,
                ..Link::IDEAL
            });
            let client = server.connect();
            client.send(request);
            client
                .at(MS * u32::try_from(request.len() + len).unwrap())
                .reset();
            server.run_to(3 * SECOND);
            server.assert_nothing_left(1);
            let received = client.received().len();
            assert!(received <= len, "{received} bytes after {len} ms");
            if received < len.saturating_sub(5) {
                assert!(len > 200, "the answer ended before {len}");
                break;
            }
            len += 7;
        }
    }
}

#[test]
fn a_reset_while_files_are_asked_leaves_nothing() {
    for directives in DIRECTIVES {
        for reset_at in 1..40 {
            let mut server = Server::new(1, directives);
            server.files().set_latency(3 * MS);
            let client = server.connect();
            client.send("GET /a.txt HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
            client.at(reset_at * MS).reset();
            server.run_to(SECOND);
            server.assert_nothing_left(1);
        }
    }
}

#[test]
fn a_reset_within_a_large_answer_leaves_nothing() {
    for directives in DIRECTIVES {
        for reset_at in [1, 2, 3, 10, 100, 500, 999] {
            let mut server = Server::new(1, directives);
            let client = server.connect();
            client.read_at_rate(1_000_000);
            client.send("GET /big.bin HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
            client.at(reset_at * MS).reset();
            server.run_to(2 * SECOND);
            server.assert_nothing_left(1);
        }
        let mut server = Server::new(1, directives);
        assert_eq!(
            answer(&server.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n")).status,
            200
        );
    }
}

#[test]
fn the_reset_of_one_connection_is_nothing_to_another() {
    let mut server = Server::new(1, "open_file_cache max=9;");
    let others: Vec<_> = (0..20).map(|_| server.connect()).collect();
    for (index, client) in others.iter().enumerate() {
        client.send("GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n");
        if index % 2 == 0 {
            client.reset();
        } else {
            client
                .at(MS)
                .send("GET /a.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        }
    }
    server.run();
    for client in others.iter().skip(1).step_by(2) {
        assert_eq!(crate::answer::answers(&client.received()).len(), 2);
    }
    server.assert_nothing_left(1);
}
