//! What comes before and after an answer: 103, and trailers.

use super::Proxy;
use super::origin::{Act, send};
use crate::server::MS;

/// The answer to a request with this version and these field lines.
fn answer(directives: &str, version: &str, fields: &str, acts: Vec<Act>) -> String {
    let directives = format!(
        "location / {{ proxy_pass http://app; proxy_http_version 1.1; proxy_request_buffering off; {directives} }}"
    );
    let mut proxy = Proxy::new(&directives, move |_, _| acts.clone());
    let client = proxy.server.connect();
    client.send(format!("GET / HTTP/{version}\r\nHost: a\r\n{fields}\r\n"));
    proxy.server.run_until_idle();
    String::from_utf8_lossy(&client.received()).into_owned()
}

const FINAL: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn hinted(directives: &str, version: &str, head: &str) -> String {
    let acts = vec![send(head), Act::Wait(5 * MS), send(FINAL)];
    answer(directives, version, "Sec-Fetch-Mode: navigate\r\n", acts)
}

const HINTS: &str = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nX-Hidden: 1\r\n\
                     Connection: x-hop\r\nX-Hop: 1\r\n\r\n";

#[test]
fn hints_of_the_server_come_before_its_answer_if_a_condition_holds() {
    let passed = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nX-Hidden: 1\r\n\r\nHTTP/1.1 200 OK\r\n";
    for condition in ["$http_sec_fetch_mode", "0 '' 1", "$http_none $http_host"] {
        let answer = hinted(&format!("early_hints {condition};"), "1.1", HINTS);
        assert!(answer.starts_with(passed), "{condition} {answer}");
        assert!(answer.ends_with("\r\n\r\nok"), "{answer}");
    }
    let hidden = hinted("early_hints 1; proxy_hide_header X-Hidden;", "1.1", HINTS);
    assert!(hidden.starts_with("HTTP/1.1 103 "), "{hidden}");
    assert!(!hidden.contains("X-Hidden"), "{hidden}");
    let two = hinted("early_hints 1;", "1.1", &HINTS.repeat(2));
    assert_eq!(two.matches("HTTP/1.1 103 ").count(), 2, "{two}");
}

#[test]
fn hints_are_kept_back_without_a_condition_and_from_old_clients() {
    let check = |directive: &str, version: &str, head: &str| {
        let answer = hinted(directive, version, head);
        assert!(
            answer.starts_with("HTTP/1.1 200 OK\r\n"),
            "{directive} {answer}"
        );
    };
    check("", "1.1", HINTS);
    check("early_hints 0 $http_none;", "1.1", HINTS);
    check("early_hints 1;", "1.0", HINTS);
    check(
        "early_hints 1;",
        "1.1",
        "HTTP/1.1 102 Processing\r\nX-A: 1\r\n\r\n",
    );
}

const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

/// What follows the head of the answer, where the server sends these chunks.
fn chunks(directives: &str, version: &str, fields: &str, chunks: &str) -> String {
    let acts = vec![send(CHUNKED), Act::Wait(MS), send(chunks)];
    let answer = answer(directives, version, fields, acts);
    let (_, content) = answer.split_once("\r\n\r\n").expect("an answer");
    content.to_owned()
}

const ON: &str = "proxy_pass_trailers on;";
const TAKES: &str = "TE: trailers\r\n";
const SENT: &str =
    "3\r\nabc\r\n0\r\nX-Sum: 1\r\nX-Hidden: 2\r\nContent-Length: 7\r\nTrailer: x\r\n\r\n";

#[test]
fn trailers_go_to_clients_that_take_them() {
    let check = |directives: &str, fields: &str, expected: &str| {
        let found = chunks(directives, "1.1", fields, SENT);
        assert_eq!(
            found,
            format!("3\r\nabc\r\n0\r\n{expected}\r\n"),
            "{directives}"
        );
    };
    check(ON, TAKES, "X-Sum: 1\r\nX-Hidden: 2\r\n");
    check(ON, "TE: gzip, trailers;q=1\r\n", "");
    check(ON, "TE: gzip , Trailers\r\n", "X-Sum: 1\r\nX-Hidden: 2\r\n");
    check(
        &format!("{ON} proxy_hide_header X-Hidden;"),
        TAKES,
        "X-Sum: 1\r\n",
    );
    check(
        &format!("{ON} add_trailer X-Own 3;"),
        TAKES,
        "X-Sum: 1\r\nX-Hidden: 2\r\nX-Own: 3\r\n",
    );
    check(
        &format!("{ON} proxy_buffering off;"),
        TAKES,
        "X-Sum: 1\r\nX-Hidden: 2\r\n",
    );
    check(ON, "", "");
    check("", TAKES, "");
    assert_eq!(chunks(ON, "1.0", TAKES, SENT), "abc");
}

#[test]
fn trailers_that_are_none_or_too_long_cut_the_answer() {
    let long = format!("3\r\nabc\r\n0\r\nX: {}\r\n\r\n", "a".repeat(100_000));
    for sent in [
        "3\r\nabc\r\n0\r\nX Y: 1\r\n\r\n",
        "3\r\nabc\r\n0\r\nX: 1\n\r\n",
        &long,
    ] {
        let found = chunks(ON, "1.1", TAKES, sent);
        assert!(!found.contains("\r\n0\r\n"), "{found}");
    }
}

#[test]
fn trailers_are_variables_whether_or_not_the_client_takes_them() {
    let check = |directives: &str, fields: &str, sent: &str, expected: &str| {
        let location = format!(
            "location / {{ proxy_pass http://app; proxy_http_version 1.1; access_log /access.log waits; {directives} }}"
        );
        let acts = vec![send(CHUNKED), Act::Wait(MS), send(sent)];
        let mut proxy = Proxy::new(&location, move |_, _| acts.clone());
        let client = proxy.server.connect();
        client.send(format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
        proxy.server.run_until_idle();
        let answer = String::from_utf8_lossy(&client.received()).into_owned();
        assert_eq!(answer.contains("X-Sum"), !fields.is_empty(), "{answer}");
        assert_eq!(proxy.access_log(), [expected], "{directives} {fields}");
    };
    check(ON, TAKES, SENT, "200 - 1");
    check(ON, "", SENT, "200 - 1");
    check("", "", SENT, "200 - -");
    check(ON, "", "3\r\nabc\r\n0\r\n\r\n", "200 - -");
}
