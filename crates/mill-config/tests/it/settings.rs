//! Inheritance, templates, rewriting, logs: the meaning of a configuration once it is merged.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use mill_config::config::access::is_allowed;
use mill_config::config::settings::{Charset, Document, ErrorPageStatus};
use mill_config::config::{
    Condition, Config, Expires, Http, Instruction, ListenAddress, Location, LogEscape, LogPath,
    Part, RewriteFlag, SocketKeepalive, Template, TryFallback, Variable,
};
use mill_config::{Bundle, Memory, Options, Recording, Text, load};

const PATH: &str = "/etc/nginx/nginx.conf";

fn config(http: &str) -> Config {
    let text = format!("events {{}}\nhttp {{ {http} }}");
    let source = Memory::new()
        .with(PATH, text)
        .with("/etc/nginx/sub/extra.conf", "etag off;");
    match load(&source, &Options::default()) {
        Ok(loaded) => loaded.config,
        Err(failure) => panic!("{}", failure.error.render("nginx")),
    }
}

fn http(config: &Config) -> &Http {
    config
        .http
        .as_ref()
        .expect("the configuration has an http block")
}

fn location(config: &Config, path: &str) -> Arc<Location> {
    let server = &http(config).servers[0];
    server
        .locations
        .find(path.as_bytes(), &mut Vec::new())
        .unwrap_or(&server.location)
        .clone()
}

#[test]
fn an_inner_value_replaces_an_outer_one_wherever_it_stands() {
    let config = config(
        "server { location /a { sendfile off; location /a/b { etag off; } } location /c { } \
         keepalive_timeout 5; } sendfile on; keepalive_timeout 10s 20s;",
    );
    assert!(!location(&config, "/a").files.sendfile);
    assert!(!location(&config, "/a/b").files.sendfile);
    assert!(!location(&config, "/a/b").headers.etag);
    assert!(location(&config, "/a").headers.etag);
    assert!(location(&config, "/c").files.sendfile);
    assert_eq!(
        location(&config, "/c").connection.keepalive_timeout,
        Duration::from_secs(5)
    );
    assert_eq!(
        location(&config, "/c").connection.keepalive_header,
        Some(Duration::from_secs(20))
    );
}

#[test]
fn lists_are_replaced_as_a_whole() {
    let config = config(
        "add_header A 1; add_header B 2; error_page 404 /a; error_page 500 502 /b; \
         access_log /var/a; access_log /var/b; allow 10.0.0.0/8; deny all; index a b; \
         server { location /same { } location /own { add_header C 3; error_page 403 /c; \
         access_log off; allow all; index c; } }",
    );
    let same = location(&config, "/same");
    assert_eq!(
        (same.headers.added.len(), same.error_page.pages.len()),
        (2, 3)
    );
    assert_eq!(
        (same.log.access_logs.len(), same.access.rules.len()),
        (2, 2)
    );
    assert_eq!(same.files.index.len(), 2);
    let own = location(&config, "/own");
    assert_eq!(
        (own.headers.added.len(), own.error_page.pages.len()),
        (1, 1)
    );
    assert_eq!((own.log.access_logs.len(), own.access.rules.len()), (0, 1));
    assert_eq!(own.files.index.len(), 1);
    let client: Option<IpAddr> = Some("192.0.2.1".parse().unwrap());
    assert!(!is_allowed(&same.access.rules, client));
    assert!(is_allowed(&own.access.rules, client));
}

#[test]
fn an_if_inherits_from_its_location_and_keeps_its_instructions_in_order() {
    let config = config(
        "server { location / { add_header A 1; root /x; set $a 1; \
         if ($arg_q ~* ^(x)) { add_header B 2; set $a 2; break; } return 204; } \
         if (-f $request_filename) { set $b 1; } }",
    );
    let location = location(&config, "/");
    let [
        Instruction::Set { .. },
        Instruction::If {
            condition,
            body,
            location: inner,
        },
        last,
    ] = &*location.instructions
    else {
        panic!("{:?}", location.instructions);
    };
    assert!(matches!(
        condition,
        Condition::Matches { negated: false, .. }
    ));
    assert!(matches!(
        body.as_slice(),
        [Instruction::Set { .. }, Instruction::Break]
    ));
    let inner = inner.as_ref().unwrap();
    assert_eq!(inner.headers.added[0].name, "B");
    assert_eq!(inner.files.document, location.files.document);
    assert!(matches!(
        last,
        Instruction::Return {
            status: 204,
            text: None
        }
    ));
    let server = &http(&config).servers[0];
    assert!(matches!(
        &*server.location.instructions,
        [Instruction::If { location: None, .. }]
    ));
}

#[test]
fn an_if_keeps_the_locations_handler_but_not_its_try_files() {
    for (handler, expected) in [
        ("stub_status", (true, false, false)),
        ("millstream_metrics", (false, true, false)),
        ("millstream_api", (false, false, true)),
    ] {
        let config = config(&format!(
            "server {{ location / {{ {handler}; try_files /a =404; if ($arg_a) {{ gzip on; }} }} }}"
        ));
        let location = location(&config, "/");
        let Instruction::If {
            location: Some(inner),
            ..
        } = &location.instructions[0]
        else {
            panic!("{:?}", location.instructions);
        };
        let handlers = (inner.stub_status, inner.metrics, inner.api.is_some());
        assert_eq!(handlers, expected);
        assert!(inner.try_files.is_none() && inner.gzip.enabled);
    }
}

#[test]
fn defaults_are_those_of_nginx() {
    let config = config("server { }");
    let location = location(&config, "/");
    assert_eq!(
        location.files.document,
        Document::Root(Template::literal("/usr/share/nginx/html"))
    );
    assert_eq!(location.files.index[0], Template::literal("index.html"));
    assert_eq!(location.mime.types.find(b"html").unwrap(), &"text/html");
    assert_eq!(location.mime.default_type, "text/plain");
    assert_eq!(location.client_body.max_size, 1 << 20);
    assert!(matches!(&location.log.access_logs[0].path,
        LogPath::File(path) if *path == "/var/log/nginx/access.log"));
    let listener = &http(&config).listeners[0];
    assert_eq!(
        listener.address,
        ListenAddress::Inet("0.0.0.0:80".parse().unwrap())
    );
    assert_eq!(listener.options.backlog, 511);
}

#[test]
fn paths_are_joined_and_root_loses_its_slash() {
    let check = |directives: &str, expected: &Document| {
        let text = format!("server {{ location /i/ {{ {directives} }} }}");
        assert_eq!(
            &location(&config(&text), "/i/x").files.document,
            expected,
            "{directives}"
        );
    };
    check("root /a/;", &Document::Root(Template::literal("/a")));
    check("root /;", &Document::Root(Template::default()));
    check(
        "root a;",
        &Document::Root(Template::literal("/usr/share/nginx/a")),
    );
    let path = Template::literal("/a/");
    check(
        "alias /a/;",
        &Document::Alias {
            path,
            location_len: 3,
        },
    );
    let parts = [
        Part::Variable(Variable::Host),
        Part::Literal(Text::from("/x")),
    ];
    check(
        "root $host/x;",
        &Document::Root(Template::from_parts(parts)),
    );
}

#[test]
fn rewrites_know_their_arguments_and_redirects() {
    let check = |words: &str, flag: RewriteFlag, path: &str, args: Option<&str>, keep: bool| {
        let config = config(&format!("server {{ rewrite ^/(.*) {words}; }}"));
        let instructions = &http(&config).servers[0].location.instructions;
        let Instruction::Rewrite {
            replacement,
            args: got,
            keep_args,
            flag: got_flag,
            ..
        } = &instructions[0]
        else {
            panic!("{instructions:?}");
        };
        assert_eq!(replacement.as_literal(), Some(path.as_bytes()), "{words}");
        let got = got.as_ref().map(|args| args.as_literal().unwrap().to_vec());
        assert_eq!(got, args.map(|args| args.as_bytes().to_vec()), "{words}");
        assert_eq!((*got_flag, *keep_args), (flag, keep), "{words}");
    };
    check("/x", RewriteFlag::Continue, "/x", None, true);
    check("/x last", RewriteFlag::Last, "/x", None, true);
    check("/x? break", RewriteFlag::Break, "/x", None, false);
    check("/x?a=b", RewriteFlag::Continue, "/x", Some("a=b"), true);
    check(
        "/x?a=b? redirect",
        RewriteFlag::Redirect,
        "/x",
        Some("a=b"),
        false,
    );
    check(
        "http://a/ last",
        RewriteFlag::Redirect,
        "http://a/",
        None,
        true,
    );
    check(
        "https://a/ permanent",
        RewriteFlag::Permanent,
        "https://a/",
        None,
        true,
    );
}

#[test]
fn templates_are_parts() {
    let config = config("server { location ~ ^/(?<name>.+)$ { return 200 \"a${uri}b$1$name\"; } }");
    let location = location(&config, "/x");
    let Instruction::Return {
        status: 200,
        text: Some(text),
    } = &location.instructions[0]
    else {
        panic!("{:?}", location.instructions);
    };
    let expected = [
        Part::Literal(Text::from("a")),
        Part::Variable(Variable::Uri),
        Part::Literal(Text::from("b")),
        Part::Capture(1),
        Part::Variable(Variable::User(0)),
    ];
    assert_eq!(text.parts(), expected);
    assert_eq!(http(&config).user_variables[0].name, "name");
}

#[test]
fn a_map_may_stand_behind_its_use_and_take_an_open_name() {
    let config = config(
        "log_format l $http_x; server { return 200 $y; } map $uri $y { /a 1; default $host; } \
         map $uri $http_x { default 2; }",
    );
    let variables = &http(&config).user_variables;
    let names: Vec<_> = variables
        .iter()
        .map(|variable| variable.name.display())
        .collect();
    assert_eq!(names, ["http_x", "y"]);
    assert_eq!(variables[0].map, Some(1));
    let format = &http(&config).log_formats[1];
    assert_eq!(format.template.parts(), [Part::Variable(Variable::User(0))]);
}

#[test]
fn maps_find_exact_values_then_wildcards_then_expressions() {
    let config = config(
        "map $host $x { hostnames; default d; a.org 1; *.a.org 2; .b.org 3; c.* 4; ~^d(.) r$1; \
         *.sub.a.org 5; \\hostnames 6; }",
    );
    let map = &http(&config).maps[0];
    let check = |value: &str, expected: &str| {
        let found = map.find(value.as_bytes(), &mut Vec::new()).unwrap();
        let shown = format!("{:?}", found.0);
        assert!(
            shown.contains(&format!("\"{expected}\"")),
            "{value}: {shown}"
        );
    };
    check("A.org", "1");
    check("x.a.org", "2");
    check("x.sub.a.org", "5");
    check("b.org", "3");
    check("x.b.org.", "3");
    check("c.net", "4");
    check("c.co.uk", "4");
    check("de", "r");
    check("hostnames", "6");
    check("nothing", "d");
}

#[test]
fn logs_know_format_buffer_and_condition() {
    let config = config(
        "log_format j escape=json '{\"u\":\"$uri\"}' ; \
         access_log /var/log/x j buffer=32k flush=5s if=$arg_log; \
         server { location /v { access_log /var/log/$host.log; } }",
    );
    let format = &http(&config).log_formats[1];
    assert_eq!(
        (format.escape, format.name.display()),
        (LogEscape::Json, "j".into())
    );
    let log = &location(&config, "/").log.access_logs[0];
    assert_eq!(log.format, 1);
    let buffer = log.buffer.unwrap();
    assert_eq!(
        (buffer.size_bytes, buffer.flush),
        (32 << 10, Some(Duration::from_secs(5)))
    );
    assert!(log.condition.is_some());
    let path = &location(&config, "/v").log.access_logs[0].path;
    assert!(matches!(path, LogPath::Evaluated(_)), "{path:?}");
}

#[test]
fn error_pages_know_status_target_and_arguments() {
    let config = config(
        "server { error_page 404 /x?a=b; error_page 500 = @f; error_page 403 =200 $uri; \
         error_page 497 /y; }",
    );
    let pages = &location(&config, "/").error_page.pages;
    let answers: Vec<_> = pages
        .iter()
        .map(|page| (page.status, page.answer))
        .collect();
    assert_eq!(
        answers,
        [
            (404, ErrorPageStatus::Keep),
            (500, ErrorPageStatus::OfTarget),
            (403, ErrorPageStatus::Set(200)),
            (497, ErrorPageStatus::Set(400)),
        ]
    );
    assert_eq!(pages[0].target, Template::literal("/x"));
    assert_eq!(pages[0].args, Some(Text::from("a=b")));
}

#[test]
fn expires_takes_every_form() {
    let check = |text: &str, modified: bool, expected: &str| {
        let parsed = Expires::parse(text.as_bytes(), modified);
        assert_eq!(format!("{parsed:?}"), expected, "{text}");
    };
    check("off", false, "Some(Off)");
    check("epoch", false, "Some(Epoch)");
    check("max", false, "Some(Max)");
    check("24h", false, "Some(Access(86400))");
    check("-1", false, "Some(Access(-1))");
    check("+1m", true, "Some(Modified(60))");
    check("@15h30m", false, "Some(Daily(55800))");
    check("@25h", false, "None");
    check("@1h", true, "None");
    check("x", false, "None");
}

#[test]
fn limit_except_has_settings_for_the_other_methods() {
    let config = config("server { location / { limit_except GET POST { deny all; } } }");
    let location = location(&config, "/");
    let limit = location.limit_except.as_ref().unwrap();
    for (method, expected) in [
        ("GET", true),
        ("HEAD", true),
        ("POST", true),
        ("PUT", false),
    ] {
        assert_eq!(
            limit.methods.contains(method.as_bytes()),
            expected,
            "{method}"
        );
    }
    assert!(!limit.methods.contains(b"get") && !limit.methods.contains(b"BREW"));
    assert_eq!(limit.location.access.rules.len(), 1);
    assert!(location.access.rules.is_empty());
}

#[test]
fn listen_takes_its_forms_and_options() {
    let check = |text: &str, expected: &str| {
        let config = config(&format!("server {{ listen {text}; }}"));
        assert_eq!(
            http(&config).listeners[0].address.to_string(),
            expected,
            "{text}"
        );
    };
    check("80", "0.0.0.0:80");
    check("*:81", "0.0.0.0:81");
    check("127.0.0.1", "127.0.0.1:80");
    check("127.0.0.1:8080", "127.0.0.1:8080");
    check("localhost:8080", "127.0.0.1:8080");
    check("[::]:80", "[::]:80");
    check("[::1]", "[::1]:80");
    check("unix:/run/x.sock", "unix:/run/x.sock");
    let config = config(
        "server { listen 80 so_keepalive=30m::10 ipv6only=off rcvbuf=8k sndbuf=16k backlog=9; }",
    );
    let options = &http(&config).listeners[0].options;
    let SocketKeepalive::On(probes) = options.so_keepalive else {
        panic!("{options:?}")
    };
    assert_eq!(
        (probes.idle, probes.interval),
        (Some(Duration::from_secs(1800)), None)
    );
    assert_eq!(probes.count, Some(10));
    assert_eq!(
        (options.receive_buffer_bytes, options.backlog),
        (Some(8192), 9)
    );
    assert!(!options.ipv6only && options.bind);
}

#[test]
fn an_address_without_options_hides_behind_the_wildcard_of_its_port() {
    let config = config(
        "server { listen 80; server_name w; } server { listen 127.0.0.1:80; server_name a; } \
         server { listen 127.0.0.2:80 bind; server_name b; } server { listen 127.0.0.1:81; }",
    );
    let listeners = &http(&config).listeners;
    let addresses: Vec<_> = listeners
        .iter()
        .map(|one| one.address.to_string())
        .collect();
    assert_eq!(addresses, ["0.0.0.0:80", "127.0.0.2:80", "127.0.0.1:81"]);
    let name = |local: &str| {
        listeners[0]
            .hosts_for(Some(local.parse().unwrap()))
            .default
            .name
            .display()
            .into_owned()
    };
    assert_eq!(name("127.0.0.1"), "a");
    assert_eq!(name("::ffff:127.0.0.1"), "a");
    assert_eq!(name("192.0.2.1"), "w");
}

#[test]
fn includes_are_relative_to_the_configuration_and_replay_from_a_bundle() {
    let source = Memory::new()
        .with(
            PATH,
            "events {} http { include sub/*.conf; include none/*; }",
        )
        .with("/etc/nginx/sub/b.conf", "server { listen 2; }")
        .with("/etc/nginx/sub/a.conf", "server { listen 1; }");
    let recording = Recording::new(source);
    let first = load(&recording, &Options::default()).unwrap();
    let bundle = Bundle::decode(&recording.into_bundle().encode()).unwrap();
    let paths: Vec<_> = bundle
        .files
        .iter()
        .map(|(path, _)| path.display())
        .collect();
    assert_eq!(
        paths,
        [PATH, "/etc/nginx/sub/a.conf", "/etc/nginx/sub/b.conf"]
    );
    let second = load(&bundle, &Options::default()).unwrap();
    for loaded in [first, second] {
        let listeners = &http(&loaded.config).listeners;
        let addresses: Vec<_> = listeners
            .iter()
            .map(|one| one.address.to_string())
            .collect();
        assert_eq!(addresses, ["0.0.0.0:1", "0.0.0.0:2"]);
    }
}

#[test]
fn try_files_ends_in_a_status_or_a_redirect() {
    let config = config("server { location / { try_files $uri $uri/ @x; } try_files /a =404; }");
    let inner = location(&config, "/");
    assert!(matches!(&inner.try_files.as_ref().unwrap().fallback,
        TryFallback::Redirect(target) if target.as_literal() == Some(b"@x")));
    let outer = http(&config).servers[0]
        .location
        .try_files
        .as_ref()
        .unwrap();
    assert!(matches!(outer.fallback, TryFallback::Status(404)));
}

#[test]
fn character_sets_are_inherited_apart_from_each_other() {
    let config = config(
        "charset utf-8; charset_types text/css TEXT/HTML; source_charset UTF-8; \
         server { location /same { if ($arg_a) { charset off; } } \
         location /own { charset $arg_c; override_charset on; charset_types *; } \
         location /off { charset off; source_charset off; } }",
    );
    let named = |name: &str| Charset::Named(Text::from(name));
    let check = |path: &str, charset: Charset, source: Charset, css: bool, plain: bool| {
        let location = location(&config, path);
        assert_eq!(location.charset.name, charset, "{path}");
        assert_eq!(location.charset.source, source, "{path}");
        assert_eq!(location.charset.types.contains(b"text/css"), css, "{path}");
        assert_eq!(
            location.charset.types.contains(b"text/plain"),
            plain,
            "{path}"
        );
        assert!(location.charset.types.contains(b"text/html"), "{path}");
    };
    let variable = Charset::Evaluated(Variable::Arg(Text::from("c")));
    check("/same", named("utf-8"), named("utf-8"), true, false);
    check("/own", variable, named("utf-8"), true, true);
    check("/off", Charset::Off, named("off"), true, false);
    assert!(location(&config, "/own").charset.overrides);
    assert!(!location(&config, "/off").charset.overrides);
    let [Instruction::If { location, .. }] = &location(&config, "/same").instructions[..] else {
        panic!("one if stands there");
    };
    let inside = location.as_ref().expect("an if in a location has settings");
    assert_eq!(inside.charset.name, Charset::Off);
}

#[test]
fn without_charset_types_the_types_are_those_of_nginx() {
    let config = config("server { }");
    let types = &location(&config, "/").charset.types;
    let check = |kind: &str, expected: bool| {
        assert_eq!(types.contains(kind.as_bytes()), expected, "{kind}");
    };
    check("text/html", true);
    check("Text/Plain", true);
    check("text/xml", true);
    check("text/vnd.wap.wml", true);
    check("application/javascript", true);
    check("application/rss+xml", true);
    check("text/css", false);
    check("application/json", false);
}

#[test]
fn pages_for_old_browsers_have_their_own_switches() {
    let config = config("server { location /a { msie_padding off; msie_refresh on; } }");
    let (root, a) = (location(&config, "/"), location(&config, "/a"));
    assert_eq!(
        (root.error_page.msie_padding, root.error_page.msie_refresh),
        (true, false)
    );
    assert_eq!(
        (a.error_page.msie_padding, a.error_page.msie_refresh),
        (false, true)
    );
}
