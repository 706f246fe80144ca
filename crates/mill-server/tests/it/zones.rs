//! `status_zone`: what is counted of servers and locations, and where it is told.

use crate::answer::answer;
use crate::server::{ADDRESS, Server, in_http};
use mill_server::worker::Order;
use mill_sim::world::World;
use serde_json::{Value, json};

/// Two workers with a socket each; `rest` is a part of the server.
fn two(rest: &str) -> Server {
    Server::configured(World::new(7), &text(rest), 2)
}

fn text(rest: &str) -> String {
    in_http(&format!(
        "server {{ listen {ADDRESS} reuseport; root /site; open_file_cache max=9; status_zone s;
                   location /api {{ millstream_api write=on; }} {rest} }}"
    ))
}

const LOCATIONS: &str = "location / { status_zone files; }
    location /none { status_zone none; return 444; }
    location /moved { status_zone moved; error_page 404 /a.txt; return 404; }";

fn call(server: &mut Server, method: &str, path: &str) -> (u16, Value) {
    let text = format!("{method} {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let answer = answer(&server.ask(&text));
    let document = serde_json::from_str(&answer.text());
    (answer.status, document.unwrap_or(Value::Null))
}

fn get(server: &mut Server, path: &str) -> Value {
    let (status, document) = call(server, "GET", path);
    assert_eq!(status, 200, "{path}: {document}");
    document
}

/// Of answers that all have one status.
fn responses(class: &str, status: u16, count: u64) -> Value {
    let codes = json!({ status.to_string(): count });
    let mut all =
        json!({ "1xx": 0, "2xx": 0, "3xx": 0, "4xx": 0, "5xx": 0, "codes": codes, "total": count });
    all[class] = json!(count);
    all
}

fn none() -> Value {
    json!({ "1xx": 0, "2xx": 0, "3xx": 0, "4xx": 0, "5xx": 0, "codes": {}, "total": 0 })
}

/// So many requests on a connection each, which both workers get; what their clients have received, in bytes.
fn ask_both(server: &mut Server, request: &str, count: usize) -> usize {
    let clients: Vec<_> = (0..count).map(|_| server.connect()).collect();
    for client in &clients {
        client.send(request);
    }
    server.run();
    clients.iter().map(|client| client.received().len()).sum()
}

#[test]
fn a_zone_is_the_sum_of_all_workers_with_and_without_hot_answers() {
    let mut server = two(LOCATIONS);
    let request = "GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut sent = 0;
    // From the second time on the answers are hot.
    for _ in 0..3 {
        sent += ask_both(&mut server, request, 20);
    }
    let received = 60 * request.len();
    let zones = get(&mut server, "/api/9/http/location_zones");
    let expected = json!({
        "requests": 60, "responses": responses("2xx", 200, 60), "discarded": 0, "received": received, "sent": sent,
    });
    assert_eq!(zones["files"], expected);
    assert_eq!(
        get(&mut server, "/api/9/http/location_zones/files/"),
        expected
    );
    let unused =
        json!({ "requests": 0, "responses": none(), "discarded": 0, "received": 0, "sent": 0 });
    assert_eq!(zones["none"], unused);
    // The questions count for the server, and the one that is under way has no answer yet.
    let zone = get(&mut server, "/api/9/http/server_zones/s");
    assert_eq!(
        (&zone["requests"], &zone["processing"]),
        (&json!(63), &json!(1))
    );
    assert_eq!(zone["responses"], responses("2xx", 200, 62));
    let names = get(&mut server, "/api/9/http/server_zones?fields=");
    assert_eq!(names, json!(["s"]));
    let limited = get(&mut server, "/api/9/http/server_zones?fields=requests");
    assert_eq!(limited, json!({ "s": { "requests": 65 } }));
}

#[test]
fn a_request_counts_where_it_ends_and_is_discarded_without_an_answer() {
    let mut server = two(LOCATIONS);
    let long = "POST /moved HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
    assert_eq!(answer(&server.ask(long)).status, 404);
    assert_eq!(
        server.ask("GET /none HTTP/1.1\r\nHost: a\r\n\r\n"),
        b"".to_vec()
    );
    assert_eq!(answer(&server.ask("GET\r\n\r\n")).status, 400);
    let client = server.connect();
    client.send("GET /a.txt HT");
    server.run();
    client.finish();
    server.run();
    let zones = get(&mut server, "/api/9/http/location_zones");
    let told = |zone: &str| {
        let zone = &zones[zone];
        let fields = ["requests", "discarded", "received"];
        fields.map(|field| zone[field].as_u64().unwrap_or(99))
    };
    assert_eq!(told("moved"), [0, 0, 0]);
    // Content that is not read is not counted, as in `$request_length`.
    assert_eq!(told("files"), [1, 0, long.len() as u64 - 3]);
    assert_eq!(zones["files"]["responses"]["codes"], json!({ "404": 1 }));
    assert_eq!(told("none"), [1, 1, 31]);
    let zone = get(&mut server, "/api/9/http/server_zones/s");
    assert_eq!(
        (&zone["requests"], &zone["processing"], &zone["discarded"]),
        (&json!(6), &json!(1), &json!(2))
    );
    assert_eq!(
        zone["responses"]["codes"],
        json!({ "200": 1, "400": 1, "404": 1 })
    );
}

#[test]
fn a_reset_begins_anew_and_a_reload_goes_on() {
    let mut server = two(LOCATIONS);
    let request = "GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n";
    ask_both(&mut server, request, 20);
    let path = "/api/9/http/location_zones/files";
    assert_eq!(call(&mut server, "DELETE", path), (204, Value::Null));
    assert_eq!(get(&mut server, path)["responses"], none());
    ask_both(&mut server, request, 2);
    server.adopt(&text("location / { status_zone files; } location /b { }"));
    server.run();
    ask_both(&mut server, request, 1);
    let zone = get(&mut server, path);
    assert_eq!(
        (&zone["requests"], &zone["received"]),
        (&json!(3), &json!(3 * request.len()))
    );
    // What is under way when its server is reset is not lost.
    let server_path = "/api/9/http/server_zones/s";
    assert_eq!(call(&mut server, "DELETE", server_path).0, 204);
    let zone = get(&mut server, server_path);
    assert_eq!(
        (&zone["requests"], &zone["processing"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(zone["responses"], responses("2xx", 204, 1));
    for (path, code) in [
        (
            "/api/9/http/location_zones/none",
            json!("LocationZoneNotFound"),
        ),
        (
            "/api/9/http/server_zones/files",
            json!("ServerZoneNotFound"),
        ),
    ] {
        for method in ["GET", "DELETE"] {
            let (status, document) = call(&mut server, method, path);
            assert_eq!(
                (status, &document["error"]["code"]),
                (404, &code),
                "{method} {path}"
            );
        }
    }
}

#[test]
fn connections_requests_and_workers_begin_anew() {
    let mut server = two(LOCATIONS);
    ask_both(&mut server, "GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n", 20);
    for path in [
        "/api/9/connections",
        "/api/9/http/requests",
        "/api/9/processes",
        "/api/9/ssl",
    ] {
        assert_eq!(
            call(&mut server, "DELETE", path),
            (204, Value::Null),
            "{path}"
        );
    }
    let connections = get(&mut server, "/api/9/connections");
    // Those of the last three calls, and of this one.
    let expected = json!({ "accepted": 4, "dropped": 0, "active": 1, "idle": 20 });
    assert_eq!(connections, expected);
    let requests = get(&mut server, "/api/9/http/requests");
    assert_eq!(requests, json!({ "total": 4, "current": 1 }));
    assert_eq!(server.counters().connections_accepted, 26);
    assert_eq!(call(&mut server, "DELETE", "/api/9/workers").0, 204);
    let workers = get(&mut server, "/api/9/workers");
    let total = |worker: usize, of: &str| {
        let worker = &workers[worker];
        let value = match of {
            "accepted" => &worker["connections"]["accepted"],
            _ => &worker["http"]["requests"]["total"],
        };
        value.as_u64().unwrap_or(99)
    };
    assert_eq!(total(0, "accepted") + total(1, "accepted"), 1);
    assert_eq!(total(0, "requests") + total(1, "requests"), 1);
    assert_eq!(call(&mut server, "DELETE", "/api/9/workers/0").0, 204);
    assert_eq!(call(&mut server, "DELETE", "/api/9/workers/7").0, 404);
    let nginx = get(&mut server, "/api/9/nginx?fields=pid,ppid");
    assert_eq!(nginx, json!({ "pid": 100, "ppid": 99 }));
}

#[test]
fn a_worker_that_is_stopped_leaves_nothing_under_way() {
    let mut server = two("location /big.bin { }");
    let client = server.connect();
    client.stop_reading();
    client.send("GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n");
    server.run();
    let figures = |server: &Server| {
        let zone = server.site.zones.servers().next().expect("there is one");
        let figures = zone.figures();
        (figures.requests, figures.processing, figures.discarded)
    };
    assert_eq!(figures(&server), (1, 1, 0));
    server.order(|| Order::Stop);
    server.run();
    assert_eq!(figures(&server), (1, 0, 1));
}

#[test]
fn prometheus_gets_figures_and_times_of_each_zone() {
    let rest = format!("location /m {{ millstream_metrics; }} {LOCATIONS}");
    let mut server = two(&rest);
    let request = "GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n";
    let sent = ask_both(&mut server, request, 20);
    server.ask("GET /none HTTP/1.1\r\nHost: a\r\n\r\n");
    let text = answer(&server.ask("GET /m HTTP/1.1\r\nHost: a\r\n\r\n")).text();
    let lines: Vec<&str> = text.lines().collect();
    for expected in [
        "# TYPE millstream_server_zone_processing gauge",
        "millstream_server_zone_processing{zone=\"s\"} 1",
        "# TYPE millstream_server_zone_requests_total counter",
        "millstream_server_zone_requests_total{zone=\"s\"} 22",
        "millstream_server_zone_responses_total{zone=\"s\",class=\"2xx\"} 20",
        "# TYPE millstream_server_zone_request_seconds histogram",
        "millstream_server_zone_request_seconds_bucket{zone=\"s\",le=\"0.000064\"} 20",
        "millstream_server_zone_request_seconds_count{zone=\"s\"} 20",
        "millstream_location_zone_requests_total{zone=\"files\"} 20",
        &format!("millstream_location_zone_sent_bytes_total{{zone=\"files\"}} {sent}"),
        &format!(
            "millstream_location_zone_received_bytes_total{{zone=\"files\"}} {}",
            20 * request.len()
        ),
        "millstream_location_zone_discarded_total{zone=\"none\"} 1",
        "# TYPE millstream_location_zone_request_seconds histogram",
    ] {
        let found = lines.iter().filter(|line| **line == expected).count();
        assert_eq!(found, 1, "{expected}\n{text}");
    }
    assert!(!text.contains("millstream_location_zone_processing"));
}
