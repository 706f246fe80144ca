//! Features of nginx that Millstream does not have yet are reported all at once.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use mill_config::{Diagnostic, Memory, Options, load};

const PATH: &str = "/etc/nginx/nginx.conf";

/// The error, after the emergencies reported before it.
fn refused(text: &str) -> Vec<Diagnostic> {
    let source = Memory::new().with(PATH, text).with(
        "/etc/nginx/proxy.inc",
        "proxy_buffering off;\nproxy_http_version 1.1;\n",
    );
    let failure = load(&source, &Options::default()).unwrap_err();
    let before = failure.remarks.into_iter();
    let mut told: Vec<_> = before
        .filter(|remark| remark.line().starts_with("[emerg]"))
        .collect();
    told.push(failure.error);
    told
}

#[test]
fn every_unsupported_feature_is_listed_with_its_first_place_and_its_count() {
    let text = "events {}
http {
    upstream backend {
        least_conn;
        server 10.0.0.1:80 weight=2;
        keepalive 16;
    }
    limit_req_zone $binary_remote_addr zone=a:10m rate=1r/s;
    server {
        listen 443 ssl http2;
        location / { proxy_pass http://backend; include proxy.inc; }
        location /a { proxy_pass http://backend; include proxy.inc; }
    }
    server { listen 444 ssl; access_log syslog:server=a; }
}
";
    let told = refused(text);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(
        told[0].render("nginx"),
        "nginx: [emerg] 8 directives or parameters are known to nginx, but not to Millstream yet; they stand 12 times, \
         first in /etc/nginx/nginx.conf:3\n\
         \x20 3 |     upstream backend {\n\
         \x20   |     ^^^^^^^^\n\
         \x20 upstream            1 time,  first in /etc/nginx/nginx.conf:3   ngx_http_upstream\n\
         \x20 limit_req_zone      1 time,  first in /etc/nginx/nginx.conf:8   ngx_http_limit_req_module\n\
         \x20 listen … ssl        2 times, first in /etc/nginx/nginx.conf:10  TLS\n\
         \x20 listen … http2      1 time,  first in /etc/nginx/nginx.conf:10  HTTP/2\n\
         \x20 proxy_pass          2 times, first in /etc/nginx/nginx.conf:11  ngx_http_proxy_module\n\
         \x20 proxy_buffering     2 times, first in /etc/nginx/proxy.inc:1    ngx_http_proxy_module\n\
         \x20 proxy_http_version  2 times, first in /etc/nginx/proxy.inc:2    ngx_http_proxy_module\n\
         \x20 access_log syslog:  1 time,  first in /etc/nginx/nginx.conf:14  logs to other places than files\n\
         help: none of this is ignored: remove it, or leave this configuration to nginx; docs/directives.md lists what \
         there is\n"
    );
}

#[test]
fn one_feature_used_often_is_one_sentence() {
    let told = refused(
        "events {} http { server { location /a { proxy_pass http://a; }\nlocation /b { proxy_pass http://b; } } }",
    );
    assert_eq!(
        told[0].line(),
        "[emerg] directive \"proxy_pass\" is known to nginx, but not to Millstream yet; it stands 2 times, first in \
         /etc/nginx/nginx.conf:1"
    );
    assert!(told[0].details.is_empty());
}

#[test]
fn an_error_after_it_is_reported_too_unless_it_may_be_a_consequence() {
    let check = |text: &str, expected: &[&str]| {
        let told = refused(text);
        let lines: Vec<String> = told.iter().map(Diagnostic::line).collect();
        assert_eq!(lines.len(), expected.len(), "{lines:?}");
        for (line, expected) in lines.iter().zip(expected) {
            assert!(line.starts_with(expected), "{line}");
        }
    };
    let geo = "[emerg] directive \"geo\" is known to nginx";
    // The variable is geo's.
    check(
        "events {} http { geo $a { default 1; } server { return 200 $a; } }",
        &[geo],
    );
    check(
        "events {} http { geo $a { default 1; } server { return 1000; } }",
        &[geo, "[emerg] invalid return code \"1000\""],
    );
    check(
        "events {} http { geo $a { default 1; ",
        &[
            "[emerg] directive \"geo\"",
            "[emerg] unexpected end of file, expecting \"}\"",
        ],
    );
}
