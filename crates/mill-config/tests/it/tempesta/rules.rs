//! Chains of rules and locations as maps.

use super::statements::{check, check_no_line};

/// Groups a and b, and vhosts of the same names.
const SITE: &str = "srv_group a { server 10.0.0.1:8080; } srv_group b { server 10.0.0.2; }
    vhost a { proxy_pass a; } vhost b { proxy_pass b; }";

/// A chain after these.
fn chain(rules: &str) -> String {
    format!("cache 0; {SITE} http_chain {{ {rules} }}")
}

#[test]
fn a_rule_is_a_map_and_a_way_is_a_named_location() {
    let text = chain("host == A.b -> a; host == \"*.c\" -> b;");
    check(
        &text,
        "map $host $tempesta_route {",
        "map $host $tempesta_route {
            a.b @vhost.a;
            \"~*\\\\.c$\" @vhost.b;
            default @drop;
        }",
    );
    check(
        &text,
        "server {",
        "server {
            listen 0.0.0.0:80 reuseport backlog=131072;
            error_page 418 = $tempesta_route;
            recursive_error_pages on;
            location / {
                return 418;
            }
            location @drop {
                return 444;
            }
            location @vhost.a {
                proxy_pass http://a;
            }
            location @vhost.b {
                proxy_pass http://b;
            }
        }",
    );
}

#[test]
fn conditions_are_keys_of_maps() {
    for (condition, source, key) in [
        ("uri == /A", "$request_uri", "/a"),
        ("uri == /a*", "$request_uri", "~*^/a"),
        ("uri == *.php", "$request_uri", "\"~*\\\\.php$\""),
        ("uri == *", "$request_uri", "~."),
        ("uri == a\\*", "$request_uri", "a*"),
        ("uri ~ \"/^\\/a.b$/i\"", "$request_uri", "\"~*^\\\\/a.b$\""),
        ("uri ~ \"a|b\"", "$request_uri", "~a|b"),
        ("uri ~ \"/a/s\"", "$request_uri", "~(?s)a"),
        ("host == default", "$host", "\"\\\\default\""),
        ("host == \"~a\"", "$host", "\"\\\\~a\""),
        ("hdr X-Some_thing == a*", "$http_x_some_thing", "~*^a"),
        ("hdr User-Agent == *bot", "$http_user_agent", "~*bot$"),
        ("hdr X-Any == *", "$http_x_any", "~."),
        ("method == get", "$request_method", "get"),
        ("cookie s == v", "$http_cookie", "\"~(^|; ?)s=v(;|$)\""),
        (
            "cookie s* == *v",
            "$http_cookie",
            "\"~(^|; ?)s[^=;]*=[^;]*v(;|$)\"",
        ),
        (
            "cookie * == *",
            "$http_cookie",
            "\"~(^|; ?)[^=;]*=[^;]*(;|$)\"",
        ),
    ] {
        let head = format!("map {source} $tempesta_route {{");
        let map = format!("{head}\n    {key} @vhost.a;\n    default @vhost.b;\n}}");
        check(&chain(&format!("{condition} -> a; -> b;")), &head, &map);
        let negated = condition.replacen("==", "!=", 1);
        if negated != condition {
            let map = format!("{head}\n    {key} @vhost.b;\n    default @vhost.a;\n}}");
            check(&chain(&format!("{negated} -> a; -> b;")), &head, &map);
        }
    }
}

#[test]
fn the_first_rule_that_matches_counts() {
    // Equal texts before expressions are one map; after them they are another one.
    let text = chain("uri == /x -> a; uri == /y* -> b; uri == /yx -> a; uri == /x -> b;");
    check(
        &text,
        "map $request_uri $tempesta_route {",
        "map $request_uri $tempesta_route {
            /x @vhost.a;
            ~*^/y @vhost.b;
            default $tempesta_route_1;
        }",
    );
    check(
        &text,
        "map $request_uri $tempesta_route_1 {",
        "map $request_uri $tempesta_route_1 {
            /yx @vhost.a;
            /x @vhost.b;
            default @drop;
        }",
    );
    // Of two equal ones the second one is never reached.
    check(
        &chain("uri == /x -> a; uri == /X -> b;"),
        "map $request_uri $tempesta_route {",
        "map $request_uri $tempesta_route {
            /x @vhost.a;
            default @drop;
        }",
    );
}

#[test]
fn a_chain_does_not_return_to_the_one_that_led_to_it() {
    let text = format!(
        "cache 0; {SITE} http_chain inner {{ host == i -> a; }}
         http_chain {{ uri == /i* -> inner; -> b; }}"
    );
    check(
        &text,
        "map $request_uri $tempesta_route {",
        "map $request_uri $tempesta_route {
            ~*^/i $tempesta_route_1;
            default @vhost.b;
        }",
    );
    check(
        &text,
        "map $host $tempesta_route_1 {",
        "map $host $tempesta_route_1 {
            i @vhost.a;
            default @drop;
        }",
    );
}

#[test]
fn marks_are_known_when_the_configuration_is_read() {
    // Rules about marks come before the others of their chain, so one that is set there is seen by the next chain.
    let text = format!(
        "cache 0; {SITE} http_chain inner {{ mark == 3 -> a; mark != 3 -> b; }}
         http_chain {{ mark == 3 -> block; host == m -> mark = 3; -> inner; }}"
    );
    check(
        &text,
        "map $host $tempesta_route {",
        "map $host $tempesta_route {
            m @vhost.a;
            default @vhost.b;
        }",
    );
    check_no_line(&text, "location @block");
}

#[test]
fn rules_that_change_the_cache_lead_to_ways_of_their_own() {
    let text = format!(
        "{SITE} cache_fulfill * *;
         http_chain {{ uri == *.php -> cache_disable; host == t -> cache_ttl = 60; -> a; }}"
    );
    check(
        &text,
        "location @vhost.a+uncached {",
        "location @vhost.a+uncached {
            proxy_pass http://a;
        }",
    );
    check(
        &text,
        "location @vhost.a+ttl=60 {",
        "location @vhost.a+ttl=60 {
            proxy_pass http://a;
            proxy_cache tempesta;
            proxy_cache_valid 200 203 204 300 301 404 405 410 414 501 60s;
        }",
    );
    check(
        &text,
        "location @vhost.a+uncached+ttl=60 {",
        "location @vhost.a+uncached+ttl=60 {
            proxy_pass http://a;
        }",
    );
    check_no_line(
        &chain("uri == *.php -> cache_disable = 0; -> a;"),
        "location @vhost.a+uncached",
    );
}

#[test]
fn requests_are_blocked_dropped_or_led_elsewhere() {
    check(
        &chain("-> block;"),
        "location / {",
        "location / {
            return 444;
        }",
    );
    check(
        &format!("block_action attack reply; {}", chain("-> block;")),
        "location / {",
        "location / {
            return 403;
        }",
    );
    check(
        &chain("-> 308 = \"https://$hosted$request_uri?$x\";"),
        "location / {",
        "location / {
            return 308 \"https://${host}ed${request_uri}?${tempesta_dollar}x\";
        }",
    );
    check(
        &chain("-> 301 = \"/$\";"),
        "geo $tempesta_dollar {",
        "geo $tempesta_dollar {
            default $;
        }",
    );
}

#[test]
fn locations_are_asked_in_their_order() {
    let text = "cache 0; srv_group g { server 10.0.0.1; }
        vhost v { proxy_pass g;
            location prefix /a/ { proxy_pass g; }
            location eq /a/b { proxy_pass g; }
            location suffix .js { proxy_pass g; }
            location ~ \"/x+/\" { proxy_pass g; }
            location * * { proxy_pass g; }
            location eq /never { proxy_pass g; } }
        http_chain { -> v; }";
    check(
        text,
        "map $request_uri $tempesta_route {",
        "map $request_uri $tempesta_route {
            ~*^/a/ @vhost.v.1;
            default $tempesta_route_1;
        }",
    );
    check(
        text,
        "map $request_uri $tempesta_route_1 {",
        "map $request_uri $tempesta_route_1 {
            /a/b @vhost.v.2;
            \"~*\\\\.js$\" @vhost.v.3;
            ~x+ @vhost.v.4;
            default @vhost.v.5;
        }",
    );
}

#[test]
fn rules_that_need_no_map_are_no_depth() {
    let marks: String = (1..1999)
        .map(|number| format!("mark != {number} -> mark = {number}; "))
        .collect();
    check(
        &chain(&format!("{marks} -> a;")),
        "location / {",
        "location / {
            proxy_pass http://a;
        }",
    );
}
