//! The `stream` block: what it becomes, and nginx's words for what is wrong.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use mill_config::config::{Balancing, PassTarget, Stream, StreamHandler, Variable};
use mill_config::{Config, Memory, Options, load};

const PATH: &str = "/etc/nginx/nginx.conf";

fn config(text: &str) -> Config {
    let source = Memory::new().with(PATH, format!("events {{ }} {text}"));
    let loaded = load(&source, &Options::default());
    loaded
        .unwrap_or_else(|failure| panic!("{}", failure.error.line()))
        .config
}

fn stream(text: &str) -> Stream {
    config(&format!("stream {{ {text} }}")).stream.unwrap()
}

#[test]
fn settings_are_inherited_from_the_stream_block() {
    let stream = stream(
        "proxy_timeout 1m; proxy_buffer_size 4k; tcp_nodelay off;
         upstream u { least_conn; server 127.0.0.1:1 weight=2; server 127.0.0.1:2 backup; }
         server { listen 1; proxy_pass u; proxy_timeout 2s; ssl_preread on; }
         server { listen 2; proxy_pass 127.0.0.1:3; proxy_half_close on; }
         server { listen 3; return $remote_addr; }",
    );
    let settings = |index: usize| &stream.servers[index].settings.stream;
    assert_eq!(settings(0).timeout.as_secs(), 2);
    assert_eq!(settings(1).timeout.as_secs(), 60);
    assert_eq!(settings(1).connect_timeout.as_secs(), 60);
    assert_eq!(
        (settings(0).buffer_size, settings(2).buffer_size),
        (4096, 4096)
    );
    assert!(settings(0).preread && !settings(1).preread);
    assert!(settings(1).half_close && !settings(0).half_close);
    assert!(!stream.servers[0].settings.connection.tcp_nodelay);
    let StreamHandler::Pass(PassTarget::Group(group)) = &stream.servers[0].handler else {
        panic!("{:?}", stream.servers[0].handler);
    };
    assert_eq!(group.balancing, Balancing::LeastConn);
    assert_eq!(group.servers.len(), 2);
    assert_eq!(stream.upstreams.len(), 2);
    assert!(matches!(
        stream.servers[2].handler,
        StreamHandler::Return(_)
    ));
    let addresses = stream
        .listeners
        .iter()
        .map(|listener| listener.address.to_string());
    assert!(addresses.eq(["0.0.0.0:1", "0.0.0.0:2", "0.0.0.0:3"]));
}

#[test]
fn sockets_are_those_of_http_and_then_those_of_stream() {
    let config = config(
        "stream { server { listen 1; tcp_nodelay off; return a; } }
         http { server { listen 2; } server { listen 3; } }",
    );
    let sockets = config
        .sockets()
        .map(|socket| (socket.address.to_string(), socket.tcp_nodelay));
    let expected = [
        ("0.0.0.0:2", true),
        ("0.0.0.0:3", true),
        ("0.0.0.0:1", false),
    ];
    assert!(sockets.eq(expected.map(|(address, nodelay)| (String::from(address), nodelay))));
    assert_eq!(config.stream_listener(1), None);
    assert_eq!(config.stream_listener(2), Some(0));
}

#[test]
fn addresses_without_options_are_served_by_the_wildcard_of_their_port() {
    let stream = stream(
        "server { listen 10.0.0.1:1 proxy_protocol; return a; } server { listen *:1; return b; }
         server { listen 10.0.0.2:1 bind; return c; }",
    );
    let listeners = &stream.listeners;
    assert_eq!(listeners.len(), 2);
    let host = |local: &str| listeners[0].host_for(Some(local.parse().unwrap()));
    assert_eq!(
        (host("10.0.0.1").server.index, host("10.0.0.9").server.index),
        (0, 1)
    );
    assert!(host("10.0.0.1").proxy_protocol && !host("10.0.0.9").proxy_protocol);
    assert_eq!(listeners[0].host_for(None).server.index, 1);
    assert_eq!(listeners[1].address.to_string(), "10.0.0.2:1");
}

#[test]
fn variables_of_stream_and_of_http_do_not_meet() {
    let config = config(
        "http { map $uri $a { default http; } server { listen 1; return 200 $a$status; } }
         stream { map $remote_addr $a { default stream; } map $ssl_preread_server_name $b { x 1; }
         server { listen 2; return $a$b$protocol; } }",
    );
    let (http, stream) = (config.http.unwrap(), config.stream.unwrap());
    assert_eq!((http.user_variables.len(), http.maps.len()), (1, 1));
    assert_eq!((stream.user_variables.len(), stream.maps.len()), (2, 2));
    assert_eq!(Variable::builtin(b"protocol"), None);
    assert_eq!(Variable::builtin_in_stream(b"uri"), None);
    assert_eq!(Variable::builtin_in_stream(b"http_host"), None);
    let shared = Variable::builtin_in_stream(b"remote_addr");
    assert_eq!(shared, Variable::builtin(b"remote_addr"));
}

#[test]
fn errors_have_the_words_of_nginx() {
    let check = |text: &str, expected: &str| {
        let source = Memory::new().with(PATH, format!("events {{ }} {text}"));
        let failure = load(&source, &Options::default()).unwrap_err();
        let line = failure.error.line().replace(PATH, "F");
        assert_eq!(line, format!("[emerg] {expected}"), "{text}");
    };
    let server = |text: &str, expected: &str| {
        check(
            &format!("stream {{ server {{ {text} }} }}"),
            &format!("{expected} in F:1"),
        );
    };
    server("listen 1;", "no handler for server");
    server("return a;", "no \"listen\" is defined for server");
    server(
        "listen 1; proxy_pass 127.0.0.1;",
        "no port in upstream \"127.0.0.1\"",
    );
    server("listen 1; proxy_pass u;", "no port in upstream \"u\"");
    server(
        "listen 1; return a; return b;",
        "\"return\" directive is duplicate",
    );
    server(
        "listen 1; listen *:1; return b;",
        "duplicate \"0.0.0.0:1\" address and port pair",
    );
    server(
        "listen 1 default_server; return a;",
        "the invalid \"default_server\" parameter",
    );
    server(
        "listen 1 nosuch; return a;",
        "the invalid \"nosuch\" parameter",
    );
    server(
        "listen 1 backlog=x; return a;",
        "invalid backlog \"backlog=x\"",
    );
    server(
        "listen 127.0.0.1; return a;",
        "no port in \"127.0.0.1\" of the \"listen\" directive",
    );
    server(
        "listen [::1]; return a;",
        "no port in \"[::1]\" of the \"listen\" directive",
    );
    server("listen 1; set a b;", "invalid variable name \"a\"");
    server(
        "listen 1; set $remote_addr b;",
        "the duplicate \"remote_addr\" variable",
    );
    server("listen 1; return $uri;", "unknown \"uri\" variable");
    server("listen 1; access_log a;", "log format is not specified");
    server(
        "listen 1; access_log a combined;",
        "unknown log format \"combined\"",
    );
    server(
        "location / { }",
        "\"location\" directive is not allowed here",
    );
    server("gzip on;", "\"gzip\" directive is not allowed here");
    server(
        "proxy_timeout x;",
        "\"proxy_timeout\" directive invalid value",
    );
    server(
        "proxy_next_upstream error;",
        "invalid value \"error\" in \"proxy_next_upstream\" directive, it must be \"on\" or \"off\"",
    );
    let upstream = |text: &str, expected: &str| {
        check(
            &format!("stream {{ upstream u {{ {text} }} }}"),
            &format!("{expected} in F:1"),
        );
    };
    upstream("", "no servers are inside upstream");
    upstream("server 127.0.0.1;", "no port in upstream \"127.0.0.1\"");
    upstream(
        "server 127.0.0.1:1 route=a;",
        "invalid parameter \"route=a\"",
    );
    upstream(
        "server 127.0.0.1:1; ip_hash;",
        "\"ip_hash\" directive is not allowed here",
    );
    upstream(
        "server 127.0.0.1:1; keepalive 1;",
        "\"keepalive\" directive is not allowed here",
    );
    check(
        "stream { } stream { }",
        "\"stream\" directive is duplicate in F:1",
    );
    check(
        "http { ssl_preread on; }",
        "\"ssl_preread\" directive is not allowed here in F:1",
    );
    check(
        "stream { server { listen 1 udp; return a; } }",
        "the \"udp\" parameter is known to nginx, but not to Millstream yet in F:1",
    );
}
