//! The cache.

use super::{check, check_line, check_no_line};

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
