//! Files that take their time: other requests go on, and a path is examined once for all that look for it.

use crate::answer::answer;
use crate::server::{MS, SECOND, Server, one_server};
use mill_sim::client::Client;
use mill_sim::world::World;

const GET: &str = "GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n";
const GET_BIG: &str = "GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n";
const GET_ABSENT: &str = "GET /absent HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn a_request_without_files_is_answered_while_others_wait_for_a_disk() {
    for way in ["", "sendfile on;"] {
        let directives = format!("{way} location = /quick {{ return 204; }}");
        let mut server = Server::new(1, &directives);
        server.files().set_latency(100 * MS);
        let waiting: Vec<Client> = ask_all(&server, 3, GET_BIG);
        server.run_to(50 * MS);
        let other = server.connect();
        other.send("GET /quick HTTP/1.1\r\nHost: a\r\n\r\n");
        server.run_to(60 * MS);
        assert_eq!(answer(&other.received()).status, 204, "{way}");
        assert!(waiting.iter().all(|client| client.received().is_empty()));
        server.run_to(60 * SECOND);
        for client in &waiting {
            assert!(answer(&client.received()).content == crate::server::big());
        }
    }
}

#[test]
fn a_cold_path_is_opened_once_for_all_requests_of_a_cache() {
    let mut server = Server::new(1, "open_file_cache max=9;");
    server.files().set_latency(10 * MS);
    let mut clients = ask_all(&server, 8, GET);
    server.run_to(5 * MS);
    // The one that has asked is gone, and the others have what it finds.
    clients.remove(0).reset();
    clients.extend(ask_all(&server, 8, GET));
    server.run_to(SECOND);
    for client in &clients {
        assert_eq!(answer(&client.received()).text(), "file a\n");
    }
    assert_eq!(server.files().calls().open, 1);
    assert_eq!(server.files().open_files(), 1);
}

#[test]
fn a_missing_path_is_looked_for_once_for_all_requests_that_wait() {
    let mut server = Server::new(1, "open_file_cache max=9; open_file_cache_errors off;");
    server.files().set_latency(10 * MS);
    let clients = ask_all(&server, 8, GET_ABSENT);
    server.run_to(SECOND);
    for client in &clients {
        assert_eq!(answer(&client.received()).status, 404);
    }
    assert_eq!(server.files().calls().open, 1);
    assert_eq!(answer(&server.ask(GET_ABSENT)).status, 404);
    assert_eq!(server.files().calls().open, 2);
}

#[test]
fn requests_that_find_too_many_waiting_are_refused_counted_and_logged() {
    for directives in [
        "",
        "open_file_cache max=9;",
        "location / { try_files $uri =404; }",
        "if (!-f $document_root$uri) { return 404; }",
    ] {
        let text = format!(
            "thread_pool default threads=1 max_queue=1; {}",
            one_server(directives)
        );
        let mut server = Server::configured(World::new(1), &text, 1);
        server.files().set_latency(10 * MS);
        let first = [ask_all(&server, 1, GET), ask_all(&server, 1, GET_BIG)].concat();
        let refused = ask_all(&server, 1, "GET /b.txt HTTP/1.1\r\nHost: a\r\n\r\n");
        server.run_to(SECOND);
        for client in &first {
            assert_eq!(answer(&client.received()).status, 200, "{directives}");
        }
        assert_eq!(answer(&refused[0].received()).status, 503, "{directives}");
        assert_eq!(server.counters().files_refused, 1);
        let line = "thread pool \"/site/b.txt\" failed (11: Resource temporarily unavailable)";
        assert!(server.has_logged(line), "{:?}", server.error_log());
    }
}

#[test]
fn a_file_that_cannot_be_read_any_further_is_logged_and_counted_by_its_reason() {
    for way in ["sendfile on;", "sendfile off;"] {
        let directives = format!("{way} open_file_cache max=9;");
        let text = format!(
            "thread_pool default threads=1 max_queue=0; {}",
            one_server(&directives)
        );
        let mut server = Server::configured(World::new(1), &text, 1);
        let opened = server.ask("HEAD /big.bin HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(!opened.is_empty());
        server.files().set_latency(10 * MS);
        let _waiting = ask_all(&server, 1, GET);
        let refused = ask_all(&server, 1, GET_BIG);
        server.run_to(5 * SECOND);
        assert!(refused[0].was_reset(), "{way}");
        let counters = server.counters();
        assert_eq!((counters.files_refused, counters.files_truncated), (1, 0));
        let line = "thread pool failed (11: Resource temporarily unavailable) while sending response to client";
        assert!(server.has_logged(line), "{:?}", server.error_log());
    }
}

fn ask_all(server: &Server, count: usize, request: &str) -> Vec<Client> {
    let ask = || {
        let client = server.connect();
        client.send(request);
        client
    };
    (0..count).map(|_| ask()).collect()
}
