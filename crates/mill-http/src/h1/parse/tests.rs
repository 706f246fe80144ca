//! Request heads: tables, splits, limits, mutations and an oracle.

use super::*;
use crate::field::KnownField;
use crate::head::{ConnectionOption, TargetForm};
use crate::limits::NameRules;
use crate::method::Method;
use crate::version::Version;
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

fn parse(bytes: &[u8]) -> (Parsed, RequestHead) {
    let mut head = RequestHead::default();
    let parsed = parse_request(bytes, &mut head, &HeadRules::default());
    (parsed, head)
}

fn text(span: Span, bytes: &[u8]) -> String {
    String::from_utf8_lossy(span.of(bytes)).into_owned()
}

/// The head in one line: method, form, path, query, version, host, length, connection, fields.
fn summary(bytes: &[u8], parsed: Parsed, head: &RequestHead) -> String {
    if !matches!(parsed, Parsed::Complete { .. }) {
        return format!("{parsed:?}");
    }
    let fields: Vec<String> = head
        .fields
        .iter()
        .map(|field| {
            let mark = if field.ignored { "!" } else { "" };
            format!(
                "{mark}{}={}",
                text(field.name, bytes),
                text(field.value, bytes)
            )
        })
        .collect();
    format!(
        "{parsed:?} {:?} {} {:?} {} {} {} {} {:?} {} {:?} [{}] {} {} {}",
        head.method,
        text(head.method_name, bytes),
        head.target,
        text(head.target.path, bytes),
        text(head.target.query, bytes),
        head.version.name(),
        text(head.host, bytes),
        head.content_length,
        head.chunked,
        head.connection,
        fields.join("|"),
        head.expect_continue,
        head.is_plain(),
        text(head.request_line, bytes),
    )
}

/// Valid requests, used by the tests below.
const VALID: &[&str] = &[
    "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.0\r\n\r\n",
    "\r\n\r\nGET /x HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /a/b.html?x=1&y=%20 HTTP/1.1\r\nHost: Example.ORG.:8080\r\nUser-Agent: x\r\nAccept: */*\r\n\r\n",
    "GET /a//b HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /a/../b?q\\g HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /%41+b HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /a? HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET http://b:81/p?q HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET http://b?q HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET http://B HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET http://[::1]:80/ HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET  /  HTTP/1.1  \r\nHost: a\r\n\r\n",
    "GET / HTTP/1.7\r\nHost: a\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n",
    "M-SEARCH_X / HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-Continue\r\n\r\nhello",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n",
    "GET / HTTP/1.1\r\nHost:a\t \r\nEmpty:\r\nTabs: \ta\tb\t\r\nX_y: 1\r\nB(d: 2\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade, keep-alive\r\nConnection: close\r\n\r\n",
    "OPTIONS http://a_b.%41:1/ HTTP/1.1\r\nHost: a_b\r\nContent_Length: 1\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nX: \u{e4}\r\nAccept-Encoding: gzip\r\nRange: bytes=0-\r\n\r\n",
];

#[test]
fn origin_form_is_split_and_flagged() {
    let check = |target: &str, path: &str, query: &str, flags: (bool, bool, bool)| {
        let bytes = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
        let (parsed, head) = parse(bytes.as_bytes());
        let consumed = bytes.len();
        assert_eq!(parsed, Parsed::Complete { consumed }, "{target}");
        assert_eq!(text(head.target.whole, bytes.as_bytes()), target);
        assert_eq!(text(head.target.path, bytes.as_bytes()), path, "{target}");
        assert_eq!(text(head.target.query, bytes.as_bytes()), query, "{target}");
        let found = (head.target.complex, head.target.quoted, head.target.plus);
        assert_eq!(found, flags, "{target}");
    };
    check("/", "/", "", (false, false, false));
    check("/a.b/c?d=e", "/a.b/c", "d=e", (false, false, false));
    check("/a?b?c/./d", "/a", "b?c/./d", (false, false, false));
    check("/a//b", "/a//b", "", (true, false, false));
    check("/.a", "/.a", "", (true, false, false));
    check("/a%2fb+", "/a%2fb+", "", (false, true, true));
    check(
        "/\u{e4}\"<>^`{|}?\u{e4}\"<>\\^`{|}",
        "/\u{e4}\"<>^`{|}",
        "\u{e4}\"<>\\^`{|}",
        (false, false, false),
    );
}

#[test]
fn other_target_forms_name_the_host_or_nothing() {
    let check = |line: &str, form: TargetForm, whole: &str, path: &str, host: &str| {
        let bytes = format!("{line} HTTP/1.1\r\nHost: other\r\n\r\n");
        let (parsed, head) = parse(bytes.as_bytes());
        let consumed = bytes.len();
        assert_eq!(parsed, Parsed::Complete { consumed }, "{line}");
        assert_eq!(head.target.form, form, "{line}");
        assert_eq!(text(head.target.whole, bytes.as_bytes()), whole, "{line}");
        assert_eq!(text(head.target.path, bytes.as_bytes()), path, "{line}");
        assert_eq!(text(head.host, bytes.as_bytes()), host, "{line}");
        assert!(!head.is_plain(), "{line}");
    };
    check("GET http://a/b?c", TargetForm::Absolute, "/b?c", "/b", "a");
    check("GET http://a:80", TargetForm::Absolute, "/", "/", "a");
    check("GET http://a.?c", TargetForm::Absolute, "?c", "/", "a");
    check(
        "GET a+b-c.1://[::1]/",
        TargetForm::Absolute,
        "/",
        "/",
        "[::1]",
    );
    check("OPTIONS *", TargetForm::Asterisk, "*", "*", "other");
    check("CONNECT a:1", TargetForm::Authority, "a:1", "", "a");
}

#[test]
fn malformed_heads_are_refused() {
    let check = |bytes: &str, expected: Refusal| {
        let (parsed, head) = parse(bytes.as_bytes());
        assert_eq!(parsed, Parsed::Refused(expected), "{bytes:?}");
        let mut log = Vec::new();
        expected.emit_log(bytes.as_bytes(), &head, &mut log);
        assert!(!log.iter().any(u8::is_ascii_control), "one line: {bytes:?}");
    };
    for (line, refusal) in [
        ("get / HTTP/1.1\r\n", Refusal::InvalidMethod),
        (" GET / HTTP/1.1\r\n", Refusal::InvalidMethod),
        ("\rGET / HTTP/1.1\r\n", Refusal::InvalidMethod),
        ("\u{16}\u{3}\u{1}", Refusal::InvalidMethod),
        ("G\0T / HTTP/1.1\r\n", Refusal::InvalidMethod),
        ("GET\t/ HTTP/1.1\r\n", Refusal::InvalidMethod),
        ("GET\r\n", Refusal::InvalidMethod),
        ("GET \r\n", Refusal::InvalidRequestLine),
        ("GET * HTTP/1.1\r\n", Refusal::InvalidRequestLine),
        ("GET a HTTP/1.1\r\n", Refusal::InvalidRequestLine),
        ("GET /a b HTTP/1.1\r\n", Refusal::InvalidRequestLine),
        ("GET /\0 HTTP/1.1\r\n", Refusal::InvalidRequestLine),
        ("GET /a\tb HTTP/1.1\r\n", Refusal::InvalidRequestLine),
        ("GET /?a\u{7f} HTTP/1.1\r\n", Refusal::InvalidRequestLine),
        ("GET /#a HTTP/1.1\r\n", Refusal::InvalidRequestLine),
        ("GET /?a#b HTTP/1.1\r\n", Refusal::InvalidRequestLine),
        ("GET /a\\..\\b HTTP/1.1\r\n", Refusal::InvalidRequestLine),
        ("GET / HTTP/1.1\n", Refusal::BareLf),
        ("GET / HTTP/1.1 \n", Refusal::BareLf),
        ("GET /\n", Refusal::BareLf),
        ("\nGET / HTTP/1.1\r\n", Refusal::BareLf),
        ("GET / HTTP/1.01\r\n", Refusal::InvalidRequestLine),
        ("GET / HTTP/1.10\r\n", Refusal::InvalidRequestLine),
        ("GET / HTTP/1.32\r\n", Refusal::InvalidRequestLine),
        ("GET / HTTP/1.1\r\r\n", Refusal::InvalidRequestLine),
        ("GET / HTTP/1.1\rHost: a\r\n", Refusal::InvalidRequestLine),
        ("GET / http/1.1\r\n", Refusal::InvalidRequestLine),
        ("GET / HTTP/1.\r\n", Refusal::InvalidRequestLine),
        ("GET / HTTP/1.1234\r\n", Refusal::InvalidRequestLine),
        ("GET / HTTP/0.9\r\n", Refusal::InvalidRequestLine),
        ("GET / HTTP/1.1 x\r\n", Refusal::InvalidRequestLine),
        ("GET / HTTP/1x1\r\n", Refusal::InvalidRequestLine),
        ("GET http:/a HTTP/1.1\r\n", Refusal::InvalidRequestLine),
        ("GET http://u@a/ HTTP/1.1\r\n", Refusal::InvalidAuthority),
        ("GET http://a:b/ HTTP/1.1\r\n", Refusal::InvalidAuthority),
        ("GET http://a#b/ HTTP/1.1\r\n", Refusal::InvalidAuthority),
        ("GET http://[::1]./ HTTP/1.1\r\n", Refusal::InvalidAuthority),
        ("GET http://[::1/ HTTP/1.1\r\n", Refusal::InvalidAuthority),
        ("CONNECT a HTTP/1.1\r\n", Refusal::InvalidAuthority),
        ("CONNECT a:0 HTTP/1.1\r\n", Refusal::InvalidAuthority),
        ("CONNECT a:70000 HTTP/1.1\r\n", Refusal::InvalidAuthority),
        ("CONNECT http://a/ HTTP/1.1\r\n", Refusal::InvalidAuthority),
        ("GET http:/// HTTP/1.1\r\n", Refusal::InvalidAuthority),
        ("GET http://a..b/ HTTP/1.1\r\n", Refusal::InvalidAuthority),
        ("GET /\r\n", Refusal::Http09),
        ("GET / \r\n", Refusal::Http09),
        ("POST /\r\n", Refusal::InvalidRequestLine),
        ("GET / HTTP/2.0\r\n", Refusal::UnsupportedVersion),
        ("GET / HTTP/10.1\r\n", Refusal::UnsupportedVersion),
    ] {
        check(line, refusal);
    }
    for (fields, refusal) in [
        ("", Refusal::MissingHost),
        ("Host:\r\n", Refusal::InvalidHost),
        ("Host: a b\r\n", Refusal::InvalidHost),
        ("Host: a/b\r\n", Refusal::InvalidHost),
        ("Host: a?b\r\n", Refusal::InvalidHost),
        ("Host: u@a\r\n", Refusal::InvalidHost),
        ("Host: [::1\r\n", Refusal::InvalidHost),
        ("Host : a\r\n", Refusal::InvalidFieldLine),
        ("Host: a\r\n\n", Refusal::BareLf),
        ("Content-Length\u{85}: 1\r\n", Refusal::MisleadingName),
        ("content.length: 1\r\n", Refusal::MisleadingName),
        ("(Transfer-Encoding): chunked\r\n", Refusal::MisleadingName),
        ("\"Host\": a\r\n", Refusal::MisleadingName),
    ] {
        check(&format!("GET / HTTP/1.1\r\n{fields}\r\n"), refusal);
    }
    for (lines, refusal) in [
        ("Host: a", Refusal::DuplicateHost),
        (" b", Refusal::InvalidFieldLine),
        ("\tb", Refusal::InvalidFieldLine),
        (": b", Refusal::InvalidFieldLine),
        ("NoColon", Refusal::InvalidFieldLine),
        ("A\0: b", Refusal::InvalidFieldLine),
        ("A: b\0c", Refusal::InvalidFieldLine),
        ("A: b\u{1}c", Refusal::InvalidFieldLine),
        ("A: b\nC: d", Refusal::BareLf),
        ("A\nC: d", Refusal::InvalidFieldLine),
        ("A: b\rC: d", Refusal::InvalidFieldLine),
        ("A: b\r", Refusal::InvalidFieldLine),
        ("A:\tb\tc\t\u{7f}", Refusal::InvalidFieldLine),
        ("\rX: b", Refusal::InvalidFieldLine),
        (
            "Content-Length: 1\r\nContent-Length: 1",
            Refusal::DuplicateField,
        ),
        ("If-Match: a\r\nif-match: b", Refusal::DuplicateField),
        ("Content-Length:", Refusal::InvalidContentLength),
        ("Content-Length: 1, 1", Refusal::InvalidContentLength),
        ("Content-Length: +1", Refusal::InvalidContentLength),
        ("Content-Length: -1", Refusal::InvalidContentLength),
        ("Content-Length: 0x1", Refusal::InvalidContentLength),
        (
            "Content-Length: 9223372036854775808",
            Refusal::InvalidContentLength,
        ),
        (
            "Content-Length: 99999999999999999999",
            Refusal::InvalidContentLength,
        ),
        ("Transfer-Encoding: gzip", Refusal::UnknownTransferEncoding),
        (
            "Transfer-Encoding: gzip, chunked",
            Refusal::UnknownTransferEncoding,
        ),
        (
            "Transfer-Encoding: chunked, gzip",
            Refusal::ChunkedIsNotLast,
        ),
        (
            "Transfer-Encoding: gzip,Chunked ,foo",
            Refusal::ChunkedIsNotLast,
        ),
        (
            "Transfer-Encoding: chunked, chunked",
            Refusal::ChunkedIsNotLast,
        ),
        ("Transfer-Encoding: ", Refusal::UnknownTransferEncoding),
        ("Transfer-Encoding: chunked\u{b}", Refusal::InvalidFieldLine),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            Refusal::DuplicateField,
        ),
        (
            "Content-Length: 1\r\nTransfer-Encoding: chunked",
            Refusal::ContentLengthAndTransferEncoding,
        ),
    ] {
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n\r\n");
        check(&head, refusal);
    }
    check(
        "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
        Refusal::TransferEncodingInHttp10,
    );
}

#[test]
fn known_fields_set_host_length_and_connection() {
    let check = |fields: &str, expected: &dyn Fn(&RequestHead) -> bool| {
        let bytes = format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        let (parsed, head) = parse(bytes.as_bytes());
        let consumed = bytes.len();
        assert_eq!(parsed, Parsed::Complete { consumed }, "{fields}");
        assert!(expected(&head), "{fields}: {head:?}");
    };
    check("", &|head| head.is_plain() && !head.has_body());
    check("Content-Length: 0\r\n", &|head| {
        head.content_length == Some(0) && !head.is_plain()
    });
    check("Content-Length: 9223372036854775807\r\n", &|head| {
        head.content_length == Some(i64::MAX as u64)
    });
    check("transfer-encoding: CHUNKED\r\n", &|head| {
        head.chunked && head.has_body()
    });
    check("Expect: 100-continue\r\n", &|head| {
        head.expect_continue && !head.is_plain()
    });
    check("Expect: tea\r\n", &|head| !head.expect_continue);
    check("Connection: close\r\n", &|head| {
        head.connection == ConnectionOption::Close
    });
    check("Connection: Keep-Alive\r\n", &|head| {
        head.connection == ConnectionOption::KeepAlive
    });
    check("Connection: close, keep-alive\r\n", &|head| {
        head.connection == ConnectionOption::Close
    });
    check("Connection: x\r\n", &|head| {
        head.connection == ConnectionOption::Unstated
    });
    for field in [
        "Range",
        "If-Range",
        "If-Match",
        "Upgrade",
        "TE",
        "If-None-Match",
    ] {
        check(&format!("{field}: x\r\n"), &|head| !head.is_plain());
    }
    check("Accept-Encoding: a\r\nAccept-Encoding: b\r\n", &|head| {
        head.is_plain() && head.known(KnownField::AcceptEncoding).count() == 2
    });
}

#[test]
fn invalid_names_follow_the_two_settings() {
    let bytes = b"GET / HTTP/1.1\r\nHost: a\r\nX_y: 1\r\nZ(: 2\r\nIf_Range: 3\r\n\r\n";
    let check = |underscores: bool, ignore: bool, expected: [bool; 3]| {
        let rules = HeadRules {
            names: NameRules {
                underscores_in_headers: underscores,
                ignore_invalid_headers: ignore,
            },
            ..HeadRules::default()
        };
        let mut head = RequestHead::default();
        let parsed = parse_request(bytes, &mut head, &rules);
        let consumed = bytes.len();
        assert_eq!(parsed, Parsed::Complete { consumed });
        let ignored: Vec<bool> = head
            .fields
            .iter()
            .skip(1)
            .map(|field| field.ignored)
            .collect();
        assert_eq!(ignored, expected);
    };
    check(false, true, [true, true, true]);
    check(true, true, [false, true, false]);
    check(false, false, [false, false, false]);
    check(true, false, [false, false, false]);
}

#[test]
fn fields_behind_the_one_that_names_the_server_follow_its_rules() {
    let strict = NameRules::default();
    let lenient = NameRules {
        underscores_in_headers: true,
        ignore_invalid_headers: true,
    };
    let check = |head_text: &str, of_default: NameRules, of_named: NameRules, ignored: &str| {
        let rules = HeadRules {
            names: of_default,
            ..HeadRules::default()
        };
        let mut head = RequestHead::default();
        let bytes = format!("{head_text}\r\n\r\n");
        let parsed = parse_request(bytes.as_bytes(), &mut head, &rules);
        assert!(matches!(parsed, Parsed::Complete { .. }), "{head_text}");
        assert!(head.has_odd_names && !head.is_plain());
        head.judge_names(of_named);
        let names = [false, true].map(|behind| {
            let fields = head.ignored_fields(behind);
            let names: Vec<String> = fields
                .map(|field| text(field.name, bytes.as_bytes()))
                .collect();
            names.join(" ")
        });
        assert_eq!(names.join("/"), ignored, "{head_text}");
    };
    let around = "GET / HTTP/1.1\r\nA_a: 1\r\nHost: h\r\nB_b: 1\r\nC(c: 1";
    check(around, strict, lenient, "A_a/C(c");
    check(around, lenient, strict, "/B_b C(c");
    check(around, strict, strict, "A_a/B_b C(c");
    let absolute = "GET http://h/ HTTP/1.1\r\nA_a: 1\r\nHost: h\r\nB_b: 1";
    check(absolute, strict, lenient, "/");
    check(absolute, lenient, strict, "/A_a B_b");
    check("GET / HTTP/1.0\r\nA_a: 1", strict, lenient, "A_a/");
}

#[test]
fn with_accept_bare_lf_each_line_may_end_either_way() {
    let rules = HeadRules {
        accept_bare_lf: true,
        ..HeadRules::default()
    };
    for request in VALID {
        let (whole, _) = parse(request.as_bytes());
        let Parsed::Complete { consumed } = whole else {
            panic!("{request:?}")
        };
        let ends = request[..consumed].matches("\r\n").count();
        for bare in 0..1_u32 << ends {
            let mut lines = request[..consumed].split_inclusive("\r\n");
            let mixed: String = (0..ends)
                .map(|at| match lines.next().unwrap() {
                    line if bare >> at & 1 == 1 => line.replace("\r\n", "\n"),
                    line => line.to_owned(),
                })
                .collect();
            let mut head = RequestHead::default();
            for len in 0..mixed.len() {
                let parsed = parse_request(&mixed.as_bytes()[..len], &mut head, &rules);
                assert_eq!(parsed, Parsed::Partial, "{mixed:?} {len}");
            }
            let consumed = mixed.len();
            let parsed = parse_request(mixed.as_bytes(), &mut head, &rules);
            assert_eq!(parsed, Parsed::Complete { consumed }, "{mixed:?}");
            // Except for its length it is the head that CR LF would have made.
            let strict = summary(request.as_bytes(), whole, &parse(request.as_bytes()).1);
            let found = summary(mixed.as_bytes(), whole, &head);
            let without_spans = |text: &str| {
                let is_digit = |c: char| c.is_ascii_digit();
                text.replace(is_digit, "")
            };
            assert_eq!(without_spans(&found), without_spans(&strict), "{mixed:?}");
        }
    }
    let check = |bytes: &str, expected: Refusal| {
        let mut head = RequestHead::default();
        let parsed = parse_request(bytes.as_bytes(), &mut head, &rules);
        assert_eq!(parsed, Parsed::Refused(expected), "{bytes:?}");
    };
    check("GET /\n", Refusal::Http09);
    check("GET / HTTP/1.1\r\r\n", Refusal::InvalidRequestLine);
    check("GET / HTTP/1.1\rHost: a\n\n", Refusal::InvalidRequestLine);
    check(
        "GET / HTTP/1.1\nHost: a\rX: b\n\n",
        Refusal::InvalidFieldLine,
    );
    check("GET / HTTP/1.1\nHost: a\r\r\n\n", Refusal::InvalidFieldLine);
    check("GET / HTTP/1.1\nHost: a\n b\n\n", Refusal::InvalidFieldLine);
    check("GET / HTTP/1.1\nHost\n: a\n\n", Refusal::InvalidFieldLine);
}

#[test]
fn the_length_counts_whole_lines_from_the_request_line_on() {
    let check = |bytes: &str, expected: usize| {
        let (_, head) = parse(bytes.as_bytes());
        assert_eq!(head.length_bytes() as usize, expected, "{bytes:?}");
    };
    check("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27);
    check("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\nmore", 27);
    check("GET / HTTP/1.1\r\nHost: a\r\nX: b", 25);
    check("GET / HTTP/1.1\r\nHost: a\r\nX : b\r\n", 25);
    check("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 27);
    check("GET / HTTP/1.1\r\n\r\n", 18);
    check("GET / HTTP/2.0\r\n", 0);
    check("GET / HT", 0);
    check("get / HTTP/1.1\r\n", 0);
}

#[test]
fn a_refused_request_line_leaves_only_the_method_head() {
    for line in ["HEAD http://a/b HTTP/2.0", "HEAD http://a/b HTTP/1.1 x"] {
        let (parsed, head) = parse(format!("{line}\r\n").as_bytes());
        assert!(matches!(parsed, Parsed::Refused(_)), "{line}");
        assert_eq!(head.method, Method::Head, "{line}");
        let parts = [head.method_name, head.host, head.target.whole];
        assert!(parts.iter().all(|part| part.is_empty()), "{line}");
    }
}

#[test]
fn a_head_split_at_every_byte_gives_the_same_result() {
    for request in VALID {
        let bytes = request.as_bytes();
        let (parsed, whole) = parse(bytes);
        let Parsed::Complete { consumed } = parsed else {
            panic!("{request:?}: {parsed:?}")
        };
        let expected = summary(bytes, parsed, &whole);
        let rules = HeadRules::default();
        for cut in 0..consumed {
            let mut head = RequestHead::default();
            assert_eq!(
                parse_request(&bytes[..cut], &mut head, &rules),
                Parsed::Partial
            );
            let parsed = parse_request(bytes, &mut head, &rules);
            assert_eq!(summary(bytes, parsed, &head), expected, "cut at {cut}");
        }
        let mut head = RequestHead::default();
        let mut parsed = Parsed::Partial;
        for len in 0..=consumed {
            assert_eq!(parsed, Parsed::Partial);
            parsed = parse_request(&bytes[..len], &mut head, &rules);
        }
        assert_eq!(summary(bytes, parsed, &head), expected, "byte by byte");
        head.clear();
        let again = parse_request(bytes, &mut head, &rules);
        assert_eq!(summary(bytes, again, &head), expected, "a reused head");
    }
}

#[test]
fn each_limit_holds_at_its_own_byte() {
    let rules = HeadRules {
        request_line_bytes_max: 64,
        field_line_bytes_max: 32,
        head_bytes_max: 128,
        fields_max: 3,
        ..HeadRules::default()
    };
    let check = |bytes: &str, expected: Option<Refusal>| {
        let refused = |parsed| match parsed {
            Parsed::Refused(refusal) => Some(refusal),
            _ => None,
        };
        let whole = parse_request(bytes.as_bytes(), &mut RequestHead::default(), &rules);
        assert_eq!(refused(whole), expected, "whole: {bytes:?}");
        let mut head = RequestHead::default();
        let split = (0..=bytes.len())
            .map(|len| parse_request(&bytes.as_bytes()[..len], &mut head, &rules))
            .find(|parsed| *parsed != Parsed::Partial);
        assert_eq!(split.and_then(refused), expected, "split: {bytes:?}");
    };
    let line = |len: usize| format!("GET /{} HTTP/1.1\r\n", "a".repeat(len - 16));
    let field = |len: usize| format!("X: {}\r\n", "a".repeat(len - 5));
    let host = "Host: a\r\n";
    check(&format!("{}{host}\r\n", line(64)), None);
    check(
        &format!("{}{host}\r\n", line(65)),
        Some(Refusal::TargetTooLong),
    );
    check(&format!("{}{host}{}\r\n", line(17), field(32)), None);
    check(
        &format!("{}{host}{}\r\n", line(17), field(33)),
        Some(Refusal::FieldTooLarge),
    );
    check(
        &format!("{}{host}{}{}\r\n", line(63), field(32), field(22)),
        None,
    );
    let over = format!("{}{host}{}{}\r\n", line(63), field(32), field(23));
    check(&over, Some(Refusal::HeadTooLarge));
    check(&format!("{}{host}A: b\r\nA: b\r\n\r\n", line(17)), None);
    let many = format!("{}{host}A: b\r\nA: b\r\nA: b\r\n\r\n", line(17));
    check(&many, Some(Refusal::TooManyFields));
    check(&"\r\n".repeat(70), Some(Refusal::HeadTooLarge));
}

#[test]
fn valid_heads_agree_with_httparse() {
    for request in VALID {
        let mut fields = [httparse::EMPTY_HEADER; 16];
        let mut oracle = httparse::Request::new(&mut fields);
        // httparse allows only single spaces and versions 1.0 and 1.1, and no odd names.
        let Ok(httparse::Status::Complete(consumed)) = oracle.parse(request.as_bytes()) else {
            assert!(request.contains("  ") || request.contains("1.7") || request.contains("B(d"));
            continue;
        };
        let (parsed, head) = parse(request.as_bytes());
        assert_eq!(parsed, Parsed::Complete { consumed }, "{request}");
        assert_eq!(
            oracle.method,
            Some(text(head.method_name, request.as_bytes()).as_str())
        );
        let minor = u8::from(head.version == Version::Http11);
        assert_eq!(oracle.version, Some(minor));
        if head.target.form == TargetForm::Origin {
            assert_eq!(
                oracle.path,
                Some(text(head.target.whole, request.as_bytes()).as_str())
            );
        }
        assert_eq!(oracle.headers.len(), head.fields.len());
        for (theirs, ours) in oracle.headers.iter().zip(&head.fields) {
            assert_eq!(theirs.name.as_bytes(), ours.name.of(request.as_bytes()));
            assert_eq!(
                theirs.value,
                ours.value.of(request.as_bytes()),
                "{request:?}"
            );
        }
    }
}

#[test]
fn mutated_heads_never_panic_and_do_not_depend_on_the_split() {
    const SEED: u64 = 0x6d69_6c6c_7374_7265;
    let mut state = SEED;
    let mut random = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % bound as u64).unwrap()
    };
    const INTERESTING: &[u8] = b"\r\n :\t\0/?#%.,;=+-_*G1\x7f\x80\xff";
    for round in 0..20_000 {
        let mut bytes = VALID[random(VALID.len())].as_bytes().to_vec();
        for _ in 0..=random(3) {
            let at = random(bytes.len());
            match random(3) {
                0 => bytes[at] = INTERESTING[random(INTERESTING.len())],
                1 => bytes.insert(at, INTERESTING[random(INTERESTING.len())]),
                _ => drop(bytes.remove(at)),
            }
        }
        let (parsed, head) = parse(&bytes);
        let whole = summary(&bytes, parsed, &head);
        let cut = random(bytes.len());
        let rules = HeadRules::default();
        let mut head = RequestHead::default();
        let mut split = parse_request(&bytes[..cut], &mut head, &rules);
        if split == Parsed::Partial {
            split = parse_request(&bytes, &mut head, &rules);
        }
        let split = summary(&bytes, split, &head);
        assert_eq!(
            split, whole,
            "seed {SEED:#x}, round {round}, cut {cut}: {bytes:?}"
        );
        // A complete head contains no bare CR, LF or NUL: readers disagree on them.
        if let Parsed::Complete { consumed } = parsed {
            let accepted = &bytes[..consumed];
            for (at, byte) in accepted.iter().enumerate() {
                let is_pair = match byte {
                    b'\r' => accepted.get(at + 1) == Some(&b'\n'),
                    b'\n' => at > 0 && accepted[at - 1] == b'\r',
                    0 => false,
                    _ => true,
                };
                assert!(is_pair, "seed {SEED:#x}, round {round}: {bytes:?}");
            }
        }
    }
}

#[test]
fn methods_are_classified_and_others_keep_their_name() {
    let (_, head) = parse(b"PROPFIND / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(head.method, Method::PropFind);
    let bytes = b"BREW-IT_ / HTTP/1.1\r\nHost: a\r\n\r\n";
    let (_, head) = parse(bytes);
    assert_eq!(
        (head.method, head.method_name.of(bytes)),
        (Method::Other, &b"BREW-IT_"[..])
    );
}

const _: () = assert!(size_of::<RequestHead>() <= 256);
