//! Statements of nginx's language, construct by construct.

use super::translated;

/// The block of a translation that begins with a line, without the indentation of that.
pub(crate) fn block(text: &str, head: &str) -> String {
    let found = text
        .lines()
        .skip_while(|line| line.trim_start() != head)
        .collect::<Vec<_>>();
    let first = found
        .first()
        .unwrap_or_else(|| panic!("no \"{head}\" in\n{text}"));
    let indent = first.len() - first.trim_start().len();
    let end = format!("{}}}", " ".repeat(indent));
    let len = match head.ends_with('{') {
        true => found.iter().position(|line| *line == end).unwrap_or(0) + 1,
        false => 1,
    };
    let lines = found.iter().take(len).map(|line| &line[indent..]);
    lines.collect::<Vec<_>>().join("\n")
}

/// One block of the translation of a text.
pub(crate) fn check(text: &str, head: &str, expected: &str) {
    let lines = expected.trim().lines();
    let expected = lines.map(|line| line.strip_prefix("        ").unwrap_or(line));
    let expected = expected.collect::<Vec<_>>().join("\n");
    assert_eq!(block(&translated(text), head), expected, "{text}");
}

/// A line of the translation, wherever it is.
pub(crate) fn check_line(text: &str, line: &str) {
    check(text, line, line);
}

/// A line that is not there.
pub(crate) fn check_no_line(text: &str, start: &str) {
    let translated = translated(text);
    let mut lines = translated.lines();
    let found = lines.find(|line| line.trim_start().starts_with(start));
    assert_eq!(found, None, "{text}");
}

#[test]
fn the_first_seed_is_a_server_with_one_location() {
    assert_eq!(
        translated(include_str!("../seeds/tempesta.conf")),
        include_str!("../seeds/tempesta.nginx.conf")
    );
}

#[test]
fn without_a_word_there_is_port_80_and_no_way() {
    check(
        "",
        "server {",
        "server {
            listen 0.0.0.0:80 reuseport backlog=131072;
            location / {
                return 444;
            }
        }",
    );
}

#[test]
fn sockets_of_one_protocol_are_one_server() {
    let tls = "tls_certificate /c.pem; tls_certificate_key /k.pem; tls_tickets disable;";
    let text = format!("listen 80; listen [::1]:81; listen 443 proto=h2,https; {tls}");
    check(
        &text,
        "server {",
        "server {
            listen 0.0.0.0:80 reuseport backlog=131072;
            listen [::1]:81 reuseport backlog=131072;
            location / {
                return 444;
            }
        }",
    );
    check_line(&text, "listen 0.0.0.0:443 ssl reuseport backlog=131072;");
    check_line(&text, "http2 on;");
    check_line(&text, "ssl_certificate /c.pem;");
    check_line(&text, "ssl_certificate_key /k.pem;");
    check_line(&text, "ssl_session_tickets off;");
    check_no_line(&format!("listen 443 proto=https; {tls}"), "http2");
    let text = tls.replace("disable", "lifetime=7200");
    check_line(
        &format!("listen 443 proto=https; {text}"),
        "ssl_session_timeout 7200s;",
    );
}

#[test]
fn certificates_of_all_vhosts_are_those_of_one_server() {
    let vhost = |name: &str| {
        format!(
            "vhost {name} {{ proxy_pass a; tls_certificate /{name}.pem; tls_certificate_key /{name}.key; }} "
        )
    };
    let text = format!(
        "listen 443 proto=https; tls_tickets secret=\"abc d\" lifetime=60; srv_group a {{ server 10.0.0.1; }}
         {} {} http_chain {{ -> one; }}",
        vhost("one"),
        vhost("two")
    );
    let server = block(&translated(&text), "server {");
    let lines: Vec<&str> = server.lines().map(str::trim).collect();
    let certificates = [
        "ssl_certificate /one.pem;",
        "ssl_certificate_key /one.key;",
        "ssl_certificate /two.pem;",
        "ssl_certificate_key /two.key;",
    ];
    assert_eq!(lines[2..6], certificates, "{server}");
}

#[test]
fn tickets_may_have_a_secret() {
    let tls = "listen 443 proto=https; tls_certificate /c.pem; tls_certificate_key /k.pem;";
    let text = format!("{tls} tls_tickets secret=\"abc d\" lifetime=60;");
    check_line(&text, "ssl_session_ticket_secret \"abc d\";");
    check_no_line(
        &format!("{tls} tls_tickets secret=\"\";"),
        "ssl_session_ticket_secret",
    );
}

#[test]
fn what_concerns_clients_stands_at_the_level_of_all_servers() {
    for (text, line) in [
        ("keepalive_timeout 30;", "keepalive_timeout 30s;"),
        (
            "max_concurrent_streams 9;",
            "http2_max_concurrent_streams 9;",
        ),
        (
            "http_max_header_list_size 4096;",
            "large_client_header_buffers 1 4096;",
        ),
        (
            "frang_limits { client_header_timeout 20; }",
            "client_header_timeout 20s;",
        ),
        (
            "frang_limits { client_body_timeout 010; }",
            "client_body_timeout 10s;",
        ),
        ("frang_limits { }", "client_max_body_size 0;"),
        ("", "client_max_body_size 1073741824;"),
        ("", "access_log off;"),
        ("access_log dmesg;", "access_log /dev/kmsg;"),
        ("", "keepalive_requests 1000000000;"),
        ("", "worker_processes auto;"),
    ] {
        check_line(text, line);
    }
    // No limit there: ours stays.
    check_no_line(
        "frang_limits { client_header_timeout 0; }",
        "client_header_timeout",
    );
    check_no_line(
        "http_max_header_list_size 0;",
        "large_client_header_buffers",
    );
}

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
    assert!(super::said(text).is_empty());
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
fn sessions_stick_where_it_is_asked() {
    let sticky = |inside: &str| {
        format!(
            "srv_group a {{ server 10.0.0.1; }} vhost v {{ proxy_pass a; sticky {{ {inside} }} }}
             http_chain {{ -> v; }}"
        )
    };
    check_line(
        &sticky("cookie; sticky_sessions allow_failover;"),
        "sticky cookie __tfw path=/;",
    );
    check_line(
        &sticky(
            "cookie name=s; cookie_options Path=/a Max-Age=5 Domain=b.c Secure HttpOnly; sticky_sessions;",
        ),
        "sticky cookie s path=/a expires=5s domain=b.c secure httponly;",
    );
    check_line(
        &sticky("learn name=sid; sess_lifetime 900;"),
        "sticky learn create=$upstream_cookie_sid lookup=$cookie_sid zone=a.sticky.v:8m timeout=900s;",
    );
    check_line(
        &sticky("cookie; cookie_options Partitioned Priority=High; sticky_sessions;"),
        "sticky cookie __tfw attribute=Priority=High attribute=Partitioned path=/;",
    );
    check_no_line(&sticky("cookie;"), "sticky");
    // A vhost that says nothing takes what is written outside.
    check_line(
        "sticky { cookie name=o; sticky_sessions; } server 10.0.0.1; vhost default { }",
        "sticky cookie o path=/;",
    );
}

#[test]
fn cookies_are_enforced_where_it_is_asked() {
    let site = |sticky: &str| {
        format!(
            "server 10.0.0.1; {sticky} frang_limits {{ http_methods get; }} vhost default {{ }}"
        )
    };
    let age = "attribute=Max-Age=4294967295";
    check_line(
        &site("sticky { cookie enforce; }"),
        &format!("challenge_cookie __tfw max_misses=1 {age};"),
    );
    check_line(
        &site(
            "sticky { cookie name=a-b enforce max_misses=5; sess_lifetime 60; cookie_options Path=/x Secure; }",
        ),
        "challenge_cookie a-b max_misses=5 lifetime=60s attribute=Path=/x attribute=Secure;",
    );
    check_line(
        &site("sticky { cookie enforce; cookie_options max-age=7; }"),
        "challenge_cookie __tfw max_misses=1 attribute=max-age=7;",
    );
    check_line(
        &site("sticky { cookie enforce; secret \"f00\"; }"),
        "challenge_secret f00;",
    );
    check_no_line(
        &site("sticky { cookie enforce; secret \"\"; }"),
        "challenge_secret",
    );
    check_no_line(&site("sticky { cookie; }"), "challenge_");
    // What enforces its cookie has `frang` to say what becomes of others.
    let alone = "server 10.0.0.1; sticky { cookie enforce; } vhost default { }";
    check(
        alone,
        "frang {",
        "frang {\n            action drop;\n        }",
    );
    check_no_line(
        "server 10.0.0.1; sticky { cookie; } vhost default { }",
        "frang",
    );
}

#[test]
fn a_challenge_enforces_its_cookie() {
    let site = |sticky: &str| {
        format!("server 10.0.0.1; sticky {{ {sticky} }} vhost default {{ sticky {{ }} }}")
    };
    let script = "js_challenge delay_min=1000 delay_range=1500";
    let text = site(&format!("cookie; {script};"));
    check_line(
        &text,
        "challenge_cookie __tfw max_misses=0 attribute=Max-Age=4294967295;",
    );
    check_line(
        &text,
        "challenge_script delay_min=1000ms delay_range=1500ms;",
    );
    check_line(
        &site(&format!(
            "cookie enforce; {script} resp_code=200 /etc/c.html;"
        )),
        "challenge_script delay_min=1000ms delay_range=1500ms status=200 page=/etc/c.html;",
    );
    // A cookie of its own has no challenge of others.
    let own = format!(
        "server 10.0.0.1; sticky {{ cookie; {script}; }} vhost default {{ sticky {{ cookie name=o; }} }}"
    );
    check_no_line(&own, "challenge_");
}

#[test]
fn an_enforced_cookie_names_the_session() {
    let text = "srv_group a { server 10.0.0.1; } http_chain { -> v; }";
    let (group, chain) = text.split_at(text.find("http_chain").unwrap());
    let vhost = "vhost v { proxy_pass a; sticky { cookie name=a-b enforce; sticky_sessions allow_failover; sess_lifetime 9; } }";
    check_line(
        &format!("{group}{vhost}{chain}"),
        "sticky learn create=$cookie_a-b lookup=$cookie_a-b zone=a.sticky.v:8m timeout=9s;",
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

#[test]
fn fields_are_set_added_and_removed() {
    let text = "cache 0; server 10.0.0.1;
        req_hdr_set Host b.c; req_hdr_set Cookie; req_hdr_add X-Via me;
        resp_hdr_set Server; resp_hdr_set X-A \"1 2\"; resp_hdr_add X-B $3;";
    check(
        text,
        "location / {",
        "location / {
            proxy_pass http://default;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_set_header Upgrade $tempesta_upgrade;
            proxy_set_header Connection $tempesta_connection;
            proxy_set_header Host b.c;
            proxy_set_header Cookie \"\";
            proxy_set_header X-Via $tempesta_field_1;
            proxy_hide_header Server;
            proxy_hide_header X-A;
            add_header X-A \"1 2\" always;
            add_header X-B \"${tempesta_dollar}3\" always;
        }",
    );
    check(
        text,
        "map $http_x_via $tempesta_field_1 {",
        "map $http_x_via $tempesta_field_1 {
            \"\" me;
            default \"$http_x_via, me\";
        }",
    );
}

#[test]
fn a_location_takes_whole_lists_from_outside() {
    let text = "cache 0; srv_group g { server 10.0.0.1; } req_hdr_set X-Out 1;
        vhost v { proxy_pass g; req_hdr_set X-In 2; location eq /l { proxy_pass g; req_hdr_set X-Loc 3; } }
        vhost w { proxy_pass g; }
        http_chain { host == w -> w; -> v; }";
    let translated = translated(text);
    for (place, own) in [
        ("@vhost.v", "X-In 2"),
        ("@vhost.v.1", "X-Loc 3"),
        ("@vhost.w", "X-Out 1"),
    ] {
        let lines = block(&translated, &format!("location {place} {{"));
        let fields: Vec<&str> = lines
            .lines()
            .filter_map(|line| line.trim().strip_prefix("proxy_set_header X-"))
            .filter(|line| !line.starts_with("Forwarded"))
            .collect();
        assert_eq!(
            fields,
            [format!("{};", own.strip_prefix("X-").unwrap())],
            "{place}"
        );
    }
}

#[test]
fn hdr_via_names_us_to_both_sides() {
    let text = "cache 0; server 10.0.0.1; hdr_via me;";
    check_line(text, "proxy_set_header Via $tempesta_via;");
    check_line(text, "add_header Via \"1.1 me\" always;");
    check(
        text,
        "map $http_via $tempesta_via {",
        "map $http_via $tempesta_via {
            \"\" \"$tempesta_received me\";
            default \"$http_via, $tempesta_received me\";
        }",
    );
}

#[test]
fn files_stand_for_pages_of_errors() {
    let text = "response_body 404 /e/404.html; response_body 5* /e/5.html;";
    check_line(text, "error_page 404 /.tempesta/1;");
    check_line(
        text,
        "error_page 500 501 502 503 504 505 506 507 /.tempesta/2;",
    );
    check(
        text,
        "location = /.tempesta/2 {",
        "location = /.tempesta/2 {
            internal;
            default_type text/html;
            alias /e/5.html;
        }",
    );
}

#[test]
fn the_cache_is_one_zone_in_memory() {
    let text = "cache 1; cache_size 32M; cache_ttl 60; server 10.0.0.1; cache_fulfill * *;";
    for line in [
        "proxy_cache_path /var/cache/millstream/tempesta keys_zone=tempesta:2097152 memory=33554432 inactive=365d disk=off;",
        "proxy_cache_key $host$request_uri;",
        "proxy_cache_valid 200 203 204 300 301 404 405 410 414 501 60s;",
        "proxy_cache tempesta;",
    ] {
        check_line(text, line);
        check_no_line(&text.replace("cache 1", "cache 0"), line);
        // Nothing is cached that no rule names.
        check_no_line(&text.replace("cache_fulfill * *;", ""), line);
        check_no_line(&text.replace("cache_fulfill", "cache_bypass"), line);
    }
    check_line(
        &format!("{text} cache_methods GET POST;"),
        "proxy_cache_key $tempesta_key$host$request_uri;",
    );
    check_line(
        &format!("{text} cache_methods POST;"),
        "proxy_cache_methods POST;",
    );
    check_line(
        &format!("{text} cache_methods get propfind OPTIONS;"),
        "proxy_cache_methods PROPFIND OPTIONS;",
    );
    check_line(
        &format!("{text} cache_methods get propfind OPTIONS;"),
        "PROPFIND PROPFIND:;",
    );
}

#[test]
fn paths_decide_what_is_cached() {
    let text = "server 10.0.0.1; cache_bypass suffix .php; cache_fulfill prefix /s/ /t/; cache_bypass eq /u;";
    check(
        text,
        "map $request_uri $tempesta_uncached_1 {",
        "map $request_uri $tempesta_uncached_1 {
            \"~*\\\\.php$\" 1;
            ~*^/s/ \"\";
            ~*^/t/ \"\";
            default 1;
        }",
    );
    check(
        text,
        "location / {",
        "location / {
            proxy_pass http://default;
            proxy_cache tempesta;
            proxy_cache_bypass $tempesta_uncached_1;
            proxy_no_cache $tempesta_uncached_1;
        }",
    );
}

#[test]
fn answers_are_kept_without_some_fields_and_in_spite_of_others() {
    let text = |words: &str| {
        format!(
            "srv_group g {{ server 10.0.0.1; }} vhost v {{ proxy_pass g; cache_fulfill * *; {words} }}
             http_chain {{ -> v; }}"
        )
    };
    check_line(
        &text("cache_resp_hdr_del Set-Cookie X-A;"),
        "proxy_hide_header X-A;",
    );
    check_line(
        &text("cache_resp_hdr_del set-cookie;"),
        "proxy_ignore_headers Set-Cookie;",
    );
    check_no_line(&text("cache_resp_hdr_del X-A;"), "proxy_ignore_headers");
    check_line(
        &text("cache_control_ignore no-cache no-store max-age private s-maxage;"),
        "proxy_ignore_headers Cache-Control=no-cache Cache-Control=no-store Cache-Control=max-age \
         Cache-Control=private Cache-Control=s-maxage;",
    );
    check_line(
        &text("cache_use_stale 502 504;"),
        "proxy_cache_use_stale error http_502 timeout http_504;",
    );
    check_line(
        &text("cache_use_stale 410 404;"),
        "proxy_cache_use_stale http_410 http_404;",
    );
}

#[test]
fn a_purge_is_for_listed_addresses() {
    let text = "server 10.0.0.1; cache_fulfill * *; cache_purge; cache_purge_acl 10.0.0.0/8 [::1];";
    check(
        text,
        "geo $tempesta_purger {",
        "geo $tempesta_purger {
            default 0;
            10.0.0.0/8 1;
            ::1 1;
        }",
    );
    check_line(text, "proxy_cache_purge $tempesta_purge;");
    check(
        text,
        "map $request_method:$tempesta_purger $tempesta_route {",
        "map $request_method:$tempesta_purger $tempesta_route {
            PURGE:0 @block;
            default @vhost.default;
        }",
    );
}

#[test]
fn limits_have_the_defaults_of_tempesta_fw_where_there_are_any() {
    check_no_line("", "frang");
    check(
        "frang_limits { http_body_len 0x10; request_rate 20 5; http_ct_vals \"text/plain\" \"a;b\"; ip_block 010; }
         client_lru_size 500; block_action attack drop;",
        "frang {",
        "frang {
            concurrent_tcp_connections 1000;
            http_header_cnt 50;
            http_strict_host_checking on;
            http_method_override_allowed off;
            http_methods get post head;
            http_body_len 16;
            request_rate 20 5;
            http_ct_vals text/plain \"a;b\";
            ip_block 10;
            clients 500;
            action drop;
        }",
    );
    check(
        "frang_limits { http_methods PUT unknown; http_strict_host_checking false; http_header_cnt 0;
            concurrent_tcp_connections 0; http_method_override_allowed; http_trailer_split_allowed no; }
         block_action attack reply;",
        "frang {",
        "frang {
            http_body_len 1073741824;
            http_methods put unknown;
            http_strict_host_checking off;
            http_header_cnt 0;
            concurrent_tcp_connections 0;
            http_method_override_allowed on;
            http_trailer_split_allowed off;
            action reply;
        }",
    );
}

#[test]
fn marks_of_clients_without_limits_are_an_entry() {
    check(
        "whitelist_mark 1 0x10; frang_limits { request_rate 20; }",
        "frang {",
        "frang {
            concurrent_tcp_connections 1000;
            http_header_cnt 50;
            http_strict_host_checking on;
            http_method_override_allowed off;
            http_methods get post head;
            http_body_len 1073741824;
            request_rate 20;
            whitelist_mark 1 16;
            action drop;
        }",
    );
}

#[test]
fn checks_of_form_are_entries_of_frang_without_its_defaults() {
    check(
        "http_uri_brange 0x2f 97-0x7a; http_etag_brange 0x21; http_allow_empty_body_content_type false;
         block_action error drop;",
        "frang {",
        "frang {
            http_uri_brange 0x2f 0x61-0x7a;
            http_etag_brange 0x21;
            http_allow_empty_body_content_type off;
            error_action drop;
            action drop;
        }",
    );
    check_no_line(
        "http_allow_empty_body_content_type; block_action error reply;",
        "frang",
    );
    check_no_line(
        "block_action error drop; block_action error reply;",
        "frang",
    );
    check_line("client_ws_timeout 30;", "proxy_tunnel_timeout 30s;");
    check_no_line("client_ws_timeout 0;", "proxy_tunnel_timeout");
}

#[test]
fn posts_are_validated_and_their_type_is_cut() {
    let text =
        "cache 0; server 10.0.0.1; vhost default { location prefix /up { http_post_validate; } }";
    check(
        text,
        "location @vhost.default.1 {",
        "location @vhost.default.1 {
            proxy_pass http://default;
            frang {
                http_post_validate on;
            }
            proxy_set_header Content-Type $tempesta_content_type;
            proxy_set_header Host $http_host;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_set_header Upgrade $tempesta_upgrade;
            proxy_set_header Connection $tempesta_connection;
        }",
    );
    let map = "map $request_method:$content_type $tempesta_content_type {";
    assert!(translated(text).contains(map));
    check_no_line("server 10.0.0.1; vhost default { }", map);
    // Outside of vhosts it is for all of them.
    check_line(
        "http_post_validate; server 10.0.0.1; vhost default { }",
        "http_post_validate on;",
    );
}

#[test]
fn a_vhost_and_a_location_have_limits_of_their_own() {
    let text = "srv_group g { server 10.0.0.1; }
        vhost v { proxy_pass g;
            frang_limits { http_uri_len 10; http_methods get; }
            http_resp_code_block 404 5* 10 3;
            location prefix /a { proxy_pass g; frang_limits { http_methods post; } }
        }
        http_chain { -> v; }";
    let text = &text.replace("http_resp_code_block 404 5* 10 3;\n", "\n");
    check(
        text,
        "location @vhost.v.1 {",
        "location @vhost.v.1 {
            proxy_pass http://g;
            frang {
                http_methods post;
                http_uri_len 10;
            }
        }",
    );
    // Where a request is only handed on, nothing is asked of it.
    check(
        text,
        "location / {",
        "location / {
            frang {
                http_methods all;
                http_uri_len 0;
                http_body_len 0;
                http_strict_host_checking off;
                http_ct_required off;
                http_ct_vals all;
                http_method_override_allowed on;
                http_resp_code_block off;
            }
            return 418;
        }",
    );
}

#[test]
fn fingerprints_are_limits_of_kinds() {
    check(
        "tft storage_size=2M { hash deadbeef12345678 10 1000; } tfh { hash 1 0 0; hash 0a 3 4; }",
        "frang {",
        "frang {
            tls_fingerprint deadbeef12345678 10 1000;
            http_fingerprint 0000000000000001 0 0;
            http_fingerprint 000000000000000a 3 4;
            action drop;
        }",
    );
}
