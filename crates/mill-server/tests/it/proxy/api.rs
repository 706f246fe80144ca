//! What `millstream_api` tells, and what it changes.

/// Servers that are added, changed and removed.
mod changes;

use super::origin::{Act, ok};
use super::{Proxy, content};
use crate::server::SECOND;
use serde_json::{Value, json};

/// A proxy of two servers, one of them for backup, with the API beside it.
fn proxy() -> Proxy {
    let upstream = "server 10.0.0.2:80 weight=3 max_conns=9; server 10.0.0.9:80 backup;
                    zone app_zone 64k; keepalive 4;";
    Proxy::with_upstream(upstream, DIRECTIVES, |_, _| vec![ok("yes")])
}

const DIRECTIVES: &str = "
    location / { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ''; }
    location /api { millstream_api; }";

/// The status line without its version, and the document.
fn call(proxy: &mut Proxy, method: &str, path: &str, text: &str) -> (String, Value) {
    let length = text.len();
    let answer = proxy.ask(&format!(
        "{method} {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{text}"
    ));
    let status = answer.lines().next().unwrap_or_default().to_owned();
    let status = status.trim_start_matches("HTTP/1.1 ").to_owned();
    let document = serde_json::from_str(content(&answer));
    (status, document.unwrap_or(Value::Null))
}

fn get(proxy: &mut Proxy, path: &str) -> Value {
    let (status, document) = call(proxy, "GET", path, "");
    assert_eq!(status, "200 OK", "{path}: {document}");
    document
}

#[test]
fn a_group_shows_its_servers_and_what_they_did() {
    let mut proxy = proxy();
    let answer = proxy.ask(&super::get("/"));
    assert_eq!(content(&answer), "yes");
    let mut group = get(&mut proxy, "/api/9/http/upstreams/app");
    assert_eq!(group, get(&mut proxy, "/api/9/http/upstreams")["app"]);
    let peer = group["peers"][0].as_object_mut().expect("an object");
    let selected = peer.remove("selected").unwrap_or_default();
    assert!(
        selected
            .as_str()
            .is_some_and(|date| date.ends_with('Z') && date.len() == 24),
        "{selected}"
    );
    for time in ["header_time", "response_time"] {
        peer.remove(time);
    }
    let health = json!({ "checks": 0, "fails": 0, "unhealthy": 0 });
    let responses = |ok: u64, codes: Value| json!({ "1xx": 0, "2xx": ok, "3xx": 0, "4xx": 0, "5xx": 0, "codes": codes, "total": ok });
    let expected = json!({
        "peers": [
            {
                "id": 0, "server": "10.0.0.2:80", "name": "10.0.0.2:80", "backup": false, "weight": 3,
                "max_conns": 9, "state": "up", "active": 0, "requests": 1,
                "responses": responses(1, json!({ "200": 1 })),
                "sent": 29, "received": 41, "fails": 0, "unavail": 0, "health_checks": health, "downtime": 0,
            },
            {
                "id": 1, "server": "10.0.0.9:80", "name": "10.0.0.9:80", "backup": true, "weight": 1,
                "state": "up", "active": 0, "requests": 0, "responses": responses(0, json!({})),
                "sent": 0, "received": 0, "fails": 0, "unavail": 0, "health_checks": health, "downtime": 0,
            },
        ],
        "keepalive": 1, "zombies": 0, "zone": "app_zone",
    });
    assert_eq!(group, expected, "{group:#}");
}

#[test]
fn bytes_of_tries_that_failed_count() {
    let cut = |_: usize, _: &str| vec![super::origin::send("HTTP/1.1 200"), Act::Close];
    let mut proxy = Proxy::with_upstream("server 10.0.0.2;", DIRECTIVES, cut);
    assert!(proxy.ask(&super::get("/")).starts_with("HTTP/1.1 502 "));
    let group = get(&mut proxy, "/api/9/http/upstreams/app");
    let peer = &group["peers"][0];
    let told = ["sent", "received", "fails"].map(|field| peer[field].as_u64());
    assert_eq!(told, [Some(29), Some(12), Some(1)], "{peer}");
}

#[test]
fn an_answer_that_another_server_replaces_is_counted() {
    let busy = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";
    let answers = move |_: usize, _: &str| vec![super::origin::send(busy)];
    let directives = "
    location / { proxy_pass http://app; proxy_next_upstream http_503; }
    location /api { millstream_api; }";
    let mut proxy = Proxy::with_upstream("server 10.0.0.2; server 10.0.0.9;", directives, answers);
    assert!(proxy.ask(&super::get("/")).starts_with("HTTP/1.1 502 "));
    let group = get(&mut proxy, "/api/9/http/upstreams/app");
    assert_eq!(group["peers"][0]["responses"]["5xx"], 1, "{group:#}");
}

#[test]
fn a_queue_tells_its_size_and_what_it_refused() {
    let upstream = "server 10.0.0.2 max_conns=1; queue 1;";
    let mut proxy = Proxy::with_upstream(upstream, DIRECTIVES, |_, _| vec![Act::Hang]);
    let clients: Vec<_> = (0..3).map(|_| proxy.server.connect()).collect();
    for client in &clients {
        client.send(super::get("/"));
    }
    proxy.server.run();
    let group = get(&mut proxy, "/api/9/http/upstreams/app");
    let expected = json!({ "size": 1, "max_size": 1, "overflows": 1 });
    assert_eq!(group["queue"], expected);
}

#[test]
fn servers_are_listed_with_their_settings() {
    let mut proxy = proxy();
    let servers = get(&mut proxy, "/api/9/http/upstreams/app/servers/");
    let expected = json!({
        "id": 0, "server": "10.0.0.2:80", "weight": 3, "max_conns": 9, "max_fails": 1,
        "fail_timeout": "10s", "slow_start": "0s", "route": "", "backup": false, "down": false,
    });
    assert_eq!(servers[0], expected);
    assert_eq!(servers.as_array().map(Vec::len), Some(2));
    assert_eq!(
        get(&mut proxy, "/api/9/http/upstreams/app/servers/1"),
        servers[1]
    );
}

#[test]
fn fields_limit_what_is_told() {
    let mut proxy = proxy();
    let mut check =
        |path: &str, expected: Value| assert_eq!(get(&mut proxy, path), expected, "{path}");
    check("/api/9/http/upstreams?fields=", json!(["app"]));
    check(
        "/api/9/http/upstreams?fields=zone,zombies",
        json!({ "app": { "zone": "app_zone", "zombies": 0 } }),
    );
    check(
        "/api/9/http/upstreams/app?fields=zone",
        json!({ "zone": "app_zone" }),
    );
    check(
        "/api/9/nginx?a=b&fields=generation%2Cbuild",
        json!({ "generation": 1, "build": "millstream" }),
    );
    let http = [
        "requests",
        "server_zones",
        "location_zones",
        "caches",
        "limit_conns",
        "limit_reqs",
        "upstreams",
        "keyvals",
    ];
    check("/api/9/http/?fields=x", json!(http));
}

#[test]
fn connections_requests_and_the_server_are_told() {
    let mut proxy = proxy();
    let mut check =
        |path: &str, expected: Value| assert_eq!(get(&mut proxy, path), expected, "{path}");
    check("/api", json!([1, 2, 3, 4, 5, 6, 7, 8, 9]));
    check(
        "/api/9/connections",
        json!({ "accepted": 2, "dropped": 0, "active": 1, "idle": 1 }),
    );
    check("/api/9/http/requests", json!({ "total": 3, "current": 1 }));
    check(
        "/api/9/nginx?fields=pid,address",
        json!({ "pid": 100, "address": "10.0.0.1" }),
    );
    check(
        "/api/9/workers/0?fields=id,http",
        json!({ "id": 0, "http": { "requests": { "total": 5, "current": 1 } } }),
    );
    check("/api/9/http/caches", json!({}));
    check("/api/9/resolvers", json!({}));
}

#[test]
fn what_is_not_there_is_refused_with_a_code() {
    let mut proxy = proxy();
    let mut check = |method: &str, path: &str, status: &str, code: &str| {
        let (found, document) = call(&mut proxy, method, path, "");
        assert_eq!(found, status, "{method} {path}");
        assert_eq!(
            document["error"]["code"], code,
            "{method} {path}: {document}"
        );
        assert_eq!(document["error"]["status"].to_string(), status[..3]);
        assert_eq!(document["request_id"].as_str().map(str::len), Some(32));
        assert!(document["href"].is_string());
    };
    check("GET", "/api/10/nginx", "404 Not Found", "UnknownVersion");
    check("GET", "/api/9/mail", "404 Not Found", "PathNotFound");
    check(
        "GET",
        "/api/9/http/upstreams/other",
        "404 Not Found",
        "UpstreamNotFound",
    );
    check(
        "GET",
        "/api/9/http/upstreams/app/servers/7",
        "404 Not Found",
        "UpstreamServerNotFound",
    );
    check(
        "GET",
        "/api/9/http/upstreams/app/servers/x",
        "400 Bad Request",
        "UpstreamBadServerId",
    );
    check(
        "GET",
        "/api/9/resolvers/none",
        "404 Not Found",
        "ResolverZoneNotFound",
    );
    for (path, code) in [
        ("/slabs/a", "SlabNotFound"),
        ("/http/caches/a", "CacheNotFound"),
        ("/http/keyvals/a", "KeyvalNotFound"),
        ("/http/limit_conns/a", "LimitConnNotFound"),
        ("/http/limit_reqs/a", "LimitReqNotFound"),
        ("/http/server_zones/a", "ServerZoneNotFound"),
        ("/http/location_zones/a", "LocationZoneNotFound"),
        ("/http/location_zones/a/b", "PathNotFound"),
    ] {
        check("GET", &format!("/api/9{path}"), "404 Not Found", code);
    }
    for method in ["POST", "PATCH", "DELETE"] {
        check(
            method,
            "/api/9/http/upstreams/app/servers/0",
            "405 Not Allowed",
            "MethodDisabled",
        );
    }
}

#[test]
fn rules_of_access_come_before_the_api() {
    let directives = "location /api { millstream_api write=on; allow 192.0.2.7; deny all; }";
    let mut proxy = Proxy::with_upstream("server 10.0.0.2;", directives, |_, _| vec![ok("yes")]);
    let server = "/api/9/http/upstreams/app/servers/0";
    for method in ["GET", "PATCH", "DELETE"] {
        let (status, document) = call(&mut proxy, method, server, "{}");
        assert_eq!((&*status, document), ("403 Forbidden", Value::Null));
    }
    let mut allowed = |method: &str| {
        let world = &proxy.server.world;
        let client = world.connect_from("192.0.2.7:4000", crate::server::ADDRESS);
        client.send(format!(
            "{method} {server} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        ));
        proxy.server.run();
        String::from_utf8_lossy(&client.received()).into_owned()
    };
    assert!(allowed("GET").contains("\"server\":\"10.0.0.2:80\""));
    assert!(allowed("DELETE").ends_with("\r\n\r\n[]"));
}

#[test]
fn prometheus_gets_figures_and_times_of_each_server() {
    let slow = |_: usize, _: &str| vec![Act::Wait(SECOND / 8), ok("yes")];
    let directives = "location / { proxy_pass http://app; } location /m { millstream_metrics; }";
    let mut proxy =
        Proxy::with_upstream("server 10.0.0.2; server 10.0.0.3 down;", directives, slow);
    let client = proxy.server.connect();
    client.send(super::get("/"));
    proxy.server.run_to(SECOND);
    let answer = proxy.ask(&super::get("/m"));
    let lines: Vec<&str> = content(&answer).lines().collect();
    let server = "upstream=\"app\",server=\"10.0.0.2:80\"";
    for expected in [
        "# TYPE millstream_upstream_up gauge",
        &format!("millstream_upstream_up{{{server}}} 1"),
        "millstream_upstream_up{upstream=\"app\",server=\"10.0.0.3:80\"} 0",
        &format!("millstream_upstream_requests_total{{{server}}} 1"),
        &format!("millstream_upstream_responses_total{{{server},class=\"2xx\"}} 1"),
        &format!("millstream_upstream_received_bytes_total{{{server}}} 41"),
        "# TYPE millstream_upstream_header_seconds histogram",
        &format!("millstream_upstream_header_seconds_bucket{{{server},le=\"0.065536\"}} 0"),
        &format!("millstream_upstream_header_seconds_bucket{{{server},le=\"0.131072\"}} 1"),
        &format!("millstream_upstream_header_seconds_bucket{{{server},le=\"+Inf\"}} 1"),
        &format!("millstream_upstream_response_seconds_count{{{server}}} 1"),
        "millstream_upstream_idle_connections{upstream=\"app\"} 0",
    ] {
        let found = lines.iter().filter(|line| **line == expected).count();
        assert_eq!(found, 1, "{expected}\n{answer}");
    }
    // A server that has not answered has no histogram.
    assert!(!answer.contains("header_seconds_count{upstream=\"app\",server=\"10.0.0.3:80\"}"));
}
