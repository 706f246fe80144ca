//! A hot answer equals the answer of the whole way: each configuration answers the same requests twice, with and
//! without `open_file_cache`, and the clients and the logs must see no difference.

use crate::answer::{Ending, next, shown};
use crate::server::{ADDRESS, MS, Server, in_http};
use mill_sim::world::World;

/// Requests that differ in one thing each, some of them twice in a row.
const REQUESTS: [&str; 24] = [
    "GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /a.txt HTTP/1.1\r\nHost: b\r\n\r\n",
    "GET /a.txt HTTP/1.1\r\nHost: A\r\n\r\n",
    "GET /a.txt HTTP/1.1\r\nHost: a:80\r\n\r\n",
    "GET /a.txt?x=1 HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /a.txt?x=2 HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /%61.txt HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET http://a/a.txt HTTP/1.1\r\nHost: b\r\n\r\n",
    "GET /a.txt HTTP/1.1\r\nHost: a\r\nUser-Agent: one\r\n\r\n",
    "GET /a.txt HTTP/1.1\r\nHost: a\r\nUser-Agent: two\r\nReferer: r\r\n\r\n",
    "GET /a.txt HTTP/1.1\r\nHost: a\r\nCookie: c=1; d=2\r\n\r\n",
    "GET /a.txt HTTP/1.1\r\nHost: a\r\nCookie: c=3\r\n\r\n",
    "GET /a.txt HTTP/1.1\r\nHost: a\r\nX-Own: own\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n",
    "GET /a.txt HTTP/1.1\r\nHost: a\r\nAuthorization: Basic dTpw\r\n\r\n",
    "GET /a.txt HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n",
    "GET /a.txt HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n",
    "GET /a.txt HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\nVia: x\r\n\r\n",
    "GET /a.txt HTTP/1.0\r\nAccept-Encoding: gzip\r\nConnection: keep-alive\r\n\r\n",
    "GET /a.txt HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n",
    "GET /a.txt HTTP/1.1\r\nHost: a\r\nContent-Type: x\r\nContent-Length: 2\r\n\r\nab",
    "HEAD /a.txt HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /a.txt HTTP/1.1\r\nHost: a\r\nIf-None-Match: \"x\"\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
];

/// What two clients, of different addresses and at different times, receive, and the log lines.
fn conversation(text: &str) -> (Vec<String>, Vec<String>, Vec<String>) {
    let mut server = Server::configured(World::new(1), text, 1);
    server
        .files()
        .write("/b/a.txt", "b's file a, which is longer\n");
    let mut received = Vec::new();
    let mut at = 10 * MS;
    for round in 0..3 {
        let source = format!("192.0.2.{}:{}", 1 + round % 2, 4000 + round);
        server.run_to(at);
        let client = server.world.connect_from(&source, ADDRESS);
        for request in REQUESTS {
            client.at(at).send(request);
            server.run_to(at + MS);
            let method = request.split(' ').next().unwrap_or_default();
            received.push(as_read(method, &client.take_received()));
            at += 170 * MS;
        }
    }
    (
        received,
        server.logs.lines("/access.log"),
        server.error_log(),
    )
}

/// An answer as a client reads it: without the framing, since a hot answer's length is always known.
fn as_read(method: &str, received: &[u8]) -> String {
    if received.is_empty() {
        return String::from("nothing");
    }
    let mut rest = received;
    let (answer, ending) = next(method, &mut rest);
    assert_eq!(ending, Ending::Whole, "{method}: {}", shown(received));
    assert!(rest.is_empty(), "{method}: {}", shown(received));
    let is_framing = |line: &&str| {
        line.starts_with("Content-Length: ") || line.starts_with("Transfer-Encoding: ")
    };
    let lines = answer.head.split("\r\n").filter(|line| !is_framing(line));
    let head = lines.collect::<Vec<_>>().join("\n");
    let content = answer.content.escape_ascii();
    format!("{head}{content}{:?}", answer.trailers)
}

fn check(http: &str, directives: &str) {
    let text = |cache: &str| {
        in_http(&format!(
            "{http} {cache}
             server {{ listen {ADDRESS} default_server; server_name a; root /site; {directives} }}
             server {{ listen {ADDRESS}; server_name b; root /b; {directives} }}"
        ))
    };
    let plain = conversation(&text(""));
    let hot = conversation(&text("open_file_cache max=100 inactive=1h;"));
    for (index, (plain, hot)) in plain.0.iter().zip(&hot.0).enumerate() {
        let request = REQUESTS[index % REQUESTS.len()];
        assert_eq!(hot, plain, "{http} {directives}: {request}");
    }
    if !directives.contains("gzip on") {
        // The framing counts as bytes sent.
        assert_eq!(hot.1, plain.1, "{http} {directives}");
    }
    assert_eq!(hot.2, plain.2, "{http} {directives}");
}

/// Every variable that does not depend on chance.
const VARIABLES: &str = "arg_x args body_bytes_sent bytes_sent connection \
    connection_requests connections_active connection_time content_length content_type cookie_c \
    cookie_d date_gmt date_local document_root document_uri host hostname http_cookie http_host \
    http_referer http_user_agent http_x_own http_x_forwarded_for http_authorization https is_args \
    limit_rate msec nginx_version pid pipe query_string realip_remote_addr realip_remote_port realpath_root remote_addr remote_port \
    remote_user request request_body request_completion request_filename request_length \
    request_method request_time request_uri scheme sent_http_content_type \
    sent_http_content_length sent_http_last_modified sent_http_etag server_addr server_name \
    server_port server_protocol status tcpinfo_rtt time_iso8601 time_local uri gzip_ratio";

#[test]
fn hot_and_other_answers_agree_with_any_variable() {
    for variable in VARIABLES.split_whitespace() {
        check("", &format!("add_header X-Value \"<${variable}>\" always;"));
    }
}

#[test]
fn hot_and_other_log_lines_agree_with_any_variable() {
    for variable in VARIABLES.split_whitespace() {
        let format = format!("log_format own '<${variable}>'; access_log /access.log own;");
        check(&format, "access_log /access.log own;");
    }
}

#[test]
fn hot_and_other_answers_agree_whatever_decides_them() {
    let map = "map $http_user_agent $agent { default none; one first; ~^tw second; }";
    for (http, directives) in [
        ("", ""),
        ("", "access_log /access.log;"),
        ("", "gzip on; gzip_types *; gzip_min_length 1;"),
        (
            "",
            "gzip on; gzip_types *; gzip_min_length 1; gzip_vary on;",
        ),
        (
            "",
            "gzip on; gzip_types *; gzip_min_length 1; gzip_http_version 1.0;",
        ),
        (
            "",
            "gzip on; gzip_types *; gzip_min_length 1; gzip_proxied any; access_log /access.log;",
        ),
        ("", "expires 1h;"),
        ("", "expires @15h30m;"),
        ("", "expires modified +1d;"),
        ("", "etag off; if_modified_since off;"),
        ("", "keepalive_requests 5;"),
        ("", "keepalive_timeout 5s 4s;"),
        ("", "keepalive_time 1s;"),
        ("", "keepalive_disable none;"),
        ("", "server_tokens off;"),
        ("", "max_ranges 0;"),
        ("", "limit_rate 100k;"),
        ("", "sendfile on; tcp_nopush on;"),
        ("", "if ($http_user_agent = one) { return 403; }"),
        ("", "if ($arg_x) { return 200 $arg_x; }"),
        ("", "if ($cookie_c = 3) { rewrite ^ /b.txt; }"),
        (
            "",
            "location / { if ($http_x_own) { add_header X-If yes; } }",
        ),
        ("", "set $own $remote_port; add_header X-Own $own;"),
        ("", "set $limit_rate 50k;"),
        ("", "rewrite ^/a(.*)$ /b$1 last;"),
        ("", "rewrite ^/a(.*)$ /b$1?added break;"),
        (
            "",
            "location ~ ^/(?<name>.)\\.txt$ { add_header X-Name $name; }",
        ),
        ("", "location ~ ^/(.)\\.txt$ { add_header X-Name $1; }"),
        ("", "location / { try_files /none $uri$arg_x =404; }"),
        ("", "location / { try_files $uri.none /b.txt; }"),
        ("", "allow 192.0.2.1; deny all;"),
        ("", "location = /a.txt { deny 192.0.2.2; }"),
        ("", "error_page 404 /a.txt; location = / { return 404; }"),
        ("", "error_page 403 =200 /b.txt; deny 192.0.2.2;"),
        ("", "location / { root /$host; }"),
        ("", "location /a.txt { alias /site/b.txt; }"),
        ("", "add_trailer X-Trailer end;"),
        ("", "default_type $arg_x;"),
        ("", "types { text/own txt; }"),
        ("", "access_log /access.log combined if=$http_user_agent;"),
        (map, "add_header X-Agent $agent;"),
        (map, "location / { root /site/$agent/..; }"),
        (map, "access_log /access.log combined if=$agent;"),
    ] {
        check(http, directives);
    }
}
