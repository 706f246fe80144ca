//! What requests are passed to, and by which location.

use std::sync::Arc;

use mill_config::Text;
use mill_config::config::settings::ProxyRedirect;
use mill_config::config::{Instruction, Location, PassProtocol, PassTarget};

use crate::proxy::{PATH, addresses, config, group, http, located, location, pass, refused};

#[test]
fn a_target_has_an_address_and_perhaps_a_uri() {
    struct Expected {
        address: &'static str,
        uri: Option<&'static str>,
        host: &'static str,
        port: &'static str,
    }
    let check = |target: &str, expected: Expected| {
        let location = located(&format!("proxy_pass {target};"));
        let pass = pass(&location);
        assert_eq!(pass.protocol, PassProtocol::Http);
        assert_eq!(pass.text, target);
        assert_eq!(addresses(group(pass)), [expected.address], "{target}");
        assert_eq!(pass.tls, target.starts_with("https"), "{target}");
        assert_eq!(pass.uri, expected.uri.map(Text::from), "{target}");
        let replaced = usize::from(expected.uri.is_some());
        assert_eq!(pass.replaced, replaced, "{target}");
        assert_eq!(pass.host, expected.host, "{target}");
        assert_eq!(pass.port, expected.port, "{target}");
    };
    let expect = |address, uri, host, port| Expected {
        address,
        uri,
        host,
        port,
    };
    check(
        "http://127.0.0.1",
        expect("127.0.0.1:80", None, "127.0.0.1", "80"),
    );
    check(
        "HTTP://127.0.0.1:80/",
        expect("127.0.0.1:80", Some("/"), "127.0.0.1", "80"),
    );
    check(
        "http://localhost:8080/a/b?c",
        expect("127.0.0.1:8080", Some("/a/b?c"), "localhost:8080", "8080"),
    );
    check(
        "http://localhost?c",
        expect("127.0.0.1:80", Some("?c"), "localhost", "80"),
    );
    check(
        "https://127.0.0.1/a",
        expect("127.0.0.1:443", Some("/a"), "127.0.0.1", "443"),
    );
    check(
        "https://127.0.0.1:80",
        expect("127.0.0.1:80", None, "127.0.0.1:80", "80"),
    );
    check(
        "http://[::1]:81",
        expect("[::1]:81", None, "[::1]:81", "81"),
    );
    check(
        "http://unix:/a.sock",
        expect("unix:/a.sock", None, "localhost", ""),
    );
    check(
        "http://unix:/a.sock:/b",
        expect("unix:/a.sock", Some("/b"), "localhost", ""),
    );
}

#[test]
fn groups_without_a_block_follow_those_with_one() {
    let config = config(
        "server { location /a { proxy_pass http://b; } location /b { proxy_pass http://localhost; } \
         location /c { proxy_pass http://LOCALHOST:80; } location /d { proxy_pass http://localhost:81; } } \
         upstream b { server 127.0.0.1:82; } upstream c { server 127.0.0.1:83; }",
    );
    let names: Vec<(String, u16, bool)> = http(&config)
        .upstreams
        .iter()
        .enumerate()
        .map(|(index, group)| {
            assert_eq!(group.index, index);
            (
                group.name.display().into_owned(),
                group.port,
                group.explicit,
            )
        })
        .collect();
    let name = |name: &str, port, explicit| (String::from(name), port, explicit);
    assert_eq!(
        names,
        [
            name("b", 0, true),
            name("c", 0, true),
            name("localhost", 80, false),
            name("localhost", 81, false),
        ]
    );
    for (path, index) in [("/a", 0), ("/b", 2), ("/c", 2), ("/d", 3)] {
        let location = location(&config, path);
        assert_eq!(group(pass(&location)).index, index, "{path}");
    }
    let http = http(&config);
    let find = |host: &str, port| {
        http.upstream(host.as_bytes(), port, 80)
            .map(|group| group.index)
    };
    assert_eq!(find("B", None), Some(0));
    assert_eq!(find("b", Some(80)), None, "a block has no port");
    assert_eq!(find("localhost", None), Some(2));
    assert_eq!(find("localhost", Some(80)), Some(2));
    assert_eq!(find("localhost", Some(81)), Some(3));
    assert_eq!(find("localhost", Some(82)), None);
}

#[test]
fn a_target_with_variables_is_evaluated_later() {
    let location = located("proxy_pass http://$host:81$uri;");
    let pass = pass(&location);
    let PassTarget::Evaluated(template) = &pass.target else {
        panic!("{pass:?}");
    };
    assert_eq!(template.parts().len(), 4);
    assert_eq!((&pass.uri, &pass.host), (&None, &Text::default()));
    assert!(matches!(
        location.proxy_http.redirect,
        ProxyRedirect::Default
    ));
}

#[test]
fn conditions_pass_on_as_their_location_but_nested_locations_do_not() {
    let config = config(
        "server { location /a/ { proxy_pass http://127.0.0.1/b/; if ($arg_x) { gzip on; } \
         if ($arg_y) { proxy_pass http://127.0.0.1:81; } limit_except GET { deny all; } location /a/c { } location /a/s { stub_status; } } \
         location /m { stub_status; if ($arg_x) { proxy_pass http://127.0.0.1; } if ($arg_y) { gzip on; } } }",
    );
    let outer = location(&config, "/a/");
    let inner: Vec<&Arc<Location>> = outer
        .instructions
        .iter()
        .map(|instruction| match instruction {
            Instruction::If {
                location: Some(location),
                ..
            } => location,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(Arc::ptr_eq(pass(inner[0]), pass(&outer)));
    assert_eq!(pass(&outer).replaced, 3);
    assert_eq!(addresses(group(pass(inner[1]))), ["127.0.0.1:81"]);
    let limit = outer.limit_except.as_ref().expect("it is written");
    assert!(Arc::ptr_eq(pass(&limit.location), pass(&outer)));
    assert!(location(&config, "/a/c").pass.is_none());
    assert!(location(&config, "/a/s").pass.is_none());
    let handlers: Vec<(bool, bool)> = location(&config, "/m")
        .instructions
        .iter()
        .map(|instruction| match instruction {
            Instruction::If {
                location: Some(location),
                ..
            } => (location.pass.is_some(), location.stub_status),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(handlers, [(true, false), (false, true)]);
}

#[test]
fn the_last_handler_of_a_location_counts() {
    assert!(
        located("stub_status; proxy_pass http://127.0.0.1;")
            .pass
            .is_some()
    );
    assert!(!located("stub_status; proxy_pass http://127.0.0.1;").stub_status);
    assert!(
        located("proxy_pass http://127.0.0.1; stub_status;")
            .pass
            .is_none()
    );
}

#[test]
fn a_location_that_passes_on_takes_the_path_without_its_slash() {
    let config = config(
        "server { location / { } location /a/ { proxy_pass http://127.0.0.1; } location /b/ { } \
         location /c { } location /c/ { proxy_pass http://127.0.0.1; } \
         location = /d/ { proxy_pass http://127.0.0.1; } location ~ ^/a$ { } \
         location /e/ { location /e/f/ { proxy_pass http://127.0.0.1; } } \
         location /a! { } }",
    );
    let check = |path: &str, name: &str, wants_slash: bool| {
        let found = location(&config, path);
        let shown = String::from_utf8_lossy(found.name.text()).into_owned();
        assert_eq!(
            (shown.as_str(), found.wants_slash(path.as_bytes())),
            (name, wants_slash),
            "{path}"
        );
    };
    check("/a", "/a/", true);
    check("/a/", "/a/", false);
    check("/a/b", "/a/", false);
    check("/b", "/", false);
    check("/c", "/c", false);
    check("/d", "/d/", true);
    check("/e/f", "/e/f/", true);
    check("/e/g", "/e/", false);
    check("/x", "/", false);
}

#[test]
fn faults_in_a_target_are_told_in_the_words_of_nginx() {
    let check = |locations: &str, expected: &str| {
        let line = refused(&format!("server {{ {locations} }}"));
        assert_eq!(
            line,
            format!("[emerg] {expected} in {PATH}:1"),
            "{locations}"
        );
    };
    let one = |directives: &str, expected: &str| {
        check(&format!("location / {{ {directives} }}"), expected);
    };
    one("proxy_pass 127.0.0.1;", "invalid URL prefix");
    one("proxy_pass http://;", "no host in upstream \"\"");
    one(
        "proxy_pass http://a:0/b;",
        "invalid port in upstream \"a:0/b\"",
    );
    one(
        "proxy_pass http://nosuch.invalid/a;",
        "host not found in upstream \"nosuch.invalid\"",
    );
    one(
        "proxy_pass http://127.0.0.1; proxy_pass http://127.0.0.1;",
        "\"proxy_pass\" directive is duplicate",
    );
    let no_uri = "\"proxy_pass\" cannot have URI part in location given by regular expression, or inside named location, \
                  or inside \"if\" statement, or inside \"limit_except\" block";
    check("location ~ a { proxy_pass http://127.0.0.1/; }", no_uri);
    check("location @a { proxy_pass http://127.0.0.1/; }", no_uri);
    one("if ($arg_a) { proxy_pass http://127.0.0.1/; }", no_uri);
    one("limit_except GET { proxy_pass http://127.0.0.1/; }", no_uri);
    check(
        "proxy_pass http://127.0.0.1;",
        "\"proxy_pass\" directive is not allowed here",
    );
    let with_port = format!("[emerg] upstream \"a\" may not have port 80 in {PATH}:1");
    let block = "upstream a { server 127.0.0.1; }";
    let server = "server { location / { proxy_pass http://a:80; } }";
    assert_eq!(refused(&format!("{block} {server}")), with_port);
    assert_eq!(refused(&format!("{server} {block}")), with_port);
}
