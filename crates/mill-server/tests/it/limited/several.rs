//! Several limits of one request: each counts it, or none.

use super::{access_log, limit_log, ms, server, statuses};

const ZONES: &str =
    "limit_req_zone $arg_a zone=a:1m rate=1r/s; limit_req_zone $arg_b zone=b:1m rate=1r/s;
    limit_req_zone $arg_c zone=c:1m rate=10r/s;";

#[test]
fn a_request_that_one_limit_refuses_counts_for_none() {
    let mut server = server(ZONES, "limit_req zone=a; limit_req zone=b;");
    let mut ask = |path: &str| statuses(&mut server, "192.0.2.1", path, 1)[0];
    assert_eq!(ask("/a.txt?a=1&b=1"), 200);
    // The second limit refuses; the first one has not counted it.
    assert_eq!(ask("/a.txt?a=2&b=1"), 503);
    assert_eq!(ask("/a.txt?a=2&b=2"), 200);
    // The first limit refuses: the second one is not asked.
    assert_eq!(ask("/a.txt?a=2&b=3"), 503);
    assert_eq!(ask("/a.txt?a=3&b=3"), 200);
    let lines = [
        "limiting requests, excess: 1.000 by zone \"b\"",
        "limiting requests, excess: 1.000 by zone \"a\"",
    ];
    assert_eq!(limit_log(&server), lines);
}

#[test]
fn a_limit_without_a_key_leaves_the_others() {
    let mut server = server(ZONES, "limit_req zone=a; limit_req zone=b;");
    let mut ask = |path: &str| statuses(&mut server, "192.0.2.1", path, 1)[0];
    assert_eq!(ask("/a.txt?a=1"), 200);
    assert_eq!(ask("/a.txt?a=1"), 503);
    assert_eq!(ask("/a.txt?b=1"), 200);
    assert_eq!(ask("/a.txt?b=1"), 503);
    assert_eq!(ask("/a.txt"), 200);
    let lines = [
        "200 PASSED -",
        "503 REJECTED -",
        "200 PASSED -",
        "503 REJECTED -",
        "200 - -",
    ];
    assert_eq!(access_log(&server), lines);
}

#[test]
fn the_limit_that_makes_a_request_wait_longest_is_told() {
    let check = |limits: &str, expected: &str| {
        let mut server = server(ZONES, limits);
        let path = "/a.txt?a=1&c=1";
        assert_eq!(statuses(&mut server, "192.0.2.1", path, 2), [200, 0]);
        assert_eq!(limit_log(&server), [expected]);
        let elapsed = server.world.elapsed();
        server.run_to(elapsed + ms(1000));
        assert_eq!(access_log(&server), ["200 PASSED -", "200 DELAYED -"]);
    };
    let a = "delaying request, excess: 1.000, by zone \"a\"";
    check("limit_req zone=a burst=5; limit_req zone=c burst=5;", a);
    check("limit_req zone=c burst=5; limit_req zone=a burst=5;", a);
    check(
        "limit_req zone=c burst=5; limit_req zone=a burst=5; limit_req zone=b;",
        a,
    );
    check(
        "limit_req zone=c burst=5 nodelay; limit_req zone=a burst=5;",
        a,
    );
}
