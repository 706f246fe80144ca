//! Servers that fail, and clients that go.

use super::origin::{Act, ok, send};
use super::{KEPT, ORIGIN, OTHER, Proxy, content, get};
use crate::server::{MS, SECOND};

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("none")
}

#[test]
fn a_server_that_refuses_is_502_and_says_so_in_the_log() {
    let upstream = format!("server {OTHER};");
    let mut proxy = Proxy::with_upstream(&upstream, KEPT, |_, _| Vec::new());
    assert_eq!(status(&proxy.ask(&get("/p"))), "502");
    let line = "connect() failed (111: Connection refused) while connecting to upstream, client: ";
    assert!(
        proxy.server.has_logged(line),
        "{:?}",
        proxy.server.error_log()
    );
    assert!(
        proxy
            .server
            .has_logged("upstream: \"http://10.0.0.3:80/p\"")
    );
    assert_eq!(proxy.access_log(), ["502 10.0.0.3:80 502 0"]);
}

#[test]
fn another_server_is_tried_after_a_refusal() {
    let upstream = format!("server {OTHER}; server {ORIGIN};");
    let mut proxy = Proxy::with_upstream(&upstream, KEPT, |_, _| vec![ok("b")]);
    assert_eq!(content(&proxy.ask(&get("/"))), "b");
    assert_eq!(
        proxy.access_log(),
        ["200 10.0.0.3:80, 10.0.0.2:80 502, 200 0, 1"]
    );
    // One failure makes it unavailable.
    assert_eq!(content(&proxy.ask(&get("/"))), "b");
    assert_eq!(proxy.access_log()[1], "200 10.0.0.2:80 200 1");
}

#[test]
fn faults_of_the_head_are_502() {
    let cases: [(&str, Vec<Act>, &str); 6] = [
        (
            "reset",
            vec![Act::Reset],
            "recv() failed (104: Connection reset by peer) while reading response header from upstream",
        ),
        (
            "closed",
            vec![Act::Close],
            "upstream prematurely closed connection while reading response header from upstream",
        ),
        (
            "half a head",
            vec![send("HTTP/1.1 200 OK\r\nA: "), Act::Close],
            "upstream prematurely closed connection",
        ),
        (
            "no HTTP",
            vec![send("hello\r\n\r\n"), Act::Hang],
            "upstream sent invalid header",
        ),
        (
            "two lengths",
            vec![
                send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"),
                Act::Hang,
            ],
            "upstream sent invalid header",
        ),
        (
            "too big",
            vec![
                send(&format!(
                    "HTTP/1.1 200 OK\r\nA: {}\r\n\r\n",
                    "x".repeat(5000)
                )),
                Act::Hang,
            ],
            "upstream sent too big header",
        ),
    ];
    for (name, acts, logged) in cases {
        let mut proxy = Proxy::new(KEPT, move |_, _| acts.clone());
        assert_eq!(status(&proxy.ask(&get("/"))), "502", "{name}");
        assert!(
            proxy.server.has_logged(logged),
            "{name}: {:?}",
            proxy.server.error_log()
        );
    }
}

#[test]
fn a_server_that_never_answers_is_504_after_the_read_timeout() {
    let directives = "location / { proxy_pass http://app; proxy_read_timeout 5s; }";
    let mut proxy = Proxy::new(directives, |_, _| vec![Act::Hang]);
    let client = proxy.server.connect();
    client.send(get("/"));
    proxy.server.run_to(4 * SECOND);
    assert_eq!(client.received(), b"");
    proxy.server.run_to(7 * SECOND);
    assert_eq!(status(&String::from_utf8_lossy(&client.received())), "504");
    assert!(proxy.server.has_logged(
        "upstream timed out (110: Connection timed out) while reading response header from upstream"
    ));
}

#[test]
fn content_that_ends_early_closes_the_connection_short_of_its_length() {
    for (head, end) in [
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
            "\r\n\r\nabc",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
            "3\r\nabc\r\n",
        ),
    ] {
        let mut proxy = Proxy::new(KEPT, move |_, _| vec![send(head), Act::Close]);
        let client = proxy.server.connect();
        client.send(get("/"));
        proxy.server.run();
        let answer = String::from_utf8_lossy(&client.received()).into_owned();
        assert!(answer.ends_with(end), "{answer}");
        assert!(client.is_closed(), "{head}");
        assert!(
            proxy
                .server
                .has_logged("upstream prematurely closed connection while reading upstream")
        );
    }
}

#[test]
fn content_in_front_of_a_wrong_chunk_is_passed_on_and_not_ended() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for settings in ["", "proxy_buffering off;"] {
        for arrives_at_once in [true, false] {
            let directives = format!(
                "location / {{ proxy_pass http://app; proxy_http_version 1.1; {settings} }}"
            );
            let mut proxy = Proxy::new(&directives, move |_, _| {
                let wrong = "3\r\nabc\r\nzz\r\n";
                if arrives_at_once {
                    return vec![send(&format!("{head}{wrong}")), Act::Hang];
                }
                vec![send(head), Act::Wait(SECOND), send(wrong), Act::Hang]
            });
            let client = proxy.server.connect();
            client.send(get("/"));
            proxy.server.run_until_idle();
            let answer = String::from_utf8_lossy(&client.received()).into_owned();
            assert!(answer.ends_with("\r\n\r\n3\r\nabc\r\n"), "{answer}");
            assert!(client.is_closed());
            let line = "upstream sent invalid chunked response while reading upstream";
            assert!(proxy.server.has_logged(line));
        }
    }
}

#[test]
fn a_kept_connection_that_the_server_closed_is_replaced() {
    let upstream = format!("server {ORIGIN}; keepalive 4;");
    let mut proxy = Proxy::with_upstream(&upstream, KEPT, |number, _| match number {
        1 => vec![Act::Close],
        number => vec![ok(&number.to_string())],
    });
    assert_eq!(content(&proxy.ask(&get("/"))), "0");
    // The second request reaches a server that closes without an answer, and is sent once more.
    assert_eq!(content(&proxy.ask(&get("/"))), "2");
}

#[test]
fn a_post_is_not_sent_again_once_it_was_sent() {
    let upstream = format!("server {ORIGIN}; keepalive 4;");
    let mut proxy = Proxy::with_upstream(&upstream, KEPT, |number, _| match number {
        0 => vec![ok("0")],
        _ => vec![Act::Close],
    });
    assert_eq!(content(&proxy.ask(&get("/"))), "0");
    let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx";
    assert_eq!(status(&proxy.ask(post)), "502");
    assert_eq!(proxy.asked().len(), 2);
}

#[test]
fn a_client_that_goes_ends_the_request_with_499() {
    let mut proxy = Proxy::new(KEPT, |_, _| vec![Act::Hang]);
    let client = proxy.server.connect();
    client.send(get("/"));
    proxy.server.run();
    client.finish();
    // A new client is watched once the server has not answered for a while.
    let soon = proxy.server.world.elapsed() + 10 * MS;
    proxy.server.run_to(soon);
    assert_eq!(proxy.access_log(), ["499 10.0.0.2:80 - 0"]);
    proxy.server.assert_nothing_left(0);
}

#[test]
fn a_status_that_next_upstream_names_tries_another_server() {
    let upstream = format!("server {ORIGIN}; server {ORIGIN};");
    let directives = "location / { proxy_pass http://app; proxy_next_upstream http_503; }";
    let mut proxy = Proxy::with_upstream(&upstream, directives, |number, _| match number {
        0 => vec![send("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n")],
        _ => vec![ok("b")],
    });
    assert_eq!(content(&proxy.ask(&get("/"))), "b");
    assert_eq!(
        proxy.access_log(),
        ["200 10.0.0.2:80, 10.0.0.2:80 503, 200 0, 1"]
    );
}

#[test]
fn a_switch_of_protocols_without_a_request_for_it_is_502() {
    let switch = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n";
    let mut proxy = Proxy::new(KEPT, move |_, _| vec![send(switch), Act::Hang]);
    assert_eq!(status(&proxy.ask(&get("/"))), "502");
    assert!(
        proxy
            .server
            .has_logged("upstream switched protocols without being asked")
    );
}

#[test]
fn a_method_that_is_not_known_to_be_idempotent_is_not_sent_again() {
    for (method, requests) in [("GET", 2), ("PROPFIND", 2), ("ORDER", 1), ("PATCH", 1)] {
        let upstream = format!("server {ORIGIN}; server {ORIGIN};");
        let mut proxy = Proxy::with_upstream(&upstream, KEPT, |_, _| vec![Act::Close]);
        let answer = proxy.ask(&format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert_eq!(status(&answer), "502", "{method}");
        assert_eq!(proxy.asked().len(), requests, "{method}");
    }
}

#[test]
fn interim_answers_come_to_an_end() {
    for (interims, expected) in [(16, "200"), (17, "502")] {
        let mut proxy = Proxy::new(KEPT, move |_, _| {
            let interim = "HTTP/1.1 102 Processing\r\n\r\n";
            vec![send(&interim.repeat(interims)), ok("x")]
        });
        assert_eq!(status(&proxy.ask(&get("/"))), expected);
        let line = "upstream sent too many interim responses while reading response header";
        assert_eq!(proxy.server.has_logged(line), interims > 16);
        let counted = proxy.server.counters().limit_upstream_interims;
        assert_eq!(counted, u64::from(interims > 16));
    }
}

#[test]
fn tries_that_are_given_up_are_logged_with_bytes_and_times() {
    let check = |directives: &str, expected: &str| {
        let directives = format!(
            "location / {{ proxy_pass http://app; proxy_read_timeout 1s; access_log /access.log times; {directives} }}"
        );
        let upstream = format!("server {ORIGIN}; server {ORIGIN};");
        let mut proxy = Proxy::with_upstream(&upstream, &directives, |number, _| match number {
            0 => vec![Act::Hang],
            _ => vec![
                Act::Wait(SECOND / 2),
                send("HTTP/1.1 404 No\r\nContent-Length: 9\r\n\r\nx"),
                Act::Hang,
            ],
        });
        proxy.server.connect().send(get("/"));
        proxy.server.run_until_idle();
        assert_eq!(proxy.access_log(), [expected], "{directives}");
    };
    // GET / HTTP/1.0, Host: app, Connection: close.
    check("proxy_next_upstream off;", "504 504 1.000 48");
    check(
        "proxy_intercept_errors on; error_page 404 /a; location = /a { return 204; }",
        "404 504, 404 1.000, 0.500 48, 48",
    );
    check("", "404 504, 404 1.000, 1.500 48, 48");
}

#[test]
fn a_server_that_fails_too_often_is_logged_as_disabled() {
    let upstream = format!("server {OTHER}; server {ORIGIN};");
    let mut proxy = Proxy::with_upstream(&upstream, KEPT, |_, _| vec![ok("b")]);
    assert_eq!(content(&proxy.ask(&get("/"))), "b");
    let line = "upstream server temporarily disabled while connecting to upstream";
    assert!(proxy.server.has_logged(line));
}

/// A first location whose server fails, and a second one, with these settings, that an error leads to.
fn second_location(settings: &str) -> Proxy {
    let directives = format!(
        "location / {{ proxy_pass http://{OTHER}; proxy_http_version 1.1; error_page 502 = @second; {settings} }}
         location @second {{ proxy_pass http://app; proxy_http_version 1.1; {settings} }}"
    );
    Proxy::new(&directives, |_, _| vec![ok("second")])
}

const POST: &str = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabcde";

#[test]
fn content_that_one_location_has_read_goes_to_the_next_one_too() {
    for settings in [
        "",
        "client_body_buffer_size 2; client_body_temp_path /temp;",
        "proxy_request_buffering off;",
    ] {
        let mut proxy = second_location(settings);
        proxy.server.files().create_directory("/temp");
        assert_eq!(content(&proxy.ask(POST)), "second", "{settings}");
        let asked = proxy.asked().concat();
        assert!(
            asked.contains("\r\nContent-Length: 5\r\n"),
            "{settings} {asked}"
        );
        assert!(asked.ends_with("\r\n\r\nabcde"), "{settings} {asked}");
    }
}

#[test]
fn content_that_was_passed_on_as_it_came_is_not_promised_to_another_server() {
    let directives = format!(
        "location / {{ proxy_pass http://{OTHER}; proxy_http_version 1.1; error_page 502 = @second;
             proxy_request_buffering off; }}
         location @second {{ proxy_pass http://app; proxy_http_version 1.1; proxy_request_buffering off; }}"
    );
    let mut proxy = Proxy::new(&directives, |_, _| vec![ok("second")]);
    let (turn, first) = super::origin::start(&proxy.server.world, OTHER, |_, _| vec![Act::Close]);
    proxy.server.add_peer(turn);
    let client = proxy.server.connect();
    let (begin, end) = POST.split_at(POST.len() - 2);
    client.send(begin);
    proxy.server.run();
    client.send(end);
    proxy.server.run();
    let answer = String::from_utf8_lossy(&client.received()).into_owned();
    assert_eq!(status(&answer), "502");
    assert_eq!(first.requests.borrow().len(), 1);
    assert_eq!(proxy.asked(), [""; 0]);
}

#[test]
fn an_answer_that_came_before_the_connection_broke_is_the_answer() {
    let directives =
        "client_max_body_size 9m; location / { proxy_pass http://app; proxy_http_version 1.1; }";
    let mut proxy = Proxy::new(directives, |_, _| {
        vec![
            send("HTTP/1.1 413 No\r\nContent-Length: 0\r\n\r\n"),
            Act::Close,
        ]
    });
    let request = format!(
        "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{}",
        "x".repeat(9)
    );
    assert_eq!(status(&proxy.ask(&request)), "413");
    assert_eq!(proxy.asked().len(), 1);
}
