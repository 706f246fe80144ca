//! The request that the origin gets.

use super::origin::{Act, ok, send};
use super::{KEPT, Proxy, content, get};
use crate::answer::answers;
use crate::server::SECOND;

/// The request that the origin gets for `request`.
fn asked(directives: &str, request: &str) -> String {
    let mut proxy = Proxy::new(directives, |_, _| vec![ok("x")]);
    let answer = proxy.ask(request);
    assert_eq!(content(&answer), "x", "{answer}");
    proxy.asked().join("|")
}

#[test]
fn a_request_is_spelled_anew_with_nginxs_fields() {
    let request = "GET /a?b HTTP/1.1\r\nHost: example.org\r\nX-One: 1\r\nConnection: keep-alive\r\nTE: trailers\r\nUser-Agent: t\r\n\r\n";
    assert_eq!(
        asked("location / { proxy_pass http://app; }", request),
        "GET /a?b HTTP/1.0\r\nHost: app\r\nConnection: close\r\nX-One: 1\r\nUser-Agent: t\r\n\r\n"
    );
}

#[test]
fn the_uri_behind_the_host_replaces_the_name_of_the_location() {
    let check = |directives: &str, target: &str, expected: &str| {
        let asked = asked(directives, &get(target));
        let line = asked.lines().next().unwrap().to_owned();
        assert_eq!(
            line,
            format!("GET {expected} HTTP/1.0"),
            "{directives} {target}"
        );
    };
    check(
        "location / { proxy_pass http://app; }",
        "/a//b%20c?d",
        "/a//b%20c?d",
    );
    check(
        "location /a/ { proxy_pass http://app/; }",
        "/a/b%20c?d",
        "/b%20c?d",
    );
    check(
        "location /a/ { proxy_pass http://app/x/y/; }",
        "/a/%2e%2e/a/b",
        "/x/y/b",
    );
    check("location /a { proxy_pass http://app/x; }", "/abc", "/xbc");
    check(
        "location / { rewrite ^/a/(.*) /c/$1 break; proxy_pass http://app; }",
        "/a/b?d",
        "/c/b?d",
    );
    check("location = /a { proxy_pass http://app/b; }", "/a", "/b");
}

#[test]
fn fields_are_set_replaced_and_left_out() {
    let directives = "location / { proxy_pass http://app; proxy_set_header Host $host; proxy_set_header X-One '';
        proxy_set_header X-Real-IP $remote_addr; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; }";
    let request =
        "GET / HTTP/1.1\r\nHost: Example.org:81\r\nX-One: 1\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n";
    let asked = asked(directives, request);
    assert!(asked.contains("\r\nHost: example.org\r\n"), "{asked}");
    assert!(
        asked.contains("\r\nX-Forwarded-For: 1.2.3.4, 198.51.100.1\r\n"),
        "{asked}"
    );
    assert!(!asked.contains("X-One"), "{asked}");
}

#[test]
fn content_is_passed_on_with_its_length_also_if_it_came_in_chunks() {
    let request = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    let asked = asked("location / { proxy_pass http://app; }", request);
    assert!(asked.contains("\r\nContent-Length: 5\r\n"), "{asked}");
    assert!(asked.ends_with("\r\n\r\nabcde"), "{asked}");
}

#[test]
fn content_is_streamed_in_chunks_where_it_is_not_buffered() {
    let directives = "location / { proxy_pass http://app; proxy_http_version 1.1; proxy_request_buffering off; }";
    let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut proxy = Proxy::new(directives, |_, _| vec![ok("x")]);
    let client = proxy.server.connect();
    client.send(format!("{head}3\r\nabc\r\n"));
    proxy.server.run();
    client.send("2\r\nde\r\n0\r\n\r\n");
    proxy.server.run();
    let streamed = proxy.asked().concat();
    assert!(
        streamed.contains("\r\nTransfer-Encoding: chunked\r\n"),
        "{streamed}"
    );
    assert!(
        streamed.ends_with("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"),
        "{streamed}"
    );
    // What has come whole with the head has a length, as with nginx.
    let whole = asked(directives, &format!("{head}3\r\nabc\r\n0\r\n\r\n"));
    assert!(whole.contains("\r\nContent-Length: 3\r\n"), "{whole}");
    assert!(whole.ends_with("\r\n\r\nabc"), "{whole}");
}

#[test]
fn chunks_beyond_the_limit_that_have_come_with_the_head_ask_no_server() {
    let directives =
        "client_max_body_size 2; location / { proxy_pass http://app; proxy_http_version 1.1;
        proxy_request_buffering off; }";
    let mut proxy = Proxy::new(directives, |_, _| vec![ok("x")]);
    let answer = proxy.ask(
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    );
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert_eq!(*proxy.seen.connections.borrow(), 0);
    assert_eq!(proxy.access_log(), ["413 - - -"]);
}

#[test]
fn content_that_has_come_whole_goes_to_another_server_where_it_is_not_buffered() {
    let upstream = format!("server {}; server {};", super::OTHER, super::ORIGIN);
    let directives = "location / { proxy_pass http://app; proxy_request_buffering off;
        proxy_next_upstream error http_503 non_idempotent; }";
    let mut proxy = Proxy::with_upstream(&upstream, directives, |_, _| vec![ok("x")]);
    let (turn, first) = super::origin::start(&proxy.server.world, super::OTHER, |_, _| {
        vec![send("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n")]
    });
    proxy.server.add_peer(turn);
    let answer = proxy.ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
    assert_eq!(content(&answer), "x", "{answer}");
    assert_eq!(first.requests.borrow().len(), 1);
    assert!(proxy.asked()[0].ends_with("\r\n\r\nabc"));
}

#[test]
fn a_connection_that_was_asked_to_close_carries_no_other_request() {
    let check = |directives: &str, connections: usize| {
        let upstream = format!("server {}; keepalive 4;", super::ORIGIN);
        let directives = format!("location / {{ proxy_pass http://app; {directives} }}");
        let mut proxy = Proxy::with_upstream(&upstream, &directives, |_, _| vec![ok("x")]);
        for _ in 0..2 {
            assert_eq!(content(&proxy.ask(&get("/"))), "x", "{directives}");
        }
        let made = *proxy.seen.connections.borrow();
        assert_eq!(made, connections, "{directives}");
    };
    check("", 2);
    check("proxy_http_version 1.1;", 2);
    check("proxy_http_version 1.1; proxy_set_header Connection '';", 1);
    check(
        "proxy_http_version 1.1; proxy_set_header Connection 'a, Close';",
        2,
    );
    // HTTP/1.0 closes where it is not asked to keep.
    check("proxy_set_header Connection '';", 2);
    check("proxy_set_header Connection keep-alive;", 1);
}

#[test]
fn fields_that_connection_names_are_not_passed_on() {
    let directives =
        "location / { proxy_pass http://app; proxy_set_header X-Real-IP $remote_addr; }";
    let request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close, X-Hop, x-real-ip, Host\r\nX-Hop: 1\r\nX-End: 2\r\n\r\n";
    let asked = asked(directives, request);
    assert!(!asked.contains("X-Hop"), "{asked}");
    for kept in ["X-End: 2", "X-Real-IP: 198.51.100.1", "Host: app"] {
        assert!(asked.contains(kept), "{asked}");
    }
}

#[test]
fn a_kept_connection_carries_the_next_request() {
    let upstream = format!("server {}; keepalive 4;", super::ORIGIN);
    let mut proxy =
        Proxy::with_upstream(&upstream, KEPT, |number, _| vec![ok(&number.to_string())]);
    let client = proxy.server.connect();
    for _ in 0..3 {
        client.send(get("/"));
        proxy.server.run();
    }
    assert_eq!(content(&proxy.ask(&get("/"))), "3");
    assert_eq!(answers(&client.received()).len(), 3);
    assert_eq!(*proxy.seen.connections.borrow(), 1);
}

#[test]
fn idle_connections_close_after_their_timeout_and_when_the_server_closes_them() {
    let upstream = format!(
        "server {}; keepalive 4; keepalive_timeout 10s;",
        super::ORIGIN
    );
    for (act, closed_after) in [(None, 11), (Some(Act::Close), 2)] {
        let mut proxy = Proxy::with_upstream(&upstream, KEPT, move |_, _| {
            [ok("x")].into_iter().chain(act.clone()).collect()
        });
        proxy.ask(&get("/"));
        let streams = proxy.server.streams();
        proxy.server.run_to(closed_after * SECOND);
        assert_eq!(proxy.server.streams(), streams - 1);
    }
}

#[test]
fn chunks_are_read_whole_for_a_server_of_http_1_0() {
    let directives = "location / { proxy_pass http://app; proxy_request_buffering off; }";
    let request =
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    let asked = asked(directives, request);
    assert!(asked.starts_with("POST / HTTP/1.0\r\n"), "{asked}");
    assert!(
        asked.contains("\r\nContent-Length: 3\r\n") && asked.ends_with("\r\n\r\nabc"),
        "{asked}"
    );
}

#[test]
fn content_is_sent_on_while_interim_answers_come() {
    let directives = "location / { proxy_pass http://app; proxy_http_version 1.1; proxy_request_buffering off; }";
    let mut proxy = Proxy::new(directives, |_, _| vec![ok("x")]);
    proxy.hint("HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n");
    let client = proxy.server.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc");
    proxy.server.run();
    client.send("def");
    proxy.server.run();
    let answer = String::from_utf8_lossy(&client.received()).into_owned();
    assert_eq!(content(&answer), "x", "{answer}");
    assert!(proxy.asked()[0].ends_with("\r\n\r\nabcdef"));
}

#[test]
fn a_body_that_is_set_replaces_the_clients_content() {
    let directives = "location / { proxy_pass http://app; proxy_set_body id=$arg_id; proxy_pass_request_body off; }";
    let mut proxy = Proxy::new(directives, |_, _| vec![ok("x")]);
    let client = proxy.server.connect();
    client.send("POST /?id=7 HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nsecret");
    client.send(get("/?id=89"));
    proxy.server.run();
    assert_eq!(answers(&client.received()).len(), 2);
    let asked = proxy.asked();
    for (asked, body) in asked.iter().zip(["id=7", "id=89"]) {
        let end = format!("\r\n\r\n{body}");
        let length = format!("\r\nContent-Length: {}\r\n", body.len());
        assert!(asked.ends_with(&end) && asked.contains(&length), "{asked}");
    }
    assert_eq!(asked.len(), 2);
}

#[test]
fn content_that_is_not_passed_on_stays_here() {
    let directives = "location / { proxy_pass http://app; proxy_pass_request_body off; }";
    let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nsecret";
    let asked = asked(directives, post);
    assert!(asked.starts_with("POST / HTTP/1.0\r\n"), "{asked}");
    assert!(
        asked.ends_with("\r\n\r\n") && !asked.contains("Content-Length"),
        "{asked}"
    );
}

#[test]
fn a_name_without_its_slash_is_redirected_to_the_location() {
    let directives = "location /a/ { proxy_pass http://app; }";
    let mut proxy = Proxy::new(directives, |_, _| vec![ok("x")]);
    let answer = proxy.ask(&get("/a?b=c"));
    assert!(answer.starts_with("HTTP/1.1 301 "), "{answer}");
    assert!(answer.contains("/a/?b=c\r\n"), "{answer}");
    assert_eq!(content(&proxy.ask(&get("/a/"))), "x");
    assert_eq!(proxy.asked().len(), 1);
}

#[test]
fn the_configuration_cannot_contradict_the_framing_of_content() {
    let directives = "location / { proxy_pass http://app; proxy_http_version 1.1;
        proxy_set_header Content-Length $http_content_length; proxy_set_header Transfer-Encoding chunked; }";
    let request =
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    let asked = asked(directives, request);
    assert_eq!(asked.matches("Content-Length: 3\r\n").count(), 1, "{asked}");
    assert!(
        !asked.contains("Transfer-Encoding") && asked.ends_with("\r\n\r\nabc"),
        "{asked}"
    );
}

#[test]
fn the_method_that_is_sent_determines_whether_the_answer_has_content() {
    let directives = |method: &str| {
        format!(
            "location / {{ proxy_pass http://app; proxy_http_version 1.1; proxy_method {method}; }}"
        )
    };
    let upstream = format!("server {}; keepalive 4;", super::ORIGIN);
    // The client sees no content; the server has sent some, which is not the next answer.
    let mut proxy = Proxy::with_upstream(&upstream, &directives("GET"), |_, _| vec![ok("abc")]);
    for _ in 0..2 {
        let answer = proxy.ask("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert_eq!(content(&answer), "");
        assert!(answer.contains("\r\nContent-Length: 3\r\n"), "{answer}");
    }
    assert!(proxy.asked()[0].starts_with("GET / HTTP/1.1\r\n"));
    // What the client does not get is not read.
    assert_eq!(*proxy.seen.connections.borrow(), 2);
    let line = format!("200 {} 200 0", super::ORIGIN);
    assert_eq!(proxy.access_log(), [line.as_str(); 2]);
    let not_a_method = Proxy::new(&directives("'A B'"), |_, _| vec![ok("x")]).ask(&get("/"));
    assert_eq!(content(&not_a_method), "x");
}
