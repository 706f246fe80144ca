//! CGI heads by tables, each at every split.

use super::*;

/// The result when the bytes arrive one by one.
fn scan_slowly(
    bytes: &[u8],
    request: RequestKind,
    bytes_max: u32,
) -> Result<Option<ResponseHead>, ResponseFault> {
    let mut scan = CgiScan::new(request, bytes_max);
    let mut found = (0..=bytes.len()).map(|len| scan.parse(&bytes[..len]));
    found.find(|result| *result != Ok(None)).unwrap_or(Ok(None))
}

/// `head`, with content behind it, is read so, whole and at every split. The expectation is status, framing and reason.
#[track_caller]
fn check_cgi_of(request: RequestKind, head: &str, expected: &str) {
    let bytes = format!("{head}content\n\n");
    let whole = CgiScan::new(request, 512).parse(bytes.as_bytes());
    let found = match whole {
        Ok(None) => "more".to_string(),
        Err(fault) => fault.to_string(),
        Ok(Some(found)) => {
            assert_eq!(found.len, head.len(), "{head:?}");
            let reason = String::from_utf8_lossy(found.reason(bytes.as_bytes())).into_owned();
            format!("{} {:?} {reason:?}", found.status, found.framing)
        }
    };
    assert_eq!(found, expected, "{head:?}");
    assert_eq!(
        scan_slowly(bytes.as_bytes(), request, 512),
        whole,
        "{head:?}"
    );
    for at in 0..bytes.len() {
        let mut scan = CgiScan::new(request, 512);
        if scan.parse(&bytes.as_bytes()[..at]) == Ok(None) {
            assert_eq!(
                scan.parse(bytes.as_bytes()),
                whole,
                "split at {at}: {head:?}"
            );
        }
    }
}

#[track_caller]
fn check_cgi(head: &str, expected: &str) {
    check_cgi_of(RequestKind::Other, head, expected);
}

#[test]
fn the_status_is_a_field_or_a_status_line_or_follows_from_location() {
    check_cgi("Content-Type: text/html\r\n\r\n", "200 UntilClose \"\"");
    check_cgi("\r\n", "200 UntilClose \"\"");
    check_cgi("\n", "200 UntilClose \"\"");
    check_cgi(
        "Status: 404 Not Found\r\nContent-Type: text/html\r\n\r\n",
        "404 UntilClose \"Not Found\"",
    );
    check_cgi("X: y\nsTATUS:\t500\n\n", "500 UntilClose \"\"");
    check_cgi("Location: /x\r\n\r\n", "302 UntilClose \"\"");
    check_cgi(
        "Location: /x\r\nStatus: 201 Made\r\n\r\n",
        "201 UntilClose \"Made\"",
    );
    check_cgi(
        "HTTP/1.1 403 For  bidden\r\nX: y\r\n\r\n",
        "403 UntilClose \"For  bidden\"",
    );
    check_cgi("HTTP/1.0 200\r\n\r\n", "200 UntilClose \"\"");
    // The status line counts, as in nginx.
    check_cgi(
        "HTTP/1.1 200 OK\r\nStatus: 404 Not Found\r\n\r\n",
        "200 UntilClose \"OK\"",
    );
}

#[test]
fn statuses_that_are_none_are_refused() {
    let code = "status code is not a number from 100 to 999";
    for status in ["", "20", "2000", "099", "20x", "OK", "-20", "200OK"] {
        check_cgi(&format!("Status: {status}\r\n\r\n"), code);
    }
    check_cgi("HTTP/1.1 099 x\r\n\r\n", code);
    check_cgi(
        "HTTP/1.1  200 OK\r\n\r\n",
        "blanks are too many, or missing, in the status line, or precede a colon",
    );
    check_cgi("HTTP/2 200 OK\r\n\r\n", "status line is not HTTP/1.x");
    check_cgi("Status: 200\r\nStatus: 200\r\n\r\n", "status occurs again");
    // Behind a field it is no status line.
    check_cgi(
        "X: y\r\nHTTP/1.1 200 OK\r\n\r\n",
        "field line has no name with a colon behind it",
    );
}

#[test]
fn field_lines_are_checked_strictly_but_may_end_with_lf() {
    check_cgi("A: b\nC:\r\nD: \u{e4}\t\n\n", "200 UntilClose \"\"");
    let name = "field line has no name with a colon behind it";
    check_cgi("<html>\n", name);
    check_cgi(": b\n", name);
    check_cgi("A(: b\n", name);
    check_cgi("A: b\n c\n", "field line is continued on the next one");
    check_cgi(" A: b\n", "field line is continued on the next one");
    check_cgi(
        "A : b\n",
        "blanks are too many, or missing, in the status line, or precede a colon",
    );
    check_cgi("A: b\rC: d\n", "head has a CR that no LF follows");
    check_cgi("A: b\r\r\n", "head has a CR that no LF follows");
    check_cgi("A: \0\n", "head has a NUL");
    check_cgi("A: \x01\n", "head has a control byte");
}

#[test]
fn the_content_ends_with_its_length_or_with_the_stream() {
    check_cgi("Content-Length: 5\r\n\r\n", "200 Length(5) \"\"");
    check_cgi("Content-Length: 0\n\n", "200 Length(0) \"\"");
    check_cgi_of(RequestKind::Head, "Content-Length: 5\n\n", "200 None \"\"");
    check_cgi("Status: 304\nContent-Length: 5\n\n", "304 None \"\"");
    check_cgi("Status: 204\n\n", "204 None \"\"");
    check_cgi("Status: 204\nContent-Length: 0\n\n", "204 None \"\"");
    check_cgi(
        "Status: 204\nContent-Length: 5\n\n",
        "length or transfer coding of an answer that has no content",
    );
    check_cgi(
        "Content-Length: 5\nContent-Length: 5\n\n",
        "content length occurs again",
    );
    check_cgi_of(
        RequestKind::Head,
        "Content-Length: 0\nContent-Length: 0\n\n",
        "content length occurs again",
    );
    check_cgi("Content-Length: 5, 5\n\n", "content length is not a number");
    check_cgi(
        "Transfer-Encoding: chunked\n\n",
        "transfer coding in the head of a CGI response",
    );
}

#[test]
fn the_limit_of_a_cgi_head_holds_at_its_own_byte() {
    for head in ["A: b\r\n\r\n", "A: b\n\n", "HTTP/1.1 200\n\n"] {
        let len = u32::try_from(head.len()).unwrap();
        for bytes_max in 0..=len + 1 {
            let bytes = format!("{head}content");
            let whole = CgiScan::new(RequestKind::Other, bytes_max).parse(bytes.as_bytes());
            assert_eq!(
                scan_slowly(bytes.as_bytes(), RequestKind::Other, bytes_max),
                whole
            );
            if bytes_max < len {
                assert_eq!(whole, Err(ResponseFault::HeadTooLong { bytes_max }));
            } else {
                assert_eq!(whole.unwrap().unwrap().len, head.len());
            }
        }
    }
}

#[test]
fn fields_of_a_cgi_head_are_handed_over_as_they_came() {
    let bytes = b"Status: 200\nSet-Cookie:a\r\nset-cookie: b \n\nX: y\n\n";
    let head = CgiScan::new(RequestKind::Other, 512).parse(bytes);
    let head = head.unwrap().unwrap();
    let found: Vec<_> = head.fields(bytes).collect();
    let expected: [(&[u8], &[u8]); 3] = [
        (b"Status", b"200"),
        (b"Set-Cookie", b"a"),
        (b"set-cookie", b"b"),
    ];
    assert_eq!(found, expected);
}
