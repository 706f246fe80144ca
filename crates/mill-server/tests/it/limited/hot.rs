//! A hot answer is limited like any other.

use super::{access_log, limit_log, ms, server, statuses};
use crate::server::Server;

/// A server that has a hot answer for `/a.txt`, and whose limits owe nothing.
fn limited(zones: &str, directives: &str) -> Server {
    let directives =
        format!("open_file_cache max=9 inactive=1h; open_file_cache_valid 1h; {directives}");
    let mut server = server(zones, &directives);
    server.run_to(ms(1000));
    assert_eq!(statuses(&mut server, "192.0.2.9", "/a.txt", 1), [200]);
    server.run_to(ms(100_000));
    assert_eq!(statuses(&mut server, "192.0.2.9", "/a.txt", 1), [200]);
    server.run_to(ms(200_000));
    server
}

/// How often files were read.
fn reads(server: &Server) -> usize {
    server.files().calls().read_at
}

#[track_caller]
fn check(zones: &str, directives: &str, expected: [u16; 5]) {
    let mut server = limited(zones, directives);
    let before = reads(&server);
    let first = server.logs.lines("/access.log").len();
    assert_eq!(
        statuses(&mut server, "192.0.2.1", "/a.txt", 5),
        expected,
        "{zones} {directives}"
    );
    assert_eq!(
        reads(&server),
        before,
        "{zones} {directives}: the answers are hot"
    );
    for (line, status) in access_log(&server)[first..].iter().zip(expected) {
        let word = if status == 200 { "PASSED" } else { "REJECTED" };
        assert_eq!(*line, format!("{status} {word} -"));
    }
}

#[test]
fn requests_for_a_hot_answer_are_counted_and_refused() {
    let limit = "limit_req zone=one burst=2 nodelay;";
    for key in [
        "$binary_remote_addr",
        "$binary_remote_net",
        "$remote_addr",
        "x$server_name",
        "a-$host-$remote_addr",
    ] {
        let zones = format!("limit_req_zone {key} zone=one:1m rate=1r/s;");
        check(&zones, limit, [200, 200, 200, 503, 503]);
    }
    let zones = "limit_req_zone $binary_remote_addr zone=one:1m rate=1r/s; limit_req_zone $host zone=two:1m rate=1r/s;";
    let two = "limit_req zone=one burst=2 nodelay; limit_req zone=two burst=1 nodelay;";
    check(zones, two, [200, 200, 503, 503, 503]);
    let two = "limit_req zone=one burst=1 nodelay; limit_req zone=two burst=2 nodelay;";
    check(zones, two, [200, 200, 503, 503, 503]);
    let logged = "access_log off; limit_req zone=one burst=2 nodelay;";
    check(zones, logged, [200, 200, 200, 503, 503]);
}

#[test]
fn a_request_that_has_to_wait_gets_no_hot_answer_before_its_time() {
    let zones = "limit_req_zone $binary_remote_addr zone=one:1m rate=1r/s;";
    let mut server = limited(zones, "limit_req zone=one burst=2;");
    assert_eq!(
        statuses(&mut server, "192.0.2.1", "/a.txt", 4),
        [200, 0, 0, 503]
    );
    let lines = [
        "delaying request, excess: 1.000, by zone \"one\"",
        "delaying request, excess: 2.000, by zone \"one\"",
        "limiting requests, excess: 3.000 by zone \"one\"",
    ];
    assert_eq!(limit_log(&server), lines);
    server.run_to(ms(205_000));
    let lines = access_log(&server);
    assert_eq!(lines[lines.len() - 2..], ["200 DELAYED -", "200 DELAYED -"]);
    // The template of a hot answer's line is a request that passed.
    assert_eq!(statuses(&mut server, "192.0.2.2", "/a.txt", 1), [200]);
    assert_eq!(access_log(&server).last().unwrap(), "200 PASSED -");
}

#[test]
fn an_answer_whose_key_may_be_another_next_time_is_not_hot() {
    let check = |zones: &str, directives: &str| {
        let mut server = limited(zones, directives);
        let before = reads(&server);
        assert_eq!(statuses(&mut server, "192.0.2.1", "/a.txt", 2), [200, 503]);
        assert_eq!(reads(&server), before + 1, "{zones} {directives}");
    };
    let limit = "limit_req zone=one;";
    check("limit_req_zone $uri zone=one:1m rate=1r/m;", limit);
    check(
        "limit_req_zone $request_method$http_user_agent zone=one:1m rate=1r/m;",
        limit,
    );
    check(
        "map $remote_addr $key { 192.0.2.9 ''; default all; } limit_req_zone $key zone=one:1m rate=1r/m;",
        limit,
    );
    check(
        "limit_req_zone $remote_addr zone=one:1m rate=1r/m; set_real_ip_from 192.0.3.1;",
        limit,
    );
}

#[test]
fn requests_of_a_directory_are_counted_once_where_they_have_begun() {
    let zones = "limit_req_zone $binary_remote_addr zone=one:1m rate=1r/s; limit_req_zone $host zone=two:1m rate=1r/s;";
    let directives = "open_file_cache max=9 inactive=1h; open_file_cache_valid 1h;
        location = / { limit_req zone=one burst=1 nodelay; } location / { limit_req zone=two; }";
    let mut server = server(zones, directives);
    server.run_to(ms(1000));
    assert_eq!(statuses(&mut server, "192.0.2.9", "/", 2), [200; 2]);
    server.run_to(ms(100_000));
    assert_eq!(statuses(&mut server, "192.0.2.1", "/", 3), [200, 200, 503]);
    assert_eq!(
        statuses(&mut server, "192.0.2.1", "/index.html", 2),
        [200, 503]
    );
}
