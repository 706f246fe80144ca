//! Lookups by tables, each at every split.

use super::*;

#[test]
fn keys_are_escaped_as_in_nginx() {
    let check = |key: &[u8], expected: &str| {
        let mut out = b"x".to_vec();
        let range = emit_get(key, &mut out);
        assert_eq!(
            String::from_utf8(out.clone()).unwrap(),
            format!("xget {expected}\r\n")
        );
        assert_eq!(&out[range], expected.as_bytes());
    };
    check(b"/a?b=c", "/a?b=c");
    check(b"a b%20\r\n\0\x1f!\x7f", "a%20b%2520%0D%0A%00%1F!\x7f");
}

#[track_caller]
fn check_head(answer: &str, expected: Result<(Option<(u64, u64)>, usize), MemcachedFault>) {
    let whole = parse_head(answer.as_bytes(), b"/k", 64);
    let found = whole.map(|head| head.expect("a whole line"));
    let found = found.map(|head| {
        let value = head.value.map(|value| (value.flags, value.length));
        (value, head.len)
    });
    assert_eq!(found, expected, "{answer:?}");
    let line = answer.find('\n').unwrap();
    for len in 0..answer.len() {
        let part = parse_head(&answer.as_bytes()[..len], b"/k", 64);
        if len <= line {
            assert_eq!(part, Ok(None), "{answer:?}");
        } else {
            assert_eq!(part, whole, "{answer:?}");
        }
    }
}

#[test]
fn the_first_line_is_a_value_or_the_end() {
    check_head("VALUE /k 0 5\r\nhello\r\nEND\r\n", Ok((Some((0, 5)), 14)));
    check_head("VALUE /k 2 0\r\n\r\nEND\r\n", Ok((Some((2, 0)), 14)));
    check_head(
        "VALUE /k 1 9223372036854775807\r\n",
        Ok((Some((1, i64::MAX as u64)), 32)),
    );
    check_head("END\r\n", Ok((None, 5)));
    for (line, fault) in [
        ("VALUE /l 0 5\r\n", MemcachedFault::Key),
        ("VALUE /\r\n", MemcachedFault::Key),
        ("VALUE /kk 0 5\r\n", MemcachedFault::Response),
        ("VALUE /k\r\n", MemcachedFault::Response),
        ("VALUE /k 5\r\n", MemcachedFault::Response),
        ("VALUE /k x 5\r\n", MemcachedFault::Flags),
        ("VALUE /k  5\r\n", MemcachedFault::Flags),
        ("VALUE /k 0 \r\n", MemcachedFault::Length),
        ("VALUE /k 0 -5\r\n", MemcachedFault::Length),
        ("VALUE /k 0 5 7\r\n", MemcachedFault::Length),
        ("VALUE /k 0 9223372036854775808\r\n", MemcachedFault::Length),
        ("VALUE /k 0 5\n", MemcachedFault::Response),
        ("END\n", MemcachedFault::Response),
        ("END \r\n", MemcachedFault::Response),
        ("NOT_FOUND\r\n", MemcachedFault::Response),
        ("ERROR\r\n", MemcachedFault::Response),
        ("SERVER_ERROR out of memory\r\n", MemcachedFault::Response),
        ("\r\n", MemcachedFault::Response),
    ] {
        check_head(line, Err(fault));
    }
}

#[test]
fn the_first_line_is_limited() {
    let parse = |bytes: &[u8], most| parse_head(bytes, b"/k", most);
    assert!(parse(b"VALUE /k 0 5\r\nhello", 14).unwrap().is_some());
    assert_eq!(
        parse(b"VALUE /k 0 5\r\nhello", 13),
        Err(MemcachedFault::HeadTooLong)
    );
    assert_eq!(parse(&[b'a'; 64], 64), Ok(None));
    assert_eq!(parse(&[b'a'; 65], 64), Err(MemcachedFault::HeadTooLong));
}

/// The content, whether the trailer is right, and the bytes that are left.
fn read(length: u64, bytes: &[u8], step: usize) -> (Vec<u8>, bool, bool, usize) {
    let mut value = Value::new(&ValueHead { flags: 0, length });
    let (mut content, mut at) = (Vec::new(), 0);
    while at < bytes.len() && !value.is_complete() {
        let piece = &bytes[at..(at + step).min(bytes.len())];
        let taken = value.on_bytes(piece, |bytes| content.extend_from_slice(bytes));
        assert!(taken.complete || taken.consumed == piece.len());
        at += taken.consumed;
    }
    let (complete, trailer) = (value.is_complete(), value.has_trailer());
    (content, complete, trailer, bytes.len() - at)
}

#[test]
fn the_content_ends_with_its_length_and_the_trailer() {
    let check = |length: u64, bytes: &str, expected: (&str, bool, bool, usize)| {
        let expected = (
            expected.0.as_bytes().to_vec(),
            expected.1,
            expected.2,
            expected.3,
        );
        for step in 1..=bytes.len() {
            assert_eq!(read(length, bytes.as_bytes(), step), expected, "{bytes:?}");
        }
    };
    check(5, "hello\r\nEND\r\n", ("hello", true, true, 0));
    check(0, "\r\nEND\r\n", ("", true, true, 0));
    check(7, "\r\nEND\r\n\r\nEND\r\nx", ("\r\nEND\r\n", true, true, 1));
    check(5, "hel", ("hel", false, false, 0));
    check(5, "hello\r\nEND", ("hello", false, false, 0));
    check(5, "hello, world", ("hello", true, false, 7));
    check(5, "hello\r\nEND\n", ("hello", true, false, 1));
}

#[test]
fn faults_are_told_in_nginxs_words() {
    let check = |fault: MemcachedFault, line: &str, expected: &str| {
        let found = fault.describe(line.as_bytes(), b"/k").to_string();
        assert_eq!(found, expected);
    };
    check(
        MemcachedFault::Response,
        "SERVER_ERROR x\r\nmore",
        "memcached sent invalid response: \"SERVER_ERROR x\"",
    );
    check(
        MemcachedFault::Length,
        "VALUE /k 0 x\r\n",
        "memcached sent invalid length in response \"VALUE /k 0 x\" for key \"/k\"",
    );
    check(
        MemcachedFault::Flags,
        "VALUE /k x 1\r\n",
        "memcached sent invalid flags in response \"VALUE /k x 1\" for key \"/k\"",
    );
    check(
        MemcachedFault::Key,
        "VALUE /l 0 1\r\n",
        "memcached sent invalid key in response \"VALUE /l 0 1\" for key \"/k\"",
    );
}
