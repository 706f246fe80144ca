//! Poisoning: an answer that is made of what the key of a cache leaves out, and is given to others.
//!
//! The origin trusts what it should not. An attacker asks first, a usual client afterwards for the same page.

use super::{ask, send};
use crate::answer::answer;
use crate::proxy::ORIGIN;
use crate::proxy::origin::{self, Act};
use crate::server::{ADDRESS, Server, in_http};
use mill_sim::world::World;

/// An application that makes links of the host it is told, obeys fields in the place of the request line, and refuses long heads.
fn credulous(request: &str) -> Vec<Act> {
    let field = |name: &str| {
        let mut lines = request.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    };
    let host = field("X-Forwarded-Host").or_else(|| field("Host"));
    let scheme = field("X-Forwarded-Proto").unwrap_or("https");
    let path = field("X-Original-URL").unwrap_or("/page");
    let (status, text) = match field("X-HTTP-Method-Override") {
        _ if request.len() > 8000 => ("400 Bad Request", "evil: too long"),
        Some(method) => ("404 Not Found", method),
        None => ("200 OK", ""),
    };
    let content = format!("{text} see {scheme}://{}{path}", host.unwrap_or("none"));
    let len = content.len();
    let fields = "Cache-Control: max-age=60\r\n";
    vec![send(&format!(
        "HTTP/1.1 {status}\r\n{fields}Content-Length: {len}\r\n\r\n{content}"
    ))]
}

/// A server with these directives; what a usual client gets once an attacker has sent this request.
fn after(http: &str, directives: &str, attack: &str) -> (Server, String) {
    let text = in_http(&format!(
        "proxy_cache_path /cache keys_zone=one:1m memory=8m; upstream app {{ server {ORIGIN}; }}
         log_format cached '$status $host $upstream_cache_status'; {http}
         server {{
             listen {ADDRESS}; server_name shop.example; access_log /access.log cached;
             proxy_cache one; proxy_http_version 1.1; {directives}
             location / {{ proxy_pass http://app; }}
         }}"
    ));
    let mut server = Server::configured(World::new(1), &text, 1);
    let (turn, _seen) = origin::start(&server.world, ORIGIN, |_, request| credulous(request));
    server.add_peer(turn);
    let _attacker = ask(&server, "203.0.113.5", 1, attack);
    server.run();
    let usual = "GET /page HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n";
    let usual = ask(&server, "198.51.100.7", 2, usual);
    server.run();
    let text = answer(&usual.received()).text();
    (server, text)
}

/// With `careless` the usual client gets what the attacker wanted; with `careful` what it has asked for.
#[track_caller]
fn check(attack: &str, careless: [&str; 2], careful: [&str; 2]) -> Server {
    let good = " see https://shop.example/page";
    let (_, poisoned) = after(careless[0], careless[1], attack);
    assert!(poisoned.contains("evil"), "no attack: {poisoned}");
    let (server, text) = after(careful[0], careful[1], attack);
    assert_eq!(text, good, "{careful:?}");
    server
}

/// What docs/attacks.md tells of an attack.
#[track_caller]
fn documented(attack: &str, told: &str) {
    let document = include_str!("../../../../../docs/attacks.md");
    let mut rows = document.lines();
    let row = rows.find(|line| line.starts_with(&format!("| {attack}")));
    assert!(
        row.is_some_and(|row| row.ends_with(&format!("| {told} |"))),
        "docs/attacks.md: | {attack}… | {told} |, but {row:?}"
    );
}

const PASSED_HOST: &str = "proxy_set_header Host $http_host;";

#[test]
fn a_host_that_is_none_of_ours_gets_no_answer() {
    let attack = "GET /page HTTP/1.1\r\nHost: evil.example\r\n\r\n";
    // One server takes all hosts, and the key has the name of the group in the place of the host.
    let others = format!(
        "server {{ listen {ADDRESS} default_server; access_log /access.log cached; return 444; }}"
    );
    let server = check(attack, ["", PASSED_HOST], [&others, PASSED_HOST]);
    assert_eq!(server.logs.lines("/access.log")[0], "444 evil.example -");
    assert_eq!(server.counters().closed_unanswered, 1);
    documented("`Host` (", "`closed_unanswered`, and 444 in the access log");
    let keyed = "proxy_set_header Host $host; proxy_cache_key $scheme$host$request_uri;";
    let server = check(attack, ["", PASSED_HOST], ["", keyed]);
    assert_eq!(server.logs.lines("/access.log")[1], "200 shop.example MISS");
    let fixed = "proxy_set_header Host shop.example;";
    check(attack, ["", PASSED_HOST], ["", fixed]);
}

#[test]
fn two_hosts_in_one_request_are_refused() {
    for attack in [
        "GET /page HTTP/1.1\r\nHost: shop.example\r\nHost: evil.example\r\n\r\n",
        "GET /page HTTP/1.1\r\nHost: shop.example evil.example\r\n\r\n",
        "GET /page HTTP/1.1\r\nHost: shop.example@evil.example\r\n\r\n",
    ] {
        let (server, text) = after("", PASSED_HOST, attack);
        assert_eq!(text, " see https://shop.example/page");
        assert_eq!(server.counters().refused_host, 1, "{attack}");
        assert!(server.logs.lines("/access.log")[0].starts_with("400 "));
        assert!(
            server.has_logged("client sent "),
            "{:?}",
            server.error_log()
        );
    }
    documented("two hosts", "`refused_host`, and a line `client sent …`");
}

#[test]
fn a_host_beside_the_one_of_the_target_does_not_pass() {
    let attack = "GET http://shop.example/page HTTP/1.1\r\nHost: evil.example\r\n\r\n";
    let careless = "proxy_set_header Host $http_host;";
    let careful = "proxy_set_header Host $host;";
    let server = check(attack, ["", careless], ["", careful]);
    assert_eq!(server.counters().overruled_host, 1);
    assert!(server.has_logged(
        "client sent host header \"evil.example\" with a target of \"shop.example\", which holds"
    ));
    let told = "`overruled_host`, and a line `client sent host header …, which holds`";
    documented("a host beside that of an absolute target", told);
}

#[test]
fn fields_of_proxies_pass_only_as_they_are_set() {
    let host = "proxy_set_header Host $host;";
    let set = "proxy_set_header Host $host; proxy_set_header X-Forwarded-Host $host; proxy_set_header X-Forwarded-Proto https;
               proxy_set_header X-Original-URL ''; proxy_set_header X-HTTP-Method-Override '';";
    for field in [
        "X-Forwarded-Host: evil.example",
        "X-Forwarded-Proto: evil",
        "X-Original-URL: /evil",
        "X-HTTP-Method-Override: evil",
    ] {
        let attack = format!("GET /page HTTP/1.1\r\nHost: shop.example\r\n{field}\r\n\r\n");
        let careless = format!("{host} proxy_cache_valid any 60s;");
        let server = check(
            &attack,
            ["", &careless],
            ["", &format!("{set} proxy_cache_valid any 60s;")],
        );
        assert_eq!(server.counters().overriding_fields, 1, "{field}");
        let told = format!("client sent \"{field}\" with a request whose answer may be kept");
        assert!(server.has_logged(&told), "{:?}", server.error_log());
    }
    let told =
        "`overriding_fields`, and a line `client sent … with a request whose answer may be kept`";
    documented("`X-Forwarded-Host`", told);
    documented("`X-Original-URL`", told);
}

/// The origin takes shorter heads than this server lets pass.
#[test]
fn an_error_about_a_long_head_is_not_kept() {
    let host = "proxy_set_header Host $host;";
    let long = "x".repeat(10_000);
    let attack = format!("GET /page HTTP/1.1\r\nHost: shop.example\r\nX-Long: {long}\r\n\r\n");
    let http = "large_client_header_buffers 4 16k;";
    let careless = [
        http,
        "proxy_set_header Host $host; proxy_cache_valid any 60s;",
    ];
    let shorter = "large_client_header_buffers 4 4k;";
    let server = check(&attack, careless, [shorter, host]);
    assert_eq!(server.counters().limit_header_buffers, 1);
    assert!(server.has_logged("client sent too long header line"));
    let told = "`limit_header_buffers`, and a line `client sent too long header line`";
    documented("a head that", told);
    // Or errors are not kept, whatever the origin says of them.
    let not_kept = "proxy_set_header Host $host; proxy_ignore_headers Cache-Control Expires X-Accel-Expires; proxy_cache_valid 200 60s;";
    check(&attack, careless, [http, not_kept]);
}
