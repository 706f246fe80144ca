//! Access and error log lines.

use crate::server::{ADDRESS, MS, SECOND, Server, in_http};
use mill_sim::world::World;

const FORMAT: &str = "log_format story '\"$request\" $status $bytes_sent $body_bytes_sent \
                      $request_time $request_length $request_completion'; \
                      access_log /access.log story;";

fn start(directives: &str) -> Server {
    let server = format!("server {{ listen {ADDRESS}; root /site; {FORMAT_PLACE} {directives} }}");
    let text = in_http(&format!("{FORMAT} {server}"));
    Server::configured(World::new(1), &text.replace("access_log off;", ""), 1)
}

/// The log is configured a level above.
const FORMAT_PLACE: &str = "";

fn lines(server: &Server) -> Vec<String> {
    server.logs.lines("/access.log")
}

#[test]
fn the_combined_line_is_nginxs() {
    let text = in_http(&format!(
        "server {{ listen {ADDRESS}; root /site; access_log /access.log; }}"
    ));
    let mut server = Server::configured(World::new(1), &text, 1);
    let client = server.world.connect_from("192.0.2.7:5000", ADDRESS);
    client.send("GET /a.txt?x HTTP/1.1\r\nHost: a\r\nUser-Agent: \"me\"\r\nReferer: r\r\n\r\n");
    client.send("GET /none HTTP/1.0\r\n\r\n");
    server.run();
    let expected = [
        "192.0.2.7 - - [01/Jan/2026:00:00:00 +0000] \"GET /a.txt?x HTTP/1.1\" 200 7 \"r\" \
         \"\\x22me\\x22\"",
        "192.0.2.7 - - [01/Jan/2026:00:00:00 +0000] \"GET /none HTTP/1.0\" 404 LEN \"-\" \"-\"",
    ];
    let lines = lines(&server);
    assert_eq!(lines[0], expected[0]);
    let page = crate::answer::answers(&client.received())[1]
        .content
        .len()
        .to_string();
    assert_eq!(lines[1], expected[1].replace("LEN", &page));
    assert_eq!(lines.len(), 2);
}

#[test]
fn rows_are_those_of_tempesta_fws_logger() {
    let table = "access_log clickhouse:db/logs.hits vhost=main; access_log clickhouse:db/logs.others if=$arg_row;";
    let text = in_http(&format!(
        "server {{ listen {ADDRESS}; server_name a; root /site; open_file_cache max=9; {table} }}"
    ));
    let mut server = Server::configured(World::new(1), &text, 1);
    let client = server.world.connect_from("192.0.2.7:5000", ADDRESS);
    client.send("GET /a.txt?x HTTP/1.1\r\nHost: a\r\nUser-Agent: m\te\\\r\nReferer: r\r\n\r\n");
    client.send("GET /a.txt?x HTTP/1.1\r\nHost: a\r\nUser-Agent: hot\r\n\r\n");
    client.send("BREW /a.txt?row=1 HTTP/1.0\r\n\r\n");
    server.run();
    let rows = server.logs.lines("clickhouse:db:8123/logs.hits");
    let columns = |row: &str| -> Vec<String> { row.split('\t').map(String::from).collect() };
    let first = columns(&rows[0]);
    let begin = [
        "1767225600.000",
        "::ffff:192.0.2.7",
        "3",
        "3",
        "200",
        "7",
        "0",
        "main",
        "/a.txt?x",
    ];
    assert_eq!(first[..9], begin, "{rows:?}");
    assert_eq!(first[9..12], ["r", "m\\te\\\\", "0"], "{rows:?}");
    assert!(first.len() == 13 && first[12].parse::<u64>().unwrap() > 0);
    let second = columns(&rows[1]);
    assert_eq!(second[..9], begin, "{rows:?}");
    assert_eq!(second[9..12], ["", "hot", "0"]);
    // A method that Tempesta FW has no number for.
    assert_eq!(columns(&rows[2])[2..5], ["17", "2", "405"], "{rows:?}");
    let others = server.logs.lines("clickhouse:db:8123/logs.others");
    assert_eq!((rows.len(), others.len()), (3, 1));
    assert_eq!(columns(&others[0])[7..9], ["a", "/a.txt?row=1"]);
}

#[test]
fn bytes_and_times_are_what_the_client_saw() {
    let mut server = start("keepalive_timeout 5s;");
    let client = server.connect();
    client
        .read_at_rate(100_000)
        .send("GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n");
    server.run();
    let sent = client.received().len();
    let line = lines(&server).remove(0);
    let words: Vec<&str> = line.split(' ').collect();
    assert_eq!(words[3..6], ["200", &sent.to_string(), "1048576"], "{line}");
    assert_eq!(words[7..], ["34", "OK"], "{line}");
    // All bytes except a window have been read when the last ones are queued.
    let seconds: f64 = words[6].parse().unwrap();
    assert!((9.0..10.6).contains(&seconds), "{line}");
}

#[test]
fn a_slow_head_counts_from_its_first_byte() {
    let mut server = start("");
    let client = server.connect();
    client.at(SECOND).send("GET /a.txt HTTP/1.1\r\n");
    client.at(SECOND + 1234 * MS).send("Host: a\r\n\r\n");
    server.run();
    let words = lines(&server).remove(0);
    assert!(
        words.contains(" 1.234 "),
        "as nginx's $request_time: {words}"
    );
}

#[test]
fn each_request_of_a_connection_has_its_line_in_order() {
    let mut server = start("");
    let client = server.connect();
    for path in ["/a.txt", "/none", "/b.txt", "/"] {
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
    }
    server.run();
    let heads: Vec<String> = lines(&server)
        .iter()
        .map(|line| line.split('"').nth(1).unwrap_or_default().to_string())
        .collect();
    let expected = ["/a.txt", "/none", "/b.txt", "/"].map(|path| format!("GET {path} HTTP/1.1"));
    assert_eq!(heads, expected);
}

#[test]
fn head_and_304_have_no_body_bytes() {
    let mut server = start("");
    for request in [
        "HEAD /a.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /a.txt HTTP/1.1\r\nHost: a\r\nIf-None-Match: *\r\n\r\n",
    ] {
        let received = server.ask(request);
        let line = lines(&server).pop().unwrap();
        assert!(
            line.contains(&format!(" {} 0 0.000 ", received.len())),
            "{line}"
        );
    }
}

#[test]
fn a_compressed_answer_counts_what_was_sent() {
    let mut server = start("gzip on; gzip_types *; gzip_min_length 1;");
    let received = server.ask("GET /big.bin HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
    let line = lines(&server).pop().unwrap();
    let bytes: usize = line.split(' ').nth(4).unwrap().parse().unwrap();
    assert_eq!(bytes, received.len(), "{line}");
    let head_len = received.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 4;
    let body: usize = line.split(' ').nth(5).unwrap().parse().unwrap();
    assert_eq!(
        body,
        received.len() - head_len,
        "as nginx: all but the head: {line}"
    );
}

#[test]
fn a_refused_head_is_logged_with_its_status() {
    let check = |request: &str, logged: &str, status: u16| {
        let mut server = start("");
        server.ask(request);
        let line = lines(&server).pop().unwrap_or_default();
        assert!(
            line.starts_with(&format!("\"{logged}\" {status} ")),
            "{line}"
        );
    };
    check("GE T / HTTP/1.1\r\nHost: a\r\n\r\n", "GE T / HTTP/1.1", 400);
    check("GET / HTTP/1.1\r\nHost : a\r\n\r\n", "GET / HTTP/1.1", 400);
    let long = format!(
        "GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n",
        "x".repeat(9000)
    );
    check(&long, "GET / HTTP/1.1", 400);
    check("GET / HTTP/3.0\r\nHost: a\r\n\r\n", "GET / HTTP/3.0", 505);
}

#[test]
fn a_head_that_is_too_slow_is_logged_with_408() {
    let check = |begun: &str, line: &str, error: &str| {
        let mut server = start("client_header_timeout 3s;");
        let client = server.connect();
        client.send(begun);
        server.run_until_idle();
        let access = lines(&server);
        assert_eq!(access.len(), 1, "{begun}: {access:?}");
        assert!(access[0].starts_with(line), "{access:?}");
        assert!(server.has_logged(error), "{:?}", server.error_log());
    };
    let out = "client timed out (110: Connection timed out) while reading client request";
    check(
        "GET / HT",
        "\"GET / HT\" 408 0 0 3.000 ",
        &format!("{out} line"),
    );
    check(
        "GET / HTTP/1.1\r\nHo",
        "\"GET / HTTP/1.1\" 408 0 0 3.000 ",
        &format!("{out} headers"),
    );
}

#[test]
fn a_head_that_breaks_off_is_logged_with_400() {
    let check = |begun: &str, line: &str, error: &str| {
        let mut server = start("");
        let client = server.connect();
        client.send(begun).finish();
        server.run();
        let access = lines(&server);
        assert_eq!(access.len(), 1, "{begun}: {access:?}");
        assert!(access[0].starts_with(line), "{access:?}");
        assert!(server.has_logged(error), "{:?}", server.error_log());
    };
    let out = "client prematurely closed connection while reading client request";
    check(
        "GET / HT",
        "\"GET / HT\" 400 0 0 0.000 ",
        &format!("{out} line"),
    );
    check(
        "GET / HTTP/1.1\r\nHo",
        "\"GET / HTTP/1.1\" 400 0 0 0.000 ",
        &format!("{out} headers"),
    );
}

#[test]
fn a_connection_without_a_request_has_no_line() {
    let mut server = start("client_header_timeout 3s;");
    let client = server.connect();
    server.run_until_idle();
    assert!(client.is_closed());
    assert!(lines(&server).is_empty());
    let text = "client timed out (110: Connection timed out) while waiting for request";
    assert!(server.has_logged(text), "{:?}", server.error_log());
}

#[test]
fn a_client_that_leaves_within_the_answer_has_its_line() {
    let mut server = start("");
    let client = server.connect();
    client
        .read_at_rate(100_000)
        .send("GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n");
    client.at(SECOND).reset();
    server.run();
    let line = lines(&server).pop().unwrap();
    let words: Vec<&str> = line.split(' ').collect();
    assert_eq!(words[3], "200", "{line}");
    assert_eq!(
        words.last(),
        Some(&""),
        "$request_completion is empty: {line}"
    );
    let sent: u64 = words[4].parse().unwrap();
    assert!(
        sent < 300_000,
        "nginx tells what went out, not what was meant to: {line}"
    );
    let text = "while sending response to client";
    assert!(server.has_logged(text), "{:?}", server.error_log());
    assert_eq!(server.counters().connections_reset, 1);
}

#[test]
fn a_client_that_takes_nothing_has_its_line_and_its_error() {
    let mut server = start("send_timeout 4s;");
    let client = server.connect();
    client
        .stop_reading()
        .send("GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n");
    server.run_until_idle();
    let line = lines(&server).pop().unwrap();
    assert!(line.contains(" 200 ") && line.contains(" 4.000 "), "{line}");
    let text = "client timed out (110: Connection timed out) while sending response to client";
    assert!(server.has_logged(text), "{:?}", server.error_log());
}

#[test]
fn an_error_line_has_the_client_and_its_request() {
    let mut server = start("server_name site;");
    let client = server.world.connect_from("192.0.2.7:5000", ADDRESS);
    client
        .at(1500 * MS)
        .send("GET /none HTTP/1.1\r\nHost: a\r\nReferer: r\r\n\r\n");
    server.run();
    let expected = "2026/01/01 00:00:01 [error] 100#101: *1 open() \"/site/none\" failed \
                    (2: No such file or directory), client: 192.0.2.7, server: site, \
                    request: \"GET /none HTTP/1.1\", host: \"a\", referrer: \"r\"";
    assert_eq!(server.error_log(), [expected]);
}

#[test]
fn a_closed_request_is_logged_with_444() {
    let mut server = start("location /close { return 444; }");
    let client = server.connect();
    client.send("GET /close HTTP/1.1\r\nHost: a\r\n\r\n");
    server.run();
    assert_eq!(client.received(), b"");
    assert!(client.is_closed());
    let expected = "\"GET /close HTTP/1.1\" 444 0 0 0.000 ";
    assert!(
        lines(&server)[0].starts_with(expected),
        "{:?}",
        lines(&server)
    );
    server.assert_nothing_left(0);
}

#[test]
fn with_a_log_an_answer_is_never_given_without_its_line() {
    let mut server = start("open_file_cache max=9;");
    let client = server.connect();
    for _ in 0..5 {
        client.send("GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n");
        server.run();
    }
    assert_eq!(lines(&server).len(), 5);
}

/// nginx 1.22.1 logs the same for this text: the chunks around the compressed bytes do not count.
#[test]
fn gzip_ratio_is_that_of_the_content_without_its_framing() {
    let text = "a".repeat(95);
    let server_text = in_http(&format!(
        "log_format ratio '$gzip_ratio'; access_log /access.log ratio;
         gzip on; gzip_min_length 1; gzip_types *; gzip_http_version 1.0;
         server {{ listen {ADDRESS}; location / {{ return 200 {text}; }} }}"
    ));
    let server_text = server_text.replace("access_log off;", "");
    let mut server = Server::configured(World::new(1), &server_text, 1);
    for (request, expected) in [
        ("GET / HTTP/1.1\r\nHost: a", "3.96"),
        ("GET / HTTP/1.0", "3.96"),
        ("HEAD / HTTP/1.1\r\nHost: a", "-"),
    ] {
        server.ask(&format!("{request}\r\nAccept-Encoding: gzip\r\n\r\n"));
        let lines = server.logs.lines("/access.log");
        assert_eq!(
            lines.last().map(String::as_str),
            Some(expected),
            "{request}"
        );
    }
}
