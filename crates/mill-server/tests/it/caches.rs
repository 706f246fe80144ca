//! What the open-file cache and the hot answers save, and when their entries end.

use crate::answer::{Answer, answer, answers};
use crate::server::{MS, SECOND, Server, one_server};
use mill_runtime::time::UnixTime;
use mill_sim::files::FileCalls;
use std::time::Duration;

const GET: &str = "GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n";

/// Sends a request at a time since the world began.
fn ask_at(server: &mut Server, at: Duration, request: &str) -> Answer {
    let client = server.world.connect_at(at, crate::server::ADDRESS);
    client.at(at).send(request);
    server.run_to(at + MS);
    answer(&client.received())
}

#[test]
fn without_a_cache_each_request_opens_its_file() {
    let mut server = Server::new(1, "");
    for _ in 0..3 {
        assert_eq!(answer(&server.ask(GET)).text(), "file a\n");
    }
    assert_eq!(server.files().calls().open, 3);
    assert_eq!(server.files().open_files(), 0);
}

#[test]
fn a_cached_file_is_not_asked_for_again_while_it_is_valid() {
    let mut server = Server::new(1, "open_file_cache max=9; open_file_cache_valid 5s;");
    for second in 0..5 {
        let answer = ask_at(&mut server, second * SECOND, GET);
        assert_eq!(answer.text(), "file a\n");
        let calls = server.files().calls();
        let first = if second == 0 {
            calls
        } else {
            FileCalls {
                open: 1,
                read_at: 1,
                ..FileCalls::default()
            }
        };
        assert_eq!(calls, first, "after {second} s");
    }
    ask_at(&mut server, 5 * SECOND, GET);
    let calls = server.files().calls();
    assert_eq!(calls.open + calls.metadata, 2, "looked at again: {calls:?}");
    assert!(server.files().open_files() <= 1);
}

#[test]
fn a_replaced_file_is_seen_once_the_cached_one_is_valid_no_more() {
    let mut server = Server::new(1, "open_file_cache max=9; open_file_cache_valid 5s;");
    assert_eq!(ask_at(&mut server, Duration::ZERO, GET).text(), "file a\n");
    server.files().replace("/site/a.txt", "something else");
    assert_eq!(ask_at(&mut server, 4999 * MS, GET).text(), "file a\n");
    assert_eq!(ask_at(&mut server, 5001 * MS, GET).text(), "something else");
    assert_eq!(server.files().open_files(), 1, "the former one is closed");
}

#[test]
fn a_removed_file_is_missed_once_the_cached_one_is_valid_no_more() {
    let mut server = Server::new(1, "open_file_cache max=9; open_file_cache_valid 5s;");
    ask_at(&mut server, Duration::ZERO, GET);
    server.files().remove("/site/a.txt");
    assert_eq!(ask_at(&mut server, 4999 * MS, GET).status, 200);
    assert_eq!(ask_at(&mut server, 5001 * MS, GET).status, 404);
    assert_eq!(server.files().open_files(), 0);
}

#[test]
fn failures_are_remembered_where_that_is_configured() {
    let check = |errors: &str, opens: usize| {
        let mut server = Server::new(1, &format!("open_file_cache max=9; {errors}"));
        for _ in 0..3 {
            let received = server.ask("GET /none HTTP/1.1\r\nHost: a\r\n\r\n");
            assert_eq!(answer(&received).status, 404);
        }
        assert_eq!(server.files().calls().open, opens, "{errors}");
    };
    check("open_file_cache_errors on;", 1);
    check("", 3);
}

#[test]
fn the_cache_holds_no_more_files_than_it_may() {
    let mut server = Server::new(1, "open_file_cache max=3;");
    for number in 0..20 {
        server
            .files()
            .write(&format!("/site/{number}"), format!("{number}"));
    }
    for round in 0..2 {
        for number in 0..20 {
            let received = server.ask(&format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n"));
            assert_eq!(
                answer(&received).text(),
                number.to_string(),
                "round {round}"
            );
        }
    }
    let open = server.files().open_files();
    assert!(open <= 3, "{open} files are open");
}

#[test]
fn a_hot_answer_is_the_first_one_but_for_its_date() {
    let requests = [
        GET,
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /a.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        "GET /a.txt HTTP/1.0\r\n\r\n",
        "GET /a.txt HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        "GET /a.txt HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n",
        "GET /none HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /a%2Etxt?x=y HTTP/1.1\r\nHost: a\r\n\r\n",
        "HEAD /a.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /a.txt HTTP/1.1\r\nHost: a\r\nRange: bytes=1-2\r\n\r\n",
        "GET /a.txt HTTP/1.1\r\nHost: a\r\nIf-None-Match: *\r\n\r\n",
    ];
    let plain = "add_header X-Uri $uri; gzip on; gzip_types *; gzip_min_length 1;";
    for cached in ["", "open_file_cache max=9;"] {
        let mut server = Server::new(1, &format!("{plain} {cached}"));
        let mut first = Vec::new();
        for (round, at) in [0, 1, 2, 61, 62].into_iter().enumerate() {
            for (index, request) in requests.iter().enumerate() {
                let at = at * SECOND + u32::try_from(index).unwrap() * 10 * MS;
                let client = server.world.connect_at(at, crate::server::ADDRESS);
                client.at(at).send(request);
                server.run_to(at + MS);
                let received = without_date(&client.received());
                if round == 0 {
                    first.push(received);
                } else {
                    assert_eq!(
                        received, first[index],
                        "{request} in round {round}, {cached}"
                    );
                }
            }
        }
    }
}

#[test]
fn with_a_cache_answers_are_the_same_as_without() {
    let paths = [
        "/", "/a.txt", "/big.bin", "/none", "/a.txt?x", "/a.txt/", "/%61.txt", "//a.txt",
    ];
    let mut all = Vec::new();
    for cached in ["", "open_file_cache max=9;"] {
        let mut server = Server::new(1, cached);
        let client = server.connect();
        for path in paths.iter().chain(&paths) {
            client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        }
        server.run();
        all.push(answers(&client.received()));
    }
    assert_eq!(all[0].len(), 16);
    assert!(all[0] == all[1]);
}

fn without_date(received: &[u8]) -> String {
    let text = String::from_utf8_lossy(received).into_owned();
    let (before, rest) = text.split_once("Date: ").expect("every answer has a date");
    let (_, after) = rest.split_once("GMT\r\n").expect("dates end in GMT");
    format!("{before}{after}")
}

#[test]
fn the_date_follows_the_clock() {
    for cached in ["", "open_file_cache max=9;"] {
        let mut server = Server::new(1, cached);
        let dates = [0, 999, 1000, 1001, 61_000, 86_400_000].map(|at| {
            let answer = ask_at(&mut server, at * MS, GET);
            answer.field("Date").unwrap_or_default().to_string()
        });
        let expected = [
            "Thu, 01 Jan 2026 00:00:00 GMT",
            "Thu, 01 Jan 2026 00:00:00 GMT",
            "Thu, 01 Jan 2026 00:00:01 GMT",
            "Thu, 01 Jan 2026 00:00:01 GMT",
            "Thu, 01 Jan 2026 00:01:01 GMT",
            "Fri, 02 Jan 2026 00:00:00 GMT",
        ];
        assert_eq!(dates, expected, "{cached}");
    }
}

#[test]
fn the_date_follows_a_clock_that_is_set() {
    for cached in ["", "open_file_cache max=9;"] {
        let mut server = Server::new(1, cached);
        let mut dates = Vec::new();
        for (at, seconds) in [(1, 1_767_225_600), (2, 1_800_000_000), (3, 1_700_000_000)] {
            server.run_to(at * SECOND);
            server.world.set_wall_clock(UnixTime::from_seconds(seconds));
            let client = server.connect();
            client.send(GET);
            server.run();
            dates.push(answer(&client.received()).field("Date").map(String::from));
        }
        let expected = [
            "Thu, 01 Jan 2026 00:00:00 GMT",
            "Fri, 15 Jan 2027 08:00:00 GMT",
            "Tue, 14 Nov 2023 22:13:20 GMT",
        ];
        assert_eq!(
            dates,
            expected.map(|date| Some(String::from(date))),
            "{cached}"
        );
    }
}

#[test]
fn hot_answers_end_with_a_reload() {
    let text =
        |name: &str| one_server(&format!("open_file_cache max=9; add_header X-Name {name};"));
    let mut server = Server::configured(mill_sim::world::World::new(1), &text("old"), 1);
    let client = server.connect();
    for _ in 0..3 {
        client.send(GET);
        server.run();
    }
    server.adopt(&text("new"));
    server.run();
    client.send(GET);
    server.run();
    let names: Vec<String> = answers(&client.received())
        .iter()
        .map(|answer| answer.field("X-Name").unwrap_or_default().to_string())
        .collect();
    assert_eq!(names, ["old", "old", "old", "new"]);
}

#[test]
fn an_answer_begun_before_a_reload_does_not_become_hot_after_it() {
    let text =
        |name: &str| one_server(&format!("open_file_cache max=9; add_header X-Name {name};"));
    for reload_at in [1, 5, 9, 11, 15, 19] {
        let mut server = Server::configured(mill_sim::world::World::new(1), &text("old"), 1);
        server.files().set_latency(10 * MS);
        let client = server.connect();
        client.send(GET);
        server.run_to(reload_at * MS);
        server.adopt(&text("new"));
        server.run_to(SECOND);
        client.send(GET);
        server.run_to(2 * SECOND);
        client.send(GET);
        server.run_to(3 * SECOND);
        let names: Vec<String> = answers(&client.received())
            .iter()
            .map(|answer| answer.field("X-Name").unwrap_or_default().to_string())
            .collect();
        assert_eq!(names, ["old", "new", "new"], "reload at {reload_at} ms");
    }
}

#[test]
fn hot_answers_belong_to_their_host_and_their_listener() {
    let text = crate::server::in_http(
        "open_file_cache max=9;
         server { listen 10.0.0.1:80; server_name a; root /site; }
         server { listen 10.0.0.1:80; server_name b; root /other; }
         server { listen 10.0.0.1:81; root /third; }",
    );
    let mut server = Server::configured(mill_sim::world::World::new(1), &text, 1);
    server.files().write("/other/a.txt", "other\n");
    server.files().write("/third/a.txt", "third\n");
    for _ in 0..3 {
        for (host, port, expected) in [
            ("a", 80, "file a\n"),
            ("b", 80, "other\n"),
            ("a", 81, "third\n"),
            ("A", 80, "file a\n"),
        ] {
            let client = server.world.connect(&format!("10.0.0.1:{port}"));
            client.send(format!("GET /a.txt HTTP/1.1\r\nHost: {host}\r\n\r\n"));
            server.run();
            assert_eq!(answer(&client.received()).text(), expected, "{host}:{port}");
        }
    }
}

#[test]
fn hot_answers_hold_no_more_files_open_than_the_cache() {
    let mut server = Server::new(1, "open_file_cache max=100 inactive=2s;");
    for number in 0..50 {
        server.files().write(&format!("/site/{number}"), "x");
        server.ask(&format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n"));
    }
    assert!(server.files().open_files() <= 50);
    // A file that was not used for two seconds is removed when another one is looked up.
    server.run_to(10 * SECOND);
    for _ in 0..50 {
        server.ask(GET);
    }
    let open = server.files().open_files();
    assert!(open < 50, "{open} files are open");
}

const GET_GZIP: &str = "GET /a.txt HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n";

#[test]
fn a_file_is_compressed_once_for_each_state_it_is_found_in() {
    let mut server = Server::new(1, "gzip on; gzip_min_length 1; gzip_types *;");
    let first = answer(&server.ask(GET_GZIP));
    assert_eq!(first.field("Content-Encoding"), Some("gzip"));
    assert_eq!(answer(&server.ask(GET_GZIP)).content, first.content);
    assert_eq!(server.files().calls().read_at, 1, "the second one was kept");
    server.files().replace("/site/a.txt", "something else");
    assert_ne!(answer(&server.ask(GET_GZIP)).content, first.content);
    assert_eq!(server.files().calls().read_at, 2);
}

#[test]
fn a_kept_answer_that_is_compressed_leaves_the_connection_in_order() {
    for chunked in ["on", "off"] {
        let mut server = Server::new(
            1,
            &format!(
                "gzip on; gzip_min_length 1; gzip_types *; open_file_cache max=9; \
                 chunked_transfer_encoding {chunked};"
            ),
        );
        for _ in 0..3 {
            let client = server.connect();
            client.send(GET_GZIP);
            server.run_to(server.world.elapsed() + MS);
            assert_eq!(
                client.is_closed(),
                chunked == "off",
                "the end must be indicated"
            );
            assert!(!client.received().is_empty());
        }
    }
}

#[test]
fn a_listing_is_never_kept() {
    let mut server = Server::new(1, "autoindex on; index none; open_file_cache max=9;");
    let list = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    assert!(!answer(&server.ask(list)).text().contains("newcomer"));
    assert!(!answer(&server.ask(list)).text().contains("newcomer"));
    server.files().write("/site/newcomer.txt", "x");
    assert!(answer(&server.ask(list)).text().contains("newcomer"));
}
