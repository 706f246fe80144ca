//! What is logged of tunnels: the request is let go when the tunnel begins.

use super::origin::{self, Act, send};
use super::tunnels::SWITCH;
use super::{ORIGIN, Proxy};
use crate::server::{ADDRESS, SECOND, Server, in_http};
use mill_sim::client::Client;
use mill_sim::world::World;

const ALL: &str = "$remote_addr - $remote_user [$time_local] \"$request\" $status $bytes_sent $body_bytes_sent \
    \"$http_referer\" \"$http_user_agent\" $msec $time_iso8601 $date_gmt $request_time $connection_time \
    $connection_requests $request_length $request_completion. $upstream_addr $upstream_status $upstream_connect_time \
    $upstream_header_time $upstream_response_time $upstream_response_length $upstream_bytes_received \
    $upstream_bytes_sent $upstream_http_upgrade $sent_http_upgrade $uri $arg_a $user";

/// `/ahead` and `/whole` write the same lines; those of the second are filtered by what is known at the end alone.
fn proxy(directives: &str, script: fn(usize, &str) -> Vec<Act>) -> Proxy {
    let text = in_http(&format!(
        "map $bytes_sent $late {{ default 1; }}
         map $status $loggable {{ 101 0; default 1; }}
         map $http_user_agent $user {{ ~^(?<first>.) $first; }}
         log_format all escape=json '{ALL}'; log_format short '$status $body_bytes_sent $late';
         upstream app {{ server {ORIGIN}; }}
         proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;
         server {{ listen {ADDRESS}; {directives}
             location ~ ^/ahe(.) {{ proxy_pass http://app; access_log /ahead.log all; access_log /ahead.log all if=$loggable; }}
             location ~ ^/who(.) {{ proxy_pass http://app; access_log /whole.log all if=$late; }}
             location /api {{ millstream_api; }}
             location /late {{ proxy_pass http://app; access_log /late.log short; }}
             location /path {{ proxy_pass http://app; access_log /$host.log all; root /site; }} }}"
    ));
    let mut server = Server::configured(World::new(1), &text, 1);
    let (turn, seen) = origin::start(&server.world, ORIGIN, script);
    server.add_peer(turn);
    Proxy { server, seen }
}

fn echo(_: usize, _: &str) -> Vec<Act> {
    vec![send(SWITCH), Act::Echo]
}

fn open(proxy: &Proxy, path: &str) -> Client {
    let client = proxy.server.connect();
    client.send(format!(
        "GET {path}?a=b HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\nUser-Agent: \"u\"\r\n\r\n"
    ));
    client
}

#[test]
fn the_line_of_a_tunnel_is_that_of_its_request() {
    let mut proxy = proxy("", echo);
    let clients = ["/ahead", "/whole"].map(|path| open(&proxy, path));
    proxy.server.run_to(3 * SECOND);
    for client in &clients {
        client.send("some bytes");
    }
    proxy.server.run_to(7 * SECOND);
    for client in &clients {
        client.finish();
    }
    proxy.server.run();
    let whole = proxy.server.logs.lines("/whole.log");
    let ahead = proxy.server.logs.lines("/ahead.log");
    let alike = ahead.iter().map(|line| line.replace("/ahead", "/whole"));
    assert!(alike.eq(whole.iter().cloned()), "{ahead:#?} {whole:#?}");
    assert_eq!(ahead.len(), 1);
    for part in [
        "\\\"u\\\"",
        " OK. 10.0.0.2:80 101 ",
        " 10 82 101 echo echo ",
        "/ahead b \\\"",
    ] {
        assert!(ahead[0].contains(part), "{part}: {}", ahead[0]);
    }
}

#[test]
fn a_line_is_written_with_what_only_the_end_tells() {
    let mut proxy = proxy("", echo);
    let clients = ["/late", "/path"].map(|path| open(&proxy, path));
    proxy.server.run();
    for client in &clients {
        client.send("some bytes");
    }
    proxy.server.run();
    for client in &clients {
        client.finish();
    }
    proxy.server.run();
    assert_eq!(proxy.server.logs.lines("/late.log"), ["101 10 1"]);
    assert_eq!(proxy.server.logs.lines("/a.log").len(), 1);
}

#[test]
fn the_error_of_a_tunnel_names_its_request() {
    let hang = |_: usize, _: &str| vec![send(SWITCH), Act::Hang];
    for path in ["/ahead", "/whole"] {
        let mut proxy = proxy("proxy_read_timeout 10s;", hang);
        let client = open(&proxy, path);
        proxy.server.run_to(12 * SECOND);
        assert!(client.is_closed());
        let lines = proxy.server.error_log();
        let expected = format!(
            "upstream timed out (110: Connection timed out) while proxying upgraded connection, client: 198.51.100.1, \
             server: , request: \"GET {path}?a=b HTTP/1.1\", upstream: \"http://10.0.0.2:80{path}?a=b\", host: \"a\""
        );
        assert!(
            lines.iter().any(|line| line.ends_with(&expected)),
            "{lines:#?}"
        );
    }
}

#[test]
fn both_ends_of_a_tunnel_are_counted_for_its_server() {
    for path in ["/ahead", "/whole"] {
        let mut proxy = proxy("", echo);
        let client = open(&proxy, path);
        proxy.server.run();
        client.send("some bytes");
        proxy.server.run();
        client.finish();
        proxy.server.run();
        let answer = proxy.ask("GET /api/9/http/upstreams/app HTTP/1.1\r\nHost: a\r\n\r\n");
        for count in ["\"sent\":101,", "\"received\":82,"] {
            assert!(answer.contains(count), "{path}: {answer}");
        }
    }
}
