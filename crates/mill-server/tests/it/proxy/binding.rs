//! The near end of connections to servers.

use super::origin::{Seen, ok};
use super::{ORIGIN, Proxy, content};
use mill_runtime::engine::ConnectOptions;
use std::rc::Rc;

/// A proxy whose location has these directives, before an origin that keeps connections.
fn proxy(upstream: &str, directives: &str) -> Proxy {
    let directives = format!(
        "proxy_http_version 1.1; proxy_set_header Connection ''; {directives}
         location / {{ proxy_pass http://app; }}
         location /other/ {{ proxy_pass http://app; }}
         location /off/ {{ proxy_pass http://app; proxy_bind off; }}"
    );
    let upstream = format!("server {ORIGIN}; {upstream}");
    Proxy::with_upstream(&upstream, &directives, |_, _| vec![ok("x")])
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")
}

/// Asks for these paths, one after the other; the addresses that the origin saw, each as often as it was connected from.
fn peers(upstream: &str, directives: &str, paths: &[&str]) -> Vec<String> {
    let mut proxy = proxy(upstream, directives);
    for path in paths {
        assert_eq!(content(&proxy.ask(&get(path))), "x");
    }
    let seen: &Rc<Seen> = &proxy.seen;
    let peers = seen.peers.borrow();
    let ip = |peer: &String| peer.rsplit_once(':').map(|(ip, _)| ip.to_owned());
    peers.iter().filter_map(ip).collect()
}

#[test]
fn connections_come_from_the_address_they_are_bound_to() {
    assert_eq!(peers("", "proxy_bind 10.0.0.77;", &["/"]), ["10.0.0.77"]);
    let evaluated = "proxy_bind 10.0.0.$arg_a;";
    assert_eq!(
        peers("", evaluated, &["/?a=5", "/?a=6"]),
        ["10.0.0.5", "10.0.0.6"]
    );
    let mut proxy = proxy("", "proxy_bind 10.0.0.9:4321 transparent;");
    proxy.ask(&get("/"));
    assert_eq!(*proxy.seen.peers.borrow(), ["10.0.0.9:4321"]);
    assert!(proxy.server.world.opened_last().transparent);
}

#[test]
fn an_address_that_is_none_is_logged_and_the_system_chooses() {
    let mut proxy = proxy("", "proxy_bind $arg_a;");
    for (path, is_logged) in [("/", false), ("/?a=b", true)] {
        assert_eq!(content(&proxy.ask(&get(path))), "x");
        let line = "invalid local address \"b\", client: ";
        assert_eq!(proxy.server.has_logged(line), is_logged, "{path}");
    }
    assert_eq!(proxy.server.world.opened_last().source, None);
}

#[test]
fn kept_connections_are_not_shared_across_addresses_and_local_ones_not_across_locations() {
    let by_argument = "proxy_bind 10.0.0.$arg_a;";
    let paths = ["/?a=5", "/?a=6", "/?a=5", "/off/", "/?a=6", "/off/"];
    let seen = peers("keepalive 9;", by_argument, &paths);
    assert_eq!(seen.len(), 3, "{seen:?}");
    assert_eq!(seen[..2], ["10.0.0.5", "10.0.0.6"]);
    let paths = ["/", "/other/", "/", "/other/"];
    assert_eq!(peers("keepalive 9;", "", &paths).len(), 1);
    assert_eq!(peers("keepalive 9 local;", "", &paths).len(), 2);
}

#[test]
fn sockets_have_the_options_of_the_location() {
    let mut plain = proxy("", "");
    plain.ask(&get("/"));
    assert_eq!(plain.server.world.opened_last(), ConnectOptions::default());
    let mut proxy = proxy(
        "",
        "proxy_socket_keepalive on; proxy_socket_rcvbuf 20k; proxy_socket_sndbuf 30k;",
    );
    proxy.ask(&get("/"));
    let expected = ConnectOptions {
        keepalive: true,
        receive_buffer_bytes: Some(20 << 10),
        send_buffer_bytes: Some(30 << 10),
        ..ConnectOptions::default()
    };
    assert_eq!(proxy.server.world.opened_last(), expected);
}
