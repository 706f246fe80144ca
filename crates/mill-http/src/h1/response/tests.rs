//! Responses by tables: heads, framing, faults, limits; each at every split.

mod cgi;
mod content;
mod oracle;
mod strict;

use super::*;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

fn parse(bytes: &[u8], request: RequestKind) -> Result<Option<ResponseHead>, ResponseFault> {
    parse_response_head(bytes, request, &ResponseRules::lenient())
}

/// The result when the bytes arrive one by one, and how many it took.
fn parse_slowly(
    bytes: &[u8],
    request: RequestKind,
    limits: &ResponseRules,
) -> (Result<Option<ResponseHead>, ResponseFault>, usize) {
    let mut scan = ResponseScan::new(request, limits);
    let found = (0..=bytes.len()).map(|len| (scan.parse(&bytes[..len]), len));
    let mut found = found.skip_while(|(result, _)| *result == Ok(None));
    found.next().unwrap_or((Ok(None), bytes.len()))
}

/// The head or the fault in one line.
fn summary(result: Result<Option<ResponseHead>, ResponseFault>) -> String {
    match result {
        Ok(None) => "more".to_string(),
        Err(fault) => fault.to_string(),
        Ok(Some(head)) => format!(
            "{} {} {:?} {}",
            head.version.name(),
            head.status,
            head.framing,
            if head.keep_alive { "keep" } else { "close" }
        ),
    }
}

/// `lines` and an empty line are a head with this summary, whole, byte by byte, and with content after it; every prefix
/// is incomplete.
#[track_caller]
fn check_of(request: RequestKind, lines: &str, expected: &str) {
    let head = format!("{lines}\r\n");
    let whole = parse(head.as_bytes(), request);
    assert_eq!(summary(whole), expected, "{lines:?}");
    let limits = ResponseRules::lenient();
    let (slowly, len) = parse_slowly(head.as_bytes(), request, &limits);
    assert_eq!(slowly, whole, "byte by byte: {lines:?}");
    if let Ok(Some(found)) = whole {
        assert_eq!((found.len, len), (head.len(), head.len()), "{lines:?}");
    }
    for at in 0..len {
        assert_eq!(
            parse(&head.as_bytes()[..at], request),
            Ok(None),
            "{lines:?}"
        );
        let mut scan = ResponseScan::new(request, &limits);
        assert_eq!(scan.parse(&head.as_bytes()[..at]), Ok(None));
        assert_eq!(
            scan.parse(head.as_bytes()),
            whole,
            "split at {at}: {lines:?}"
        );
    }
    let followed = format!("{head}HTTP/1.1 500\r\n\r\n");
    assert_eq!(parse(followed.as_bytes(), request), whole, "{lines:?}");
}

#[track_caller]
fn check(lines: &str, expected: &str) {
    check_of(RequestKind::Other, lines, expected);
}

/// As `check`, for the fields of an answer of 200 in HTTP/1.1.
#[track_caller]
fn check_fields(fields: &str, expected: &str) {
    check(&format!("HTTP/1.1 200 OK\r\n{fields}"), expected);
}

#[test]
fn status_lines_are_read_as_in_rfc_9112_4() {
    let ok = "HTTP/1.1 200 UntilClose close";
    check("HTTP/1.1 200 OK\r\n", ok);
    check("HTTP/1.1 200 \r\n", ok);
    check("HTTP/1.1 200\r\n", ok);
    check("HTTP/1.1 200\n", ok);
    check("HTTP/1.1 \t 200\tall is\tw\u{e4}ll\x01\r\n", ok);
    check("HTTP/1.9 200 OK\r\n", ok);
    check("\r\n\n\r\nHTTP/1.1 200 OK\r\n", ok);
    check("HTTP/1.0 200 OK\r\n", "HTTP/1.0 200 UntilClose close");
    check("HTTP/1.1 999 x\r\n", "HTTP/1.1 999 UntilClose close");
    let other = "status line is not HTTP/1.x";
    for line in [
        "HTTP/2.0 200 OK\r\n",
        "HTTP/1.\r\n",
        "HTTP/1.x 200 OK\r\n",
        "HTTP/1.10 200 OK\r\n",
        "HTTP/1.1\r\n",
        "HTTP/1.1200 OK\r\n",
        "http/1.1 200 OK\r\n",
        " HTTP/1.1 200 OK\r\n",
        "\rHTTP/1.1 200 OK\r\n",
        "<html>",
        "SSH-2.0-x\r\n",
        "\x15\x03\x01",
        "\0",
    ] {
        check(line, other);
    }
    let code = "status code is not a number from 100 to 999";
    for line in ["", "20", "2000", "099 x", "20x OK", "-20", "200OK"] {
        check(&format!("HTTP/1.1 {line}\r\n"), code);
    }
}

#[test]
fn lines_end_with_lf_and_never_with_cr_alone() {
    check(
        "HTTP/1.1 200 OK\nContent-Length: 5\n",
        "HTTP/1.1 200 Length(5) keep",
    );
    let cr = "head has a CR that no LF follows";
    check("HTTP/1.1 200 O\rK\r\n", cr);
    check("HTTP/1.1 200 OK\r\r\n", cr);
    check_fields("A: b\rContent-Length: 5\r\n", cr);
    check_fields("\rA: b\r\n", cr);
    let nul = "head has a NUL";
    check("HTTP/1.1 200 O\0K\r\n", nul);
    check_fields("A: \0b\r\n", nul);
    let head = b"HTTP/1.1 204 x\r\nA: b\n\n";
    assert_eq!(
        parse(head, RequestKind::Other).unwrap().unwrap().len,
        head.len()
    );
}

#[test]
fn field_lines_are_read_as_in_rfc_9112_5() {
    let five = "HTTP/1.1 200 Length(5) keep";
    check_fields("content-LENGTH:5\r\n", five);
    check_fields("Content-Length:\t 5 \t\r\n", five);
    // 5.1: a blank before the colon hides nothing.
    check_fields("Content-Length \t: 5\r\n", five);
    // 5.2: a fold is blanks.
    check_fields("Content-Length:\r\n 5\r\n\t\r\n", five);
    check_fields("Content-Length: 5\n \r\n", five);
    check_fields(
        "Connection:\r\n\tx,\r\n close\r\nContent-Length: 0\r\n",
        "HTTP/1.1 200 Length(0) close",
    );
    check_fields(
        "Transfer-Encoding: gzip,\r\n chunked\r\n",
        "HTTP/1.1 200 Chunked keep",
    );
    check_fields("X: y\r\n Content-Length: 4\r\nContent-Length: 5\r\n", five);
    check_fields(
        "Content-Length: 1\r\n 2\r\n",
        "content length is not a number",
    );
    // Names of the same length, and nearly the same.
    check_fields(
        "Content_Length: 4\r\nConnectiom: close\r\nContent-Length: 5\r\n",
        five,
    );
    check_fields("B(d \tname: \x01\x7f\u{e4}\r\nContent-Length: 5\r\n", five);
    let line = "field line has no name with a colon behind it";
    for fields in [
        "A\r\n",
        ": b\r\n",
        "A\r\n : b\r\n",
        "A\x01: b\r\n",
        "\x01A: b\r\n",
    ] {
        check_fields(fields, line);
    }
    // RFC 9112 2.2.
    for fields in [" A: b\r\n", "\tA: b\r\n", " \r\n"] {
        check_fields(fields, "first field line begins with a blank");
    }
}

#[test]
fn the_framing_follows_rfc_9112_6_3_in_its_order() {
    let length = "Content-Length: 5\r\n";
    let chunked = "Transfer-Encoding: chunked\r\n";
    // First: no content, whatever the fields say.
    for fields in ["", length, chunked, "Content-Length: x\r\n"] {
        let lines = |status: u16| format!("HTTP/1.1 {status} x\r\n{fields}");
        check_of(RequestKind::Head, &lines(200), "HTTP/1.1 200 None keep");
        for status in [100, 102, 103, 199, 204, 304] {
            check(&lines(status), &format!("HTTP/1.1 {status} None keep"));
        }
        check(&lines(101), "HTTP/1.1 101 None close");
        // Second: the tunnel.
        check_of(
            RequestKind::Connect,
            &lines(200),
            "HTTP/1.1 200 UntilClose close",
        );
    }
    check_of(
        RequestKind::Connect,
        &format!("HTTP/1.1 407 x\r\n{length}"),
        "HTTP/1.1 407 Length(5) keep",
    );
    // Third: both; the coding counts, and the connection is not trusted.
    check_fields(&format!("{length}{chunked}"), "HTTP/1.1 200 Chunked close");
    check_fields(
        &format!("{chunked}Content-Length: x\r\n"),
        "HTTP/1.1 200 Chunked close",
    );
    // Fourth: the last coding decides.
    let with = |value: &str, expected: &str| {
        check_fields(
            &format!("Transfer-Encoding: {value}\r\n"),
            &format!("HTTP/1.1 200 {expected}"),
        );
    };
    with("Chunked", "Chunked keep");
    with("gzip, chunked,", "Chunked keep");
    with("gzip\r\ntransfer-encoding: chunked", "Chunked keep");
    with("chunked, gzip", "UntilClose close");
    with(
        "chunked\r\nTransfer-Encoding: gzip;q=\"a,chunked\"",
        "UntilClose close",
    );
    with("identity", "UntilClose close");
    with("xchunked", "UntilClose close");
    with("", "UntilClose close");
    for value in ["chunked;a=b", "chunked ;"] {
        check_fields(
            &format!("Transfer-Encoding: {value}\r\n"),
            "chunked coding has parameters",
        );
    }
    // Sixth and eighth.
    check_fields(length, "HTTP/1.1 200 Length(5) keep");
    check_fields("Content-Length: 0\r\n", "HTTP/1.1 200 Length(0) keep");
    check_fields("", "HTTP/1.1 200 UntilClose close");
}

#[test]
fn content_lengths_are_numbers_and_agree() {
    let with = |values: &str, expected: &str| {
        let fields: Vec<_> = values
            .split('|')
            .map(|value| format!("Content-Length: {value}\r\n"))
            .collect();
        check_fields(&fields.concat(), expected);
    };
    with("0005", "HTTP/1.1 200 Length(5) keep");
    with("5|5", "HTTP/1.1 200 Length(5) keep");
    with("5, 5,|5", "HTTP/1.1 200 Length(5) keep");
    with(
        "9223372036854775807",
        "HTTP/1.1 200 Length(9223372036854775807) keep",
    );
    for value in [
        "", ",", "x", "+5", "-5", "5x", "5 5", "0x5", "5.0", "\"5\"", "5;", "x|5", "5|x",
    ] {
        with(value, "content length is not a number");
    }
    with("9223372036854775808", "content length is not a number");
    with("18446744073709551621", "content length is not a number");
    with("5|6", "content lengths differ");
    with("5, 6", "content lengths differ");
    with("5|6|5", "content lengths differ");
}

#[test]
fn connections_persist_as_in_rfc_9112_9_3() {
    let with = |version: &str, field: &str, expected: &str| {
        let lines = format!("{version} 200 OK\r\nContent-Length: 5\r\n{field}");
        check(&lines, &format!("{version} 200 Length(5) {expected}"));
    };
    with("HTTP/1.1", "", "keep");
    with("HTTP/1.1", "Connection: close\r\n", "close");
    with("HTTP/1.1", "Connection: Upgrade, CLOSE\r\n", "close");
    with("HTTP/1.1", "Connection: xclosex\r\n", "keep");
    with(
        "HTTP/1.1",
        "Connection: close\r\nConnection: keep-alive\r\n",
        "close",
    );
    with("HTTP/1.1", "Connection: keep-alive, close\r\n", "close");
    with("HTTP/1.0", "", "close");
    with("HTTP/1.0", "Connection: Keep-Alive\r\n", "keep");
    with("HTTP/1.0", "Connection: x,keep-alive\r\n", "keep");
    with(
        "HTTP/1.0",
        "Connection: keep-alive\r\nConnection: close\r\n",
        "close",
    );
    check_fields(
        "Connection: keep-alive\r\n",
        "HTTP/1.1 200 UntilClose close",
    );
    // 6.1: a server of 1.0 that sends a coding is not to be trusted with more.
    check(
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n",
        "HTTP/1.0 200 Chunked close",
    );
}

#[test]
fn interim_and_final_answers_are_distinguished() {
    for status in 100..=999 {
        let head = format!("HTTP/1.1 {status}\r\n\r\n");
        let head = parse(head.as_bytes(), RequestKind::Other).unwrap().unwrap();
        assert_eq!(head.is_interim(), status < 200 && status != 101, "{status}");
    }
    assert_eq!(RequestKind::of(Method::Head), RequestKind::Head);
    assert_eq!(RequestKind::of(Method::Connect), RequestKind::Connect);
    assert_eq!(RequestKind::of(Method::Get), RequestKind::Other);
}

#[test]
fn fields_are_handed_over_as_they_came() {
    let check = |fields: &str, expected: &[(&str, &str)]| {
        let bytes = format!("\r\nHTTP/1.1 200 OK\r\n{fields}\r\nX: content\r\n\r\n");
        let head = parse(bytes.as_bytes(), RequestKind::Other)
            .unwrap()
            .unwrap();
        let found: Vec<_> = head.fields(bytes.as_bytes()).collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(n, v)| (n.as_bytes(), v.as_bytes()))
            .collect();
        assert_eq!(found, expected, "{fields:?}");
        assert_eq!(head.fields(&bytes.as_bytes()[..head.len - 1]).count(), 0);
        assert_eq!(head.fields(b"").count(), 0);
        // Other bytes than those that were parsed: the result is undefined, but there is no panic.
        head.fields(&[b'a'; 300]).for_each(drop);
    };
    check("", &[]);
    check(
        "sErver: nginx\r\nSet-Cookie:a\nSet-Cookie:  b: c \t\r\n",
        &[
            ("sErver", "nginx"),
            ("Set-Cookie", "a"),
            ("Set-Cookie", "b: c"),
        ],
    );
    check(
        "E:\r\nB : \r\nF: a\r\n\tb\r\n \r\n",
        &[("E", ""), ("B", ""), ("F", "a\r\n\tb")],
    );
}

#[test]
fn the_limit_holds_at_its_own_byte() {
    let check = |head: &str, head_bytes_max: u32, is_too_long: bool| {
        let limits = ResponseRules {
            head_bytes_max,
            ..ResponseRules::lenient()
        };
        let whole = parse_response_head(head.as_bytes(), RequestKind::Other, &limits);
        let (slowly, len) = parse_slowly(head.as_bytes(), RequestKind::Other, &limits);
        assert_eq!(slowly, whole, "{head:?}");
        if is_too_long {
            assert_eq!(len, head_bytes_max as usize + 1, "{head:?}");
            assert_eq!(
                summary(whole),
                format!("head is longer than {head_bytes_max} bytes")
            );
        } else {
            assert_eq!(
                whole.unwrap().unwrap().len,
                head_bytes_max as usize,
                "{head:?}"
            );
        }
    };
    for head in [
        "HTTP/1.1 204 No Content\r\n\r\n",
        "\r\n\nHTTP/1.1 204\n\n",
        "HTTP/1.1 204\r\nA: b\r\n c\r\n\r\n",
    ] {
        let len = u32::try_from(head.len()).unwrap();
        check(head, len, false);
        for head_bytes_max in 0..len {
            check(head, head_bytes_max, true);
        }
    }
    check(&"\r\n".repeat(70), 64, true);
    check(&format!("HTTP/1.1 200 {}", "a".repeat(100)), 64, true);
    check(&format!("HTTP/1.1 200\r\n{}", "a".repeat(100)), 64, true);
}
