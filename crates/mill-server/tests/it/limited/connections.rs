//! `limit_conn`: how many requests of a key are under way.

use super::{access_log, client, limit_log, ms, server, status, statuses};
use crate::proxy::ORIGIN;
use crate::proxy::origin::{self, Act, send};
use crate::server::{ADDRESS, Server};
use mill_sim::client::Client;

const BY_ADDRESS: &str = "limit_conn_zone $binary_remote_addr zone=many:1m;
    limit_conn_zone $server_port zone=all:1m;";

/// A client that takes none of a large answer: its request is under way.
fn slow(server: &mut Server, host: &str) -> Client {
    let client = client(server, host, "/big.bin");
    client.stop_reading();
    server.run();
    client
}

#[test]
fn a_key_has_as_many_requests_under_way_as_its_limit() {
    let mut server = server(BY_ADDRESS, "limit_conn many 2;");
    let slow = [
        slow(&mut server, "192.0.2.1"),
        slow(&mut server, "192.0.2.1"),
    ];
    assert_eq!(statuses(&mut server, "192.0.2.1", "/a.txt", 2), [503, 503]);
    assert_eq!(statuses(&mut server, "192.0.2.2", "/a.txt", 2), [200, 200]);
    assert!(server.has_logged(
        "limiting connections by zone \"many\", client: 192.0.2.1, server: , request: \"GET /a.txt HTTP/1.1\", host: \"a\""
    ));
    assert_eq!(server.counters().limit_conn_rejected, 2);
    slow[0].read_on();
    server.run();
    assert_eq!(statuses(&mut server, "192.0.2.1", "/a.txt", 1), [200]);
    slow[1].reset();
    server.run();
    let _slow = client(&server, "192.0.2.1", "/big.bin").stop_reading();
    assert_eq!(statuses(&mut server, "192.0.2.1", "/a.txt", 1), [200]);
    assert_eq!(
        access_log(&server)[..2],
        ["503 - REJECTED", "503 - REJECTED"]
    );
}

#[test]
fn a_connection_that_waits_for_its_next_request_does_not_count() {
    let mut server = server(BY_ADDRESS, "limit_conn many 1;");
    let idle = client(&server, "192.0.2.1", "/a.txt");
    server.run();
    assert_eq!((status(&idle), idle.is_closed()), (200, false));
    assert_eq!(statuses(&mut server, "192.0.2.1", "/a.txt", 1), [200]);
}

#[test]
fn a_request_that_one_limit_refuses_counts_for_none() {
    let mut server = server(BY_ADDRESS, "limit_conn many 2; limit_conn all 1;");
    let slow = slow(&mut server, "192.0.2.1");
    assert_eq!(statuses(&mut server, "192.0.2.2", "/a.txt", 3), [503; 3]);
    slow.reset();
    server.run();
    assert_eq!(statuses(&mut server, "192.0.2.2", "/a.txt", 3), [200; 3]);
    assert_eq!(
        limit_log(&server),
        ["limiting connections by zone \"all\""; 3]
    );
}

#[test]
fn a_dry_run_logs_and_serves() {
    let directives = "limit_conn many 1; limit_conn_dry_run on; limit_conn_status 429;";
    let mut server = server(BY_ADDRESS, directives);
    let _slow = slow(&mut server, "192.0.2.1");
    assert_eq!(statuses(&mut server, "192.0.2.1", "/a.txt", 1), [200]);
    assert_eq!(access_log(&server), ["200 - REJECTED_DRY_RUN"]);
    assert_eq!(
        limit_log(&server),
        ["limiting connections, dry run, by zone \"many\""]
    );
}

#[test]
fn a_status_is_that_of_the_location_and_has_its_page() {
    let directives = "limit_conn many 1; limit_conn_status 429; error_page 429 =430 /b.txt;";
    let mut server = server(BY_ADDRESS, directives);
    let _slow = slow(&mut server, "192.0.2.1");
    assert_eq!(statuses(&mut server, "192.0.2.1", "/a.txt", 1), [430]);
    assert_eq!(access_log(&server), ["430 - REJECTED"]);
}

#[test]
fn a_request_that_waits_for_its_rate_does_not_count_yet() {
    let zones = format!("{BY_ADDRESS} limit_req_zone $arg_r zone=one:1m rate=1r/s;");
    let mut server = server(&zones, "limit_conn many 1; limit_req zone=one burst=5;");
    assert_eq!(statuses(&mut server, "192.0.2.1", "/a.txt?r=1", 1), [200]);
    let waiting = client(&server, "192.0.2.1", "/a.txt?r=1");
    server.run();
    assert_eq!(status(&waiting), 0);
    assert_eq!(statuses(&mut server, "192.0.2.1", "/a.txt", 1), [200]);
    let elapsed = server.world.elapsed();
    server.run_to(elapsed + ms(1000));
    assert_eq!(status(&waiting), 200);
    assert_eq!(access_log(&server)[2], "200 DELAYED PASSED");
}

#[test]
fn a_key_for_which_there_is_no_room_is_refused() {
    let zones = "limit_conn_zone $arg_key zone=many:32k;";
    let mut server = server(zones, "limit_conn many 1;");
    let clients: Vec<Client> = (0..384)
        .map(|key| {
            let client = client(&server, "192.0.2.1", &format!("/big.bin?key={key:04}"));
            client.stop_reading();
            client
        })
        .collect();
    server.run();
    let line = "ngx_slab_alloc() failed: no memory in limit_conn_zone \"many\"";
    assert!(server.has_logged(line));
    assert_eq!(server.counters().limit_conn_rejected, 1);
    clients[0].reset();
    server.run();
    assert_eq!(statuses(&mut server, "192.0.2.1", "/a.txt?key=x", 1), [200]);
}

#[test]
fn a_tunnel_counts_until_it_ends() {
    let directives = "limit_conn many 1; location /a.txt { }
        location / { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; }
        location /whole { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;
                          access_log /tunnels-$host.log; }";
    // Of the second one more than its line is kept: where that goes is evaluated at its end.
    for path in ["/", "/whole"] {
        let http = format!("{BY_ADDRESS} upstream app {{ server {ORIGIN}; }}");
        let mut server = server(&http, directives);
        let switch =
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";
        let script = move |_: usize, _: &str| vec![send(switch), Act::Echo];
        let (turn, _seen) = origin::start(&server.world, ORIGIN, script);
        server.add_peer(turn);
        let tunnel = server.world.connect_from("192.0.2.1:9", ADDRESS);
        let upgrade = "Connection: Upgrade\r\nUpgrade: echo\r\n\r\n";
        tunnel.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n{upgrade}"));
        server.run();
        assert!(tunnel.received().starts_with(b"HTTP/1.1 101"));
        assert_eq!(statuses(&mut server, "192.0.2.1", "/a.txt", 1), [503]);
        tunnel.finish();
        server.run();
        assert!(tunnel.is_closed());
        assert_eq!(statuses(&mut server, "192.0.2.1", "/a.txt", 1), [200]);
    }
}
