//! What the API, and Prometheus, tell of limits.

use super::{client, server, statuses};
use crate::answer::answer;
use crate::server::Server;
use serde_json::{Value, json};

const ZONES: &str =
    "limit_req_zone $arg_r zone=one:1m rate=1r/s; limit_conn_zone $arg_c zone=many:1m;";
const LIMITS: &str = "location / { limit_req zone=one burst=2 delay=1; limit_conn many 1; }
    location /dry/ { limit_req zone=one; limit_conn many 1; limit_req_dry_run on; limit_conn_dry_run on; alias /site/; }
    location /api { millstream_api write=on; } location /metrics { millstream_metrics; }";

fn call(server: &mut Server, method: &str, path: &str) -> (u16, Value) {
    let text = format!("{method} {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let answer = answer(&server.ask(&text));
    let document = serde_json::from_str(&answer.text());
    (answer.status, document.unwrap_or(Value::Null))
}

/// A server whose zones have counted requests of each kind.
fn counted() -> Server {
    let mut server = server(ZONES, LIMITS);
    assert_eq!(
        statuses(&mut server, "192.0.2.1", "/a.txt?r=1", 4),
        [200, 200, 0, 503]
    );
    assert_eq!(
        statuses(&mut server, "192.0.2.1", "/dry/a.txt?r=1", 1),
        [200]
    );
    let slow = client(&server, "192.0.2.1", "/big.bin?c=1");
    slow.stop_reading();
    server.run();
    assert_eq!(statuses(&mut server, "192.0.2.1", "/a.txt?c=1", 1), [503]);
    assert_eq!(
        statuses(&mut server, "192.0.2.1", "/dry/a.txt?c=1", 1),
        [200]
    );
    server
}

#[test]
fn the_api_tells_what_became_of_requests() {
    let mut server = counted();
    let requests = json!({ "passed": 2, "delayed": 1, "rejected": 1, "delayed_dry_run": 0, "rejected_dry_run": 1 });
    let connections = json!({ "passed": 1, "rejected": 1, "rejected_dry_run": 1 });
    let mut get = |path: &str| call(&mut server, "GET", &format!("/api/9/http/{path}"));
    assert_eq!(get("limit_reqs/"), (200, json!({ "one": requests })));
    assert_eq!(get("limit_reqs/one"), (200, requests));
    assert_eq!(get("limit_conns"), (200, json!({ "many": connections })));
    assert_eq!(
        get("limit_conns/many?fields=passed"),
        (200, json!({ "passed": 1 }))
    );
    let (status, document) = get("limit_reqs/two");
    assert_eq!(
        (status, &document["error"]["code"]),
        (404, &json!("LimitReqNotFound"))
    );
    let (status, document) = get("limit_conns/two");
    assert_eq!(
        (status, &document["error"]["code"]),
        (404, &json!("LimitConnNotFound"))
    );
}

#[test]
fn statistics_begin_anew_and_what_is_owed_stays() {
    let mut server = counted();
    for path in ["limit_reqs/one", "limit_conns/many"] {
        let (status, _) = call(&mut server, "DELETE", &format!("/api/9/http/{path}"));
        assert_eq!(status, 204, "{path}");
    }
    let (_, requests) = call(&mut server, "GET", "/api/9/http/limit_reqs/one");
    assert_eq!(requests["passed"], 0);
    assert_eq!(statuses(&mut server, "192.0.2.1", "/a.txt?r=1", 1), [503]);
    assert_eq!(statuses(&mut server, "192.0.2.1", "/a.txt?c=1", 1), [503]);
    let (_, requests) = call(&mut server, "GET", "/api/9/http/limit_conns/many");
    assert_eq!(
        requests,
        json!({ "passed": 0, "rejected": 1, "rejected_dry_run": 0 })
    );
    let (status, _) = call(&mut server, "DELETE", "/api/9/http/limit_reqs/two");
    assert_eq!(status, 404);
}

#[test]
fn prometheus_is_told_the_same() {
    let mut server = counted();
    let text =
        answer(&server.ask("GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")).text();
    for line in [
        "millstream_limit_req_keys{zone=\"one\"} 1",
        "millstream_limit_req_requests_total{zone=\"one\",outcome=\"passed\"} 2",
        "millstream_limit_req_requests_total{zone=\"one\",outcome=\"delayed\"} 1",
        "millstream_limit_req_requests_total{zone=\"one\",outcome=\"rejected_dry_run\"} 1",
        "millstream_limit_conn_keys{zone=\"many\"} 1",
        "millstream_limit_conn_requests_total{zone=\"many\",outcome=\"rejected\"} 1",
    ] {
        assert!(text.lines().any(|known| known == line), "{line}\n{text}");
    }
    assert!(!text.contains("millstream_stream_limit_conn"));
}
