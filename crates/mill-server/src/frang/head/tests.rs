//! Heads, and what they break.

use super::*;
use mill_config::Text as Word;
use mill_config::config::frang::FrangMethods;
use mill_http::h1::parse::{Parsed, parse_request};
use mill_http::limits::HeadRules;

const CLEAR: ReachedPort = ReachedPort {
    port: 80,
    is_tls: false,
};

fn parsed(text: &str) -> RequestHead {
    let mut head = RequestHead::default();
    let parsed = parse_request(text.as_bytes(), &mut head, &HeadRules::default());
    assert!(
        matches!(parsed, Parsed::Complete { .. }),
        "{parsed:?} {text}"
    );
    head
}

/// The limit that a request breaks, and the log line.
fn held_to(settings: &FrangSettings, text: &str, reached: ReachedPort, expected: Option<&str>) {
    let head = parsed(text);
    let broken = broken(settings, &head, text.as_bytes(), reached);
    let told = broken.map(|broken| broken.to_string());
    let expected = expected.map(|expected| format!("limiting client by {expected}"));
    assert_eq!(told, expected, "{text}");
}

fn check(settings: &FrangSettings, text: &str, expected: Option<&str>) {
    held_to(settings, text, CLEAR, expected);
}

#[test]
fn heads_have_so_many_fields_and_these_so_many_bytes() {
    let check = |field_bytes, fields, expected: Option<(FrangLimit, u64)>| {
        let limits = HeadLimits {
            field_bytes,
            fields,
        };
        let broken = limits.broken(&parsed("GET / HTTP/1.1\r\nHost: a\r\nAb: cdef\r\n\r\n"));
        let broken = broken.map(|broken| match broken.how {
            How::Number(count, _) => (broken.limit, count),
            how => panic!("{how:?}"),
        });
        assert_eq!(broken, expected, "{field_bytes} {fields}");
    };
    check(0, 0, None);
    check(8, 2, None);
    check(7, 2, Some((FrangLimit::FieldLen, 8)));
    check(8, 1, Some((FrangLimit::Fields, 2)));
}

#[test]
fn methods_are_those_that_are_named() {
    let settings = FrangSettings {
        methods: Some(FrangMethods {
            named: vec![Word::from(&b"GET"[..])],
            unknown: false,
        }),
        ..FrangSettings::default()
    };
    let line = "\"http_methods\" of frang: method \"POST\"";
    check(&settings, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", None);
    check(&settings, "POST / HTTP/1.1\r\nHost: a\r\n\r\n", Some(line));
    let line = "\"http_methods\" of frang: method \"FROB\"";
    check(&settings, "FROB / HTTP/1.1\r\nHost: a\r\n\r\n", Some(line));
    let settings = FrangSettings {
        methods: Some(FrangMethods {
            named: Vec::new(),
            unknown: true,
        }),
        ..FrangSettings::default()
    };
    check(&settings, "FROB / HTTP/1.1\r\nHost: a\r\n\r\n", None);
    let line = "\"http_methods\" of frang: method \"GET\"";
    check(&settings, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", Some(line));
}

#[test]
fn a_field_in_the_place_of_the_method_is_held_to_the_same_methods() {
    let named = |allows_method_override, names: &[&str]| FrangSettings {
        allows_method_override,
        methods: Some(FrangMethods {
            named: names
                .iter()
                .map(|name| Word::from(name.as_bytes()))
                .collect(),
            unknown: false,
        }),
        ..FrangSettings::default()
    };
    let request = "GET / HTTP/1.1\r\nHost: a\r\nX-Method-Override: delete\r\n\r\n";
    let line = "\"http_method_override_allowed\" of frang: method \"delete\"";
    check(&named(false, &["GET", "DELETE"]), request, Some(line));
    check(&named(true, &["GET"]), request, Some(line));
    check(&named(true, &["GET", "DELETE"]), request, None);
    check(&FrangSettings::default(), request, None);
    let none = FrangSettings {
        allows_method_override: false,
        ..FrangSettings::default()
    };
    for name in ["X-HTTP-Method", "x-http-method-override"] {
        let request = format!("GET / HTTP/1.1\r\nHost: a\r\n{name}: delete\r\n\r\n");
        check(&none, &request, Some(line));
    }
}

#[test]
fn lengths_are_those_of_the_target_and_of_the_content() {
    let settings = FrangSettings {
        uri_bytes: 5,
        content_bytes: 3,
        ..FrangSettings::default()
    };
    check(&settings, "GET /a?bc HTTP/1.1\r\nHost: a\r\n\r\n", None);
    let line = "\"http_uri_len\" of frang: 6, and 5 is the most";
    check(
        &settings,
        "GET /a?bcd HTTP/1.1\r\nHost: a\r\n\r\n",
        Some(line),
    );
    let post = |len| format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {len}\r\n\r\n");
    check(&settings, &post(3), None);
    let line = "\"http_body_len\" of frang: 4, and 3 is the most";
    check(&settings, &post(4), Some(line));
}

#[test]
fn post_has_a_content_type_and_one_of_those_that_are_listed() {
    let required = FrangSettings {
        needs_content_type: true,
        ..FrangSettings::default()
    };
    let listed = FrangSettings {
        content_types: vec![Word::from(&b"text/plain"[..]), Word::from(&b"Image/"[..])],
        ..FrangSettings::default()
    };
    let request =
        |method: &str, field: &str| format!("{method} / HTTP/1.1\r\nHost: a\r\n{field}\r\n");
    let missing = Some("\"http_ct_required\" of frang: there is no Content-Type");
    check(&required, &request("POST", ""), missing);
    check(&required, &request("GET", ""), None);
    check(&required, &request("POST", "Content-Type: x/y\r\n"), None);
    check(&required, &request("POST", "Content-Type:\r\n"), missing);
    check(&listed, &request("POST", ""), missing);
    check(
        &listed,
        &request("POST", "Content-Type: Text/PLAIN; charset=x\r\n"),
        None,
    );
    check(
        &listed,
        &request("POST", "Content-Type: image/png\r\n"),
        None,
    );
    let line = "\"http_ct_vals\" of frang: Content-Type \"text/html\"";
    check(
        &listed,
        &request("POST", "Content-Type: text/html\r\n"),
        Some(line),
    );
    check(
        &listed,
        &request("PUT", "Content-Type: text/html\r\n"),
        None,
    );
}

#[test]
fn what_routes_a_request_is_the_same_wherever_it_is_written() {
    let settings = FrangSettings {
        strict_host: true,
        ..FrangSettings::default()
    };
    let start = "\"http_strict_host_checking\" of frang: ";
    let check_at =
        |target: &str, version: &str, host: Option<&str>, reached, expected: Option<&str>| {
            let field = host.map_or(String::new(), |host| format!("Host: {host}\r\n"));
            let text = format!("GET {target} HTTP/{version}\r\n{field}\r\n");
            let line = expected.map(|expected| format!("{start}{expected}"));
            held_to(&settings, &text, reached, line.as_deref());
        };
    let check = |target: &str, host: &str, expected: Option<&str>| {
        check_at(target, "1.1", Some(host), CLEAR, expected);
    };
    let other_port = Some("the host has another port than the connection");
    check("/", "a.example", None);
    check("/", "a.example:80", None);
    check("/", "a.example:81", other_port);
    check("/", "10.0.0.1", Some("an address as host: \"10.0.0.1\""));
    check("/", "[::1]", Some("an address as host: \"[::1]\""));
    check("/", "10.0.0.1.example", None);
    check("http://a.example/", "A.example.", None);
    check("http://a.example/", "a.example:80", None);
    check("http://a.example:80/", "a.example", None);
    let line = "another Host than that of the target: \"b.example\"";
    check("http://a.example/", "b.example", Some(line));
    let line = "another Host than that of the target: \"a.example:81\"";
    check("http://a.example/", "a.example:81", Some(line));
    let tls = ReachedPort {
        port: 443,
        is_tls: true,
    };
    check_at("/", "1.1", Some("a.example"), tls, None);
    check_at("/", "1.1", Some("a.example:80"), tls, other_port);
    let unix = ReachedPort {
        port: 0,
        is_tls: false,
    };
    check_at("/", "1.1", Some("a.example:81"), unix, None);
    check_at("/", "1.0", None, CLEAR, None);
    let line = "there is a host in a request of HTTP/1.0";
    check_at("/", "1.0", Some("a.example"), CLEAR, Some(line));
}
