//! `limit_req`: requests pass, wait, or are refused.

use super::{access_log, client, get, limit_log, ms, server, status, statuses};
use crate::server::{ADDRESS, Server};

const BY_ADDRESS: &str = "limit_req_zone $binary_remote_addr zone=one:1m rate=1r/s;";

#[test]
fn a_request_beyond_the_rate_is_refused() {
    let mut server = server(BY_ADDRESS, "limit_req zone=one;");
    assert_eq!(
        statuses(&mut server, "192.0.2.1", "/a.txt", 3),
        [200, 503, 503]
    );
    assert_eq!(statuses(&mut server, "192.0.2.2", "/a.txt", 1), [200]);
    assert!(server.has_logged(
        "limiting requests, excess: 1.000 by zone \"one\", client: 192.0.2.1, server: , request: \"GET /a.txt HTTP/1.1\", host: \"a\""
    ));
    assert_eq!(server.counters().limit_req_rejected, 2);
    let elapsed = server.world.elapsed();
    server.run_to(elapsed + ms(999));
    assert_eq!(statuses(&mut server, "192.0.2.1", "/a.txt", 1), [503]);
    server.run_to(elapsed + ms(1000));
    assert_eq!(statuses(&mut server, "192.0.2.1", "/a.txt", 2), [200, 503]);
    let lines = [
        "200 PASSED -",
        "503 REJECTED -",
        "503 REJECTED -",
        "200 PASSED -",
    ];
    assert_eq!(access_log(&server)[..4], lines);
}

/// When the answers of requests that come at once have been received, in milliseconds; 0 of one that was refused.
fn times(directives: &str, count: usize) -> (Vec<u128>, Server) {
    let mut server = server(BY_ADDRESS, directives);
    server.run_to(ms(1));
    let clients: Vec<_> = (0..count)
        .map(|_| client(&server, "192.0.2.1", "/a.txt"))
        .collect();
    let mut times = vec![None; count];
    let began = server.world.elapsed();
    for step in 0..200 {
        server.run_to(began + ms(step * 50));
        for (time, client) in times.iter_mut().zip(&clients) {
            if time.is_none() && status(client) > 0 {
                *time = Some((status(client) == 200).then_some(u128::from(step) * 50));
            }
        }
    }
    let time = |time: Option<Option<u128>>| time.flatten().unwrap_or(0);
    (times.into_iter().map(time).collect(), server)
}

#[test]
fn requests_wait_their_turn_and_those_beyond_the_burst_are_refused() {
    let (times, server) = times("limit_req zone=one burst=2;", 4);
    assert!(times[0] <= 50 && times[3] == 0, "{times:?}");
    assert!((1000..=1050).contains(&times[1]), "{times:?}");
    assert!((2000..=2050).contains(&times[2]), "{times:?}");
    let lines = [
        "delaying request, excess: 1.000, by zone \"one\"",
        "delaying request, excess: 2.000, by zone \"one\"",
        "limiting requests, excess: 3.000 by zone \"one\"",
    ];
    assert_eq!(limit_log(&server), lines);
    let counters = server.counters();
    assert_eq!(
        (counters.limit_req_delayed, counters.limit_req_rejected),
        (2, 1)
    );
    let lines = [
        "200 PASSED -",
        "503 REJECTED -",
        "200 DELAYED -",
        "200 DELAYED -",
    ];
    assert_eq!(access_log(&server), lines);
}

#[test]
fn the_first_requests_of_a_burst_may_go_at_once() {
    let (times_of_some, _) = times("limit_req zone=one burst=4 delay=2;", 5);
    assert!(
        times_of_some[..3].iter().all(|time| *time <= 50),
        "{times_of_some:?}"
    );
    assert!(
        (1000..=1050).contains(&times_of_some[3]),
        "{times_of_some:?}"
    );
    let (all, server) = times("limit_req zone=one burst=4 nodelay;", 6);
    assert!(all[..5].iter().all(|time| *time <= 50), "{all:?}");
    assert_eq!(
        limit_log(&server),
        ["limiting requests, excess: 5.000 by zone \"one\""]
    );
}

#[test]
fn a_client_that_leaves_while_it_waits_is_noticed() {
    for is_reset in [false, true] {
        let mut server = server(BY_ADDRESS, "limit_req zone=one burst=9;");
        assert_eq!(statuses(&mut server, "192.0.2.1", "/a.txt", 1), [200]);
        let waiting = client(&server, "192.0.2.1", "/a.txt");
        server.run();
        assert_eq!(status(&waiting), 0);
        if is_reset {
            waiting.reset();
        } else {
            waiting.finish();
        }
        server.run();
        assert!(server.has_logged("client prematurely closed connection, client: 192.0.2.1"));
        assert_eq!(access_log(&server)[1], "499 DELAYED -", "{is_reset}");
        // What it owes stays.
        assert_eq!(statuses(&mut server, "192.0.2.1", "/a.txt", 1), [0]);
        assert!(server.has_logged("delaying request, excess: 2.000"));
    }
}

#[test]
fn levels_and_statuses_are_those_of_the_location() {
    let directives = "limit_req zone=one burst=1; limit_req_status 429; limit_req_log_level notice;
        location /own { limit_req_status 599; limit_req_log_level info; limit_req zone=one; alias /site/a.txt; }";
    let mut server = server(BY_ADDRESS, directives);
    assert_eq!(
        statuses(&mut server, "192.0.2.1", "/a.txt", 3),
        [200, 0, 429]
    );
    assert_eq!(statuses(&mut server, "192.0.2.1", "/own", 1), [599]);
    let lines = server.error_log();
    let level = |text: &str| lines.iter().find(|line| line.contains(text)).unwrap();
    assert!(
        level("delaying").contains("[info]"),
        "{}",
        level("delaying")
    );
    assert!(
        level("excess: 2.000").contains("[notice]"),
        "{}",
        level("excess: 2.000")
    );
}

#[test]
fn a_request_without_a_key_is_not_limited() {
    let zones = "limit_req_zone $arg_key zone=one:1m rate=1r/s;";
    let mut server = server(zones, "limit_req zone=one;");
    assert_eq!(statuses(&mut server, "192.0.2.1", "/a.txt", 3), [200; 3]);
    assert_eq!(
        statuses(&mut server, "192.0.2.1", "/a.txt?key=", 2),
        [200; 2]
    );
    assert_eq!(
        statuses(&mut server, "192.0.2.1", "/a.txt?key=a", 2),
        [200, 503]
    );
    assert_eq!(access_log(&server)[0], "200 - -");
}

#[test]
fn a_key_that_is_too_long_is_told_and_not_counted() {
    let zones =
        "large_client_header_buffers 4 100k; limit_req_zone $arg_key zone=one:1m rate=1r/s;";
    let mut server = server(zones, "limit_req zone=one;");
    let path = |length| format!("/a.txt?key={}", "x".repeat(length));
    assert_eq!(
        statuses(&mut server, "192.0.2.1", &path(65_536), 2),
        [200; 2]
    );
    assert!(server.has_logged("the value of the \"$arg_key\" key is more than 65535 bytes: \"xxx"));
    assert_eq!(
        statuses(&mut server, "192.0.2.1", &path(65_535), 2),
        [200, 503]
    );
}

#[test]
fn a_dry_run_logs_and_lets_pass() {
    let directives = "limit_req zone=one burst=1; limit_req_dry_run on;";
    let mut server = server(BY_ADDRESS, directives);
    assert_eq!(statuses(&mut server, "192.0.2.1", "/a.txt", 3), [200; 3]);
    let lines = [
        "delaying request, dry run, excess: 1.000, by zone \"one\"",
        "limiting requests, dry run, excess: 2.000 by zone \"one\"",
    ];
    assert_eq!(limit_log(&server), lines);
    let lines = [
        "200 PASSED -",
        "200 DELAYED_DRY_RUN -",
        "200 REJECTED_DRY_RUN -",
    ];
    assert_eq!(access_log(&server), lines);
    let counters = server.counters();
    assert_eq!(
        (counters.limit_req_delayed, counters.limit_req_rejected),
        (0, 0)
    );
}

#[test]
fn a_request_is_counted_once_however_it_is_redirected() {
    let directives = "limit_req zone=one; error_page 503 /busy;
        location /busy { limit_req zone=two; return 200 busy; }
        location /free { limit_req_dry_run on; error_page 404 = /a.txt; return 404; }";
    let zones = format!("{BY_ADDRESS} limit_req_zone $server_port zone=two:1m rate=1r/m;");
    let mut server = server(&zones, directives);
    assert_eq!(statuses(&mut server, "192.0.2.1", "/", 1), [200]);
    assert_eq!(statuses(&mut server, "192.0.2.1", "/", 3), [503; 3]);
    let client = server.world.connect_from("192.0.2.9:1", ADDRESS);
    client.send(get("/busy"));
    server.run();
    // Refused requests had been counted there only if they were examined twice.
    assert_eq!(status(&client), 200);
}

#[test]
fn a_zone_forgets_the_key_that_was_not_used_for_longest() {
    let zones = "limit_req_zone $arg_key zone=one:32k rate=1r/m;";
    let mut server = server(zones, "limit_req zone=one;");
    let ask = |server: &mut Server, key: usize| {
        statuses(server, "192.0.2.1", &format!("/a.txt?key={key:04}"), 1)[0]
    };
    for key in 0..191 {
        assert_eq!(ask(&mut server, key), 200);
    }
    // The first one is used, and another one is forgotten for the next key.
    assert_eq!(ask(&mut server, 0), 503);
    assert_eq!(ask(&mut server, 191), 200);
    assert_eq!(ask(&mut server, 0), 503);
    assert_eq!(ask(&mut server, 2), 503);
    assert_eq!(ask(&mut server, 1), 200);
}
