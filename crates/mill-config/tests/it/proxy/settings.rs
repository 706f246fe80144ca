//! The settings of `proxy_pass`.

use std::time::Duration;

use mill_config::Text;
use mill_config::config::settings::{
    Amount, BindAddress, CookieName, HttpVersion, IgnoredFields, NextUpstream, PassStore,
    ProxyProtocol, ProxyRedirect, ProxyRewrite, RewritePattern,
};
use mill_config::config::{Config, Location, PassProtocol};

use crate::proxy::{PATH, config, literal, located, location, refused};

#[test]
fn settings_have_the_defaults_of_nginx() {
    let location = located("");
    let proxy = &location.proxy;
    for timeout in [
        proxy.connect_timeout,
        proxy.send_timeout,
        proxy.read_timeout,
    ] {
        assert_eq!(timeout, Duration::from_secs(60));
    }
    assert!(proxy.buffering && proxy.request_buffering);
    assert!(proxy.pass_request_headers && proxy.pass_request_body);
    assert!(!proxy.ignore_client_abort && !proxy.intercept_errors && !proxy.force_ranges);
    assert!(!proxy.socket_keepalive && !proxy.pass_trailers);
    assert_eq!(proxy.buffer_size, 4096);
    assert_eq!((proxy.buffers.count, proxy.buffers.size), (8, 4096));
    assert_eq!(proxy.busy_buffers_size(), 8192);
    assert_eq!(proxy.temp_file_write_size(), 8192);
    assert_eq!(proxy.max_temp_file_size, 1 << 30);
    assert_eq!(proxy.temp_path.path, "/var/lib/nginx/proxy");
    assert_eq!(proxy.temp_path.levels, [1, 2, 0]);
    assert_eq!(
        (proxy.next_upstream_tries, proxy.next_upstream_timeout),
        (0, Duration::ZERO)
    );
    let next = proxy.next_upstream;
    assert!(next.contains(NextUpstream::ERROR) && next.contains(NextUpstream::TIMEOUT));
    assert!(!next.contains(NextUpstream::INVALID_HEADER));
    assert!(!next.contains(NextUpstream::NON_IDEMPOTENT));
    assert!(!next.contains(NextUpstream::status(502)));
    assert!(!next.contains(NextUpstream::status(200)));
    assert!(matches!(proxy.limit_rate, Amount::Fixed(0)));
    assert_eq!((&proxy.bind, &proxy.store), (&None, &PassStore::Off));
    assert_eq!(proxy.store_access, 0o600);
    let http = &location.proxy_http;
    assert_eq!(http.http_version, HttpVersion::Http10);
    assert!(http.set_header.is_empty() && http.set_body.is_none() && http.method.is_none());
    assert!(http.cookie_domain.is_empty() && http.cookie_path.is_empty());
    assert!(http.cookie_flags.is_empty());
    assert_eq!(http.proxy_protocol, ProxyProtocol::Off);
    assert!(!location.memcached.buffering && location.memcached.intercept_errors);
    assert_eq!(location.fastcgi.temp_path.path, "/var/lib/nginx/fastcgi");
    assert_eq!(location.uwsgi.temp_path.path, "/var/lib/nginx/uwsgi");
    assert_eq!(location.scgi.temp_path.path, "/var/lib/nginx/scgi");
}

#[test]
fn settings_are_read() {
    let location = located(
        "proxy_buffers 4 16k; proxy_buffer_size 8k; proxy_busy_buffers_size 32k; proxy_temp_file_write_size 64k; \
         proxy_temp_path /t/ 2 2; proxy_next_upstream http_502 non_idempotent; proxy_next_upstream http_404; \
         proxy_limit_rate 10k; proxy_bind 10.0.0.1 transparent; proxy_socket_rcvbuf 4k; proxy_store /s$uri; \
         proxy_store_access user:rw group:rw all:r; proxy_ignore_headers Vary X-Accel-Redirect; \
         proxy_http_version 1.1; proxy_method PUT; proxy_set_body b; proxy_protocol v2; \
         proxy_set_header Host $host; proxy_set_header X \"\"; proxy_pass_trailers on;",
    );
    let proxy = &location.proxy;
    assert_eq!(proxy.busy_buffers_size(), 32 << 10);
    assert_eq!(proxy.temp_file_write_size(), 64 << 10);
    assert_eq!(proxy.temp_path.path, "/t");
    assert_eq!(proxy.temp_path.levels, [2, 2, 0]);
    let next = proxy.next_upstream;
    assert!(next.contains(NextUpstream::status(502)) && next.contains(NextUpstream::status(404)));
    assert!(next.contains(NextUpstream::NON_IDEMPOTENT) && !next.contains(NextUpstream::ERROR));
    assert!(matches!(proxy.limit_rate, Amount::Fixed(10240)));
    let bind = proxy.bind.as_ref().expect("it is written");
    assert!(bind.transparent);
    assert_eq!(
        bind.address,
        BindAddress::Fixed("10.0.0.1:0".parse().expect("an address"))
    );
    assert_eq!(proxy.socket_rcvbuf, Some(4096));
    assert!(matches!(proxy.store, PassStore::Path(_)));
    assert_eq!(proxy.store_access, 0o664);
    assert!(proxy.ignore_headers.contains(IgnoredFields::VARY));
    assert!(proxy.ignore_headers.contains(IgnoredFields::ACCEL_REDIRECT));
    assert!(!proxy.ignore_headers.contains(IgnoredFields::EXPIRES));
    assert!(proxy.pass_trailers);
    let http = &location.proxy_http;
    assert_eq!(http.http_version, HttpVersion::Http11);
    assert_eq!(http.method.as_ref().map(literal), Some(String::from("PUT")));
    assert_eq!(http.set_body.as_ref().map(literal), Some(String::from("b")));
    assert_eq!(http.proxy_protocol, ProxyProtocol::V2);
    assert_eq!(http.set_header[0].name, "Host");
    assert!(http.set_header[1].value.is_empty());
    let off = located("proxy_next_upstream error off;")
        .proxy
        .next_upstream;
    assert!(!off.contains(NextUpstream::ERROR));
    assert!(matches!(
        located("proxy_limit_rate $arg_a;").proxy.limit_rate,
        Amount::Evaluated(_)
    ));
    assert_eq!(located("proxy_bind off;").proxy.bind, None);
}

#[test]
fn fields_are_hidden_unless_they_are_passed() {
    let location = located("proxy_hide_header X-Powered-By; proxy_pass_header server;");
    let hides = |protocol, name: &str| location.proxy.hides(protocol, name.as_bytes());
    assert!(hides(PassProtocol::Http, "x-powered-by"));
    assert!(hides(PassProtocol::Http, "Date"));
    assert!(hides(PassProtocol::Http, "X-Accel-Redirect"));
    assert!(!hides(PassProtocol::Http, "Server"));
    assert!(!hides(PassProtocol::Http, "Status"));
    assert!(hides(PassProtocol::Fastcgi, "Status"));
    assert!(!hides(PassProtocol::Fastcgi, "Date"));
}

#[test]
fn early_hints_are_passed_on_a_condition() {
    let location = located("early_hints $http_sec_fetch_mode 1; early_hints $arg_a;");
    assert_eq!(location.headers.early_hints.len(), 3);
    assert!(located("").headers.early_hints.is_empty());
}

#[test]
fn bits_and_lists_are_inherited_as_a_whole() {
    let config = config(
        "proxy_set_header A 1; proxy_hide_header A; proxy_next_upstream http_500; server { \
         location /same { } location /own { proxy_set_header B 2; proxy_hide_header B; proxy_next_upstream http_404; } }",
    );
    let (same, own) = (location(&config, "/same"), location(&config, "/own"));
    assert_eq!(same.proxy_http.set_header[0].name, "A");
    let names: Vec<&Text> = own
        .proxy_http
        .set_header
        .iter()
        .map(|field| &field.name)
        .collect();
    assert_eq!(names, [&Text::from("B")]);
    assert!(same.proxy.hides(PassProtocol::Http, b"A"));
    assert!(!own.proxy.hides(PassProtocol::Http, b"A"));
    assert!(!own.proxy.next_upstream.contains(NextUpstream::status(500)));
}

/// The only rule, both sides as text.
fn rule(rules: &[ProxyRewrite]) -> (String, String) {
    let [rule] = rules else {
        panic!("{rules:?}");
    };
    let pattern = match &rule.pattern {
        RewritePattern::Prefix(template) => format!("prefix {}", literal(template)),
        RewritePattern::Domain(template) => format!("domain {}", literal(template)),
        RewritePattern::Pattern(pattern) => {
            format!("pattern {}", String::from_utf8_lossy(pattern.source()))
        }
    };
    (pattern, literal(&rule.replacement))
}

fn redirect(location: &Location) -> (String, String) {
    match &location.proxy_http.redirect {
        ProxyRedirect::Rules(rules) => rule(rules),
        other => panic!("{other:?}"),
    }
}

#[test]
fn redirects_change_as_proxy_pass_says_unless_they_are_told_otherwise() {
    let check = |directives: &str, from: &str, to: &str| {
        let config = config(&format!("server {{ location /a/ {{ {directives} }} }}"));
        let expected = (String::from(from), String::from(to));
        assert_eq!(
            redirect(&location(&config, "/a/")),
            expected,
            "{directives}"
        );
    };
    check(
        "proxy_pass http://127.0.0.1;",
        "prefix http://127.0.0.1/",
        "/",
    );
    check(
        "proxy_pass http://127.0.0.1/b/;",
        "prefix http://127.0.0.1/b/",
        "/a/",
    );
    check(
        "proxy_pass http://127.0.0.1/b/; proxy_redirect default;",
        "prefix http://127.0.0.1/b/",
        "/a/",
    );
    check(
        "proxy_pass http://127.0.0.1; proxy_redirect /b /c;",
        "prefix /b",
        "/c",
    );
    check(
        "proxy_pass http://127.0.0.1; proxy_redirect ~*^/b /c;",
        "pattern ^/b",
        "/c",
    );
    let off = located("proxy_pass http://127.0.0.1; proxy_redirect off;");
    assert!(matches!(off.proxy_http.redirect, ProxyRedirect::Off));
    let inherited = config(
        "proxy_redirect /b /c; server { location / { proxy_pass http://127.0.0.1; if ($arg_a) { gzip on; } } }",
    );
    let outer = location(&inherited, "/");
    let expected = (String::from("prefix /b"), String::from("/c"));
    assert_eq!(redirect(&outer), expected);
}

#[test]
fn cookies_change_by_rules() {
    let location = located(
        "proxy_cookie_domain .a.org .b.org; proxy_cookie_path ~^/a /b; proxy_cookie_flags ~^s secure samesite=lax; \
         proxy_cookie_flags one nosecure;",
    );
    let http = &location.proxy_http;
    let pair = |from: &str, to: &str| (String::from(from), String::from(to));
    assert_eq!(rule(&http.cookie_domain), pair("domain a.org", "b.org"));
    assert_eq!(rule(&http.cookie_path), pair("pattern ^/a", "/b"));
    let [pattern, name] = &http.cookie_flags[..] else {
        panic!("{:?}", http.cookie_flags);
    };
    assert!(matches!(pattern.cookie, CookieName::Pattern(_)));
    let flags: Vec<String> = pattern.flags.iter().map(literal).collect();
    assert_eq!(flags, ["secure", "samesite=lax"]);
    assert!(matches!(&name.cookie, CookieName::Name(name) if literal(name) == "one"));
    let config = config(
        "proxy_cookie_path /a /b; server { location / { proxy_cookie_path off; } location /a { } }",
    );
    assert!(cookie_path(&config, "/").is_empty());
    assert_eq!(cookie_path(&config, "/a").len(), 1);
}

fn cookie_path(config: &Config, path: &str) -> Vec<ProxyRewrite> {
    location(config, path).proxy_http.cookie_path.clone()
}

#[test]
fn faults_in_settings_are_told_in_the_words_of_nginx() {
    let check = |directives: &str, expected: &str| {
        let line = refused(&format!("server {{ location / {{ {directives} }} }}"));
        assert_eq!(
            line,
            format!("[emerg] {expected} in {PATH}:1"),
            "{directives}"
        );
    };
    let buffers = "must be equal to or greater than the maximum of the value of \"proxy_buffer_size\" and one of the \
                   \"proxy_buffers\"";
    check(
        "proxy_buffers 1 4k;",
        "there must be at least 2 \"proxy_buffers\"",
    );
    check(
        "proxy_busy_buffers_size 2k;",
        &format!("\"proxy_busy_buffers_size\" {buffers}"),
    );
    check(
        "proxy_buffer_size 16k;",
        "\"proxy_busy_buffers_size\" must be less than the size of all \"proxy_buffers\" minus one buffer",
    );
    check(
        "proxy_temp_file_write_size 2k;",
        &format!("\"proxy_temp_file_write_size\" {buffers}"),
    );
    check(
        "proxy_max_temp_file_size 2k;",
        "\"proxy_max_temp_file_size\" must be equal to zero to disable temporary files usage or must be equal to or \
         greater than the maximum of the value of \"proxy_buffer_size\" and one of the \"proxy_buffers\"",
    );
    check(
        "fastcgi_buffers 1 4k;",
        "there must be at least 2 \"fastcgi_buffers\"",
    );
    check(
        "proxy_buffers 0 4k;",
        "\"proxy_buffers\" directive invalid value",
    );
    check(
        "proxy_next_upstream http_501;",
        "invalid value \"http_501\"",
    );
    check(
        "memcached_next_upstream http_500;",
        "invalid value \"http_500\"",
    );
    check("proxy_ignore_headers Date;", "invalid value \"Date\"");
    check("proxy_http_version 1.2;", "invalid value \"1.2\"");
    check("proxy_bind a;", "invalid address \"a\"");
    check("proxy_bind 10.0.0.1 x;", "invalid parameter \"x\"");
    check("proxy_store_access user:x;", "invalid value \"user:x\"");
    check("proxy_store_access rw;", "invalid value \"rw\"");
    check(
        "proxy_temp_path /a 0;",
        "\"proxy_temp_path\" directive invalid value",
    );
    check(
        "proxy_redirect default;",
        "\"proxy_redirect default\" should be placed after the \"proxy_pass\" directive",
    );
    check(
        "proxy_pass http://$host; proxy_redirect default;",
        "\"proxy_redirect default\" cannot be used with \"proxy_pass\" directive with variables",
    );
    check("proxy_redirect x;", "invalid parameter \"x\"");
    for name in ["proxy_redirect", "proxy_cookie_path", "proxy_cookie_domain"] {
        let duplicate = format!("\"{name}\" directive is duplicate");
        check(&format!("{name} off; {name} a b;"), &duplicate);
        check(&format!("{name} a b; {name} off;"), &duplicate);
    }
    check("proxy_cookie_domain x;", "invalid parameter \"x\"");
    check("proxy_cookie_flags x;", "invalid parameter \"x\"");
    check(
        "proxy_store on; proxy_store off;",
        "\"proxy_store\" directive is duplicate",
    );
    check(
        "proxy_buffering 1;",
        "invalid value \"1\" in \"proxy_buffering\" directive, it must be \"on\" or \"off\"",
    );
}
