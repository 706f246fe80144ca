//! Features of nginx that Millstream does not have yet are reported all at once.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use mill_config::{Diagnostic, Memory, Options, load};

const PATH: &str = "/etc/nginx/nginx.conf";

/// The error, after the emergencies reported before it.
fn refused(text: &str) -> Vec<Diagnostic> {
    let source = Memory::new().with(PATH, text).with(
        "/etc/nginx/auth.inc",
        "auth_basic_user_file a;\nauth_delay 1s;\n",
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
    charset_map koi8-r utf-8 {
        80 E282AC;
        81 E282AD;
    }
    userid on;
    server {
        listen 443 quic;
        location / { auth_basic here; include auth.inc; }
        location /a { auth_basic here; include auth.inc; }
    }
    server { listen 444 quic; access_log syslog:server=a; }
}
";
    let told = refused(text);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(
        told[0].render("nginx"),
        "nginx: [emerg] 7 directives or parameters are known to nginx, but not to Millstream yet; they stand 11 times, \
         first in /etc/nginx/nginx.conf:3\n\
         \x20 3 |     charset_map koi8-r utf-8 {\n\
         \x20   |     ^^^^^^^^^^^\n\
         \x20 charset_map           1 time,  first in /etc/nginx/nginx.conf:3   ngx_http_charset_filter_module\n\
         \x20 userid                1 time,  first in /etc/nginx/nginx.conf:7   ngx_http_userid_filter_module\n\
         \x20 listen … quic         2 times, first in /etc/nginx/nginx.conf:9   HTTP/3\n\
         \x20 auth_basic            2 times, first in /etc/nginx/nginx.conf:10  ngx_http_auth_basic_module\n\
         \x20 auth_basic_user_file  2 times, first in /etc/nginx/auth.inc:1     ngx_http_auth_basic_module\n\
         \x20 auth_delay            2 times, first in /etc/nginx/auth.inc:2     ngx_http_core_module\n\
         \x20 access_log syslog:    1 time,  first in /etc/nginx/nginx.conf:13  logs to other places than files\n\
         help: none of this is ignored: remove it, or leave this configuration to nginx; docs/directives.md lists what \
         there is\n"
    );
}

#[test]
fn one_feature_used_often_is_one_sentence() {
    let told = refused(
        "events {} http { server { location /a { auth_basic a; }\nlocation /b { auth_basic b; } } }",
    );
    assert_eq!(
        told[0].line(),
        "[emerg] directive \"auth_basic\" is known to nginx, but not to Millstream yet; it stands 2 times, first in \
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
    let table = "[emerg] directive \"charset_map\" is known to nginx";
    // The variable may be of the module.
    check(
        "events {} http { charset_map $a b { default 1; } server { return 200 $a; } }",
        &[table],
    );
    check(
        "events {} http { charset_map $a b { default 1; } server { return 1000; } }",
        &[table, "[emerg] invalid return code \"1000\""],
    );
    check(
        "events {} http { charset_map $a b { default 1; ",
        &[
            "[emerg] directive \"charset_map\"",
            "[emerg] unexpected end of file, expecting \"}\"",
        ],
    );
}
