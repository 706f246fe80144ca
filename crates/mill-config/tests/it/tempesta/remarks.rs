//! What has no meaning here is a notice.

use super::{resolved, said};
use mill_config::config::LogLevel;

/// A text that is taken, with one notice.
fn check_notice(text: &str, message: &str) {
    let said = said(text);
    let said: Vec<(LogLevel, &str)> = said
        .iter()
        .map(|remark| (remark.level, remark.message.as_str()))
        .collect();
    assert_eq!(said, [(LogLevel::Notice, message)], "{text}");
}

#[test]
fn what_has_no_meaning_here_is_a_notice() {
    for (text, name) in [
        ("cache_db /opt/tempesta/db/cache.tdb;", "cache_db"),
        ("client_db /a;", "client_db"),
        ("sessions_db /a;", "sessions_db"),
        ("filter_db \"/a b\";", "filter_db"),
        ("client_tbl_size 16M;", "client_tbl_size"),
        ("client_lru_size 8000;", "client_lru_size"),
        ("client_mem 500M 1G;", "client_mem"),
        ("grace_shutdown_time 5;", "grace_shutdown_time"),
        ("health_stat 400 5*;", "health_stat"),
        ("health_stat_server 200;", "health_stat_server"),
        ("apm_stats window=300 scale=5;", "apm_stats"),
        ("sticky { secret abc; }", "secret"),
        ("response_body 2* /a;", "response_body"),
        ("mmap_log_buffer_size 2M;", "mmap_log_buffer_size"),
        (
            "ctrl_frame_rate_multiplier 2;",
            "ctrl_frame_rate_multiplier",
        ),
        (
            "window_update_frame_rate_multiplier 2;",
            "window_update_frame_rate_multiplier",
        ),
        ("block_action error reply nolog;", "nolog"),
    ] {
        check_notice(text, &format!("\"{name}\" has no effect"));
    }
}

#[test]
fn what_differs_is_said() {
    check_notice(
        "sched ratio dynamic percentile 99;",
        "servers are balanced by \"average\", not by \"percentile\"",
    );
    check_notice(
        "sticky { cookie; sticky_sessions; }",
        "a session whose server fails goes to another one",
    );
    let text = "server 10.0.0.1; cache 0; http_chain { hdr X-A == *b -> default; }";
    let said = said(text);
    assert_eq!(said.len(), 1);
    assert_eq!(said[0].level, LogLevel::Warn);
    assert_eq!(
        said[0].message,
        "\"*b\" is compared as a whole, without its *"
    );
}

#[test]
fn the_example_of_the_distribution_is_taken() {
    // As etc/tempesta_fw.conf: its comments are left out.
    let text = "listen 80;
        block_action error reply;
        block_action attack drop;
        frang_limits { request_rate 200; request_burst 25; tcp_connection_rate 100;
            tcp_connection_burst 10; concurrent_tcp_connections 500; http_methods head post put get delete; }
        keepalive_timeout 30;
        srv_group srv_grp_1 { server 127.0.0.1:8080 conns_n=64; }
        vhost main { proxy_pass srv_grp_1; }
        http_chain { -> main; }";
    let said = said(text);
    assert!(said.is_empty(), "{said:?}");
    let limits = resolved(text).unwrap().config.http.unwrap().frang;
    assert_eq!((limits.requests.rate, limits.requests.burst), (200, 25));
    assert_eq!(limits.connections_max, 500);
}
