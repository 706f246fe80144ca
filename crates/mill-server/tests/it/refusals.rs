//! Refused heads, and how the connection ends then.

use crate::answer::answer;
use crate::server::{ADDRESS, MS, SECOND, Server, in_http};
use mill_metrics::ServerCounters;
use mill_sim::link::{Link, Segments};
use mill_sim::world::World;

#[test]
fn a_head_that_is_refused_gets_its_status_and_ends_the_connection() {
    let check = |request: &str, status_line: &str, log: &str| {
        let mut server = Server::new(1, "");
        let client = server.connect();
        client.send(request);
        server.run();
        let shown = request.get(..80).unwrap_or(request);
        let answer = answer(&client.received());
        assert_eq!(
            answer.head.split("\r\n").next(),
            Some(status_line),
            "{shown}"
        );
        assert!(!answer.keeps_alive(), "{shown}");
        assert!(!answer.content.is_empty(), "{shown}");
        assert!(!client.was_reset(), "{shown}");
        assert!(client.is_closed(), "{shown}: FIN follows the answer");
        client.finish();
        server.run_until_idle();
        server.assert_nothing_left(0);
        assert!(
            server.has_logged(log),
            "{shown}: {:?} lacks {log}",
            server.error_log()
        );
        assert_eq!(server.counters().requests, 1, "{shown}");
    };
    let bad = "HTTP/1.1 400 Bad Request";
    for (line, log) in [
        ("get / HTTP/1.1", "client sent invalid method"),
        ("GE<T / HTTP/1.1", "client sent invalid method"),
        ("GET  HTTP/1.1", "client sent invalid request"),
        ("GET / HTTP/1.1x", "client sent invalid request"),
        ("GET http://a<b/ HTTP/1.1", "client sent invalid"),
    ] {
        check(&format!("{line}\r\nHost: a\r\n\r\n"), bad, log);
    }
    check("\u{16}\u{3}\u{1}\u{2}", bad, "client sent invalid method");
    check("GET /\r\n", bad, "client sent HTTP/0.9 request");
    check(
        "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
        "HTTP/1.1 505 HTTP Version Not Supported",
        "client sent invalid version",
    );
    let long = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(8192));
    check(
        &long,
        "HTTP/1.1 414 Request-URI Too Large",
        "client sent too long URI",
    );
    let long = format!("Host: a\r\nX: {}", "x".repeat(8192));
    let large = format!("X: {}\r\n", "x".repeat(8000)).repeat(6);
    let large = format!("Host: a\r\n{}", large.trim_end());
    let many = format!("Host: a\r\n{}X: y", "X: y\r\n".repeat(1000));
    let both = "\"Content-Length\" and \"Transfer-Encoding\" headers at the same time";
    for (fields, log) in [
        ("Host : a", "client sent invalid header line"),
        ("Host: a\r\n folded", "client sent invalid header line"),
        ("Host: a\r\nX: a\0b", "client sent invalid header line"),
        (&long, "client sent too long header line"),
        (&large, "client sent too large request"),
        (&many, "client sent too many header lines"),
        (
            "Host: a\r\nContent-Length: 1\r\nContent-Length: 1",
            "client sent duplicate header line",
        ),
        ("Host: a\r\nHost: a", "client sent duplicate host header"),
        ("Host: a/b", "client sent invalid host header"),
        ("X: y", "without \"Host\" header"),
        (
            "Host: a\r\nContent-Length: -1",
            "client sent invalid \"Content-Length\" header",
        ),
        (
            "Host: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked",
            both,
        ),
    ] {
        check(&format!("GET / HTTP/1.1\r\n{fields}\r\n\r\n"), bad, log);
    }
    let old = "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    check(
        old,
        bad,
        "client sent HTTP/1.0 request with \"Transfer-Encoding\"",
    );
    let coding = "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n";
    let unknown = "client sent unknown \"Transfer-Encoding\"";
    check(coding, "HTTP/1.1 501 Not Implemented", unknown);
}

#[test]
fn an_answered_request_before_a_refused_one_is_answered() {
    let mut server = Server::new(1, "");
    let client = server.connect();
    client.send("GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\nnonsense\r\n\r\n");
    server.run();
    let answers = crate::answer::answers(&client.received());
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses, [200, 400]);
    assert!(client.is_closed());
}

#[test]
fn methods_that_files_do_not_answer_get_405_and_the_connection_stays() {
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "FOO"] {
        let mut server = Server::new(1, "");
        let client = server.connect();
        client.send(format!("{method} /a.txt HTTP/1.1\r\nHost: a\r\n\r\n"));
        server.run();
        let answer = answer(&client.received());
        assert_eq!(
            (answer.status, answer.keeps_alive()),
            (405, true),
            "{method}"
        );
    }
}

#[test]
fn a_client_that_goes_on_sending_gets_the_whole_answer_and_no_reset() {
    let check = |request: &str, status: u16| {
        let mut server = Server::new(1, "client_max_body_size 1k; lingering_timeout 5s;");
        server.world.set_link(Link {
            delay: 5 * MS,
            segments: Segments::UpTo(500),
            ..Link::IDEAL
        });
        let client = server.connect();
        client.send(request);
        for at in 0..40 {
            client
                .at(at * 10 * MS)
                .send("more bytes to be ignored, ".repeat(50));
        }
        client.at(SECOND).finish();
        server.run_until_idle();
        let answer = answer(&client.received());
        assert_eq!(answer.status, status, "{request}");
        assert!(client.is_closed() && !client.was_reset(), "{request}");
        assert_eq!(client.unsent(), 0, "all of it was taken");
        server.assert_nothing_left(0);
    };
    check("nonsense\r\n", 400);
    check(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n",
        413,
    );
    check(
        "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n",
        501,
    );
}

#[test]
fn lingering_ends_after_its_timeout_and_after_its_time() {
    let mut server = Server::new(1, "lingering_timeout 2s; lingering_time 7s;");
    let (quiet, busy) = (server.connect(), server.connect());
    quiet.send("nonsense\r\n");
    busy.send("nonsense\r\n");
    for second in 1..20 {
        busy.at(second * SECOND).send("more");
    }
    server.run_to(1999 * MS);
    assert_eq!(server.streams(), 2);
    server.run_to(2000 * MS);
    assert_eq!(server.streams(), 1, "nothing came for two seconds");
    server.run_to(6999 * MS);
    assert_eq!(server.streams(), 1);
    server.run_to(7000 * MS);
    assert_eq!(server.streams(), 0);
    server.run_until_idle();
    assert!(busy.was_reset(), "a client that still sends then is reset");
    server.assert_nothing_left(0);
}

#[test]
fn without_lingering_the_connection_is_closed_at_once() {
    let mut server = Server::new(1, "lingering_close off;");
    let client = server.connect();
    client.send("nonsense\r\n");
    server.run();
    assert_eq!(answer(&client.received()).status, 400);
    server.assert_nothing_left(0);
}

#[test]
fn lingering_always_waits_for_the_client_to_finish() {
    let mut server = Server::new(1, "lingering_close always; lingering_timeout 3s;");
    let client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    server.run();
    assert!(client.is_closed());
    assert_eq!(server.streams(), 1);
    client.finish();
    server.run();
    server.assert_nothing_left(0);
}

#[test]
fn lines_that_end_in_lf_are_accepted_where_the_default_server_is_configured_so() {
    let check = |first: &str, second: &str, request: &str, status: u16| {
        let text = in_http(&format!(
            "server {{ listen {ADDRESS}; root /site; server_name a; {first} }}
             server {{ listen {ADDRESS}; root /site; server_name b; {second} }}"
        ));
        let mut server = Server::configured(World::new(1), &text, 1);
        let client = server.connect();
        client.send(request);
        server.run();
        assert_eq!(answer(&client.received()).status, status, "{request:?}");
        let says = server.logs.lines("/error.log").iter().any(|line| {
            line.contains("ends in LF without CR (\"accept_bare_lf\" is off) while reading client")
        });
        assert_eq!(says, status == 400, "{request:?}");
    };
    let health = "GET / HTTP/1.0\n\n";
    let mixed = "GET / HTTP/1.1\r\nHost: b\nConnection: close\r\n\n";
    for request in [health, mixed] {
        check("", "", request, 400);
        check("accept_bare_lf on;", "", request, 200);
        check("", "accept_bare_lf on;", request, 400);
    }
    check("", "", "GET / HTTP/1.1\r\nHost: a\r\n\n", 400);
    check("", "", "\nGET / HTTP/1.0\r\n\r\n", 400);
}

#[test]
fn lines_of_chunks_never_end_in_lf_alone() {
    for chunks in [
        "3\nabc\r\n0\r\n\r\n",
        "3\r\nabc\n0\r\n\r\n",
        "0\r\nT: x\n\r\n",
        "0\n\n",
    ] {
        let mut server = Server::new(1, "accept_bare_lf on; location / { return 200; }");
        let client = server.connect();
        client.send(format!(
            "POST / HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n{chunks}"
        ));
        server.run();
        assert_eq!(answer(&client.received()).status, 400, "{chunks:?}");
    }
}

#[test]
fn fields_ignored_for_their_names_are_logged_also_when_the_answer_is_kept() {
    let mut server = Server::new(1, "open_file_cache max=9;");
    for _ in 0..3 {
        server.ask("GET /a.txt HTTP/1.1\r\nHost: a\r\nX(: y\r\nConnection: close\r\n\r\n");
    }
    let lines = server.logs.lines("/error.log");
    let told = "client sent invalid header line: \"X(: y\" while reading client request headers";
    let told = lines.iter().filter(|line| line.contains(told)).count();
    assert_eq!(told, 3, "{lines:?}");
}

#[test]
fn a_refused_head_is_counted_by_what_is_wrong_with_it() {
    let check = |request: &str, counter: fn(&ServerCounters) -> u64| {
        let mut server = Server::new(1, "");
        server.ask(request);
        assert_eq!(counter(&server.counters()), 1, "{request}");
    };
    check("G\u{1}T / HTTP/1.1\r\nHost: a\r\n\r\n", |all| {
        all.refused_request_line
    });
    check("GET / HTTP/3.0\r\nHost: a\r\n\r\n", |all| {
        all.refused_version
    });
    check("GET / HTTP/1.1\r\n\r\n", |all| all.refused_host);
    check("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", |all| {
        all.refused_host
    });
    check("GET / HTTP/1.1\r\nHost: a\r\nX : b\r\n\r\n", |all| {
        all.refused_field_line
    });
    let framing =
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n";
    check(framing, |all| all.refused_framing);
    let coding = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n";
    check(coding, |all| all.refused_coding);
    let long = format!(
        "GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n",
        "x".repeat(40_000)
    );
    check(&long, |all| all.limit_header_buffers);
    check(
        &format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(40_000)),
        |all| all.limit_header_buffers,
    );
    for target in ["/%zz", "/%00", "/../a", "/%2e%2e/a"] {
        check(
            &format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"),
            |all| all.refused_target,
        );
    }
    for (method, target) in [
        ("TRACE", "/a.txt"),
        ("CONNECT", "a:1"),
        ("PUT", "/a.txt"),
        ("POST", "/a.txt"),
    ] {
        check(
            &format!("{method} {target} HTTP/1.1\r\nHost: a\r\n\r\n"),
            |all| all.refused_method,
        );
    }
}

#[test]
fn what_is_answered_is_counted_as_refused_by_nothing() {
    let mut server = Server::new(1, "");
    for request in [
        "GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        "HEAD /a.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /b/../a.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        // There is nothing whose method it could be.
        "POST /none HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        server.ask(request);
    }
    let counters = server.counters();
    assert_eq!((counters.refused_target, counters.refused_method), (0, 0));
}

#[test]
fn a_host_that_the_target_overrules_is_counted_and_told() {
    for (target, host, is_told) in [
        ("http://shop.example/a.txt", "evil.example", true),
        (
            "http://shop.example/a.txt",
            "shop.example.evil.example",
            true,
        ),
        ("http://shop.example/a.txt", "shop", true),
        ("http://shop.example:80/a.txt", "SHOP.example", false),
        ("http://shop.example/a.txt", "shop.example.:8080", false),
        ("http://shop.example/a.txt", "", false),
        ("/a.txt", "evil.example", false),
    ] {
        let mut server = Server::new(1, "error_log /error.log info;");
        server.ask(&format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        let counted = server.counters().overruled_host;
        assert_eq!(counted, u64::from(is_told), "{target} {host}");
        let text = format!("client sent host header \"{host}\" with a target of \"shop.example\"");
        assert_eq!(
            server.has_logged(&text),
            is_told,
            "{:?}",
            server.error_log()
        );
    }
}
