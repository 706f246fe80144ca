//! `frang`: limits of clients, for all workers together, and what their requests may look like.

use crate::answer::{answer, answers};
use crate::server::{ADDRESS, MS, SECOND, Server, in_http};
use mill_sim::client::Client;
use mill_sim::world::World;

const GET: &str = "GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n";

/// A site with limits of clients, the same for each of `count` workers.
fn limited(limits: &str, directives: &str, count: usize) -> Server {
    let text = text(limits, directives);
    Server::configured(World::new(11), &text, count)
}

fn text(limits: &str, directives: &str) -> String {
    in_http(&format!(
        "frang {{ {limits} }}
         server {{ listen {ADDRESS} reuseport; root /site; open_file_cache max=9; {directives} }}"
    ))
}

/// The statuses that a client has got.
fn statuses(client: &Client) -> Vec<u16> {
    let received = client.received();
    if received.is_empty() {
        return Vec::new();
    }
    answers(&received)
        .iter()
        .map(|answer| answer.status)
        .collect()
}

fn from(server: &Server, host: &str) -> Client {
    server.world.connect_from(&format!("{host}:0"), ADDRESS)
}

#[test]
fn a_rate_holds_for_hot_answers_and_over_the_clients_connections_of_all_workers() {
    let mut server = limited("request_rate 20;", "", 2);
    let mut all = Vec::new();
    // One at a time, so that each is in its eighth of a second with those before.
    for _ in 0..15 {
        let client = from(&server, "10.0.0.9");
        for _ in 0..2 {
            client.send(GET);
            server.run();
        }
        all.push(client);
    }
    let statuses: Vec<u16> = all.iter().flat_map(statuses).collect();
    let expected = [vec![200; 20], vec![403; 5]].concat();
    assert_eq!(
        statuses.len(),
        25,
        "a connection that gets 403 is closed: {statuses:?}"
    );
    assert_eq!(statuses, expected);
    let counters = server.counters();
    // The second request of a refused connection is not read any more.
    assert_eq!(counters.frang_request_rate, 5);
    let line = "limiting client by \"request_rate\" of frang: 21, and 20 is the most, client: 10.0.0.9, server: 10.0.0.1:80";
    let told = server.error_log();
    let told = told.iter().filter(|line| line.contains("frang"));
    assert_eq!(told.count(), 1, "one line a second");
    assert!(server.has_logged(line), "{:?}", server.error_log());
    // Others have their own rate, and so has this one a second later.
    let other = from(&server, "10.0.0.10");
    other.send(GET);
    server.run();
    assert_eq!(self::statuses(&other), [200]);
    server.run_to(2 * SECOND);
    let later = from(&server, "10.0.0.9");
    later.send(GET);
    server.run();
    assert_eq!(self::statuses(&later), [200]);
}

#[test]
fn pipelined_requests_are_counted_one_by_one() {
    let mut server = limited("request_burst 5;", "", 1);
    let client = from(&server, "10.0.0.9");
    client.send(GET.repeat(9));
    server.run();
    assert_eq!(statuses(&client), [200, 200, 200, 200, 200, 403]);
    assert!(client.is_closed());
    assert_eq!(server.counters().frang_request_burst, 1);
}

#[test]
fn a_client_that_is_dropped_is_reset_without_an_answer() {
    let mut server = limited("request_burst 1; action drop;", "", 1);
    let client = from(&server, "10.0.0.9");
    client.send(GET);
    server.run();
    client.send(GET);
    server.run();
    assert_eq!(statuses(&client), [200]);
    assert!(client.was_reset());
    server.assert_nothing_left(1);
}

#[test]
fn connections_are_limited_in_number_and_in_rate() {
    let limits = "concurrent_tcp_connections 3; tcp_connection_rate 6 8;";
    let mut server = limited(limits, "keepalive_timeout 1s;", 2);
    let clients: Vec<_> = (0..5).map(|_| from(&server, "10.0.0.9")).collect();
    for client in &clients {
        client.send(GET);
    }
    server.run();
    let served = clients
        .iter()
        .filter(|client| !client.received().is_empty());
    assert_eq!(served.count(), 3);
    let counters = server.counters();
    assert_eq!(counters.frang_concurrent_tcp_connections, 2);
    assert_eq!(counters.connections_active, 3);
    // Three were closed; of eight seconds there is one connection left.
    server.run_to(2 * SECOND);
    let next = [from(&server, "10.0.0.9"), from(&server, "10.0.0.9")];
    next[0].send(GET);
    server.run();
    next[1].send(GET);
    server.run();
    assert_eq!(statuses(&next[0]), [200]);
    assert!(statuses(&next[1]).is_empty());
    assert_eq!(server.counters().frang_tcp_connection_rate, 1);
    assert!(server.has_logged("\"tcp_connection_rate\" of frang: 7, and 6 is the most"));
    server.run_until_idle();
    server.assert_nothing_left(2);
}

#[test]
fn a_blocked_client_is_refused_at_once_until_the_time_is_over() {
    let mut server = limited("request_burst 1; ip_block 10s;", "", 2);
    let client = from(&server, "10.0.0.9");
    let idle = from(&server, "10.0.0.9");
    client.send(GET.repeat(2));
    server.run();
    assert!(client.was_reset());
    assert!(server.has_logged("and 1 is the most; it is blocked for 10 s, client: 10.0.0.9"));
    let refused = from(&server, "10.0.0.9");
    refused.send(GET);
    idle.send(GET);
    server.run();
    assert_eq!((statuses(&refused), statuses(&idle)), (vec![], vec![]));
    assert_eq!(server.counters().frang_blocked_connections, 2);
    let other = from(&server, "10.0.0.8");
    other.send(GET);
    server.run();
    assert_eq!(statuses(&other), [200]);
    // A reload forgets no block.
    server.adopt(&text(
        "request_burst 1; ip_block 10s;",
        "keepalive_timeout 9s;",
    ));
    server.run();
    let refused = from(&server, "10.0.0.9");
    refused.send(GET);
    server.run();
    assert!(statuses(&refused).is_empty());
    server.run_to(11 * SECOND);
    let later = from(&server, "10.0.0.9");
    later.send(GET);
    server.run();
    assert_eq!(statuses(&later), [200]);
}

#[test]
fn a_client_on_the_whitelist_has_no_limits() {
    let limits = "request_burst 1; concurrent_tcp_connections 1; http_header_cnt 1; whitelist 10.0.0.0/29 ::1;";
    let mut server = limited(limits, "", 1);
    let client = from(&server, "10.0.0.7");
    let second = from(&server, "10.0.0.7");
    let request = "GET /a.txt HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n";
    client.send(request.repeat(4));
    second.send(request);
    server.run();
    assert_eq!(statuses(&client), [200; 4]);
    assert_eq!(statuses(&second), [200]);
    let other = from(&server, "10.0.0.8");
    other.send(request);
    server.run();
    assert_eq!(statuses(&other), [403]);
}

#[test]
fn a_connection_with_a_mark_of_the_whitelist_has_no_limits() {
    let limits = "request_burst 1; concurrent_tcp_connections 1; http_header_cnt 1; ip_block 1h; whitelist_mark 7 0x8;";
    let mut server = limited(limits, "", 1);
    let marked = [7, 8, 7].map(|mark| {
        let client = from(&server, "10.0.0.7");
        client.mark(mark);
        client
    });
    let request = "GET /a.txt HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n";
    for client in &marked {
        client.send(request.repeat(4));
    }
    server.run();
    for client in &marked {
        assert_eq!(statuses(client), [200; 4]);
    }
    // Its address is one like others: without the mark it is counted, and blocked.
    for mark in [None, Some(0), Some(9)] {
        let client = from(&server, "10.0.0.7");
        if let Some(mark) = mark {
            client.mark(mark);
        }
        client.send(request);
        server.run();
        assert!(statuses(&client).is_empty(), "{mark:?}");
    }
    marked[0].send(request);
    server.run();
    assert_eq!(statuses(&marked[0]), [200; 5]);
}

#[test]
fn clients_of_a_marked_proxy_have_no_limits() {
    let limits = "request_rate 1; ip_block 1h; whitelist_mark 7;";
    let mut server = limited(limits, "set_real_ip_from 10.0.0.0/8;", 1);
    let proxy = from(&server, "10.0.0.9");
    proxy.mark(7);
    let request = "GET /a.txt HTTP/1.1\r\nHost: a\r\nX-Real-IP: 192.0.2.1\r\n\r\n";
    proxy.send(request.repeat(3));
    server.run();
    assert_eq!(statuses(&proxy), [200; 3]);
}

#[test]
fn behind_a_trusted_proxy_the_client_that_it_tells_counts() {
    let real_ip = "set_real_ip_from 10.0.0.0/8;";
    let mut server = limited("request_rate 2; concurrent_tcp_connections 1;", real_ip, 1);
    let proxies = [from(&server, "10.0.0.9"), from(&server, "10.0.0.9")];
    let ask = |proxy: &Client, client: &str| {
        proxy.send(format!(
            "GET /a.txt HTTP/1.1\r\nHost: a\r\nX-Real-IP: {client}\r\n\r\n"
        ));
    };
    for (proxy, client) in [(0, "192.0.2.1"), (1, "192.0.2.1"), (0, "192.0.2.2")] {
        ask(&proxies[proxy], client);
        server.run();
    }
    ask(&proxies[1], "192.0.2.1");
    server.run();
    assert_eq!(statuses(&proxies[0]), [200, 200]);
    assert_eq!(statuses(&proxies[1]), [200, 403]);
    assert!(server.has_logged("client: 192.0.2.1"));
}

#[test]
fn a_request_that_breaks_a_rule_of_its_location_is_refused() {
    let mut server = limited(
        "http_methods get post; http_uri_len 20; http_header_cnt 3;",
        "location / { }
         location /put { frang { http_methods put; } return 200 put; }
         location /free { frang { http_methods all; http_uri_len 0; } return 200 free; }",
        1,
    );
    let check = |server: &mut Server, line: &str, fields: &str, status: u16| {
        let text = format!("{line} HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        let client = from(server, "10.0.0.9");
        client.send(&text);
        server.run();
        assert_eq!(statuses(&client), [status], "{text}");
        assert_eq!(client.is_closed(), status == 403, "{text}");
    };
    check(&mut server, "GET /a.txt", "", 200);
    check(&mut server, "GET /a.txt", "A: b\r\nC: d\r\n", 200);
    check(&mut server, "GET /a.txt", "A: b\r\nC: d\r\nE: f\r\n", 403);
    check(&mut server, "PUT /a.txt", "Content-Length: 0\r\n", 403);
    check(&mut server, "PUT /put", "Content-Length: 0\r\n", 200);
    check(&mut server, "GET /put", "", 403);
    check(&mut server, "GET /a.txt?1234567890abcd", "", 403);
    check(&mut server, "BREW /free?1234567890abcd", "", 200);
    let counters = server.counters();
    assert_eq!(
        (
            counters.frang_http_methods,
            counters.frang_http_uri_len,
            counters.frang_http_header_cnt
        ),
        (2, 1, 1)
    );
    let line = "limiting client by \"http_methods\" of frang: method \"PUT\", client: 10.0.0.9";
    assert!(server.has_logged(line), "{:?}", server.error_log());
}

#[test]
fn a_page_in_the_place_of_403_is_sent_although_its_location_would_refuse_it_too() {
    let page = "error_page 403 /b.txt; frang { http_uri_len 3; }";
    let mut server = limited("", page, 1);
    let answer = answer(&server.ask("GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n"));
    assert_eq!(
        (answer.status, answer.text()),
        (403, String::from("file b\n"))
    );
}

#[test]
fn a_head_in_too_many_pieces_is_refused_while_it_comes() {
    let mut server = limited("http_header_chunk_cnt 3;", "client_header_timeout 60s;", 1);
    let client = from(&server, "10.0.0.9");
    for piece in ["GET /a.txt HT", "TP/1.1\r\nHost:", " a\r\n\r\n"] {
        client.send(piece);
        server.run();
    }
    assert_eq!(statuses(&client), [200]);
    client.send_each_byte("GET /a.txt HTTP/1.1\r\n", 10 * MS);
    server.run_to(SECOND);
    assert_eq!(statuses(&client), [200, 403]);
    assert!(server.has_logged("\"http_header_chunk_cnt\" of frang: 4, and 3 is the most"));
    assert_eq!(server.counters().frang_http_header_chunk_cnt, 1);
}

#[test]
fn answers_with_certain_statuses_are_limited() {
    let limits = "http_resp_code_block 404 5* 2 4s;";
    let mut server = limited(limits, "location /broken { return 502; }", 2);
    let ask = |server: &mut Server, path: &str| {
        let client = from(server, "10.0.0.9");
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        server.run();
        (statuses(&client)[0], client.is_closed())
    };
    assert_eq!(ask(&mut server, "/none"), (404, false));
    assert_eq!(ask(&mut server, "/a.txt"), (200, false));
    assert_eq!(ask(&mut server, "/broken"), (502, false));
    assert_eq!(ask(&mut server, "/none"), (404, true));
    assert_eq!(ask(&mut server, "/a.txt"), (200, false));
    assert_eq!(server.counters().frang_http_resp_code_block, 1);
    server.run_to(5 * SECOND);
    assert_eq!(ask(&mut server, "/none"), (404, false));
}

#[test]
fn the_table_of_clients_is_bounded() {
    let mut server = limited("request_rate 100; clients 10;", "keepalive_timeout 1s;", 1);
    for number in 1..=200 {
        let client = from(&server, &format!("10.0.1.{number}"));
        client.send(GET);
        server.run();
        assert_eq!(statuses(&client), [200]);
    }
    let frang = server.site.frang.as_ref().expect("there are limits");
    assert_eq!(frang.client_counts(), (10, 190));
}

#[test]
fn content_is_limited_in_bytes_and_pieces() {
    // The origin is not reached: content is read before.
    let limits = "http_body_len 10; http_body_chunk_cnt 3;";
    let proxy = "location / { proxy_pass http://10.0.9.9:80; proxy_connect_timeout 1s; }";
    let check = |pieces: &[&str], status: u16, reads: &str| {
        let mut server = limited(limits, proxy, 1);
        let client = from(&server, "10.0.0.9");
        for piece in pieces {
            client.send(piece);
            server.run();
        }
        server.run_to(3 * SECOND);
        assert_eq!(statuses(&client), [status], "{pieces:?}");
        let told = server.error_log().iter().any(|line| line.contains(reads));
        assert!(told, "{:?}", server.error_log());
    };
    let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let fine = "connect";
    check(
        &[head, "5\r\nabcde\r\n", "5\r\nabcde\r\n", "0\r\n\r\n"],
        502,
        fine,
    );
    let line = "\"http_body_len\" of frang: 11, and 10 is the most";
    check(&[head, "5\r\nabcde\r\n", "6\r\nabcdef\r\n"], 403, line);
    let line = "\"http_body_chunk_cnt\" of frang: 4, and 3 is the most";
    check(
        &[head, "1\r\na\r\n", "1\r\na\r\n", "1\r\na\r\n", "1\r\na\r\n"],
        403,
        line,
    );
    let long = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n";
    let line = "\"http_body_len\" of frang: 11, and 10 is the most";
    check(&[long], 403, line);
}

#[test]
fn blocks_are_listed_added_and_removed_through_the_api_and_counted() {
    let api = "location /api { millstream_api write=on; } location /m { millstream_metrics; }";
    let mut server = limited("request_burst 3; ip_block 60s; blocks 2;", api, 2);
    let call = |server: &mut Server, method: &str, path: &str, content: &str| {
        let client = from(server, "10.0.0.1");
        let len = content.len();
        client.send(format!(
            "{method} {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {len}\r\n\r\n{content}"
        ));
        // No two calls in an eighth of a second.
        let next = server.world.elapsed() + 200 * MS;
        server.run_to(next);
        let answer = answer(&client.received());
        let document = serde_json::from_str::<serde_json::Value>(&answer.text());
        (answer.status, document.unwrap_or_default())
    };
    let attacker = from(&server, "10.0.0.9");
    attacker.send(GET.repeat(5));
    server.run();
    let path = "/api/9/http/frang/blocks";
    let (status, blocks) = call(&mut server, "GET", path, "");
    assert_eq!(status, 200);
    assert_eq!(blocks["10.0.0.9"]["reason"], "request_burst");
    assert!(
        blocks["10.0.0.9"]["seconds_left"]
            .as_u64()
            .is_some_and(|left| left >= 58)
    );
    let (status, block) = call(&mut server, "POST", path, "{\"address\":\"2001:db8::1\"}");
    assert_eq!((status, &block["reason"]), (201, &serde_json::json!("api")));
    assert!(block["seconds_left"].is_null());
    let (_, figures) = call(&mut server, "GET", "/api/9/http/frang", "");
    assert_eq!(
        figures["blocks"],
        serde_json::json!({ "active": 2, "max": 2, "added": 2, "evicted": 0 })
    );
    assert_eq!(figures["clients"]["known"], 2);
    for (content, code) in [
        ("{", "JsonError"),
        ("{\"address\":\"x\"}", "FrangBadBlock"),
        ("{\"seconds\":1}", "FrangBadBlock"),
        ("{\"address\":\"10.0.0.7\",\"seconds\":0}", "FrangBadBlock"),
    ] {
        let (_, error) = call(&mut server, "POST", path, content);
        assert_eq!(error["error"]["code"], code, "{content}");
    }
    assert_eq!(
        call(&mut server, "DELETE", &format!("{path}/10.0.0.9"), "").0,
        204
    );
    assert_eq!(
        call(&mut server, "DELETE", &format!("{path}/10.0.0.9"), "").0,
        404
    );
    let freed = from(&server, "10.0.0.9");
    freed.send(GET);
    server.run();
    assert_eq!(statuses(&freed), [200]);
    assert_eq!(
        call(&mut server, "GET", &format!("{path}/2001:db8::1"), "").0,
        200
    );
    assert_eq!(call(&mut server, "DELETE", path, "").0, 204);
    assert_eq!(call(&mut server, "GET", path, "").1, serde_json::json!({}));
    let client = from(&server, "10.0.0.1");
    client.send("GET /m HTTP/1.1\r\nHost: a\r\n\r\n");
    server.run();
    let text = answer(&client.received()).text();
    for line in [
        "millstream_frang_blocks 0",
        "millstream_frang_blocks_added_total 2",
        "# TYPE millstream_frang_clients gauge",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert!(text.contains("# TYPE millstream_frang_request_burst_total counter"));
    assert_eq!(server.counters().frang_request_burst, 1);
}

#[test]
fn a_kind_of_clients_is_limited_whatever_their_addresses_are() {
    let values = "location = /kind { return 200 $request_fingerprint; }";
    let mut server = limited("", values, 1);
    let request = |path: &str, rest: &str| format!("GET {path} HTTP/1.1\r\nHost: a\r\n{rest}\r\n");
    let kind = "User-Agent: x\r\nX-Odd: y\r\n";
    let hash = answer(&server.ask(&request("/kind", kind))).text();
    assert_eq!(hash.len(), 16, "{hash}");
    assert_ne!(answer(&server.ask(&request("/kind", ""))).text(), hash);
    let limits = format!("http_fingerprint {hash} 3 4;");
    server.adopt(&text(&limits, values));
    server.run();
    let ask = |server: &mut Server, host: u32, rest: &str, count: usize| {
        let client = from(server, &format!("10.0.1.{host}"));
        client.send(request("/a.txt", rest).repeat(count));
        server.run();
        statuses(&client)
    };
    // Three connections, and four requests, of all addresses together.
    assert_eq!(ask(&mut server, 1, kind, 2), [200, 200]);
    assert_eq!(ask(&mut server, 2, kind, 1), [200]);
    assert_eq!(ask(&mut server, 3, kind, 2), [200, 403]);
    assert_eq!(ask(&mut server, 4, kind, 1), [403]);
    assert_eq!(ask(&mut server, 4, "User-Agent: x\r\n", 3), [200; 3]);
    assert_eq!(server.counters().frang_http_fingerprint, 2);
    assert!(server.has_logged("\"http_fingerprint\" of frang: 5, and 4 is the most"));
    server.run_to(2 * SECOND);
    assert_eq!(ask(&mut server, 5, kind, 1), [200]);
}

#[test]
fn a_malformed_request_gets_400_and_its_client_is_not_blocked() {
    let limits = "http_uri_brange 0x2e-0x39 0x61-0x7a; http_allow_empty_body_content_type off;
                  http_post_validate on; action drop; ip_block 10s;";
    let mut server = limited(limits, "", 1);
    let check = |server: &mut Server, line: &str, fields: &str, status: u16| {
        let client = from(server, "10.0.0.9");
        client.send(format!("{line} HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
        server.run();
        assert_eq!(statuses(&client), [status], "{line} {fields}");
        assert_eq!(client.is_closed(), status == 400, "{line} {fields}");
    };
    let typed = "Content-Type: text/plain\r\n";
    let form = "Content-Type: multipart/form-data\r\nContent-Length: 1\r\n";
    check(&mut server, "GET /a.txt", "", 200);
    // What is kept ready is looked at, too.
    check(&mut server, "GET /a.txt", "Referer: /B\r\n", 400);
    check(&mut server, "GET /A.txt", "", 400);
    check(&mut server, "GET /a.txt", typed, 400);
    check(&mut server, "POST /a.txt", form, 400);
    check(&mut server, "GET /a.txt", "", 200);
    let counters = server.counters();
    let counted = (
        counters.frang_brange,
        counters.frang_type_without_content,
        counters.frang_http_post_validate,
    );
    assert_eq!(counted, (2, 1, 1));
    let line = "limiting client by \"http_uri_brange\" of frang: byte 0x42, client: 10.0.0.9";
    assert!(server.has_logged(line), "{:?}", server.error_log());
}

#[test]
fn a_malformed_request_may_be_dropped() {
    let mut server = limited("error_action drop; http_uri_brange 0x2e-0x7a;", "", 1);
    let check = |server: &mut Server, request: &str| {
        let client = from(server, "10.0.0.9");
        client.send(format!("GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n{request}"));
        server.run();
        assert_eq!(statuses(&client), [200], "{request}");
        assert!(client.was_reset(), "{request}");
    };
    check(&mut server, "GET /a%20 HTTP/1.1\r\nHost: a\r\n\r\n");
    check(&mut server, "GET /a.txt HTTP/1.1\r\n\r\n");
    check(&mut server, "GET /../a HTTP/1.1\r\nHost: a\r\n\r\n");
    check(&mut server, "no request\r\n\r\n");
    server.assert_nothing_left(1);
}
