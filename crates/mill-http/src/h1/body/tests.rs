//! Chunked bodies by the table, split everywhere, at each limit, and mutated.

use super::*;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The content and the number of bytes after the body; or the reason for a failure.
type Decoded = Result<(String, usize), &'static str>;

fn decode(pieces: &[&[u8]], rules: ChunkedRules) -> Decoded {
    let mut body = ChunkedBody::new(rules);
    let mut content = Vec::new();
    let mut position = 0;
    for piece in pieces {
        let mut rest = *piece;
        loop {
            let (consumed, event) = body.on_bytes(rest);
            assert!(consumed <= rest.len());
            position += consumed;
            rest = &rest[consumed..];
            match event {
                ChunkedEvent::Content(bytes) => {
                    assert!(!bytes.is_empty());
                    content.extend_from_slice(bytes);
                }
                ChunkedEvent::NeedMore => {
                    assert!(rest.is_empty());
                    break;
                }
                ChunkedEvent::End => {
                    assert_eq!(content.len() as u64, body.content_bytes());
                    return Ok((String::from_utf8_lossy(&content).into_owned(), position));
                }
                ChunkedEvent::Invalid => {
                    assert_eq!(body.on_bytes(b"0\r\n\r\n"), (0, ChunkedEvent::Invalid));
                    return Err("invalid");
                }
            }
        }
    }
    Err("unfinished")
}

const VALID: &[(&str, &str)] = &[
    ("0\r\n\r\n", ""),
    ("000\r\n\r\n", ""),
    ("5\r\nhello\r\n0\r\n\r\n", "hello"),
    ("1\r\na\r\nA\r\n0123456789\r\n0\r\n\r\n", "a0123456789"),
    ("0000000000000001\r\na\r\n0\r\n\r\n", "a"),
    ("1;a=b;c=\"d;e\"\r\na\r\n0;x\r\n\r\n", "a"),
    ("1 \r\na\r\n0\t;x\r\n\r\n", "a"),
    ("2\r\n\r\n\r\n0\r\n\r\n", "\r\n"),
    ("1\r\na\r\n0\r\nA: b\r\nC:\r\nD_e:\t\u{e4} \r\n\r\n", "a"),
];

#[test]
fn chunked_bodies_decode_the_same_at_every_split() {
    for (text, content) in VALID {
        let bytes = format!("{text}GET");
        let bytes = bytes.as_bytes();
        let expected = Ok((String::from(*content), text.len()));
        let rules = ChunkedRules::default();
        assert_eq!(decode(&[bytes], rules), expected, "{text:?}");
        for cut in 0..bytes.len() {
            assert_eq!(
                decode(&[&bytes[..cut], &bytes[cut..]], rules),
                expected,
                "{text:?} {cut}"
            );
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(decode(&single, rules), expected, "{text:?}");
        assert_eq!(
            decode(&[&bytes[..text.len() - 1]], rules),
            Err("unfinished")
        );
    }
}

#[test]
fn malformed_bodies_are_invalid() {
    for text in [
        "\r\n",
        "x\r\n",
        "-1\r\n",
        "+1\r\n",
        " 1\r\n",
        "0x1\r\n",
        "1\na",
        "1\r\r\n",
        "1\rx",
        "1 x\r\n",
        "1_\r\n",
        "1;\n",
        "1;a\rb",
        "1;\0\r\n",
        "1\r\nab",
        "1\r\na\n",
        "1\r\na\rx",
        "1\r\na0\r\n",
        "0\r\n\n",
        "0\r\n\rx",
        "0\r\n x: y\r\n",
        "0\r\nx : y\r\n",
        "0\r\n: y\r\n",
        "0\r\nx\r\n",
        "0\r\nx: y\n",
        "0\r\nx: y\rz",
        "0\r\nx: \0\r\n",
        "8000000000000000\r\n",
        "ffffffffffffffff\r\n",
        "10000000000000000\r\n",
        "00000000000000001\r\n",
    ] {
        assert_eq!(
            decode(&[text.as_bytes()], ChunkedRules::default()),
            Err("invalid"),
            "{text:?}"
        );
    }
    let largest = decode(&[b"7fffffffffffffff\r\nx"], ChunkedRules::default());
    assert_eq!(largest, Err("unfinished"));
}

#[test]
fn each_limit_holds_at_its_own_byte() {
    let check = |text: &str, rules: ChunkedRules, is_valid: bool| {
        assert_eq!(
            decode(&[text.as_bytes()], rules).is_ok(),
            is_valid,
            "{text:?}"
        );
    };
    let rules = ChunkedRules {
        extension_bytes_max: 4,
        trailer_bytes_max: 10,
        framing_bytes_per_content_byte_max: 6,
    };
    check("5;abcd\r\nhello\r\n0\r\n\r\n", rules, true);
    check("5;abcde\r\nhello\r\n0\r\n\r\n", rules, false);
    check("5\r\nhello\r\n0;abcd\r\n\r\n", rules, true);
    check("5\r\nhello\r\n0\r\nabc: d\r\n\r\n", rules, true);
    check("5\r\nhello\r\n0\r\nabc: de\r\n\r\n", rules, true);
    check("5\r\nhello\r\n0\r\nabc: defg\r\n\r\n", rules, false);
    // One-byte chunks cost five bytes of framing each, padded ones more than the factor allows.
    let plain = format!("{}0\r\n\r\n", "1\r\nx\r\n".repeat(1000));
    check(&plain, rules, true);
    let padded = format!("{}0\r\n\r\n", "0000001\r\nx\r\n".repeat(1000));
    check(&padded, rules, false);
}

#[test]
fn mutated_bodies_never_panic_and_do_not_depend_on_the_split() {
    const SEED: u64 = 0x6368_756e_6b65_6421;
    const INTERESTING: &[u8] = b"\r\n\t ;:0123456789abcdefABCDEFg\x00\x7f\xff";
    let mut state = SEED;
    let mut random = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % bound as u64).unwrap()
    };
    for round in 0..20_000 {
        let mut bytes = VALID[random(VALID.len())].0.as_bytes().to_vec();
        for _ in 0..=random(3) {
            let at = random(bytes.len());
            match random(3) {
                0 => bytes[at] = INTERESTING[random(INTERESTING.len())],
                1 => bytes.insert(at, INTERESTING[random(INTERESTING.len())]),
                _ => drop(bytes.remove(at)),
            }
        }
        let rules = ChunkedRules::default();
        let cut = random(bytes.len() + 1);
        let whole = decode(&[&bytes], rules);
        let split = decode(&[&bytes[..cut], &bytes[cut..]], rules);
        assert_eq!(
            split, whole,
            "seed {SEED:#x}, round {round}, cut {cut}: {bytes:?}"
        );
    }
}

#[test]
fn a_body_of_known_length_ends_at_its_last_byte() {
    let mut body = LengthBody::new(5);
    assert_eq!(body.on_bytes(b"hel"), b"hel");
    assert_eq!((body.remaining(), body.is_complete()), (2, false));
    assert_eq!(body.on_bytes(b""), b"");
    assert_eq!(body.on_bytes(b"loGET"), b"lo");
    assert!(body.is_complete());
    assert_eq!(body.on_bytes(b"GET"), b"");
}

#[test]
fn the_kind_of_body_follows_the_head() {
    let check = |content_length, chunked, expected| {
        let head = RequestHead {
            content_length,
            chunked,
            ..RequestHead::default()
        };
        assert_eq!(BodyKind::of(&head), expected);
    };
    check(None, false, BodyKind::Empty);
    check(Some(0), false, BodyKind::Empty);
    check(Some(1), false, BodyKind::Length(1));
    check(None, true, BodyKind::Chunked);
}
