//! The header of the PROXY protocol that connections to origins begin with: `proxy_protocol`.

use super::origin::{Act, ok};
use super::{OTHER, Proxy, content, get, origin};
use crate::server::ADDRESS;

const UPSTREAM: &str = "server 10.0.0.2:80; keepalive 4;";

/// A location that keeps connections and has these directives.
fn passing(directives: &str) -> String {
    format!(
        "location / {{ proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ''; {directives} }}"
    )
}

fn first_lines(asked: &[String]) -> Vec<&str> {
    asked
        .iter()
        .filter_map(|text| text.lines().next())
        .collect()
}

#[test]
fn a_connection_begins_with_its_client_and_is_kept_for_that_client() {
    let mut proxy = Proxy::with_upstream(UPSTREAM, &passing("proxy_protocol on;"), |_, _| {
        vec![ok("x")]
    });
    let clients = ["192.0.2.1:1000", "192.0.2.2:2000"]
        .map(|address| proxy.server.world.connect_from(address, ADDRESS));
    for path in ["/a", "/b"] {
        for client in &clients {
            client.send(get(path));
            proxy.server.run();
        }
    }
    assert_eq!(
        first_lines(&proxy.asked()),
        [
            "PROXY TCP4 192.0.2.1 10.0.0.1 1000 80",
            "PROXY TCP4 192.0.2.2 10.0.0.1 2000 80",
            "GET /b HTTP/1.1",
            "GET /b HTTP/1.1"
        ]
    );
    assert!(proxy.asked()[0].contains("\r\nGET /a HTTP/1.1\r\n"));
    assert_eq!(*proxy.seen.connections.borrow(), 2);
}

#[test]
fn each_try_begins_with_a_header() {
    let upstream = format!("server 10.0.0.2:80; server {OTHER} backup;");
    let mut proxy = Proxy::with_upstream(&upstream, &passing("proxy_protocol v1;"), |_, _| {
        vec![Act::Close]
    });
    let (turn, seen) = origin::start(&proxy.server.world, OTHER, |_, _| vec![ok("other")]);
    proxy.server.add_peer(turn);
    assert_eq!(content(&proxy.ask(&get("/"))), "other");
    assert!(proxy.asked()[0].starts_with("PROXY TCP4 "));
    assert!(seen.requests.borrow()[0].starts_with("PROXY TCP4 "));
}

#[test]
fn the_client_is_the_one_that_a_proxy_in_front_tells() {
    let directives = "set_real_ip_from 0.0.0.0/0; proxy_protocol v1;";
    let mut proxy = Proxy::with_upstream(UPSTREAM, &passing(directives), |_, _| vec![ok("x")]);
    for (told, line) in [
        ("192.0.2.7:99", "PROXY TCP4 192.0.2.7 10.0.0.1 99 80"),
        ("2001:db8::1", "PROXY UNKNOWN"),
    ] {
        proxy.ask(&format!(
            "GET / HTTP/1.1\r\nHost: a\r\nX-Real-IP: {told}\r\n\r\n"
        ));
        assert_eq!(first_lines(&proxy.asked()).last(), Some(&line));
    }
}

#[test]
fn version_2_is_binary() {
    let directives = passing("proxy_protocol v2;");
    // To the origin the signature's first four bytes are a head.
    let mut proxy = Proxy::with_upstream(UPSTREAM, &directives, |number, _| match number {
        0 => Vec::new(),
        _ => vec![ok("x")],
    });
    let client = proxy.server.world.connect_from("1.2.3.4:1286", ADDRESS);
    client.send(get("/"));
    proxy.server.run();
    let asked = proxy.asked().concat();
    let header = "\r\n\r\n\0\r\nQUIT\n!\x11\0\x0c\x01\x02\x03\x04\x0a\0\0\x01\x05\x06\0P";
    assert!(
        asked.starts_with(&format!("{header}GET / HTTP/1.1\r\n")),
        "{asked:?}"
    );
}

#[test]
fn locations_without_it_share_no_connections_with_those_that_have_it() {
    let directives = format!(
        "{} location /plain {{ proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ''; }}",
        passing("proxy_protocol on;")
    );
    let mut proxy = Proxy::with_upstream(UPSTREAM, &directives, |_, _| vec![ok("x")]);
    let client = proxy.server.connect();
    for path in ["/", "/plain", "/", "/plain"] {
        client.send(get(path));
        proxy.server.run();
    }
    let asked = proxy.asked();
    let begun: Vec<bool> = asked
        .iter()
        .map(|text| text.starts_with("PROXY "))
        .collect();
    assert_eq!(begun, [true, false, false, false]);
    assert_eq!(*proxy.seen.connections.borrow(), 2);
}
