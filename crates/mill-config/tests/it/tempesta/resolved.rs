//! The configuration that comes of a text.

use super::resolved;
use mill_config::Loaded;

fn loaded(text: &str) -> Loaded {
    match resolved(text) {
        Ok(loaded) => loaded,
        Err(failure) => panic!("{}", failure.error.render("millstream")),
    }
}

#[test]
fn the_first_seed_without_its_cache_is_one_server_before_one_group() {
    let text = include_str!("../seeds/tempesta.conf").replace("cache 1;", "cache 0;");
    let config = loaded(&text).config;
    let http = config.http.unwrap();
    let listeners: Vec<String> = http
        .listeners
        .iter()
        .map(|listener| listener.address.to_string())
        .collect();
    assert_eq!(listeners, ["0.0.0.0:80"]);
    assert_eq!(http.servers.len(), 1);
    let upstreams: Vec<_> = http.upstreams.iter().collect();
    assert_eq!(upstreams.len(), 1);
    assert_eq!(&*upstreams[0].name.display(), "default");
}

/// All that works in one text, so that the second stage takes each statement that the first one makes.
pub(crate) const WHOLE: &str = r#"
listen 80;
listen [::1]:8080;
cache 0;
keepalive_timeout 30;
max_concurrent_streams 128;
http_max_header_list_size 32768;
hdr_via me;
block_action attack reply;
response_body 4* /etc/4.html;
response_body 404 /etc/404.html;
access_log off;
frang_limits { client_header_timeout 20; client_body_timeout 10; http_body_len 1000; http_header_cnt 60;
    request_rate 20 3; request_burst 15; tcp_connection_rate 8; tcp_connection_burst 6; concurrent_tcp_connections 8;
    tls_connection_rate 5; tls_connection_burst 4; tls_incomplete_connection_rate 3; http_header_chunk_cnt 10;
    http_body_chunk_cnt 1000; http_uri_len 1024; http_hdr_len 256; http_strict_host_checking true; http_ct_required;
    http_trailer_split_allowed false; http_method_override_allowed false; http_methods get post head unknown;
    http_ct_vals "text/plain" "text/html"; http_resp_code_block 403 404 5* 20 5; }
health_check probe { request "GET /up HTTP/1.0\r\nHost: a\r\n\r\n"; resp_code 200 3*; timeout 5; }
srv_group first { server 10.0.0.1:8080 weight=10; server 10.0.0.2:8080; health auto; server_forward_retries 3; }
srv_group second { server 10.0.1.1; server [fc00::1]:81 conns_n=4; sched ratio dynamic; health probe; }
srv_group third { server 10.0.2.1; sched hash; server_retry_nonidempotent; server_forward_timeout 7; }
srv_group fourth { server 10.0.3.1; sched ratio predict past=30 ahead=10; server_connect_retries 3; }
req_hdr_add X-Out "a$b";
vhost base {
    proxy_pass first backup=second;
    sticky { cookie name=s; sticky_sessions allow_failover; cookie_options Max-Age=5 Secure SameSite=Lax; }
    location prefix "/static/" { proxy_pass first; frang_limits { http_body_len 1; http_resp_code_block 404 1 1; } }
    location eq "/x" { proxy_pass third; resp_hdr_set Server; resp_hdr_add X-A "b c"; }
    location suffix ".php" { proxy_pass second; nonidempotent GET prefix "/users/"; }
    location ~ "/^\/re/i" { proxy_pass fourth; }
}
vhost other { proxy_pass third; req_hdr_set Host "a.b"; req_hdr_set Cookie; sticky { learn name=sid; } }
http_chain inner { host == "static.*" -> base; -> cache_ttl = 60; -> other; }
http_chain {
    mark == 1 -> block;
    hdr "Host" == "bar.*" -> base;
    hdr user-agent ~ "/nmap|nikto/i" -> block;
    uri == "*.php" -> cache_disable;
    uri != "/a*" -> 301 = "https://$host/x$request_uri$";
    cookie "a" == "b*" -> mark = 3;
    method == get -> inner;
    host == "foo.example.com" -> base;
    host == "*tempesta-tech.com" -> other;
}
"#;

#[test]
fn every_statement_that_is_written_is_taken() {
    let loaded = loaded(WHOLE);
    assert!(loaded.remarks.is_empty(), "{:?}", loaded.remarks);
    let http = loaded.config.http.unwrap();
    assert_eq!(http.listeners.len(), 2);
    let names: Vec<String> = http
        .upstreams
        .iter()
        .map(|upstream| upstream.name.display().into_owned())
        .collect();
    assert_eq!(
        names,
        [
            "first.backup.second.sticky.base",
            "first.sticky.base",
            "third.sticky.base",
            "second.sticky.base",
            "fourth.sticky.base",
            "third.sticky.other",
        ]
    );
}
