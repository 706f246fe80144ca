//! `queue`: requests wait for a server that has as many connections as it may have.

use super::origin::{self, Act, ok};
use super::{ORIGIN, Proxy, content, get};
use crate::server::{ADDRESS, MS, SECOND, Server, in_http};
use mill_sim::client::Client;
use mill_sim::world::World;

const NO_SERVER: &str = "no live upstreams while connecting to upstream";

/// An origin that takes one request at a time, and answers it after 100 ms with its path.
fn one_at_a_time(queue: &str) -> Proxy {
    let upstream = format!("server {ORIGIN} max_conns=1; {queue}");
    Proxy::with_upstream(
        &upstream,
        "location / { proxy_pass http://app; }",
        |_, request| {
            let path = request.split(' ').nth(1).unwrap_or_default();
            vec![Act::Wait(100 * MS), ok(path)]
        },
    )
}

/// Clients that ask for `/0`, `/1` and so on, a millisecond apart.
fn ask(proxy: &mut Proxy, count: u32) -> Vec<Client> {
    let ask = |number: u32| {
        let client = proxy.server.connect();
        client
            .at(MS * (number + 1))
            .send(get(&format!("/{number}")));
        client
    };
    (0..count).map(ask).collect()
}

fn answer(client: &Client) -> String {
    String::from_utf8(client.received()).expect("answers are text")
}

#[test]
fn the_time_in_the_queue_is_logged_for_groups_that_have_one() {
    for (queue, expected) in [
        ("queue 10;", ["200 0.000 -", "200 0.099 -", "200 0.198 -"]),
        ("", ["502 - -", "502 - -", "200 - -"]),
    ] {
        let upstream = format!("server {ORIGIN} max_conns=1; {queue}");
        let directives = "location / { proxy_pass http://app; access_log /access.log waits; }";
        let acts = vec![Act::Wait(100 * MS), ok("x")];
        let mut proxy = Proxy::with_upstream(&upstream, directives, move |_, _| acts.clone());
        let clients = ask(&mut proxy, 3);
        proxy.server.run_to(SECOND);
        assert_eq!(proxy.access_log(), expected, "{queue}");
        drop(clients);
    }
}

fn asked_paths(proxy: &Proxy) -> Vec<String> {
    let path = |request: &String| request.split(' ').nth(1).unwrap_or_default().to_owned();
    proxy.asked().iter().map(path).collect()
}

#[test]
fn requests_get_the_server_in_the_order_in_which_they_came() {
    let mut proxy = one_at_a_time("queue 10;");
    let clients = ask(&mut proxy, 6);
    proxy.server.run_to(601 * MS + SECOND / 100);
    for (number, client) in clients.iter().enumerate() {
        assert_eq!(content(&answer(client)), format!("/{number}"));
    }
    assert_eq!(asked_paths(&proxy), ["/0", "/1", "/2", "/3", "/4", "/5"]);
}

#[test]
fn without_room_in_the_queue_or_after_its_time_the_answer_is_502() {
    let mut proxy = one_at_a_time("queue 2 timeout=150ms;");
    let clients = ask(&mut proxy, 4);
    proxy.server.run_to(50 * MS);
    assert!(
        answer(&clients[3]).starts_with("HTTP/1.1 502 "),
        "there is no room"
    );
    proxy.server.run_to(SECOND);
    assert_eq!(content(&answer(&clients[1])), "/1");
    assert!(
        answer(&clients[2]).starts_with("HTTP/1.1 502 "),
        "it has waited too long"
    );
    assert_eq!(asked_paths(&proxy), ["/0", "/1"]);
    let lines = proxy.server.error_log();
    let refused = lines.iter().filter(|line| line.contains(NO_SERVER));
    assert_eq!(refused.count(), 2, "{lines:?}");
    let late: Vec<_> = (0..3).map(|_| proxy.server.connect()).collect();
    late.iter().for_each(|client| {
        client.send(get("/late"));
    });
    proxy.server.run_to(SECOND + 50 * MS);
    let refused = late.iter().filter(|client| !answer(client).is_empty());
    assert_eq!(refused.count(), 0, "both places are free again");
}

#[test]
fn a_client_that_leaves_gives_its_place_up() {
    let mut proxy = one_at_a_time("queue 2;");
    let clients = ask(&mut proxy, 3);
    clients[1].at(10 * MS).reset();
    proxy.server.run_to(20 * MS);
    let last = proxy.server.connect();
    last.send(get("/last"));
    proxy.server.run_to(SECOND);
    assert_eq!(content(&answer(&last)), "/last");
    assert_eq!(asked_paths(&proxy), ["/0", "/2", "/last"]);
    let log = proxy.access_log();
    assert!(log.iter().any(|line| line.starts_with("499 -")), "{log:?}");
}

#[test]
fn a_failed_try_frees_the_server_for_the_next_request() {
    let upstream = format!("server {ORIGIN} max_conns=1 max_fails=0; queue 10;");
    let mut proxy = Proxy::with_upstream(
        &upstream,
        "location / { proxy_pass http://app; }",
        |number, _| match number {
            0 => vec![Act::Wait(100 * MS), Act::Reset],
            _ => vec![ok("answered")],
        },
    );
    let clients = ask(&mut proxy, 3);
    proxy.server.run_to(103 * MS);
    assert!(answer(&clients[0]).starts_with("HTTP/1.1 502 "));
    for client in &clients[1..] {
        assert_eq!(content(&answer(client)), "answered");
    }
}

#[test]
fn without_a_queue_a_busy_server_is_no_server() {
    let mut proxy = one_at_a_time("");
    let clients = ask(&mut proxy, 2);
    proxy.server.run_to(50 * MS);
    assert!(answer(&clients[1]).starts_with("HTTP/1.1 502 "));
}

#[test]
fn a_connection_that_another_worker_frees_is_noticed_and_places_count_for_all() {
    let text = in_http(&format!(
        "upstream app {{ server {ORIGIN} max_conns=1; queue 3; }}
         server {{ listen {ADDRESS}; location / {{ proxy_pass http://app; }} }}"
    ));
    let mut server = Server::configured(World::new(1), &text, 2);
    let script = |_, _: &str| vec![Act::Wait(100 * MS), ok("answered")];
    let (turn, seen) = origin::start(&server.world, ORIGIN, script);
    server.add_peer(turn);
    let clients: Vec<_> = (1..=8)
        .map(|number| server.connect().at(MS * number))
        .collect();
    clients.iter().for_each(|client| {
        client.send(get("/"));
    });
    server.run_to(SECOND / 2);
    let workers = server.workers.iter().map(|worker| worker.streams());
    assert!(workers.min() > Some(0), "both workers have clients");
    let count = |status: &str| {
        let all = clients.iter().map(answer);
        all.filter(|answer| answer.starts_with(status)).count()
    };
    assert_eq!((count("HTTP/1.1 200 "), count("HTTP/1.1 502 ")), (4, 4));
    assert_eq!(seen.requests.borrow().len(), 4);
}
