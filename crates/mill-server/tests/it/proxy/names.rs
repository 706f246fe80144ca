//! `proxy_pass` to names that are resolved while the server runs.

use super::name_server::{self, AskedNames, NAME_SERVER, Script};
use super::origin::{self, ok};
use crate::server::{ADDRESS, SECOND, Server, in_http};
use crate::zone::{A, Asked, Record, SRV};
use mill_runtime::time::Duration;
use mill_sim::world::{Until, World};
use serde_json::{Value, json};

const ORIGINS: [&str; 3] = ["10.0.1.1:80", "10.0.1.2:80", "10.0.1.1:8080"];

/// Two workers, origins whose answers tell where they are and what they were asked, and a name server.
struct Proxy {
    server: Server,
    asked: AskedNames,
}

impl Proxy {
    fn new(http: &str, script: Script) -> Self {
        let world = World::new(3);
        let (mut turn, asked) = name_server::start(&world, script);
        turn();
        let mut server = Server::configured(world, &in_http(http), 2);
        server.add_peer(turn);
        for address in ORIGINS {
            let tell = move |_, request: &str| {
                let line = request.lines().next().unwrap_or_default();
                let host = request.lines().find_map(|line| line.strip_prefix("Host: "));
                vec![ok(&format!(
                    "{address} {line} {}",
                    host.unwrap_or_default()
                ))]
            };
            let (turn, _) = origin::start(&server.world, address, tell);
            server.add_peer(turn);
        }
        Self { server, asked }
    }

    fn run_until(&mut self, until: Until) {
        self.server.run_until(until);
    }

    /// The status and the content of the answer to a request for `target`.
    fn get(&mut self, target: &str) -> (u16, String) {
        let request = format!("GET {target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        let answer = String::from_utf8(self.server.ask(&request)).expect("answers are text");
        let status = answer
            .get(9..12)
            .map_or(0, |status| status.parse().expect("a status"));
        (status, super::content(&answer).to_owned())
    }

    /// The names that were asked for since the last call, each once for its two families.
    fn asked(&self) -> Vec<String> {
        let mut asked = std::mem::take(&mut *self.asked.borrow_mut());
        asked.dedup();
        asked
    }
}

/// `b.example` is at 10.0.1.1 for ten seconds.
fn one_address(asked: &Asked, _: Duration) -> Vec<u8> {
    addresses(asked, &[1])
}

/// Replies to questions for `b.example`.
fn addresses(asked: &Asked, lasts: &[u8]) -> Vec<u8> {
    if asked.name != "b.example" {
        return asked.failure(3);
    }
    let record = |last: &u8| Record::a(&asked.name, 10, [10, 0, 1, *last]);
    let records: Vec<_> = lasts.iter().map(record).collect();
    asked.reply(if asked.kind == A { &records } else { &[] })
}

/// One server with these directives, and one with `http` beside it.
fn proxy(http: &str, directives: &str, script: Script) -> Proxy {
    let text = format!("{http} server {{ listen {ADDRESS}; {directives} }}");
    Proxy::new(&text, script)
}

/// A proxy to what the request's argument `to` says.
fn proxy_to_argument(directives: &str, script: Script) -> Proxy {
    let location = format!(
        "resolver {NAME_SERVER}; location / {{ proxy_pass http://$arg_to; {directives} }} \
         location /uri/ {{ proxy_pass http://$arg_to/fixed?x; }}"
    );
    let groups = "upstream known { server 10.0.1.2; }";
    proxy(groups, &location, script)
}

fn check(proxy: &mut Proxy, target: &str, content: &str) {
    assert_eq!(proxy.get(target), (200, content.to_owned()), "{target}");
}

#[test]
fn a_name_in_a_variable_is_resolved_once_for_its_time_to_live() {
    let mut proxy = proxy_to_argument("", one_address);
    for _ in 0..3 {
        check(
            &mut proxy,
            "/a?to=B.example",
            "10.0.1.1:80 GET /a?to=B.example HTTP/1.0 B.example",
        );
    }
    // Each worker has its own cache.
    let asked = proxy.asked();
    assert!(asked == ["b.example"], "{asked:?}");
    proxy.run_until(Until::At(11 * SECOND));
    let (status, _) = proxy.get("/a?to=b.example");
    assert_eq!((status, proxy.asked().len()), (200, 1));
}

#[test]
fn requests_take_turns_at_the_addresses_of_a_name_until_these_change() {
    let mut proxy = proxy_to_argument("", |asked, at| match at.as_secs() {
        0..10 => addresses(asked, &[1, 2]),
        10..20 => addresses(asked, &[2, 1]),
        _ => addresses(asked, &[2]),
    });
    for (at, expected) in [(0, 1), (1, 2), (11, 1), (12, 2), (13, 1), (22, 2), (23, 2)] {
        proxy.run_until(Until::At(at * SECOND));
        let (_, content) = proxy.get("/?to=b.example");
        let origin = format!("10.0.1.{expected}:80 ");
        assert!(content.starts_with(&origin), "{at}: {content}");
    }
}

#[test]
fn a_variable_may_name_a_group_an_address_and_a_port() {
    let mut proxy = proxy_to_argument("", one_address);
    let line = "GET /?to=known HTTP/1.0 known";
    check(&mut proxy, "/?to=known", &format!("10.0.1.2:80 {line}"));
    let line = "GET /?to=10.0.1.1:8080 HTTP/1.0 10.0.1.1:8080";
    check(
        &mut proxy,
        "/?to=10.0.1.1:8080",
        &format!("10.0.1.1:8080 {line}"),
    );
    assert!(proxy.asked().is_empty());
    let line = "GET /?to=b.example:8080 HTTP/1.0 b.example:8080";
    check(
        &mut proxy,
        "/?to=b.example:8080",
        &format!("10.0.1.1:8080 {line}"),
    );
    check(
        &mut proxy,
        "/uri/x?to=known",
        "10.0.1.2:80 GET /fixed?x HTTP/1.0 known",
    );
}

#[test]
fn the_host_and_port_of_a_name_are_variables() {
    let fields = "proxy_set_header Host $proxy_host-$proxy_port;";
    let mut proxy = proxy_to_argument(fields, one_address);
    for (to, host) in [
        ("b.example", "b.example-80"),
        ("b.example:8080", "b.example:8080-8080"),
        ("b.example:80", "b.example-80"),
    ] {
        let (status, content) = proxy.get(&format!("/?to={to}"));
        assert_eq!(status, 200);
        assert!(content.ends_with(&format!(" {host}")), "{content}");
    }
}

#[test]
fn the_access_log_names_a_host_that_was_not_found() {
    let http = "log_format up '$status $upstream_addr $proxy_host $proxy_port';";
    let location = format!(
        "access_log /access.log up; resolver {NAME_SERVER}; location / {{ proxy_pass http://$arg_to; }}"
    );
    let mut proxy = proxy(http, &location, one_address);
    assert_eq!(proxy.get("/?to=c.example:81").0, 502);
    let log = proxy.server.logs.lines("/access.log");
    assert_eq!(log, ["502 - c.example:81 81"]);
}

#[test]
fn names_that_fail_are_502_with_nginx_words() {
    let check = |to: &str, script: Script, status, text: &str| {
        let mut proxy = proxy_to_argument("resolver_timeout 3s;", script);
        assert_eq!(proxy.get(&format!("/?to={to}")).0, status, "{to}");
        let log = proxy.server.error_log();
        assert!(proxy.server.has_logged(text), "{to}: {log:?}");
    };
    let request = ", client: 198.51.100.1, server: , request: \"GET /?to=";
    let missing = format!("c.example could not be resolved (3: Host not found){request}");
    check("c.example", one_address, 502, &missing);
    let script: Script = |asked, _| asked.failure(2);
    check(
        "b.example",
        script,
        502,
        "b.example could not be resolved (2: Server failure), client",
    );
    check(
        "",
        one_address,
        500,
        "invalid URL prefix in \"http://\", client",
    );
    check(
        "b.example:0",
        one_address,
        500,
        "invalid port in upstream \"b.example:0\", client",
    );
}

#[test]
fn a_dead_name_server_times_out_and_a_client_that_goes_is_499() {
    let mut proxy = proxy_to_argument("resolver_timeout 3s;", |_, _| Vec::new());
    let clients = [(); 2].map(|()| {
        let client = proxy.server.connect();
        client.send("GET /?to=b.example HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        client
    });
    proxy.run_until(Until::At(SECOND));
    clients[1].finish();
    proxy.run_until(Until::At(4 * SECOND));
    assert!(clients[0].received().starts_with(b"HTTP/1.1 502"));
    assert_eq!(clients[1].received(), b"");
    let log = proxy.server.error_log();
    let text = "b.example could not be resolved (110: Operation timed out)";
    assert_eq!(
        log.iter().filter(|line| line.contains(text)).count(),
        1,
        "{log:?}"
    );
    assert!(
        proxy
            .server
            .has_logged("client prematurely closed connection"),
        "{log:?}"
    );
}

#[test]
fn lies_about_a_name_are_passed_over() {
    let mut proxy = proxy_to_argument("", |asked, _| {
        asked.to_other_question("c.example", &[Record::a("b.example", 10, [10, 0, 1, 2])])
    });
    let client = proxy.server.connect();
    client.send("GET /?to=b.example HTTP/1.0\r\n\r\n");
    proxy.run_until(Until::At(31 * SECOND));
    assert!(client.received().starts_with(b"HTTP/1.1 502"));
}

#[test]
fn without_a_resolver_only_groups_and_addresses_can_be_named() {
    let groups = "upstream known { server 10.0.1.2; }";
    let mut proxy = proxy(
        groups,
        "location / { proxy_pass http://$arg_to; }",
        one_address,
    );
    assert_eq!(proxy.get("/?to=known").0, 200);
    assert_eq!(proxy.get("/?to=10.0.1.1").0, 200);
    assert_eq!(proxy.get("/?to=b.example").0, 502);
    assert!(
        proxy
            .server
            .has_logged("no resolver defined to resolve b.example, client")
    );
}

#[test]
fn a_server_that_is_resolved_follows_its_name() {
    let http = format!("resolver {NAME_SERVER}; upstream g {{ server b.example resolve; }}");
    let mut proxy = proxy(
        &http,
        "location / { proxy_pass http://g; }",
        |asked, at| match at.as_secs() {
            0..10 => addresses(asked, &[1]),
            10..20 => addresses(asked, &[2]),
            20..30 => asked.failure(2),
            _ => asked.failure(3),
        },
    );
    proxy.run_until(Until::At(SECOND));
    // One worker of two asks for both families.
    assert_eq!(proxy.asked.borrow().len(), 2);
    check(&mut proxy, "/", "10.0.1.1:80 GET / HTTP/1.0 g");
    proxy.run_until(Until::At(11 * SECOND));
    check(&mut proxy, "/", "10.0.1.2:80 GET / HTTP/1.0 g");
    // A failure leaves the server as it is, until `resolver_timeout` is over and the name is gone.
    proxy.run_until(Until::At(21 * SECOND));
    check(&mut proxy, "/", "10.0.1.2:80 GET / HTTP/1.0 g");
    proxy.run_until(Until::At(51 * SECOND));
    assert_eq!(proxy.get("/").0, 502);
    assert!(
        proxy
            .server
            .has_logged("b.example could not be resolved (2: Server failure)")
    );
    assert!(proxy.server.has_logged("no live upstreams"));
}

#[test]
fn idle_connections_to_a_server_that_has_vanished_close() {
    let http =
        format!("resolver {NAME_SERVER}; upstream g {{ server b.example resolve; keepalive 4; }}");
    let location = "location / { proxy_pass http://g; proxy_http_version 1.1; proxy_set_header Connection ''; }";
    let mut proxy = proxy(&http, location, |asked, at| {
        addresses(asked, if at < 10 * SECOND { &[1, 2] } else { &[2] })
    });
    proxy.run_until(Until::At(SECOND));
    for _ in 0..2 {
        assert_eq!(proxy.get("/").0, 200);
    }
    let check = |proxy: &mut Proxy, at, streams| {
        proxy.run_until(Until::At(at * SECOND));
        assert_eq!(proxy.server.streams(), streams, "{at}");
    };
    check(&mut proxy, 9, 2);
    check(&mut proxy, 12, 1);
}

#[test]
fn a_service_brings_its_port() {
    let http =
        format!("resolver {NAME_SERVER}; upstream g {{ server b.example service=http resolve; }}");
    let mut proxy = proxy(&http, "location / { proxy_pass http://g; }", |asked, _| {
        if asked.name == "_http._tcp.b.example" && asked.kind == SRV {
            let record = Record::srv(&asked.name, 10, [1, 1, 8080], "b.example");
            return asked.reply(&[record]);
        }
        addresses(asked, &[1])
    });
    proxy.run_until(Until::At(SECOND));
    check(&mut proxy, "/", "10.0.1.1:8080 GET / HTTP/1.0 g");
}

#[test]
fn a_reload_keeps_the_addresses_and_follows_the_names_of_the_new_configuration() {
    let http = |group: &str| {
        format!(
            "resolver {NAME_SERVER}; upstream g {{ {group} }} \
             server {{ listen {ADDRESS}; location / {{ proxy_pass http://g; }} }}"
        )
    };
    let script: Script = |asked, at| match at.as_secs() {
        0..5 => addresses(asked, &[1]),
        _ => Vec::new(),
    };
    let mut proxy = Proxy::new(&http("server b.example resolve;"), script);
    proxy.run_until(Until::At(SECOND));
    assert_eq!(proxy.get("/").0, 200);
    proxy.asked();
    proxy.run_until(Until::At(6 * SECOND));
    proxy
        .server
        .adopt(&in_http(&http("server b.example resolve; keepalive 1;")));
    proxy.run_until(Until::At(7 * SECOND));
    assert_eq!(proxy.get("/").0, 200);
    proxy.server.adopt(&in_http(&http("server 10.0.1.2;")));
    proxy.run_until(Until::At(40 * SECOND));
    proxy.asked();
    proxy.run_until(Until::At(90 * SECOND));
    check(&mut proxy, "/", "10.0.1.2:80 GET / HTTP/1.0 g");
    assert_eq!(proxy.asked(), [""; 0]);
}

#[test]
fn a_status_zone_counts_for_all_workers_and_goes_on_after_a_reload() {
    let http = |rest: &str| {
        format!(
            "server {{ listen {ADDRESS} reuseport; resolver {NAME_SERVER} status_zone=z valid=1s; \
             location / {{ proxy_pass http://$arg_to; }} {rest} }}"
        )
    };
    let mut proxy = Proxy::new(&http(""), one_address);
    let ask = |proxy: &mut Proxy| {
        for number in 0..10 {
            proxy.run_until(Until::At(2 * SECOND * number));
            proxy.get("/?to=b.example");
        }
    };
    ask(&mut proxy);
    let counts = |proxy: &Proxy| {
        let zones: Vec<_> = proxy.server.site.resolver_zones.iter().collect();
        assert_eq!(zones.len(), 1);
        assert_eq!(zones[0].0.as_bytes(), b"z");
        let counts = zones[0].1.counts();
        (counts.names, counts.noerror)
    };
    assert_eq!(counts(&proxy), (10, 20));
    let other = "location /a { resolver 10.0.0.53 status_zone=z; }";
    proxy.server.adopt(&in_http(&http(other)));
    proxy.run_until(Until::Quiet);
    proxy.get("/?to=b.example");
    assert_eq!(counts(&proxy), (11, 22));
}

/// Status and document of the answer to a call of the API for the servers of `app`.
fn call(proxy: &mut Proxy, method: &str, path: &str, text: &str) -> (u16, Value) {
    let len = text.len();
    let answer = proxy.server.ask(&format!(
        "{method} /api/9/http/upstreams/app/servers{path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\
         Content-Length: {len}\r\n\r\n{text}"
    ));
    let answer = String::from_utf8(answer).expect("answers are text");
    let status = answer.get(9..12).and_then(|status| status.parse().ok());
    let document = serde_json::from_str(super::content(&answer));
    (status.unwrap_or(0), document.unwrap_or(Value::Null))
}

/// Number, address or name, weight and parent of each server.
fn listed(proxy: &mut Proxy) -> String {
    let (_, all) = call(proxy, "GET", "", "");
    let all = all.as_array().cloned().unwrap_or_default();
    let shown = all.iter().map(|one| {
        let [id, server, weight, parent] =
            ["id", "server", "weight", "parent"].map(|field| one[field].to_string());
        format!("{id} {server} *{weight} {parent}").replace('"', "")
    });
    shown.collect::<Vec<_>>().join(", ")
}

#[test]
fn a_name_that_the_api_adds_is_followed_until_it_is_removed() {
    let http = format!(
        "resolver {NAME_SERVER} valid=1s; upstream app {{ state /state/app.conf; }} \
         server {{ listen {ADDRESS} reuseport; location / {{ proxy_pass http://app; }} \
                   location /api {{ millstream_api write=on; }} }}"
    );
    let mut proxy = Proxy::new(&http, |asked, at| match at.as_secs() {
        0..10 => addresses(asked, &[1]),
        _ => addresses(asked, &[2]),
    });
    proxy.server.files().create_directory("/state");
    let content = r#"{"server":"b.example","weight":2}"#;
    let (status, added) = call(&mut proxy, "POST", "", content);
    assert_eq!((status, &added["id"]), (201, &json!(0)), "{added}");
    let (status, refused) = call(&mut proxy, "POST", "", content);
    assert_eq!(
        (status, &refused["error"]["code"]),
        (409, &json!("EntryExists"))
    );
    proxy.run_until(Until::At(3 * SECOND));
    assert_eq!(
        listed(&mut proxy),
        "0 b.example *2 null, 1 10.0.1.1:80 *2 0"
    );
    check(&mut proxy, "/", "10.0.1.1:80 GET / HTTP/1.0 app");
    let (_, changed) = call(&mut proxy, "PATCH", "/0", r#"{"weight":5}"#);
    assert_eq!(changed["weight"], 5);
    assert_eq!(
        listed(&mut proxy),
        "0 b.example *5 null, 1 10.0.1.1:80 *5 0"
    );
    for (method, path, text) in [
        ("DELETE", "/1", ""),
        ("PATCH", "/1", r#"{"server":"10.0.1.9"}"#),
        ("PATCH", "/0", r#"{"server":"c.example"}"#),
    ] {
        let (status, refused) = call(&mut proxy, method, path, text);
        assert_eq!(status, 400, "{method} {path}");
        assert_eq!(refused["error"]["code"], "UpstreamServerImmutable");
    }
    let saved = proxy.server.files().read("/state/app.conf");
    assert_eq!(saved, b"server b.example weight=5 resolve;\n");
    proxy.run_until(Until::At(15 * SECOND));
    let moved = "0 b.example *5 null, 2 10.0.1.2:80 *5 0";
    assert_eq!(listed(&mut proxy), moved);
    check(&mut proxy, "/", "10.0.1.2:80 GET / HTTP/1.0 app");
    // The new configuration has read the file before anything was written into it.
    proxy.server.adopt(&in_http(&http));
    proxy.run_until(Until::At(20 * SECOND));
    assert_eq!(listed(&mut proxy), moved);
    assert_eq!(call(&mut proxy, "DELETE", "/0", ""), (200, json!([])));
    proxy.run_until(Until::At(30 * SECOND));
    proxy.asked();
    proxy.run_until(Until::At(40 * SECOND));
    assert_eq!((listed(&mut proxy), proxy.asked()), (String::new(), vec![]));
    assert_eq!(proxy.get("/").0, 502);
}

#[test]
fn a_name_with_a_service_has_no_port_and_takes_its_weights_from_dns() {
    let http = format!(
        "resolver {NAME_SERVER} valid=1s; upstream app {{ server 10.0.1.9; }} \
         server {{ listen {ADDRESS} reuseport; location / {{ proxy_pass http://app; }} \
                   location /api {{ millstream_api write=on; }} }}"
    );
    let mut proxy = Proxy::new(&http, |asked, _| match asked.kind {
        SRV => asked.reply(&[Record::srv(&asked.name, 10, [1, 7, 8080], "b.example")]),
        _ => addresses(asked, &[1]),
    });
    let (status, refused) = call(
        &mut proxy,
        "POST",
        "",
        r#"{"server":"b.example:81","service":"http"}"#,
    );
    assert_eq!(
        (status, &refused["error"]["code"]),
        (400, &json!("UpstreamBadAddress"))
    );
    let content = r#"{"server":"b.example","service":"http"}"#;
    assert_eq!(call(&mut proxy, "POST", "", content).0, 201);
    proxy.run_until(Until::At(3 * SECOND));
    assert_eq!(
        listed(&mut proxy),
        "0 10.0.1.9:80 *1 null, 1 b.example *1 null, 2 10.0.1.1:8080 *7 1"
    );
}
