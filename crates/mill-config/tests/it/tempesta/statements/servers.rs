//! Groups of servers, their health, and which requests they get again.

use super::{block, check, check_line, check_no_line};
use crate::tempesta::translated;

#[test]
fn a_group_is_an_upstream() {
    let group = |inside: &str| {
        format!("srv_group a {{ {inside} }} vhost a {{ proxy_pass a; }} http_chain {{ -> a; }}")
    };
    let servers = "server 10.0.0.1:8080 weight=3; server [fc00::1] conns_n=4;";
    check(
        &group(servers),
        "upstream a {",
        "upstream a {
            server 10.0.0.1:8080 weight=3 max_conns=32;
            server [fc00::1]:80 weight=50 max_conns=4;
            queue 36000 timeout=60s;
            keepalive 36;
        }",
    );
    for (option, line) in [
        ("sched hash;", "hash $host$request_uri consistent;"),
        ("sched ratio dynamic;", "least_time last_byte;"),
        (
            "sched ratio predict past=9 ahead=4;",
            "least_time last_byte inflight;",
        ),
        ("server_queue_size 10;", "queue 320 timeout=60s;"),
        ("server_forward_timeout 7;", "queue 32000 timeout=7s;"),
        (
            "server_forward_timeout 7;",
            "proxy_next_upstream_timeout 7s;",
        ),
        ("server_forward_retries 2;", "proxy_next_upstream_tries 3;"),
        (
            "server_connect_retries 4;",
            "server 10.0.0.1:80 max_conns=32 max_fails=4;",
        ),
        (
            "server_retry_nonidempotent;",
            "proxy_next_upstream error timeout non_idempotent;",
        ),
    ] {
        check_line(&group(&format!("server 10.0.0.1; {option}")), line);
    }
    check_no_line(&group("server 10.0.0.1; server_queue_size 0;"), "queue");
    check_no_line(&group("server 10.0.0.1; sched ratio static;"), "least_time");
}

#[test]
fn options_outside_of_groups_are_defaults_of_those_that_follow() {
    let text = "srv_group a { server 10.0.0.1; } sched hash; srv_group b { server 10.0.0.2; }
        vhost a { proxy_pass a; } vhost b { proxy_pass b; }
        http_chain { host == a -> a; -> b; }";
    let lines = |name: &str| block(&translated(text), &format!("upstream {name} {{"));
    assert!(!lines("a").contains("hash"));
    assert!(lines("b").contains("hash $host$request_uri consistent;"));
}

#[test]
fn servers_outside_of_groups_are_the_default_group() {
    let text = "server 10.0.0.1; server 10.0.0.2; server_queue_size 1;";
    check(
        text,
        "upstream default {",
        "upstream default {
            server 10.0.0.1:80 max_conns=32;
            server 10.0.0.2:80 max_conns=32;
            queue 64 timeout=60s;
            keepalive 64;
        }",
    );
    check(
        text,
        "location / {",
        "location / {
            proxy_pass http://default;
        }",
    );
}

#[test]
fn a_backup_stands_behind_a_hash_too() {
    let text = "srv_group a { server 10.0.0.1; sched hash; } srv_group b { server 10.0.0.2; }
        vhost v { proxy_pass a backup=b; } http_chain { -> v; }";
    check(
        text,
        "upstream a.backup.b {",
        "upstream a.backup.b {
            hash $host$request_uri consistent;
            server 10.0.0.1:80 max_conns=32;
            server 10.0.0.2:80 max_conns=32 backup;
            queue 64000 timeout=60s;
            keepalive 64;
        }",
    );
    assert!(crate::tempesta::said(text).is_empty());
}

#[test]
fn a_backup_is_part_of_an_upstream_of_its_own() {
    let text = "srv_group a { server 10.0.0.1; } srv_group b { server 10.0.0.2; }
        vhost v { proxy_pass a backup=b; } http_chain { -> v; }";
    check(
        text,
        "upstream a.backup.b {",
        "upstream a.backup.b {
            server 10.0.0.1:80 max_conns=32;
            server 10.0.0.2:80 max_conns=32 backup;
            queue 64000 timeout=60s;
            keepalive 64;
        }",
    );
    check_line(text, "proxy_pass http://a.backup.b;");
}

#[test]
fn health_monitors_are_probes_in_one_location() {
    let site = "vhost v { proxy_pass a; } http_chain { -> v; }";
    let auto = format!("srv_group a {{ server 10.0.0.1; health auto; }} {site}");
    check(
        &auto,
        "location @health.a {",
        "location @health.a {
            proxy_pass http://a;
            health_check interval=10 uri=/ match=tempesta_auto;
        }",
    );
    let failing = format!("server_failover_http 404 50 5; server_failover_http 5* 9 1; {auto}");
    check(
        &failing,
        "location @health.a {",
        "location @health.a {
            proxy_pass http://a;
            health_check interval=10 uri=/ match=tempesta_auto failover=404-404:50:5s failover=500-599:9:1s;
        }",
    );
    let own = format!(
        "health_check m {{ request \"GET /up HTTP/1.1\\r\\nHost: b\\r\\n\\r\\n\"; resp_code 200 3*; timeout 3; }}
         srv_group a {{ server 10.0.0.1; health m; }} {site}"
    );
    check(
        &own,
        "match tempesta_m {",
        "match tempesta_m {
            status 200 300-399;
        }",
    );
    check(
        &own,
        "location @health.a {",
        "location @health.a {
            proxy_pass http://a;
            proxy_set_header Host b;
            health_check interval=3 uri=/up match=tempesta_m;
        }",
    );
}

#[test]
fn a_monitor_may_ask_with_another_method() {
    check(
        "server 10.0.0.1; health_check m { request \"HEAD /up HTTP/1.0\\r\\n\\r\\n\"; resp_code 200; timeout 1; } \
         health m; vhost default { }",
        "location @health.default {",
        "location @health.default {
            proxy_pass http://default;
            health_check interval=1 uri=/up match=tempesta_m method=HEAD;
        }",
    );
}

#[test]
fn a_monitor_may_compare_the_content() {
    let text = |tests: &str| {
        format!(
            "server 10.0.0.1; health_check m {{ timeout 1; {tests} }} health m; vhost default {{ }}"
        )
    };
    check(
        &text("resp_code 200; resp_crc32 0x31F37E9F;"),
        "match tempesta_m {",
        "match tempesta_m {
            status 200;
            crc32 31f37e9f;
        }",
    );
    check(
        &text("resp_crc32 auto;"),
        "match tempesta_m {",
        "match tempesta_m {
            crc32 auto;
        }",
    );
}

#[test]
fn requests_that_are_not_idempotent_are_sent_once() {
    let text =
        "cache 0; server 10.0.0.1; nonidempotent GET prefix /pay; nonidempotent * suffix .do;";
    check(
        text,
        "map \"$request_method $request_uri\" $tempesta_route {",
        "map \"$request_method $request_uri\" $tempesta_route {
            \"~*^GET /pay\" @vhost.default+once;
            \"~*^[A-Z]+ .*\\\\.do$\" @vhost.default+once;
            default @vhost.default;
        }",
    );
    check(
        text,
        "location @vhost.default+once {",
        "location @vhost.default+once {
            proxy_pass http://default;
            proxy_next_upstream off;
        }",
    );
}
