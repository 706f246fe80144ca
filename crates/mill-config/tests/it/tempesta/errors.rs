//! Errors with their lines and carets.

use super::said;
use mill_config::config::LogLevel;

/// A group and a vhost, for rules.
const SITE: &str = "srv_group g { server 127.0.0.1; } vhost v { proxy_pass g; }\n";

/// The error of a text: its message, its line, and the word under the caret.
fn check(text: &str, message: &str, line: u32, word: &str) {
    let said = said(text);
    let last = said
        .last()
        .unwrap_or_else(|| panic!("nothing said of {text}"));
    assert_eq!(last.level, LogLevel::Emerg, "{text}: {}", last.line());
    assert_eq!(last.message, message, "{text}");
    let snippet = last
        .snippet
        .as_ref()
        .unwrap_or_else(|| panic!("no snippet: {text}"));
    let marked = snippet
        .text
        .get(snippet.column..snippet.column + snippet.len);
    let marked = String::from_utf8_lossy(marked.unwrap_or_default()).into_owned();
    assert_eq!((snippet.line, &*marked), (line, word), "{text}");
}

/// The same in the second line, after a group and a vhost.
fn check_after_site(text: &str, message: &str, word: &str) {
    check(&format!("{SITE}{text}"), message, 2, word);
}

#[test]
fn an_error_is_shown_as_nginx_s_are() {
    let said = said("listen 80;\nsrv_group a {\n    server 10.0.0.1 wieght=3;\n}\n");
    assert_eq!(
        said.last().unwrap().render("millstream"),
        "millstream: [emerg] invalid parameter \"wieght\" in /etc/tempesta/tempesta_fw.conf:3\n\
         \x20 3 |     server 10.0.0.1 wieght=3;\n\
         \x20   |                     ^^^^^^\n"
    );
}

#[test]
fn the_syntax_is_checked() {
    check(
        "cache 1",
        "unexpected end of file, expecting \";\" or \"{\"",
        1,
        "",
    );
    check("\n}", "unexpected \"}\"", 2, "}");
    check(
        "vhost a {\n proxy_pass b;\n",
        "unexpected end of file, expecting \"}\"",
        3,
        "",
    );
    check("cache = 1;", "unexpected \"=\", expecting a value", 1, "=");
    check(
        "listen 80 proto=;",
        "unexpected \";\", expecting a value",
        1,
        ";",
    );
    check(
        "listen \"80;",
        "unexpected end of file, expecting a closing quote",
        1,
        "\"80;",
    );
    check("host == a;", "unexpected \";\", expecting \"->\"", 1, ";");
    check(
        "http_chain { -> a b; }",
        "unexpected \"b\", expecting \";\"",
        1,
        "b",
    );
    check("9a 1;", "unexpected \"9a\"", 1, "9a");
    let deep = "srv_group a { ".repeat(40);
    check(&deep, "more than 16 blocks in each other", 1, "srv_group");
}

#[test]
fn a_directive_has_its_place_and_its_form() {
    check("lisen 80;", "unknown directive \"lisen\"", 1, "lisen");
    check(
        "proxy_pass a;",
        "\"proxy_pass\" directive is not allowed here",
        1,
        "proxy_pass",
    );
    check(
        "cache 1 2;",
        "invalid number of arguments in \"cache\" directive",
        1,
        "cache",
    );
    check(
        "cache 1;\ncache 2;",
        "\"cache\" directive is duplicate",
        2,
        "cache",
    );
    check(
        "cache 1 { }",
        "directive \"cache\" is not terminated by \";\"",
        1,
        "cache",
    );
    check(
        "vhost a;",
        "directive \"vhost\" has no opening \"{\"",
        1,
        "vhost",
    );
    check(
        "cache a=b;",
        "invalid number of arguments in \"cache\" directive",
        1,
        "cache",
    );
    check("cache 1 a=b;", "invalid parameter \"a\"", 1, "a");
    check("-> a;", "a rule is not allowed here", 1, "->");
    check(
        "http_chain { cache 1; }",
        "\"cache\" directive is not allowed here",
        1,
        "cache",
    );
    check(
        "vhost v { frang_limits { ip_block off; } }",
        "\"ip_block\" directive is not allowed here",
        1,
        "ip_block",
    );
}

#[test]
fn values_are_checked() {
    check(
        "listen 65536;",
        "value 65536 is out of range, 0 to 65535",
        1,
        "65536",
    );
    check(
        "listen localhost;",
        "invalid address \"localhost\"",
        1,
        "localhost",
    );
    check("listen ::1;", "invalid address \"::1\"", 1, "::1");
    check("listen 80;\nlisten 80;", "duplicate listen \"80\"", 2, "80");
    check("listen 80 proto=h3;", "unknown protocol \"h3\"", 1, "h3");
    check("listen 80 port=1;", "invalid parameter \"port\"", 1, "port");
    check("keepalive_timeout -1;", "invalid number \"-1\"", 1, "-1");
    check(
        "max_concurrent_streams 0;",
        "value 0 is out of range, 1 to 65536",
        1,
        "0",
    );
    check("cache 3;", "value 3 is out of range, 0 to 2", 1, "3");
    check(
        "cache_size 17M;",
        "size \"17M\" is not a multiple of 2097152",
        1,
        "17M",
    );
    check(
        "cache_size 8M;",
        "size \"8M\" is out of range, 16777216 to 137438953472",
        1,
        "8M",
    );
    check(
        "cache_db cache.tdb;",
        "invalid path \"cache.tdb\"",
        1,
        "cache.tdb",
    );
    check(
        "cache_methods PUT;",
        "method \"PUT\" cannot be cached",
        1,
        "PUT",
    );
    check("cache_methods FROB;", "unknown method \"FROB\"", 1, "FROB");
    check(
        "cache_fulfill like a;",
        "unknown operator \"like\"",
        1,
        "like",
    );
    check("cache_fulfill * a;", "invalid value \"a\"", 1, "a");
    check("cache_use_stale 300;", "invalid status \"300\"", 1, "300");
    check(
        "cache_use_stale 5* 502;",
        "status \"502\" is duplicate",
        1,
        "502",
    );
    check("cache_purge now;", "invalid value \"now\"", 1, "now");
    check(
        "cache_purge;",
        "\"cache_purge\" requires \"cache_purge_acl\"",
        1,
        "cache_purge",
    );
    check(
        "cache_purge_acl 10.0.0.0/33;",
        "invalid address or prefix \"10.0.0.0/33\"",
        1,
        "10.0.0.0/33",
    );
    check(
        "cache_purge_acl 10.0.0.1;",
        "\"cache_purge_acl\" requires \"cache_purge\"",
        1,
        "10.0.0.1",
    );
    check(
        "cache 0;\ncache_purge;\ncache_purge_acl ::1;",
        "\"cache_purge\" requires a cache, and \"cache\" is 0",
        2,
        "cache_purge",
    );
    check(
        "nonidempotent FROB * *;",
        "unknown method \"FROB\"",
        1,
        "FROB",
    );
    check(
        "req_hdr_set \"a b\" c;",
        "invalid name of a field \"a b\"",
        1,
        "\"a b\"",
    );
    check("response_body 6* /a;", "invalid status \"6*\"", 1, "6*");
    check("response_body 404 a;", "invalid path \"a\"", 1, "a");
    check(
        "block_action fault drop;",
        "invalid value \"fault\"",
        1,
        "fault",
    );
    check(
        "block_action error keep;",
        "invalid value \"keep\"",
        1,
        "keep",
    );
    check(
        "http_uri_brange 0x100;",
        "invalid range of bytes \"0x100\"",
        1,
        "0x100",
    );
    check(
        "http_uri_brange 9-3;",
        "invalid range of bytes \"9-3\"",
        1,
        "9-3",
    );
    check("tls_tickets maybe;", "invalid value \"maybe\"", 1, "maybe");
    check(
        "tls_certificate /a;",
        "\"tls_certificate\" has no \"tls_certificate_key\"",
        1,
        "/a",
    );
    check(
        "tls_certificate_key /a;",
        "\"tls_certificate_key\" without \"tls_certificate\" before it",
        1,
        "tls_certificate_key",
    );
    check(
        "access_log off dmesg;",
        "\"off\" must stand alone",
        1,
        "dmesg",
    );
    check("access_log tape;", "invalid value \"tape\"", 1, "tape");
    check(
        "frang_limits { request_rate a; }",
        "invalid number \"a\"",
        1,
        "a",
    );
    check(
        "frang_limits { http_methods get brew; }",
        "unknown method \"brew\"",
        1,
        "brew",
    );
    check(
        "block_action attack reply; frang_limits { ip_block on; }",
        "\"ip_block\" and \"block_action attack reply\" exclude each other",
        1,
        "on",
    );
    check(
        "frang_limits { http_resp_code_block 404 5 0; }",
        "value 0 is out of range, 1 to 65535",
        1,
        "0",
    );
    check(
        "tft storage_size=1M { }",
        "size \"1M\" is not a multiple of 2097152",
        1,
        "1M",
    );
    check(
        "tfh { hash xyz 1 1; }",
        "invalid fingerprint \"xyz\"",
        1,
        "xyz",
    );
}

#[test]
fn groups_are_checked() {
    check(
        "srv_group a { }",
        "no servers are inside srv_group \"a\"",
        1,
        "a",
    );
    check(
        "server example.com;",
        "invalid address \"example.com\"",
        1,
        "example.com",
    );
    check(
        "server 10.0.0.1;\nserver 10.0.0.1:80;",
        "duplicate server \"10.0.0.1:80\"",
        2,
        "10.0.0.1:80",
    );
    check(
        "server 10.0.0.1 weight=101;",
        "value 101 is out of range, 1 to 100",
        1,
        "101",
    );
    check(
        "server 10.0.0.1 conns_n=0;",
        "value 0 is out of range, 1 to 65535",
        1,
        "0",
    );
    check(
        "server 10.0.0.1 weight=1 weight=1;",
        "parameter \"weight\" is duplicate",
        1,
        "weight",
    );
    check(
        "srv_group g { server ::1; }",
        "invalid address \"::1\"",
        1,
        "::1",
    );
    check_after_site(
        "srv_group G { server 10.0.0.1; }",
        "duplicate srv_group \"G\"",
        "G",
    );
    check(
        "server 10.0.0.1;\nsrv_group default { server 10.0.0.2; }",
        "duplicate srv_group \"default\"",
        2,
        "default",
    );
    check(
        "srv_group default { server 10.0.0.2; }\nserver 10.0.0.1;",
        "a server outside of groups after srv_group \"default\"",
        2,
        "server",
    );
    check("sched best;", "unknown scheduler \"best\"", 1, "best");
    check("sched ratio best;", "unknown scheduler \"best\"", 1, "best");
    check(
        "sched ratio dynamic percentile 91;",
        "invalid percentile \"91\"",
        1,
        "91",
    );
    check(
        "sched ratio dynamic past=3;",
        "invalid parameter \"past\"",
        1,
        "past",
    );
    check(
        "sched ratio predict past=10 ahead=6;",
        "value 6 is out of range, 1 to 5",
        1,
        "6",
    );
    check(
        "srv_group a { server 10.0.0.1; health b; }",
        "health_check \"b\" is not found",
        1,
        "b",
    );
    check(
        "health_check a { resp_code 200; }",
        "health_check \"a\" has no \"timeout\"",
        1,
        "a",
    );
    check(
        "health_check a { timeout 1; }",
        "health_check \"a\" has neither \"resp_code\" nor \"resp_crc32\"",
        1,
        "a",
    );
    check(
        "health_check a { timeout 1; resp_code 9; }",
        "invalid status \"9\"",
        1,
        "9",
    );
    check(
        "health_check a { request hello; timeout 1; resp_code 200; }",
        "invalid request of a health_check",
        1,
        "hello",
    );
    check(
        "health_check a { request \"HEAD / HTTP/1.0\"; timeout 1; resp_crc32 auto; }",
        "the answer to HEAD has no content for \"resp_crc32\"",
        1,
        "\"HEAD / HTTP/1.0\"",
    );
}

#[test]
fn vhosts_and_locations_are_checked() {
    check_after_site("vhost V { proxy_pass g; }", "duplicate vhost \"V\"", "V");
    check_after_site("vhost a { }", "vhost \"a\" has no \"proxy_pass\"", "a");
    check_after_site(
        "vhost a { proxy_pass h; }",
        "srv_group \"h\" is not found",
        "h",
    );
    check_after_site(
        "vhost a { proxy_pass g backup=g; }",
        "the backup is the group itself",
        "g",
    );
    check_after_site(
        "vhost a { proxy_pass g spare=g; }",
        "invalid parameter \"spare\"",
        "spare",
    );
    check_after_site(
        "vhost default { proxy_pass g; }",
        "the default vhost passes to the group \"default\" only",
        "g",
    );
    check_after_site(
        "vhost default { }",
        "srv_group \"default\" is not found",
        "default",
    );
    check_after_site(
        "vhost a { proxy_pass g; location eq /a { } }",
        "location \"/a\" of vhost \"a\" has no \"proxy_pass\"",
        "location",
    );
    check_after_site(
        "vhost a { proxy_pass g; location near /a { } }",
        "unknown operator \"near\"",
        "near",
    );
    check_after_site(
        "vhost a { proxy_pass g; location eq /a { proxy_pass g; } location eq /A { proxy_pass g; } }",
        "duplicate location \"/A\"",
        "/A",
    );
    check_after_site(
        "vhost a { proxy_pass g; sticky { cookie; learn name=b; } }",
        "\"cookie\" and \"learn\" exclude each other",
        "learn",
    );
    check_after_site(
        "vhost a { proxy_pass g; sticky { cookie max_misses=1; } }",
        "\"max_misses\" requires \"enforce\"",
        "max_misses",
    );
    check_after_site(
        "vhost a { proxy_pass g; sticky { learn; } }",
        "\"learn\" has no \"name=\"",
        "learn",
    );
    check_after_site(
        "vhost a { proxy_pass g; sticky { js_challenge delay_min=1; } }",
        "\"js_challenge\" needs \"delay_min=\" and \"delay_range=\"",
        "js_challenge",
    );
    check_after_site(
        "vhost a { proxy_pass g; sticky { sticky_sessions maybe; } }",
        "invalid value \"maybe\"",
        "maybe",
    );
    check_after_site(
        "listen 443 proto=h2;",
        "no \"tls_certificate\" for this socket",
        "443",
    );
}

#[test]
fn rules_are_checked() {
    let rule = |rule: &str, message: &str, word: &str| {
        check_after_site(&format!("http_chain {{ {rule} }}"), message, word);
    };
    rule(
        "-> w;",
        "neither an http_chain nor a vhost \"w\" is found",
        "w",
    );
    rule(
        "-> v; -> v;",
        "a rule after one that takes all requests",
        "->",
    );
    rule("age == 3 -> v;", "unknown field \"age\"", "age");
    rule("host a == b -> v;", "unexpected \"a\"", "a");
    rule("hdr == b -> v;", "\"hdr\" has no name", "hdr");
    rule(
        "hdr \"a b\" == b -> v;",
        "invalid name of a field \"a b\"",
        "\"a b\"",
    );
    rule("method == FROB -> v;", "unknown method \"FROB\"", "FROB");
    rule("mark == x -> v;", "invalid number \"x\"", "x");
    rule(
        "uri ~ * -> v;",
        "a regular expression is expected, or == instead of ~",
        "*",
    );
    rule(
        "uri ~ \"//\" -> v;",
        "an empty regular expression",
        "\"//\"",
    );
    rule(
        "uri ~ \"/a/q\" -> v;",
        "unknown flag \"q\" of a regular expression",
        "\"/a/q\"",
    );
    rule(
        "cookie a ~ b -> v;",
        "\"cookie\" takes no regular expression",
        "b",
    );
    rule(
        "cookie *a* == b -> v;",
        "\"*a*\" is open at both ends",
        "*a*",
    );
    rule("-> mark;", "\"mark\" has no value", "mark");
    rule("-> mark = x;", "invalid number \"x\"", "x");
    rule("-> 305 = /a;", "\"305\" takes no value", "305");
    rule("-> block = 1;", "\"block\" takes no value", "block");
    check_after_site(
        "http_chain a { -> a; }",
        "an http_chain that leads to itself",
        "a",
    );
    check_after_site(
        "http_chain a { -> b; } http_chain b { -> v; }",
        "neither an http_chain nor a vhost \"b\" is found",
        "b",
    );
    check_after_site(
        "http_chain a { } http_chain A { }",
        "duplicate http_chain \"A\"",
        "A",
    );
    check_after_site(
        "http_chain { } http_chain a { }",
        "the http_chain without a name must be the only one and the last",
        "http_chain",
    );
    let deep: String = (0..90)
        .map(|number| format!("{} == \"{number}*\" -> v; ", ["uri", "host"][number % 2]))
        .collect();
    let message =
        "more than 80 rules one after the other that look at different parts of a request";
    check_after_site(&format!("http_chain {{ {deep}}}"), message, "uri");
}

#[test]
fn an_error_of_the_second_stage_is_shown_in_the_same_text() {
    // The expression is compiled by the part that nginx's language has too.
    let said = said(&format!(
        "cache 0; {SITE}http_chain {{\n  uri ~ \"/a(/\" -> v;\n}}"
    ));
    let last = said.last().unwrap();
    assert!(last.message.contains("a("), "{}", last.message);
    let snippet = last.snippet.as_ref().unwrap();
    assert_eq!((snippet.line, snippet.column), (3, 2));
}
