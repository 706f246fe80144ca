//! Answers that come while others wait for them.

use super::super::origin::{Act, send};
use super::{ALL, Cached, content, field};
use crate::proxy::get;
use std::time::Duration;

const LOCKED: &str =
    "location / { proxy_pass http://app; proxy_cache_valid 10s; proxy_cache_lock on; }";

/// A large answer that comes in two parts, a second apart.
fn slowly(len: usize) -> Vec<Act> {
    let half = "x".repeat(len / 2);
    vec![
        send(&format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {len}\r\n\r\n{half}"
        )),
        Act::Wait(Duration::from_secs(1)),
        send(&half),
    ]
}

#[test]
fn all_that_wait_for_one_answer_get_it_while_it_comes_and_the_origin_is_asked_once() {
    for workers in [1, 2] {
        let mut cached = Cached::with_workers(workers, LOCKED, |_, _| slowly(600_000));
        let clients: Vec<_> = (0..8)
            .map(|_| {
                let client = cached.server.connect();
                client.send(get("/a"));
                client
            })
            .collect();
        let elapsed = cached.server.world.elapsed() + Duration::from_millis(500);
        cached.server.run_to(elapsed);
        for client in &clients {
            let len = client.received().len();
            assert!(len > 300_000, "{len} bytes before the second part has come");
        }
        cached.pass(2);
        for client in &clients {
            let answer = String::from_utf8_lossy(&client.received()).into_owned();
            assert_eq!(content(&answer).len(), 600_000);
        }
        assert_eq!(cached.asked(), 1, "{workers} workers");
    }
}

#[test]
fn an_answer_is_kept_although_the_client_that_asked_for_it_has_gone() {
    let mut cached = Cached::new(ALL, |_, _| slowly(600_000));
    let client = cached.server.connect();
    client.send(get("/a"));
    let elapsed = cached.server.world.elapsed() + Duration::from_millis(500);
    cached.server.run_to(elapsed);
    client.reset();
    cached.pass(2);
    assert_eq!(cached.outcome("/a"), "HIT");
    assert_eq!(cached.asked(), 1);
}

#[test]
fn an_answer_that_is_cut_is_cut_for_all_and_kept_for_none() {
    let mut cached = Cached::new(LOCKED, |number, _| match number {
        0 => vec![
            send(&format!(
                "HTTP/1.1 200 OK\r\nContent-Length: 600000\r\n\r\n{}",
                "x".repeat(300_000)
            )),
            Act::Wait(Duration::from_secs(1)),
            Act::Reset,
        ],
        _ => slowly(600_000),
    });
    let clients: Vec<_> = (0..3)
        .map(|_| {
            let client = cached.server.connect();
            client.send(get("/a"));
            client
        })
        .collect();
    cached.pass(3);
    for client in &clients {
        assert!(client.received().len() < 600_000);
        assert!(client.is_closed(), "the client sees that it is cut");
    }
    let answer = {
        let client = cached.server.connect();
        client.send(get("/a"));
        cached.pass(3);
        String::from_utf8_lossy(&client.received()).into_owned()
    };
    assert_eq!(
        (field(&answer, "X-Cache"), content(&answer).len()),
        ("MISS", 600_000)
    );
}

#[test]
fn a_request_that_waits_longer_than_the_lock_allows_asks_alone() {
    let directives = "location / { proxy_pass http://app; proxy_cache_valid 10s; proxy_cache_lock on; proxy_cache_lock_timeout 1s; }";
    let mut cached = Cached::new(directives, |number, _| {
        let wait = Duration::from_secs(if number == 0 { 3 } else { 0 });
        vec![Act::Wait(wait), super::super::origin::ok("x")]
    });
    let clients: Vec<_> = (0..2)
        .map(|_| {
            let client = cached.server.connect();
            client.send(get("/a"));
            client
        })
        .collect();
    cached.pass(2);
    assert_eq!(clients[0].received(), b"");
    assert!(clients[1].received().ends_with(b"x"));
    cached.pass(2);
    assert!(clients[0].received().ends_with(b"x"));
    assert_eq!(cached.asked(), 2);
}

#[test]
fn after_a_purge_one_of_those_that_wait_asks_again_for_all() {
    let directives =
        "proxy_cache_key $uri; proxy_cache_purge $http_x_purge; cache_tags Surrogate-Key; "
            .to_owned()
            + LOCKED;
    for (workers, purge) in [
        (1, "X-Purge: 1\r\n"),
        (2, "X-Purge: 1\r\n"),
        (1, "X-Purge: 1\r\nSurrogate-Key: t\r\n"),
    ] {
        let mut cached = Cached::with_workers(workers, &directives, |number, _| {
            let answer = super::with("Surrogate-Key: t\r\n", &number.to_string());
            vec![Act::Wait(Duration::from_secs(1)), answer]
        });
        let clients: Vec<_> = (0..8)
            .map(|_| {
                let client = cached.server.connect();
                client.send(get("/a"));
                client
            })
            .collect();
        let elapsed = cached.server.world.elapsed() + Duration::from_millis(500);
        cached.server.run_to(elapsed);
        cached.ask(&format!("PURGE /a HTTP/1.1\r\nHost: a\r\n{purge}\r\n"));
        cached.pass(4);
        let mut answers: Vec<String> = clients
            .iter()
            .map(|client| content(&String::from_utf8_lossy(&client.received())).to_owned())
            .collect();
        answers.sort_unstable();
        assert_eq!(answers.concat(), "01111111", "{workers} workers, {purge}");
        assert_eq!(cached.asked(), 2, "{workers} workers, {purge}");
        assert_eq!(cached.outcome("/a"), "HIT");
    }
}

#[test]
fn those_that_wait_get_no_answer_that_has_turned_out_too_large() {
    let directives = "cache_object_max 1000; ".to_owned() + LOCKED;
    let mut cached = Cached::new(&directives, |_, _| {
        let head = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
        vec![
            Act::Wait(Duration::from_secs(1)),
            send(&format!("{head}{}", "x".repeat(5000))),
            Act::Close,
        ]
    });
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let client = cached.server.connect();
            client.send(get("/a"));
            client
        })
        .collect();
    cached.pass(10);
    for client in &clients {
        let answer = String::from_utf8_lossy(&client.received()).into_owned();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

#[test]
fn those_that_wait_for_an_answer_that_is_too_large_to_be_kept_ask_for_themselves() {
    for workers in [1, 2] {
        // Without a length it is known only on its way that the answer is too large; here before those that wait look at it.
        let directives = format!("cache_object_max 10k; {LOCKED}");
        let mut cached = Cached::with_workers(workers, &directives, |_, _| {
            let piece = format!("{:x}\r\n{}\r\n", 30_000, "x".repeat(30_000));
            let text = format!(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n",
                piece.repeat(10)
            );
            vec![send(&text)]
        });
        let clients: Vec<_> = (0..4)
            .map(|_| {
                let client = cached.server.connect();
                client.send(get("/a"));
                client
            })
            .collect();
        cached.pass(5);
        for client in &clients {
            let answer = String::from_utf8_lossy(&client.received()).into_owned();
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer:.100}");
            let len = content(&answer).matches('x').count();
            assert_eq!(len, 300_000, "{workers} workers");
            assert!(answer.ends_with("\r\n0\r\n\r\n"));
        }
    }
}

#[test]
fn what_is_still_on_its_way_is_not_validated() {
    let chunk = |len: usize| send(&format!("{len:x}\r\n{}\r\n", "x".repeat(len)));
    let directives = format!("cache_rules rfc9111; cache_object_max 10k; {LOCKED}");
    let mut cached = Cached::new(&directives, move |number, request| {
        let head = "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nTransfer-Encoding: chunked\r\n\r\n";
        let rest = [chunk(30_000), send("0\r\n\r\n")];
        if number == 0 {
            // It turns out to be too large when the second request is on its way.
            let first = [send(head), chunk(5_000), Act::Wait(Duration::from_secs(2))];
            return [first.to_vec(), rest.to_vec()].concat();
        }
        match request.contains("If-None-Match") {
            true => vec![
                Act::Wait(Duration::from_secs(3)),
                send("HTTP/1.1 304 Not Modified\r\n\r\n"),
            ],
            false => [vec![send(head), chunk(5_000)], rest.to_vec()].concat(),
        }
    });
    let first = cached.server.connect();
    first.send(get("/a"));
    cached.pass(1);
    let second = cached.server.connect();
    second.send("GET /a HTTP/1.1\r\nHost: a\r\nCache-Control: max-age=0\r\n\r\n");
    cached.pass(10);
    for client in [first, second] {
        let answer = String::from_utf8_lossy(&client.received()).into_owned();
        let len = content(&answer).matches('x').count();
        assert_eq!((answer.get(9..12), len), (Some("200"), 35_000));
    }
}

#[test]
fn a_request_that_wants_validation_takes_no_answer_that_was_asked_for_before_it() {
    for (rules, field, expected) in [
        ("rfc9111", "Cache-Control: no-cache", ["0", "1", "1", "0"]),
        ("rfc9111", "Pragma: no-cache", ["0", "1", "1", "0"]),
        ("rfc9111", "Cache-Control: max-age=0", ["0", "0", "0", "0"]),
        ("nginx", "Cache-Control: no-cache", ["0", "0", "0", "0"]),
    ] {
        let directives = format!("cache_rules {rules}; {LOCKED}");
        let mut cached = Cached::new(&directives, |number, _| {
            vec![
                Act::Wait(Duration::from_millis(300)),
                super::super::origin::ok(&number.to_string()),
            ]
        });
        let ask = |cached: &mut Cached, field: &str| {
            let client = cached.server.connect();
            client.send(format!("GET /a HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\n"));
            let elapsed = cached.server.world.elapsed() + Duration::from_millis(50);
            cached.server.run_to(elapsed);
            client
        };
        let clients = [
            ask(&mut cached, "X: y"),
            ask(&mut cached, field),
            ask(&mut cached, field),
            ask(&mut cached, "X: y"),
        ];
        cached.pass(2);
        let contents = clients.map(|client| {
            let answer = String::from_utf8_lossy(&client.received()).into_owned();
            content(&answer).to_owned()
        });
        assert_eq!(contents, expected, "{rules} {field}");
        // All that wait for the same are one question.
        let asked = if expected[1] == "1" { 2 } else { 1 };
        assert_eq!(cached.asked(), asked, "{rules} {field}");
    }
}
