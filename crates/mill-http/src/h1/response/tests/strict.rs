//! What strict reading accepts and refuses, compared with lenient reading.

use super::*;
use crate::field::KnownField;

/// The summary of a strict reading. Whatever it accepts means the same to a lenient reader.
#[track_caller]
fn check_strict(lines: &str, expected: &str) {
    let head = format!("{lines}\r\n");
    let strict = ResponseRules::default();
    let found = parse_response_head(head.as_bytes(), RequestKind::Other, &strict);
    assert_eq!(summary(found), expected, "{lines:?}");
    let (slowly, _) = parse_slowly(head.as_bytes(), RequestKind::Other, &strict);
    assert_eq!(slowly, found, "byte by byte: {lines:?}");
    if found.is_ok() {
        check_accepted(head.as_bytes(), RequestKind::Other, found);
    }
}

/// What strict reading accepts means the same to a lenient reader, and its fields are those of the head, however it
/// arrives.
#[track_caller]
pub(super) fn check_accepted(
    bytes: &[u8],
    request: RequestKind,
    found: Result<Option<ResponseHead>, ResponseFault>,
) {
    let text = String::from_utf8_lossy(bytes);
    assert_eq!(parse(bytes, request), found, "{text:?}");
    let Ok(Some(head)) = found else { return };
    let expected: Vec<_> = head.fields(bytes).collect();
    for step in [1, 7, bytes.len()] {
        let mut scan = ResponseScan::new(request, &ResponseRules::default());
        let mut fields = Vec::new();
        let mut end = 0;
        let again = loop {
            end = bytes.len().min(end + step);
            if let Some(head) = scan
                .parse_fields(&bytes[..end], |field| fields.push(field))
                .unwrap()
            {
                break head;
            }
        };
        assert_eq!(again, head);
        let fields = fields.iter().map(|field| {
            let name = field.name.of(bytes);
            assert_eq!(field.known, KnownField::parse(name));
            (name, field.value.of(bytes))
        });
        assert_eq!(fields.collect::<Vec<_>>(), expected, "{text:?}");
    }
}

/// Of an answer of 200 with these fields.
#[track_caller]
fn check_fields_strictly(fields: &str, expected: &str) {
    check_strict(&format!("HTTP/1.1 200 OK\r\n{fields}"), expected);
}

#[test]
fn ordinary_answers_are_taken() {
    let length = "HTTP/1.1 200 Length(5) keep";
    check_fields_strictly("Content-Length: 5\r\n", length);
    check_fields_strictly("content-length:5\r\nX-Odd!#$: \t\u{e4} \r\n", length);
    check_fields_strictly(
        "Transfer-Encoding: Chunked\r\n",
        "HTTP/1.1 200 Chunked keep",
    );
    check_fields_strictly("", "HTTP/1.1 200 UntilClose close");
    check_fields_strictly("X:\r\n", "HTTP/1.1 200 UntilClose close");
    // Many servers omit the phrase and its space.
    for line in [
        "HTTP/1.1 204 ",
        "HTTP/1.1 204",
        "HTTP/1.1 204 all is\tw\u{e4}ll",
    ] {
        check_strict(&format!("{line}\r\n"), "HTTP/1.1 204 None keep");
    }
    check_strict(
        "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n",
        "HTTP/1.0 200 Length(5) close",
    );
    check_strict(
        "HTTP/1.1 304 x\r\nContent-Length: 5\r\n",
        "HTTP/1.1 304 None keep",
    );
}

#[test]
fn lines_and_status_lines_have_one_spelling() {
    let lf = "line of the head ends with LF alone";
    check_strict("HTTP/1.1 200 OK\n", lf);
    check_strict("HTTP/1.1 200\n", lf);
    check_fields_strictly("A: b\nContent-Length: 5\r\n", lf);
    check_strict("\nHTTP/1.1 200 OK\r\n", lf);
    check_strict("\r\nHTTP/1.1 200 OK\r\n", "status line is not HTTP/1.x");
    let blank = "blanks are too many, or missing, in the status line, or precede a colon";
    for line in ["HTTP/1.1  200 OK", "HTTP/1.1\t200 OK", "HTTP/1.1 200\tOK"] {
        check_strict(&format!("{line}\r\n"), blank);
    }
    check_strict("HTTP/1.1 200 O\x01K\r\n", "head has a control byte");
}

#[test]
fn field_lines_have_one_meaning() {
    let blank = "blanks are too many, or missing, in the status line, or precede a colon";
    check_fields_strictly("Content-Length : 5\r\n", blank);
    check_fields_strictly("X\t: 5\r\n", blank);
    let name = "field line has no name with a colon behind it";
    for line in ["X(: y", ": y", "X", "X\u{e4}: y", "X[]: y"] {
        check_fields_strictly(&format!("{line}\r\n"), name);
    }
    check_fields_strictly("A: b\r\n c\r\n", "field line is continued on the next one");
    check_fields_strictly("A: b\x7f\r\n", "head has a control byte");
    check_fields_strictly("A: \x0bb\r\n", "head has a control byte");
}

#[test]
fn the_end_of_the_content_is_defined_once() {
    let again = "content length occurs again";
    check_fields_strictly("Content-Length: 5\r\nContent-Length: 5\r\n", again);
    let number = "content length is not a number";
    for value in ["5, 5", "+5", "0x5", "5 5", "", "5,", "9223372036854775808"] {
        check_fields_strictly(&format!("Content-Length: {value}\r\n"), number);
    }
    let both = "content length and transfer coding exclude each other";
    check_fields_strictly("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", both);
    check_fields_strictly("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", both);
    let coding = "transfer coding is not chunked alone";
    for value in [
        "gzip, chunked",
        "chunked, chunked",
        "gzip",
        "identity",
        "",
        "xchunked",
    ] {
        check_fields_strictly(&format!("Transfer-Encoding: {value}\r\n"), coding);
    }
    let twice = "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n";
    check_fields_strictly(twice, coding);
    check_strict(
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n",
        "transfer coding in HTTP/1.0",
    );
    for status in [100, 103, 204] {
        for field in ["Transfer-Encoding: chunked", "Content-Length: 5"] {
            check_strict(
                &format!("HTTP/1.1 {status} x\r\n{field}\r\n"),
                "length or transfer coding of an answer that has no content",
            );
        }
    }
    check_strict(
        "HTTP/1.1 204 x\r\nContent-Length: 0\r\n",
        "HTTP/1.1 204 None keep",
    );
}
