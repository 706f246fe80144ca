//! Messages about configurations: nginx's line, the caret, the advice.

use mill_config::config::LogLevel;
use mill_config::{Diagnostic, Memory, Options, load};

const PATH: &str = "/etc/nginx/nginx.conf";

/// All messages about a configuration, the error last.
fn said(text: &str) -> Vec<Diagnostic> {
    let source = Memory::new().with(PATH, text);
    match load(&source, &Options::default()) {
        Ok(loaded) => loaded.remarks,
        Err(failure) => {
            let mut said = failure.remarks;
            said.push(failure.error);
            said
        }
    }
}

/// The last message as it is printed.
fn check(text: &str, expected: &str) {
    let said = said(text);
    let last = said
        .last()
        .unwrap_or_else(|| panic!("nothing said about {text}"));
    assert_eq!(last.render("nginx"), expected, "{text}");
}

/// nginx's line of the error (as nginx 1.22.1 prints it, the place shortened).
fn check_line(text: &str, expected: &str) {
    let said = said(text);
    let last = said
        .last()
        .unwrap_or_else(|| panic!("nothing said about {text}"));
    assert_eq!(last.level, LogLevel::Emerg, "{text}");
    assert_eq!(last.line().replace(PATH, "FILE"), expected, "{text}");
}

#[test]
fn thread_pools_are_refused_as_by_nginx_and_only_the_default_has_an_effect() {
    let pool = |words: &str, expected: &str| {
        check_line(&format!("thread_pool {words};"), expected);
    };
    pool(
        "a threads=0",
        "[emerg] invalid threads value \"threads=0\" in FILE:1",
    );
    pool(
        "a threads=2 max_queue=y",
        "[emerg] invalid max_queue value \"max_queue=y\" in FILE:1",
    );
    pool(
        "a max_queue=4",
        "[emerg] \"thread_pool\" must have \"threads\" parameter in FILE:1",
    );
    pool(
        "a threads=2; thread_pool a threads=2",
        "[emerg] duplicate thread pool \"a\" in FILE:1",
    );
    let text = "thread_pool default threads=4 max_queue=0; thread_pool a threads=2; events {}";
    check(
        text,
        "nginx: [notice] thread pool \"a\" has no effect in /etc/nginx/nginx.conf:1\n\
         \x20 1 | thread_pool default threads=4 max_queue=0; thread_pool a threads=2; events {}\n\
         \x20   |                                                        ^\n\
         help: all files go by the pool \"default\"\n",
    );
    let loaded = load(&Memory::new().with(PATH, text), &Options::default());
    let pool = loaded.ok().unwrap().config.main.thread_pool;
    assert_eq!((pool.threads, pool.max_queue), (4, 0));
}

#[test]
fn an_unknown_directive_shows_its_line_and_the_nearest_name() {
    check(
        "events {}\nhttp {\n\tserver {\n\t\tlisen 80;\n\t}\n}\n",
        "nginx: [emerg] unknown directive \"lisen\" in /etc/nginx/nginx.conf:4\n\
         \x20 4 | \t\tlisen 80;\n\
         \x20   | \t\t^^^^^\n\
         help: did you mean \"listen\"?\n",
    );
}

#[test]
fn a_directive_of_nginx_that_is_not_here_yet_is_named_as_such() {
    check(
        "events {}\nhttp { server { location / { auth_basic abcdefgh; } } }",
        "nginx: [emerg] directive \"auth_basic\" is known to nginx, but not to Millstream yet in \
         /etc/nginx/nginx.conf:2\n\
         \x20 2 | http { server { location / { auth_basic abcdefgh; } } }\n\
         \x20   |                              ^^^^^^^^^^\n\
         help: it is part of nginx's ngx_http_auth_basic_module\n",
    );
}

#[test]
fn a_wrong_value_is_pointed_at_not_its_directive() {
    check(
        "events {}\nhttp {\n    sendfile yes;\n}\n",
        "nginx: [emerg] invalid value \"yes\" in \"sendfile\" directive, it must be \"on\" or \
         \"off\" in /etc/nginx/nginx.conf:3\n\
         \x20 3 |     sendfile yes;\n\
         \x20   |              ^^^\n",
    );
    check(
        "events {}\nhttp { server_tokens\n  maybe\n; }",
        "nginx: [emerg] invalid value \"maybe\" in /etc/nginx/nginx.conf:4\n\
         \x20 3 |   maybe\n\
         \x20   |   ^^^^^\n\
         help: one of: off, on, build\n",
    );
}

#[test]
fn a_misplaced_directive_is_reported_with_its_contexts() {
    check(
        "events {}\nhttp { listen 80; }",
        "nginx: [emerg] \"listen\" directive is not allowed here in /etc/nginx/nginx.conf:2\n\
         \x20 2 | http { listen 80; }\n\
         \x20   |        ^^^^^^\n\
         help: it may stand in: server\n",
    );
}

#[test]
fn a_listener_for_http3_is_refused_with_its_reason() {
    check(
        "events {}\nhttp { server { listen 443 quic; } }",
        "nginx: [emerg] the \"quic\" parameter is known to nginx, but not to Millstream yet in \
         /etc/nginx/nginx.conf:2\n\
         \x20 2 | http { server { listen 443 quic; } }\n\
         \x20   |                            ^^^^\n\
         help: HTTP/3 comes in a later version; remove the parameter\n",
    );
}

#[test]
fn a_directive_without_effect_gets_one_notice_with_its_reason() {
    check(
        "events {}\nhttp { output_buffers 2 32k; }",
        "nginx: [notice] \"output_buffers\" directive has no effect in /etc/nginx/nginx.conf:2\n\
         \x20 2 | http { output_buffers 2 32k; }\n\
         \x20   |        ^^^^^^^^^^^^^^\n\
         help: it changes how files are read, not what is sent\n",
    );
}

#[test]
fn an_unread_value_is_noted_unless_its_effect_is_always_in_force() {
    for (text, noted) in [
        ("lock_file /l; events {}", true),
        ("debug_points abort; events {}", true),
        ("timer_resolution 100ms; events {}", true),
        ("events { accept_mutex_delay 1s; }", true),
        ("events { accept_mutex on; }", true),
        ("events { accept_mutex off; }", false),
        ("events { multi_accept on; }", false),
        ("events {} http { keepalive_min_timeout 1s; }", true),
        ("events {} http { aio_write on; }", true),
        ("events {} http { client_body_in_single_buffer on; }", false),
        ("events {} http { tcp_nopush on; }", false),
        ("events {} http { sendfile_max_chunk 1m; }", false),
        ("events {} http { sendfile on; }", false),
        ("events {} http { early_hints 1; }", false),
        ("events {} http { proxy_bind 10.0.0.1; }", false),
        ("events {} http { memcached_socket_keepalive on; }", false),
        ("events {} http { proxy_protocol off; }", false),
        (
            "events {} http { upstream a { server 127.0.0.1; queue 1; } }",
            false,
        ),
        // What the server does not have yet.
        ("events {} http { server { status_zone s; } }", false),
        (
            "events {} http { upstream a { server 127.0.0.1; keepalive 1 local; } }",
            false,
        ),
    ] {
        let said = said(text);
        assert_eq!(said.len(), usize::from(noted), "{text}: {said:?}");
        for remark in said {
            assert_eq!(remark.level, LogLevel::Notice, "{text}");
            assert!(remark.message.ends_with("has no effect"), "{text}");
            assert!(remark.help.is_some(), "{text}");
        }
    }
}

#[test]
fn an_unknown_variable_is_found_wherever_it_stands() {
    check(
        "events {}\nhttp { server { return 200 $urii; } }",
        "nginx: [emerg] unknown \"urii\" variable in /etc/nginx/nginx.conf:2\n\
         \x20 2 | http { server { return 200 $urii; } }\n\
         \x20   |                            ^^^^^\n\
         help: did you mean \"$uri\"?\n",
    );
}

#[test]
fn lexical_errors_have_nginx_messages_and_lines() {
    let long = "a".repeat(5000);
    let cases: &[(&str, &str)] = &[
        ("events {} ;", "[emerg] unexpected \";\" in FILE:1"),
        (
            "events {",
            "[emerg] unexpected end of file, expecting \"}\" in FILE:1",
        ),
        ("events {}\n}", "[emerg] unexpected \"}\" in FILE:2"),
        ("{", "[emerg] unexpected \"{\" in FILE:1"),
        (
            "events { use epoll }",
            "[emerg] unexpected \"}\": directive \"use\" is not terminated by \";\" in FILE:1",
        ),
        ("user \"a\"b;", "[emerg] unexpected \"b\" in FILE:1"),
        (
            "user",
            "[emerg] unexpected end of file: directive \"user\" is not terminated by \";\" in FILE:1",
        ),
        (
            "\n\nuser 'a\n",
            "[emerg] unexpected end of file, expecting \";\" or \"}\" in FILE:4",
        ),
        (
            "user 'x\ny\nz' b c;",
            "[emerg] invalid number of arguments in \"user\" directive in FILE:3",
        ),
        (
            "events on;",
            "[emerg] directive \"events\" has no opening \"{\" in FILE:1",
        ),
        (
            "pid a { }",
            "[emerg] directive \"pid\" is not terminated by \";\" in FILE:1",
        ),
        ("", "[emerg] no \"events\" section in configuration"),
    ];
    for (text, expected) in cases {
        check_line(text, expected);
    }
    check_line(
        &long,
        "[emerg] too long parameter \"aaaaaaaaaa...\" started in FILE:1",
    );
    check_line(
        &format!("'{long}"),
        "[emerg] too long parameter, probably missing terminating \"'\" character in FILE:1",
    );
}

#[test]
fn errors_of_values_have_nginx_messages() {
    let cases: &[(&str, &str)] = &[
        (
            "sendfile on; sendfile off;",
            "\"sendfile\" directive is duplicate",
        ),
        (
            "client_header_timeout 1x;",
            "\"client_header_timeout\" directive invalid value",
        ),
        (
            "keepalive_requests x;",
            "\"keepalive_requests\" directive invalid number",
        ),
        ("gzip_comp_level 10;", "value must be between 1 and 9"),
        (
            "error_page 200 /x;",
            "value \"200\" must be between 300 and 599",
        ),
        ("access_log off x;", "invalid parameter \"x\""),
        ("access_log /a nosuch;", "unknown log format \"nosuch\""),
        (
            "access_log /a combined flush=1s;",
            "no buffer is defined for access_log \"/a\"",
        ),
        (
            "log_format a '$uri'; log_format a '';",
            "duplicate \"log_format\" name \"a\"",
        ),
        ("map $uri $x { a 1; a 2; }", "conflicting parameter \"a\""),
        ("map $uri $uri { a 1; }", "the duplicate \"uri\" variable"),
        (
            "map $uri $x { a b c; }",
            "invalid number of the map parameters",
        ),
        ("types { a { } }", "unexpected \"{\""),
        (
            "open_file_cache inactive=1s;",
            "\"open_file_cache\" must have the \"max\" parameter",
        ),
        ("allow 1.2.3.4/33;", "invalid parameter \"1.2.3.4/33\""),
        (
            "server { listen 1; listen 1; }",
            "a duplicate listen 0.0.0.0:1",
        ),
        (
            "server { listen 1 bind; } server { listen 1 bind; }",
            "duplicate listen options for 0.0.0.0:1",
        ),
        (
            "server { listen 1 default_server; } server { listen 1 default_server; }",
            "a duplicate default server for 0.0.0.0:1",
        ),
        (
            "server { listen 99999; }",
            "invalid port in \"99999\" of the \"listen\" directive",
        ),
        (
            "server { listen [zz]:80; }",
            "invalid IPv6 address in \"[zz]:80\" of the \"listen\" directive",
        ),
        (
            "server { server_name ~(; }",
            "pcre2_compile() failed: missing closing parenthesis in \"(\"",
        ),
        (
            "server { location /a {} location /a {} }",
            "duplicate location \"/a\"",
        ),
        (
            "server { location = /a { location /a/b {} } }",
            "location \"/a/b\" cannot be inside the exact location \"/a\"",
        ),
        (
            "server { location /a { location /b {} } }",
            "location \"/b\" is outside location \"/a\"",
        ),
        (
            "server { if ($uri x y) {} }",
            "unexpected \"x\" in condition",
        ),
        ("server { set a b; }", "invalid variable name \"a\""),
        (
            "server { set $http_host b; }",
            "the duplicate \"http_host\" variable",
        ),
        (
            "server { set $x '${nope'; }",
            "the closing bracket in \"nope\" variable is missing",
        ),
        ("server { rewrite a ''; }", "empty replacement"),
        ("server { return 1000; }", "invalid return code \"1000\""),
        (
            "server { location @n { alias /x; } }",
            "the \"alias\" directive cannot be used inside the named location",
        ),
        (
            "server { location /a { alias /x; root /y; } }",
            "\"root\" directive is duplicate, \"alias\" directive was specified earlier",
        ),
        (
            "include nosuch;",
            "open() \"/etc/nginx/nosuch\" failed (2: No such file or directory)",
        ),
    ];
    for (text, expected) in cases {
        let text = format!("events {{}}\nhttp {{ {text} }}");
        check_line(&text, &format!("[emerg] {expected} in FILE:2"));
    }
}

#[test]
fn the_text_of_the_command_line_has_a_place_of_its_own() {
    let source = Memory::new().with(PATH, "events {}");
    let check = |globals: &str, expected: &str| {
        let options = Options {
            globals: globals.into(),
            ..Options::default()
        };
        let failure = load(&source, &options).unwrap_err();
        assert_eq!(failure.error.line(), expected, "{globals}");
    };
    check(
        "daemon",
        "[emerg] unexpected end of parameter, expecting \";\" in command line",
    );
    check(
        "deamon off;",
        "[emerg] unknown directive \"deamon\" in command line",
    );
    check(
        "events {}",
        "[emerg] block directives are not supported in -g option in command line",
    );
    let options = Options {
        globals: b"daemon off; pid /x;".to_vec(),
        ..Options::default()
    };
    let loaded = load(&source, &options).unwrap();
    assert!(!loaded.config.main.daemon);
    assert_eq!(loaded.config.main.pid, "/x");
}

#[test]
fn two_servers_of_one_name_get_a_warning() {
    let text =
        "events {}\nhttp { server { listen 80; server_name a; }\nserver { server_name A; } }";
    let lines: Vec<String> = said(text).iter().map(Diagnostic::line).collect();
    assert_eq!(
        lines,
        ["[warn] conflicting server name \"a\" on 0.0.0.0:80, ignored in /etc/nginx/nginx.conf:3"]
    );
}

#[test]
fn user_without_privileges_gets_a_warning() {
    let source = Memory::new().with(PATH, "user a;\nevents {}");
    let options = Options {
        is_privileged: false,
        ..Options::default()
    };
    let loaded = load(&source, &options).unwrap();
    assert_eq!(
        loaded.remarks[0].line(),
        "[warn] the \"user\" directive makes sense only if the master process runs with \
         super-user privileges, ignored in /etc/nginx/nginx.conf:1"
    );
    assert_eq!(loaded.config.main.user, None);
}

#[test]
fn a_cycle_of_includes_ends_with_an_error() {
    let source = Memory::new()
        .with(PATH, "include a;")
        .with("/etc/nginx/a", "\ninclude a;");
    let failure = load(&source, &Options::default()).unwrap_err();
    assert_eq!(
        failure.error.line(),
        "[emerg] more than 64 files include each other in /etc/nginx/a:2"
    );
}

#[test]
fn modules_of_nginx_are_noted_and_others_refused() {
    let check = |path: &str, file: &str, expected: &str, help: &str| {
        let text = format!("load_module {path}; events {{}}");
        let source = Memory::new().with(PATH, text).with(file, "ELF");
        let said = match load(&source, &Options::default()) {
            Ok(loaded) => loaded.remarks,
            Err(failure) => vec![failure.error],
        };
        let [said] = said.as_slice() else {
            panic!("{said:?}");
        };
        assert_eq!(said.line().replace(PATH, "FILE"), expected, "{path}");
        let given = said.help.as_deref().unwrap();
        assert!(given.contains(help), "{path}: {given}");
    };
    let image = "modules/ngx_http_image_filter_module.so";
    check(
        image,
        "/usr/share/nginx/modules/ngx_http_image_filter_module.so",
        "[notice] module \"ngx_http_image_filter_module\" is not loaded in FILE:1",
        "none of its directives is here yet",
    );
    check(
        image,
        "/nothing",
        "[warn] module \"ngx_http_image_filter_module\" is not loaded, and there is no file \
         \"/usr/share/nginx/modules/ngx_http_image_filter_module.so\" in FILE:1",
        "none of its directives is here yet",
    );
    check(
        "/m/ngx_http_fancyindex_module.so",
        "/m/ngx_http_fancyindex_module.so",
        "[notice] module \"ngx_http_fancyindex_module\" is not loaded in FILE:1",
        "\"autoindex\" is here instead",
    );
    check(
        "/m/evil.so",
        "/m/evil.so",
        "[emerg] module \"/m/evil.so\" is unknown to Millstream in FILE:1",
        "modules are not loaded",
    );
    check(
        "modules/evil.so",
        "/nothing",
        "[emerg] module \"modules/evil.so\" is unknown to Millstream, and there is no file \
         \"/usr/share/nginx/modules/evil.so\" in FILE:1",
        "modules are not loaded",
    );
}

#[test]
fn logs_to_other_places_than_files_are_refused_with_a_way_out() {
    check(
        "events {}\nerror_log memory:32m debug;",
        "nginx: [emerg] log target \"memory:32m\" is known to nginx, but not to Millstream yet in \
         /etc/nginx/nginx.conf:2\n\
         \x20 2 | error_log memory:32m debug;\n\
         \x20   |           ^^^^^^^^^^\n\
         help: write to a file or to stderr\n",
    );
    check(
        "events {}\nhttp { access_log syslog:server=unix:/dev/log combined; }",
        "nginx: [emerg] log target \"syslog:server=unix:/dev/log\" is known to nginx, but not to \
         Millstream yet in /etc/nginx/nginx.conf:2\n\
         \x20 2 | http { access_log syslog:server=unix:/dev/log combined; }\n\
         \x20   |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^\n\
         help: write to a file or to stderr\n",
    );
    check(
        "events {}\nhttp { access_log /var/log/a combined gzip=4; }",
        "nginx: [emerg] compressed logs are known to nginx, but not to Millstream yet in \
         /etc/nginx/nginx.conf:2\n\
         \x20 2 | http { access_log /var/log/a combined gzip=4; }\n\
         \x20   |                                       ^^^^^^\n\
         help: remove the parameter; \"buffer=\" keeps writes few, logrotate compresses old logs\n",
    );
}

#[test]
fn content_that_would_have_to_be_recoded_is_refused() {
    let refusal = "nginx: [emerg] no \"charset_map\" between the charsets \"koi8-r\" and \"utf-8\"\n\
         help: \"charset_map\" is known to nginx, but not to Millstream yet: content is sent as it is\n";
    let with = |directives: &str| format!("events {{}} http {{ {directives} }}");
    let source = "source_charset koi8-r; charset utf-8;";
    check(&with(&format!("{source} server {{ }}")), refusal);
    check(
        &with(&format!("server {{ location /a {{ {source} }} }}")),
        refusal,
    );
    check(
        &with("source_charset koi8-r; server { location /a { location /a/b { charset utf-8; } } }"),
        refusal,
    );
    check(
        &with(&format!(
            "server {{ location @a {{ if ($uri) {{ {source} }} }} }}"
        )),
        refusal,
    );
    check(
        &with(
            "charset utf-8; server { charset off; location / { limit_except GET { deny all; } \
             source_charset koi8-r; charset utf-8; } }",
        ),
        refusal,
    );
    let accepted = |directives: &str| assert_eq!(said(&with(directives)), [], "{directives}");
    accepted(source);
    accepted("source_charset koi8-r; charset KOI8-R; server { }");
    accepted("source_charset koi8-r; charset $arg_c; server { }");
    accepted("source_charset koi8-r; server { charset off; }");
}

#[test]
fn a_character_set_is_a_name_or_one_variable() {
    let with = |directives: &str| format!("events {{}} http {{ {directives} server {{ }} }}");
    check_line(
        &with("charset $;"),
        "[emerg] invalid variable name \"$\" in FILE:1",
    );
    check_line(
        &with("charset ${arg_a};"),
        "[emerg] unknown \"{arg_a}\" variable in FILE:1",
    );
    check_line(
        &with("charset a; charset b;"),
        "[emerg] \"charset\" directive is duplicate in FILE:1",
    );
    check_line(
        &with("charset_map a b { 80 80; }"),
        "[emerg] directive \"charset_map\" is known to nginx, but not to Millstream yet in FILE:1",
    );
}
