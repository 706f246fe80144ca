//! Files that change while they are sent.

use crate::answer::{Ending, answer, first_answer};
use crate::server::{MS, SECOND, Server, big};
use mill_sim::client::Client;

const GET_BIG: &str = "GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n";
const WAYS: [&str; 4] = [
    "sendfile on;",
    "sendfile off;",
    "sendfile on; open_file_cache max=9;",
    "sendfile off; open_file_cache max=9;",
];

/// A server and a client that has read about 100 kB of the file when `change` happens.
fn with_change(way: &str, change: impl FnOnce(&Server)) -> (Server, Client) {
    let mut server = Server::new(1, way);
    let client = server.connect();
    client.read_at_rate(100_000).send(GET_BIG);
    server.run_to(SECOND);
    change(&server);
    server.run_to(60 * SECOND);
    (server, client)
}

#[test]
fn a_file_that_shrinks_resets_the_connection() {
    for way in WAYS {
        let (mut server, client) = with_change(way, |server| {
            server.files().set_len("/site/big.bin", 500_000)
        });
        let (answer, ending) = first_answer(&client.received());
        assert_eq!(answer.field("Content-Length"), Some("1048576"), "{way}");
        assert_eq!(ending, Ending::Cut, "{way}");
        assert!(client.was_reset() && !client.is_closed(), "{way}");
        assert!(
            answer.content == big()[..answer.content.len()],
            "{way}: no wrong byte"
        );
        assert_eq!(server.counters().files_truncated, 1, "{way}");
        assert!(
            server.has_logged("[alert]"),
            "{way}: {:?}",
            server.error_log()
        );
        server.assert_nothing_left(1);
        // The next request gets the file as it is now.
        if !way.contains("cache") {
            let now = server.ask("GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n");
            assert_eq!(answer_len(&now), 500_000);
        }
    }
}

fn answer_len(received: &[u8]) -> usize {
    answer(received).content.len()
}

#[test]
fn a_file_that_grows_is_sent_at_its_former_length() {
    for way in WAYS {
        let (server, client) =
            with_change(way, |server| server.files().append("/site/big.bin", "more"));
        assert!(answer(&client.received()).content == big(), "{way}");
        assert_eq!(server.counters().files_truncated, 0);
    }
}

#[test]
fn a_file_that_shrinks_while_it_is_compressed_resets_the_connection() {
    let mut server = Server::new(1, "gzip on; gzip_types *;");
    server.files().set_latency(10 * MS);
    let client = server.connect();
    client.send("GET /big.bin HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
    let files = server.files().clone();
    server
        .world
        .at(45 * MS, move || files.set_len("/site/big.bin", 200_000));
    server.run_to(60 * SECOND);
    let (answer, ending) = first_answer(&client.received());
    assert_eq!((answer.status, ending), (200, Ending::Cut));
    assert!(client.was_reset());
    assert_eq!(server.counters().files_truncated, 1);
    server.assert_nothing_left(0);
}

#[test]
fn a_file_that_is_removed_or_replaced_is_sent_as_it_was_opened() {
    for way in WAYS {
        let (mut server, client) =
            with_change(way, |server| server.files().remove("/site/big.bin"));
        assert!(answer(&client.received()).content == big(), "{way}");
        if !way.contains("cache") {
            assert_eq!(answer(&server.ask(GET_BIG)).status, 404, "{way}");
        }
        let (mut server, client) =
            with_change(way, |server| server.files().replace("/site/big.bin", "new"));
        assert!(answer(&client.received()).content == big(), "{way}");
        if !way.contains("cache") {
            assert_eq!(answer(&server.ask(GET_BIG)).text(), "new", "{way}");
        }
    }
}

#[test]
fn a_file_that_shrinks_before_its_first_byte_is_sent_resets_too() {
    for way in WAYS {
        if way.contains("sendfile on") {
            continue; // Opened and sent in one turn.
        }
        let mut server = Server::new(1, way);
        server.files().set_latency(10 * MS);
        let client = server.connect();
        client.send(GET_BIG);
        let files = server.files().clone();
        // Opened, and not yet read.
        server
            .world
            .at(15 * MS, move || files.set_len("/site/big.bin", 0));
        server.run_to(60 * SECOND);
        assert!(client.was_reset(), "{way}");
        server.assert_nothing_left(1);
    }
}

#[test]
fn a_small_file_that_shrinks_between_two_hot_answers_is_looked_at_after_its_validity() {
    let mut server = Server::new(1, "open_file_cache max=9; open_file_cache_valid 2s;");
    let client = server.connect();
    let request = "GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n";
    client.send(request).at(500 * MS).send(request);
    server.run_to(SECOND);
    server.files().set_len("/site/a.txt", 3);
    client.at(1500 * MS).send(request);
    client.at(2500 * MS).send(request);
    server.run_to(3 * SECOND);
    let texts: Vec<String> = crate::answer::answers(&client.received())
        .iter()
        .map(|a| a.text())
        .collect();
    assert_eq!(texts, ["file a\n", "file a\n", "file a\n", "fil"]);
}

#[test]
fn a_file_that_cannot_be_opened_is_a_status() {
    let mut server = Server::new(1, "");
    server.files().write("/site/secret", "x");
    server.files().set_readable("/site/secret", false);
    server.files().create_other("/site/fifo");
    server.files().create_directory("/site/empty");
    let mut check = |path: &str, status: u16, log: &str| {
        let received = server.ask(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert_eq!(answer(&received).status, status, "{path}");
        assert!(server.has_logged(log), "{path}: {:?}", server.error_log());
    };
    check(
        "/none",
        404,
        "open() \"/site/none\" failed (2: No such file or directory)",
    );
    check(
        "/a.txt/x",
        404,
        "open() \"/site/a.txt/x\" failed (20: Not a directory)",
    );
    check(
        "/secret",
        403,
        "open() \"/site/secret\" failed (13: Permission denied)",
    );
    check("/fifo", 404, "\"/site/fifo\" is not a regular file");
    check(
        "/empty/",
        403,
        "directory index of \"/site/empty/\" is forbidden",
    );
    check("/empty", 301, "");
}

#[test]
fn no_descriptor_for_a_file_is_an_error_of_the_server() {
    let mut server = Server::new(1, "");
    server.files().set_open_max(0);
    let request = "GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_eq!(answer(&server.ask(request)).status, 500);
    assert!(
        server.has_logged("(24: Too many open files)"),
        "{:?}",
        server.error_log()
    );
    server.files().set_open_max(9);
    assert_eq!(answer(&server.ask(request)).status, 200);
}
