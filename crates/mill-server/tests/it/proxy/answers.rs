//! The answer that the client gets, and its content.

use super::origin::{Act, ok, send};
use super::{KEPT, Proxy, content, get};
use crate::server::{MS, SECOND};

fn answer(directives: &str, acts: Vec<Act>) -> String {
    let mut proxy = Proxy::new(directives, move |_, _| acts.clone());
    let client = proxy.server.connect();
    client.send(get("/"));
    proxy.server.run_to(SECOND);
    String::from_utf8_lossy(&client.received()).into_owned()
}

#[test]
fn the_answers_fields_are_passed_except_those_of_the_connection() {
    let head = "HTTP/1.1 200 OK\r\nServer: origin\r\nDate: x\r\nX-A: 1\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nKeep-Alive: timeout=1\r\nConnection: close\r\nContent-Type: text/x\r\nX-Accel-Expires: 1\r\nContent-Length: 2\r\n\r\nok";
    let answer = answer(KEPT, vec![send(head)]);
    let lines: Vec<&str> = answer
        .lines()
        .filter(|line| !line.starts_with("Date"))
        .collect();
    assert_eq!(
        lines[1..],
        [
            "Server: millstream/0.1.0",
            "Content-Type: text/x",
            "Content-Length: 2",
            "Connection: keep-alive",
            "X-A: 1",
            "Set-Cookie: a",
            "Set-Cookie: b",
            "",
            "ok"
        ]
    );
}

#[test]
fn fields_that_the_servers_connection_names_are_not_passed_on() {
    let head = "HTTP/1.1 200 OK\r\nConnection: Upgrade, x-hop, Date\r\nUpgrade: h2c\r\nX-Hop: 1\r\nX-End: 2\r\nContent-Length: 2\r\n\r\nok";
    let answer = answer(KEPT, vec![send(head)]);
    assert!(answer.contains("\r\nX-End: 2\r\n"), "{answer}");
    assert!(answer.contains("\r\nDate: "), "{answer}");
    assert!(
        !answer.contains("X-Hop") && !answer.contains("Upgrade"),
        "{answer}"
    );
}

#[test]
fn server_and_date_of_the_server_replace_ours_where_they_are_passed() {
    let head = "HTTP/1.1 200 OK\r\nServer: origin\r\nDate: x\r\nContent-Length: 2\r\n\r\nok";
    let directives = format!("proxy_pass_header Server; proxy_pass_header Date; {KEPT}");
    let answer = answer(&directives, vec![send(head)]);
    let expected = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\nServer: origin\r\nDate: x\r\n\r\nok";
    assert_eq!(answer, expected);
}

#[test]
fn a_piece_that_arrives_is_compressed_and_leaves_at_once() {
    let directives = "gzip on; gzip_types *; location / { proxy_pass http://app; }";
    let mut proxy = Proxy::new(directives, |_, _| {
        vec![
            send("HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"),
            send("data: one\n\n"),
            Act::Wait(SECOND),
            send("data: two\n\n"),
            Act::Wait(SECOND),
            Act::Close,
        ]
    });
    let client = proxy.server.connect();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
    let mut arrived = Vec::new();
    for half_seconds in [1, 3] {
        proxy.server.run_to(half_seconds * SECOND / 2);
        arrived.push(client.received().len());
    }
    proxy.server.run_until_idle();
    assert_eq!(
        crate::answer::answer(&client.received()).unzipped(),
        b"data: one\n\ndata: two\n\n"
    );
    let head = client
        .received()
        .windows(4)
        .position(|four| four == b"\r\n\r\n");
    assert!(arrived[0] > head.unwrap() + 20, "{arrived:?}");
    assert!(arrived[1] > arrived[0], "{arrived:?}");
}

#[test]
fn chunks_arrive_as_chunks_and_the_end_of_the_connection_ends_content() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunks = vec![
        send(head),
        send("3\r\nabc\r\n"),
        Act::Wait(5 * MS),
        send("2\r\nde\r\n0\r\n\r\n"),
    ];
    let answer_in_chunks = answer(KEPT, chunks);
    assert_eq!(
        content(&answer_in_chunks),
        "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    );
    let until_close = answer(KEPT, vec![send("HTTP/1.0 200 OK\r\n\r\nabc"), Act::Close]);
    assert_eq!(content(&until_close), "3\r\nabc\r\n0\r\n\r\n");
}

#[test]
fn answers_without_content_have_none() {
    for head in [
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n",
    ] {
        let answer = answer(KEPT, vec![send(head)]);
        assert!(answer.starts_with(&head[..12]), "{answer}");
        assert_eq!(content(&answer), "");
    }
}

#[test]
fn a_large_answer_arrives_whole_at_a_slow_client() {
    let big = String::from_utf8(crate::server::big().to_vec()).unwrap();
    let expected = big.clone();
    let mut proxy = Proxy::new(KEPT, move |_, _| vec![ok(&big)]);
    let client = proxy.server.connect();
    client.read_at_rate(100_000).send(get("/"));
    proxy.server.run_until_idle();
    let received = client.received();
    assert!(received.ends_with(expected.as_bytes()));
    assert_eq!(proxy.access_log().len(), 1);
}

#[test]
fn an_answer_is_logged_with_its_server() {
    let mut proxy = Proxy::new(KEPT, |_, _| vec![ok("abc")]);
    proxy.ask(&get("/"));
    assert_eq!(proxy.access_log(), ["200 10.0.0.2:80 200 3"]);
}

#[test]
fn the_servers_reason_phrase_is_passed_on() {
    let answer = answer(
        KEPT,
        vec![send("HTTP/1.1 299 It depends\r\nContent-Length: 0\r\n\r\n")],
    );
    assert!(
        answer.starts_with("HTTP/1.1 299 It depends\r\n"),
        "{answer}"
    );
}

#[test]
fn an_error_page_answers_for_an_intercepted_status() {
    let directives =
        "location / { proxy_pass http://app; proxy_intercept_errors on; error_page 404 /a.txt; }
        location = /a.txt { }";
    let answer = answer(
        directives,
        vec![send("HTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\nx")],
    );
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    assert_eq!(content(&answer), "file a\n");
}

/// The value of this field in the answer to a request for `/one/x`, where the origin sends `line`.
fn field(directives: &str, line: &str, name: &str) -> String {
    let head = format!("HTTP/1.1 302 Found\r\n{line}\r\nContent-Length: 0\r\n\r\n");
    let directives = format!("location /one/ {{ proxy_pass http://app/two/; {directives} }}");
    let mut proxy = Proxy::new(&directives, move |_, _| vec![send(&head)]);
    let answer = proxy.ask(&get("/one/x"));
    let mut lines = answer.lines();
    let found = lines.find_map(|line| line.strip_prefix(&format!("{name}: ")));
    found.unwrap_or("none").to_owned()
}

#[test]
fn redirects_of_the_server_are_the_clients() {
    let check = |directives: &str, sent: &str, expected: &str| {
        let found = field(directives, &format!("Location: {sent}"), "Location");
        assert_eq!(found, expected, "{directives} {sent}");
    };
    check("", "http://app/two/b", "http://a/one/b");
    check("", "http://other/two/b", "http://other/two/b");
    check(
        "proxy_redirect off;",
        "http://app/two/b",
        "http://app/two/b",
    );
    check(
        "proxy_redirect http://x/ /y/;",
        "http://x/b",
        "http://a/y/b",
    );
    check(
        "proxy_redirect ~^http://x:(\\d+)/(.*) http://z/$1/$2;",
        "http://x:81/b",
        "http://z/81/b",
    );
    check(
        "proxy_redirect http://x/ $scheme://$host/;",
        "http://x/b",
        "http://a/b",
    );
    let refresh = field("", "Refresh: 5; URL=http://app/two/c", "Refresh");
    assert_eq!(refresh, "5; URL=/one/c");
}

#[test]
fn cookies_get_other_domains_paths_and_flags() {
    let check = |directives: &str, sent: &str, expected: &str| {
        let found = field(directives, &format!("Set-Cookie: {sent}"), "Set-Cookie");
        assert_eq!(found, expected, "{directives} {sent}");
    };
    check("", "a=b; path=/two/", "a=b; path=/two/");
    check(
        "proxy_cookie_path /two/ /one/;",
        "a=b; Path=/two/x; Secure",
        "a=b; Path=/one/x; Secure",
    );
    check(
        "proxy_cookie_domain app.local example.org;",
        "a=b; domain=.App.local",
        "a=b; domain=.example.org",
    );
    check(
        "proxy_cookie_domain ~\\.(\\w+)$ $1.org;",
        "a=b; domain=x.y",
        "a=b; domain=y.org",
    );
    check(
        "proxy_cookie_flags a httponly samesite=lax nosecure;",
        "a=b; Secure",
        "a=b; HttpOnly; SameSite=Lax",
    );
    check("proxy_cookie_flags ~. httponly;", "a", "a");
    check(
        "proxy_cookie_flags c httponly;",
        "a=b; Secure",
        "a=b; Secure",
    );
}

#[test]
fn of_several_redirects_to_locations_the_first_one_counts_and_cookies_are_the_clients() {
    let head = "HTTP/1.1 200 OK\r\nX-Accel-Redirect: /one\r\nX-Accel-Redirect: /two\r\n\
                Set-Cookie: a=b; path=/x\r\nContent-Length: 0\r\n\r\n";
    let directives = "location = / { proxy_pass http://app; proxy_cookie_path /x /y; } location / { return 200 $uri; }";
    let answer = answer(directives, vec![send(head)]);
    assert_eq!(content(&answer), "/one");
    assert!(
        answer.contains("\r\nSet-Cookie: a=b; path=/y\r\n"),
        "{answer}"
    );
}

#[test]
fn a_page_of_our_own_has_no_ranges_and_a_204_of_the_server_keeps_its_type() {
    let head = "HTTP/1.1 200 OK\r\nX-Accel-Redirect: /none\r\nAccept-Ranges: bytes\r\nContent-Length: 0\r\n\r\n";
    let directives = "location = / { proxy_pass http://app; } location / { return 404; }";
    let page = answer(directives, vec![send(head)]);
    assert!(
        page.starts_with("HTTP/1.1 404") && !page.contains("Accept-Ranges"),
        "{page}"
    );
    let head = "HTTP/1.1 204 No Content\r\nContent-Type: text/x\r\n\r\n";
    let empty = answer(KEPT, vec![send(head)]);
    assert!(empty.contains("\r\nContent-Type: text/x\r\n"), "{empty}");
}

#[test]
fn a_location_that_keeps_no_connections_redirects_to_one_whose_answer_closes() {
    let head = "HTTP/1.1 200 OK\r\nX-Accel-Redirect: /kept\r\nContent-Length: 0\r\n\r\n";
    let check = |setting: &str, connection: &str| {
        let directives = format!(
            "location = / {{ proxy_pass http://app; {setting} }} location / {{ return 200 $uri; }}"
        );
        let answer = answer(&directives, vec![send(head)]);
        let line = format!("\r\nConnection: {connection}\r\n");
        assert!(answer.contains(&line), "{setting} {answer}");
    };
    check("keepalive_timeout 0;", "close");
    check("", "keep-alive");
}

#[test]
fn the_server_names_the_charset_of_content_that_has_no_other_one() {
    let check = |directives: &str, status: &str, fields: &str, expected: &str| {
        let head = format!("HTTP/1.1 {status}\r\n{fields}\r\nContent-Length: 0\r\n\r\n");
        let directives = format!("charset_types *; {directives} {KEPT}");
        let answer = answer(&directives, vec![send(&head)]);
        let mut lines = answer.lines();
        let line = lines.find_map(|line| line.strip_prefix("Content-Type: "));
        assert_eq!(line, Some(expected), "{directives} {status} {fields}");
    };
    let told = "X-Accel-Charset: koi8-r\r\nContent-Type: ";
    check("", "200 OK", &format!("{told}a/b"), "a/b; charset=koi8-r");
    check("", "302 Found", &format!("{told}a/b"), "a/b");
    let own = format!("{told}a/b; charset=KOI8-R");
    check("", "200 OK", &own, "a/b; charset=koi8-r");
    let other = format!("{told}a/b; charset=x");
    check("", "200 OK", &other, "a/b; charset=x");
    let coded = format!("Content-Encoding: gzip\r\n{told}a/b");
    check("", "200 OK", &coded, "a/b");
    let own = "Content-Type: a/b; charset=\"x\"";
    check("charset utf-8;", "200 OK", own, "a/b; charset=\"x\"");
    check(
        "charset X; override_charset on;",
        "200 OK",
        own,
        "a/b; charset=X",
    );
}

#[test]
fn the_charset_that_the_server_names_is_that_of_the_file_that_it_redirects_to() {
    let head = "HTTP/1.1 200 OK\r\nX-Accel-Redirect: /kept\r\nX-Accel-Charset: koi8-r\r\n\
                Content-Type: a/b\r\nContent-Length: 0\r\n\r\n";
    let directives = "location = / { proxy_pass http://app; } location / { return 200 $uri; }";
    let answer = answer(directives, vec![send(head)]);
    let line = "\r\nContent-Type: a/b; charset=koi8-r\r\n";
    assert!(answer.contains(line), "{answer}");
    assert!(!answer.contains("X-Accel"), "{answer}");
}

#[test]
fn a_type_with_a_charset_is_compressed_as_the_type() {
    let text = "x".repeat(100);
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html;charset=utf-8\r\nAccept-Ranges: none\r\n\
         Content-Length: 100\r\n\r\n{text}"
    );
    let directives = format!("gzip on; gzip_vary on; {KEPT}");
    let plain = answer(&directives, vec![send(&head)]);
    assert!(plain.contains("\r\nVary: Accept-Encoding\r\n"), "{plain}");
    assert!(plain.contains("\r\nAccept-Ranges: none\r\n"), "{plain}");
    let mut proxy = Proxy::new(&directives, move |_, _| vec![send(&head)]);
    let compressed = proxy.ask("GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
    assert!(compressed.contains("\r\nContent-Encoding: gzip\r\n"));
    assert!(!compressed.contains("Accept-Ranges"));
}
