//! `frang`: what it says, where it may stand, and what is inherited.

use mill_config::config::frang::{BlockTime, FrangAction, RateLimit};
use mill_config::config::{Config, LogLevel};
use mill_config::{Memory, Options, load};

fn loaded(http: &str) -> Result<Config, String> {
    let text = format!("events {{ }} http {{ {http} }}");
    let options = Options::default();
    let source = Memory::new().with(&*options.conf_file(), &text);
    match load(&source, &options) {
        Ok(loaded) => Ok(loaded.config),
        Err(failure) => Err(failure.error.message.clone()),
    }
}

fn config(http: &str) -> Config {
    loaded(http).unwrap_or_else(|error| panic!("{error}\n{http}"))
}

#[test]
fn limits_of_clients_are_those_of_http() {
    let config = config(
        "frang {
            ip_block 10m; request_rate 20; request_burst 15; tcp_connection_rate 8 5s; tcp_connection_burst 6;
            concurrent_tcp_connections 9; tls_connection_rate 4; tls_connection_burst 3;
            tls_incomplete_connection_rate 2; http_hdr_len 1024; http_header_cnt 50; http_header_chunk_cnt 10;
            http_body_chunk_cnt 100; action drop; log_level error; clients 1000; blocks 10;
            whitelist 10.0.0.0/8 ::1; whitelist_mark 1 0xff 4294967295;
        }",
    );
    let limits = config.http.expect("http").frang;
    let rate = |rate, burst, frame_s| RateLimit {
        rate,
        burst,
        frame_s,
    };
    assert!(limits.is_on);
    assert_eq!(limits.ip_block, Some(BlockTime::Seconds(600)));
    assert_eq!(limits.requests, rate(20, 15, 1));
    assert_eq!(limits.connections, rate(8, 6, 5));
    assert_eq!(limits.connections_max, 9);
    assert_eq!(limits.handshakes, rate(4, 3, 1));
    assert_eq!(limits.incomplete_handshakes, 2);
    let of_heads = (
        limits.field_bytes,
        limits.fields,
        limits.head_pieces,
        limits.content_pieces,
    );
    assert_eq!(of_heads, (1024, 50, 10, 100));
    assert_eq!(
        (limits.action, limits.log_level),
        (FrangAction::Drop, LogLevel::Error)
    );
    assert_eq!(
        (limits.clients, limits.blocks, limits.whitelist.len()),
        (1000, 10, 2)
    );
    let marks = limits.whitelist_marks.expect("marks").marks;
    assert_eq!(marks, [1, 255, u32::MAX]);
}

#[test]
fn without_a_word_nothing_is_limited() {
    let config = config("server { listen 80; }");
    let http = config.http.expect("http");
    assert!(!http.frang.is_on);
    assert!(!http.frang.counts_connections());
    assert!(!http.servers[0].location.frang.checks_heads());
    for (text, expected) in [
        ("on", Some(BlockTime::Unlimited)),
        ("0", Some(BlockTime::Unlimited)),
        ("off", None),
    ] {
        let config = self::config(&format!("frang {{ ip_block {text}; }}"));
        assert_eq!(
            config.http.expect("http").frang.ip_block,
            expected,
            "{text}"
        );
    }
}

#[test]
fn a_location_says_one_thing_and_inherits_the_others() {
    let config = config(
        "frang { http_methods get post; http_uri_len 100; http_ct_vals text/plain; http_resp_code_block 404 5* 10 2; }
         server {
             listen 80;
             frang { http_strict_host_checking on; http_method_override_allowed false; }
             location / { frang { http_methods put unknown; http_body_len 1g; } }
             location /all { frang { http_methods all; http_ct_vals all; http_resp_code_block off; } }
         }",
    );
    let http = config.http.expect("http");
    let server = &http.servers[0];
    let frang = |path: &str| {
        let found = server.locations.find(path.as_bytes(), &mut Vec::new());
        found.expect("a location").frang.clone()
    };
    let one = frang("/");
    let methods = one.methods.as_ref().expect("methods");
    assert!(methods.contains(b"PUT") && methods.contains(b"FROB"));
    assert!(
        !methods.contains(b"GET"),
        "what is named outside is replaced as a whole"
    );
    assert_eq!((one.uri_bytes, one.content_bytes), (100, 1 << 30));
    assert!(one.strict_host && !one.allows_method_override && one.checks_content_type());
    let statuses = one.statuses.as_ref().expect("statuses");
    assert!(statuses.contains(404) && statuses.contains(599) && !statuses.contains(403));
    assert_eq!((statuses.most, statuses.frame_s), (10, 2));
    let all = frang("/all");
    assert!(all.methods.is_none() && !all.checks_content_type() && all.statuses.is_none());
    assert!(all.strict_host);
}

#[test]
fn what_is_wrong_is_refused_where_it_stands() {
    for (http, expected) in [
        (
            "frang { request_rat 1; }",
            "unknown directive \"request_rat\"",
        ),
        (
            "frang { request_rate; }",
            "invalid number of arguments in \"request_rate\" directive",
        ),
        (
            "frang { request_rate 1 2 3; }",
            "invalid number of arguments in \"request_rate\" directive",
        ),
        (
            "frang { request_rate x; }",
            "\"request_rate\" directive invalid value",
        ),
        (
            "frang { request_rate 1 0; }",
            "\"request_rate\" directive invalid value",
        ),
        (
            "frang { request_burst 2147483648; }",
            "\"request_burst\" directive invalid value",
        ),
        (
            "frang { ip_block soon; }",
            "\"ip_block\" directive invalid value",
        ),
        (
            "frang { clients 0; }",
            "\"clients\" directive invalid value",
        ),
        ("frang { action forgive; }", "invalid value \"forgive\""),
        (
            "frang { http_methods get brew; }",
            "invalid method \"brew\"",
        ),
        (
            "frang { http_ct_required maybe; }",
            "invalid value \"maybe\"",
        ),
        (
            "frang { http_resp_code_block 404 5; }",
            "invalid number of arguments in \"http_resp_code_block\" directive",
        ),
        (
            "frang { http_resp_code_block 404 0 5; }",
            "\"http_resp_code_block\" directive invalid value",
        ),
        (
            "frang { http_resp_code_block 600 1 5; }",
            "\"http_resp_code_block\" directive invalid value",
        ),
        (
            "frang { whitelist example.org; }",
            "invalid parameter \"example.org\"",
        ),
        (
            "frang { whitelist_mark 4294967296; }",
            "\"whitelist_mark\" directive invalid value",
        ),
        (
            "frang { whitelist_mark 0x; }",
            "\"whitelist_mark\" directive invalid value",
        ),
        (
            "frang { whitelist_mark; }",
            "invalid number of arguments in \"whitelist_mark\" directive",
        ),
        (
            "server { frang { whitelist_mark 1; } }",
            "\"whitelist_mark\" directive is not allowed here",
        ),
        (
            "frang { request_rate 1; request_rate 2; }",
            "\"request_rate\" directive is duplicate",
        ),
        (
            "frang { tls_fingerprint xyz 1 1; }",
            "\"tls_fingerprint\" directive invalid value",
        ),
        (
            "frang { http_fingerprint 1 1; }",
            "invalid number of arguments in \"http_fingerprint\" directive",
        ),
        (
            "frang { http_fingerprint 1 65536 1; }",
            "\"http_fingerprint\" directive invalid value",
        ),
        (
            "frang { http_fingerprint a 1 1; http_fingerprint 0A 1 1; }",
            "duplicate fingerprint \"0A\"",
        ),
        ("frang { } frang { }", "\"frang\" directive is duplicate"),
        (
            "server { frang { request_rate 1; } }",
            "\"request_rate\" directive is not allowed here",
        ),
        (
            "server { location / { frang { ip_block on; } } }",
            "\"ip_block\" directive is not allowed here",
        ),
    ] {
        let error = loaded(http).expect_err(http);
        assert_eq!(error, expected, "{http}");
    }
}
