//! Contents by a table, at every split; and the end of the stream.

use super::*;

/// The content, how many bytes the response took, and how it ended.
fn read(framing: Framing, pieces: &[&[u8]]) -> (String, usize, &'static str) {
    let limits = ResponseRules::lenient();
    let (mut counted, mut handed) = (
        ResponseBody::new(framing, &limits),
        ResponseBody::new(framing, &limits),
    );
    let (mut content, mut consumed) = (Vec::new(), 0);
    for piece in pieces {
        let before = content.len();
        let found = handed.on_bytes_with(piece, |bytes| {
            assert!(!bytes.is_empty());
            content.extend_from_slice(bytes);
        });
        assert_eq!(counted.on_bytes(piece), found);
        let Ok(step) = found else {
            assert_eq!(found, Err(ResponseFault::ChunkedContent));
            return (String::from_utf8(content).unwrap(), consumed, "fault");
        };
        consumed += step.consumed;
        assert_eq!(step.content, content.len() - before);
        assert!(step.complete || step.consumed == piece.len());
        assert_eq!(step.complete, handed.is_complete());
    }
    let end = match (handed.is_complete(), handed.on_end_of_stream()) {
        (true, Ok(())) => "complete",
        (false, Ok(())) => "complete at the end",
        (false, Err(ResponseFault::EndedEarly)) => "early",
        other => panic!("{other:?}"),
    };
    assert_eq!(handed.is_complete(), end != "early");
    // Bytes after the end belong to another response.
    if handed.is_complete() {
        let step = BodyStep {
            consumed: 0,
            content: 0,
            complete: true,
        };
        assert_eq!(handed.on_bytes(b"HTTP/1.1 200 OK\r\n"), Ok(step));
    }
    (String::from_utf8(content).unwrap(), consumed, end)
}

#[test]
fn content_ends_where_its_framing_says() {
    let check = |framing: Framing, bytes: &str, content: &str, consumed: usize, end: &str| {
        let expected = (content.to_string(), consumed, end);
        let (bytes, text) = (bytes.as_bytes(), bytes);
        let whole = read(framing, &[bytes]);
        assert_eq!(
            (whole.0, whole.1, whole.2),
            expected,
            "{framing:?} {text:?}"
        );
        for at in 0..bytes.len() {
            let (first, second) = bytes.split_at(at);
            let split = read(framing, &[first, &[], second]);
            assert_eq!(
                (split.0, split.2),
                (expected.0.clone(), end),
                "{framing:?} {text:?} at {at}"
            );
            if end != "fault" {
                assert_eq!(split.1, consumed);
            }
        }
    };
    use Framing::{Chunked, Length, None, UntilClose};
    check(None, "", "", 0, "complete");
    check(None, "HTTP/1.1 200", "", 0, "complete");
    check(Length(0), "HTTP/1.1 200", "", 0, "complete");
    check(Length(5), "helloHTTP/1.1 200", "hello", 5, "complete");
    check(Length(5), "hello", "hello", 5, "complete");
    check(Length(5), "hell", "hell", 4, "early");
    check(Length(5), "", "", 0, "early");
    check(Length(u64::MAX), "hell", "hell", 4, "early");
    check(UntilClose, "", "", 0, "complete at the end");
    check(UntilClose, "hello", "hello", 5, "complete at the end");
    check(
        Chunked,
        "5\r\nhello\r\n1;x=y\r\n!\r\n0\r\nA: b\r\n\r\nHTTP",
        "hello!",
        31,
        "complete",
    );
    check(Chunked, "0\r\n\r\n", "", 5, "complete");
    check(Chunked, "5\r\nhello\r\n0\r\n\r", "hello", 14, "early");
    check(Chunked, "5\r\nhel", "hel", 6, "early");
    check(Chunked, "", "", 0, "early");
    check(Chunked, "5\r\nhello0\r\n\r\n", "hello", 0, "fault");
    check(Chunked, "5\nhello\n0\n\n", "", 0, "fault");
    check(Chunked, "-1\r\n", "", 0, "fault");
}

#[test]
fn fault_messages_describe_the_fault() {
    let limits = ResponseRules::lenient();
    let mut body = ResponseBody::new(Framing::Chunked, &limits);
    let fault = body.on_bytes(b"x").unwrap_err();
    assert_eq!(fault.to_string(), "chunked content is malformed");
    assert_eq!(body.on_bytes(b"0\r\n\r\n"), Err(fault), "a fault stays");
    let fault = body.on_end_of_stream().unwrap_err();
    assert_eq!(
        fault.to_string(),
        "connection ended before the response was whole"
    );
}
