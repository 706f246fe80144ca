//! Requests with content.

use crate::answer::{answer, answers, next};
use crate::server::{MS, SECOND, Server};

const NEXT: &str = "GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n";

/// Statuses of all answers to `requests`, sent whole and then with `later` after a while.
fn statuses(directives: &str, now: &str, later: &str) -> (Vec<u16>, bool) {
    let mut server = Server::new(1, directives);
    let client = server.connect();
    client.send(now);
    if !later.is_empty() {
        client.at(10 * MS).send(later);
    }
    server.run();
    assert!(!client.was_reset(), "{now}{later}");
    let statuses = answers(&client.received())
        .iter()
        .map(|answer| answer.status)
        .collect();
    (statuses, client.is_closed())
}

#[test]
fn unread_content_is_discarded() {
    let check = |method: &str, content: &str, status: u16| {
        let request = format!("{method} / HTTP/1.1\r\nHost: a\r\n{content}");
        for directives in ["", "open_file_cache max=9;"] {
            let whole = statuses(directives, &[&request, NEXT].concat(), "");
            assert_eq!(whole, (vec![status, 200], false), "{request}");
            for split in 1..request.len() {
                let (now, later) = request.split_at(split);
                let split = statuses(directives, now, &[later, NEXT].concat());
                assert_eq!(split, (vec![status, 200], false), "{now} | {later}");
            }
        }
    };
    check("GET", "Content-Length: 5\r\n\r\nabcde", 200);
    check("GET", "Content-Length: 0\r\n\r\n", 200);
    check("POST", "Content-Length: 5\r\n\r\nGET /", 405);
    check("POST", "Content-Length: 0\r\n\r\n", 405);
    check("PUT", "Content-Length: 3\r\n\r\nabc", 405);
    let chunked =
        "Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n";
    check("GET", chunked, 200);
    check("POST", chunked, 405);
    check(
        "GET",
        "Transfer-Encoding: chunked\r\n\r\n0\r\nTrailer: x\r\nOther: y\r\n\r\n",
        200,
    );
    check("GET", "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 200);
}

#[test]
fn a_megabyte_of_content_is_discarded() {
    let mut server = Server::new(1, "");
    let client = server.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
    client.send("x".repeat(1_000_000)).send(NEXT);
    server.run();
    let statuses: Vec<u16> = answers(&client.received())
        .iter()
        .map(|a| a.status)
        .collect();
    assert_eq!(statuses, [405, 200]);
    assert_eq!(client.unsent(), 0);
}

#[test]
fn too_large_content_is_refused_by_413() {
    let check = |content: &str| {
        let directives = "client_max_body_size 10; lingering_timeout 1s;";
        let mut server = Server::new(1, directives);
        let client = server.connect();
        client.send(format!("POST / HTTP/1.1\r\nHost: a\r\n{content}"));
        server.run_until_idle();
        let answer = answer(&client.received());
        assert_eq!(
            (answer.status, answer.keeps_alive()),
            (413, false),
            "{content}"
        );
        assert!(client.is_closed() && !client.was_reset(), "{content}");
        assert!(server.has_logged("client intended to send too large body: 11 bytes"));
        server.assert_nothing_left(0);
    };
    check("Content-Length: 11\r\n\r\n");
    check("Content-Length: 11\r\n\r\n01234567890");
    let (statuses, closed) = statuses(
        "client_max_body_size 10;",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789",
        NEXT,
    );
    assert_eq!(
        (statuses, closed),
        (vec![405, 200], false),
        "ten bytes are not too many"
    );
}

#[test]
fn discarded_chunks_are_not_limited() {
    // As in nginx, discarded content is not counted.
    let head = "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunks = ["ff\r\n", &"x".repeat(255), "\r\n0\r\n\r\n"].concat();
    let directives = "client_max_body_size 10;";
    let at_once = statuses(directives, &[head, &chunks, NEXT].concat(), "");
    assert_eq!(at_once, (vec![200, 200], false));
    let later = statuses(directives, head, &[&chunks, NEXT].concat());
    assert_eq!(later, (vec![200, 200], false));
}

#[test]
fn the_limit_of_content_is_the_locations() {
    let directives =
        "client_max_body_size 10; location /free { client_max_body_size 0; return 204; }";
    let request = "POST /free HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n01234567890";
    assert_eq!(statuses(directives, request, ""), (vec![204], false));
}

#[test]
fn malformed_chunks_end_the_connection() {
    let check = |chunks: &str| {
        for (now, later) in [(chunks, ""), ("", chunks)] {
            let mut server = Server::new(1, "lingering_timeout 1s;");
            let client = server.connect();
            client.send(format!(
                "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{now}"
            ));
            if !later.is_empty() {
                client.at(10 * MS).send(later);
            }
            server.run_to(5 * SECOND);
            let received = client.received();
            let mut rest = received.as_slice();
            let (first, _) = next("GET", &mut rest);
            // As in nginx: refused if it arrived with the head, else the answer has been sent already.
            assert_eq!(
                first.status,
                if now.is_empty() { 200 } else { 400 },
                "{chunks:?} {now:?}"
            );
            assert!(rest.is_empty(), "{}", rest.escape_ascii());
            assert!(
                client.ended_at().is_some(),
                "{chunks:?}: the connection ends"
            );
            server.assert_nothing_left(0);
        }
    };
    check("zz\r\n");
    check("5\r\nabcdeXX");
    check("11111111111111111\r\n");
    check("-1\r\n");
    check("\r\n");
}

#[test]
fn a_client_that_expects_100_gets_it() {
    let mut server = Server::new(1, "");
    let client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
    server.run();
    let received = client.received();
    let mut rest = received.as_slice();
    let (interim, _) = next("GET", &mut rest);
    assert_eq!(interim.head, "HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(answer(rest).status, 200);
    client.send(["body", NEXT].concat());
    server.run();
    assert!(client.received().ends_with(b"file a\n"));
    assert!(!client.is_closed());
}

#[test]
fn a_client_that_sends_content_at_once_gets_no_100() {
    let request =
        "GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\nbody";
    assert_eq!(statuses("", request, ""), (vec![200], false));
    let refused =
        "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 40\r\n\r\n";
    let (statuses, _) = statuses("client_max_body_size 10;", refused, "");
    assert_eq!(statuses, [413], "what is refused is not asked for");
}

#[test]
fn a_client_of_http_1_0_never_gets_100() {
    let request = "GET / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\nbody";
    assert_eq!(statuses("", request, "").0, [200]);
}
