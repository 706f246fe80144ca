//! Published payloads of request smuggling and of response splitting, replayed through the proxy.
//!
//! What the origin gets, and what the client gets, is divided in the same way by all lenient readers (`lenient.rs`),
//! into as many messages as the proxy has counted. The classes of payloads are those of the published lists; the bytes
//! are our own.

use super::lenient::{Reader, agreed_answers, agreed_requests};
use super::origin::{Act, ok, send};
use super::payload::{Payload, table};
use super::{KEPT, ORIGIN, Proxy, content, get};
use crate::server::{MS, SECOND};
use std::cell::Cell;
use std::rc::Rc;

/// The statuses of all answers, in a line.
fn statuses(bytes: &[u8], starts: &[usize]) -> String {
    let text = |start: &usize| String::from_utf8_lossy(&bytes[*start..]).into_owned();
    let status = |start: &usize| text(start).split(' ').nth(1).unwrap_or("none").to_owned();
    let found = starts.iter().map(status).collect::<Vec<_>>().join(" ");
    if found.is_empty() {
        String::from("-")
    } else {
        found
    }
}

/// The tries that the access log tells of in lines from `start` on.
fn tries(proxy: &Proxy, start: usize) -> usize {
    let log = proxy.access_log();
    let addresses = |line: &String| line.matches(ORIGIN).count();
    log[start..].iter().map(addresses).sum()
}

/// Sends a payload on a connection of its own, and a harmless request on another.
fn replay(proxy: &mut Proxy, payload: &Payload) -> Vec<u8> {
    let client = proxy.server.connect();
    for part in &payload.parts {
        client.send(part);
        proxy.server.run();
    }
    client.finish();
    let later = proxy.server.world.elapsed() + 100 * MS;
    proxy.server.run_to(later);
    let innocent = proxy.ask(&get("/innocent"));
    let expected = ["/innocent", "/innocent?", "/r/innocent"];
    assert!(
        expected.contains(&content(&innocent)),
        "{}: {innocent}",
        payload.name
    );
    client.received()
}

/// Replays all requests through a server with these directives.
fn check_requests(directives: &str) {
    let readers = Reader::all();
    let upstream = format!("server {ORIGIN}; keepalive 8;");
    let mut proxy = Proxy::with_upstream(&upstream, directives, |_, request| {
        let target = request.split(' ').nth(1).unwrap_or_default();
        if request.starts_with("HEAD") {
            return vec![send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")];
        }
        vec![ok(target)]
    });
    let mut faults = String::new();
    for payload in table(include_str!("smuggling/requests.txt")) {
        let lines = proxy.access_log().len();
        let received = replay(&mut proxy, &payload);
        let mut seen = 0;
        for bytes in proxy.seen.bytes.borrow_mut().iter_mut() {
            match agreed_requests(&readers, bytes) {
                Ok(division) => seen += division.starts.len(),
                Err(dissent) => faults += &format!("{}: {dissent}\n", payload.name),
            }
            bytes.clear();
        }
        let tries = tries(&proxy, lines);
        if seen != tries {
            faults += &format!("{}: {seen} requests in place of {tries}\n", payload.name);
        }
        let starts = Reader::STRICT.answers(&received, &[]).starts;
        let found = statuses(&received, &starts);
        if found != payload.statuses {
            faults += &format!("{} | {found} | \n", payload.name);
        }
    }
    assert!(faults.is_empty(), "\n{faults}");
}

#[test]
fn requests_are_divided_in_one_way_on_kept_connections() {
    check_requests(
        "location / { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ''; }",
    );
}

#[test]
fn requests_are_divided_in_one_way_where_content_goes_on_as_it_comes() {
    check_requests(
        "location / { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection '';
            proxy_request_buffering off; }",
    );
}

#[test]
fn requests_are_divided_in_one_way_in_http_1_0() {
    check_requests("location / { proxy_pass http://app; }");
}

#[test]
fn requests_are_divided_in_one_way_in_http_1_0_where_content_goes_on_as_it_comes() {
    check_requests(
        "location / { proxy_pass http://app; proxy_set_header Connection keep-alive; proxy_request_buffering off; }",
    );
}

#[test]
fn requests_are_divided_in_one_way_where_the_clients_words_are_in_all_parts() {
    check_requests(
        "location / { proxy_pass http://app$uri?$args; proxy_http_version 1.1; proxy_method $http_x_method;
            proxy_set_header Connection $http_connection; proxy_set_header Host $http_host;
            proxy_set_header X-Uri $uri; proxy_set_header X-Argument $arg_a;
            proxy_set_header Content-Length $http_content_length;
            proxy_set_header Transfer-Encoding $http_transfer_encoding; }",
    );
}

#[test]
fn requests_are_divided_in_one_way_where_all_names_are_allowed() {
    check_requests(
        "ignore_invalid_headers off; underscores_in_headers on; rewrite ^/(.*)$ /r/$1 break;
            location / { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ''; }",
    );
}

/// The answer to the first of two requests on a connection is a payload; the others are harmless.
fn answer_with(payload: &Payload, request: &str) -> Vec<Act> {
    let target = request.split(' ').nth(1).unwrap_or_default();
    if target != "/first" {
        return vec![ok(target)];
    }
    let mut acts = Vec::new();
    for part in &payload.parts {
        let text = part.strip_suffix("✂".as_bytes());
        acts.push(Act::Send(text.unwrap_or(part).to_vec()));
        acts.push(text.map_or(Act::Wait(5 * MS), |_| Act::Close));
    }
    acts
}

/// When the client sends its second request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Second {
    /// With the first one: what the server sends late may be its answer.
    AtOnce,
    /// When everything has come that the server sends to the first one.
    Later,
}

/// Has the origin answer with all payloads, through a server with these directives.
fn check_answers(directives: &str, second: Second) {
    let upstream = format!("server {ORIGIN}; keepalive 8;");
    let directives = format!("proxy_read_timeout 1s; {directives}");
    let payloads = Rc::new(table(include_str!("smuggling/answers.txt")));
    let current = Rc::new(Cell::new(0));
    let (scripts, asked) = (Rc::clone(&payloads), Rc::clone(&current));
    let mut proxy = Proxy::with_upstream(&upstream, &directives, move |_, request| {
        answer_with(&scripts[asked.get()], request)
    });
    let mut faults = String::new();
    for (index, payload) in payloads.iter().enumerate() {
        current.set(index);
        for fault in faults_of(payload, &mut proxy, second) {
            faults += &format!("{}{fault}\n", payload.name);
        }
    }
    assert!(faults.is_empty(), "\n{faults}");
}

/// What is wrong with two answers on one connection, and one on another.
fn faults_of(payload: &Payload, proxy: &mut Proxy, second: Second) -> Vec<String> {
    let is_head = payload.name.starts_with("HEAD");
    let method = if is_head { "HEAD" } else { "GET" };
    let client = proxy.server.connect();
    let now = proxy.server.world.elapsed();
    client.send(format!("{method} /first HTTP/1.1\r\nHost: a\r\n\r\n"));
    match second {
        Second::AtOnce => client.send(get("/second")),
        Second::Later => client.at(now + 100 * MS).send(get("/second")),
    };
    proxy.server.run_to(now + 3 * SECOND);
    let (received, is_open) = (client.received(), client.ended_at().is_none());
    client.finish();
    let innocent = proxy.ask(&get("/innocent"));
    let division = match agreed_answers(&Reader::all(), &received, &[method, "GET"]) {
        Ok(division) => division,
        Err(dissent) => return vec![format!(": {dissent}")],
    };
    let is_cut = !division.is_whole;
    let found = statuses(&received, &division.starts) + if is_cut { " cut" } else { "" };
    let is_second = received.ends_with(b"\r\n\r\n/second");
    let comes_late = second == Second::AtOnce && payload.name.ends_with("later");
    let checks = [
        (found == payload.statuses, format!(" | {found} | ")),
        (!(is_cut && is_open), String::from(": cut, and open")),
        (
            is_second || comes_late || found.ends_with("cut"),
            format!(": {}", received.escape_ascii()),
        ),
        (
            content(&innocent) == "/innocent",
            format!(": to another client: {innocent}"),
        ),
    ];
    let failed = checks.into_iter().filter(|(is_right, _)| !is_right);
    failed.map(|(_, fault)| fault).collect()
}

#[test]
fn answers_are_divided_in_one_way_on_kept_connections() {
    check_answers(KEPT, Second::Later);
}

#[test]
fn answers_are_divided_in_one_way_on_kept_connections_to_requests_that_come_at_once() {
    check_answers(KEPT, Second::AtOnce);
}

#[test]
fn answers_are_divided_in_one_way_where_content_goes_on_as_it_comes() {
    let directives = "location / { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection '';
        proxy_buffering off; }";
    check_answers(directives, Second::Later);
}

#[test]
fn answers_are_divided_in_one_way_in_http_1_0() {
    let directives =
        "location / { proxy_pass http://app; proxy_set_header Connection keep-alive; }";
    check_answers(directives, Second::AtOnce);
}
