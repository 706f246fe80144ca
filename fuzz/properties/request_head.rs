//! What must hold of any bytes given to the request parser. Used by the fuzz target and by the
//! ordinary test that replays the corpus.

use mill_http::accept_encoding::accepts_gzip;
use mill_http::conditional::{Conditions, IfModifiedSince, Validators, evaluate};
use mill_http::field::{KnownField, ListElements};
use mill_http::h1::parse::{Parsed, parse_request};
use mill_http::head::RequestHead;
use mill_http::limits::HeadRules;
use mill_http::range::{RangeVerdict, parse_ranges};
use mill_http::target::normalize;

/// Panics if the parser breaks a promise on `input`.
pub(crate) fn check(input: &[u8]) {
    let rules = HeadRules::default();
    let mut whole = RequestHead::default();
    let parsed = parse_request(input, &mut whole, &rules);
    match parsed {
        Parsed::Complete { consumed } => {
            assert!(consumed <= input.len());
            no_bare_line_end(&input[..consumed]);
            spans_hold_what_they_say(&whole, input);
            semantics_do_not_panic(&whole, input);
        }
        Parsed::Partial => assert!(input.len() < rules.head_bytes_max as usize),
        Parsed::Refused(refusal) => {
            let mut log = Vec::new();
            refusal.emit_log(input, &whole, &mut log);
            assert!(
                !log.iter().any(u8::is_ascii_control),
                "a log line stays one line"
            );
        }
    }
    lf_lets_in_more_and_changes_nothing(input, parsed, &whole);
    split_does_not_matter(input, parsed, &whole, 1);
    split_does_not_matter(input, parsed, &whole, 1 + input.len() / 2);
}

/// With `accept_bare_lf` a head that is accepted anyway is the same, and CR is still followed by LF.
fn lf_lets_in_more_and_changes_nothing(input: &[u8], parsed: Parsed, whole: &RequestHead) {
    let rules = HeadRules {
        accept_bare_lf: true,
        ..HeadRules::default()
    };
    let mut head = RequestHead::default();
    let found = parse_request(input, &mut head, &rules);
    if let Parsed::Complete { consumed } = found {
        let lines = &input[..consumed];
        for (at, _) in lines.iter().enumerate().filter(|(_, byte)| **byte == b'\r') {
            assert_eq!(lines.get(at + 1), Some(&b'\n'), "bare CR at {at}");
        }
    }
    if matches!(parsed, Parsed::Complete { .. }) {
        assert_eq!(found, parsed);
        assert_eq!(
            format!("{:?}", comparable(&head)),
            format!("{:?}", comparable(whole))
        );
    }
}

/// Two readers of an accepted head agree on its lines.
fn no_bare_line_end(head: &[u8]) {
    for (at, byte) in head.iter().enumerate() {
        match byte {
            0 => panic!("NUL at {at}"),
            b'\r' => assert_eq!(head.get(at + 1), Some(&b'\n'), "bare CR at {at}"),
            b'\n' => assert!(at > 0 && head[at - 1] == b'\r', "bare LF at {at}"),
            _ => {}
        }
    }
    assert!(head.ends_with(b"\r\n\r\n"));
}

fn spans_hold_what_they_say(head: &RequestHead, input: &[u8]) {
    assert!(!head.method_name.of(input).is_empty());
    assert!(
        head.request_line
            .of(input)
            .starts_with(head.method_name.of(input))
    );
    assert!(head.content_length.is_none() || !head.chunked);
    for field in &head.fields {
        let name = field.name.of(input);
        assert!(!name.is_empty() && !name.iter().any(|byte| *byte <= b' ' || *byte == b':'));
        let expected = if field.ignored {
            KnownField::Other
        } else {
            KnownField::parse(name)
        };
        assert_eq!(field.known, expected);
        let value = field.value.of(input);
        assert_eq!(value.len(), field.value.len as usize);
        assert!(!matches!(value, [b' ' | b'\t', ..] | [.., b' ' | b'\t']));
    }
}

fn semantics_do_not_panic(head: &RequestHead, input: &[u8]) {
    let mut out = Vec::new();
    for merge_slashes in [true, false] {
        if let Ok(path) = normalize(&head.target, input, merge_slashes, &mut out) {
            assert!(!path.contains(&0));
            assert!(path.len() <= head.target.path.len as usize);
            if path.starts_with(b"/") && (head.target.complex || head.target.quoted) {
                let climbs = path.split(|byte| *byte == b'/').any(|part| part == b"..");
                assert!(!climbs || path.iter().any(|byte| matches!(byte, b'?' | b'#' | b'%')));
            }
        }
    }
    let validators = Validators {
        last_modified: Some(0),
        etag: Some(b"\"0-0\""),
    };
    evaluate(
        &validators,
        &Conditions::of(head, input),
        IfModifiedSince::Before,
    );
    for field in &head.fields {
        let value = field.value.of(input);
        accepts_gzip(value);
        assert!(ListElements::of(value).all(|element| !element.is_empty()));
        let mut ranges = Vec::new();
        if parse_ranges(value, 1000, None, &mut ranges) == RangeVerdict::Partial {
            assert!(
                ranges
                    .iter()
                    .all(|range| !range.is_empty() && range.end <= 1000)
            );
        }
    }
}

/// Bytes that arrive in pieces come to the same end, except that a limit may speak before the
/// syntax does.
fn split_does_not_matter(input: &[u8], parsed: Parsed, whole: &RequestHead, step: usize) {
    let mut head = RequestHead::default();
    let mut found = Parsed::Partial;
    // Byte by byte is quadratic in this loop's slices, not in the parser; long inputs go by more.
    let step = step.max(input.len() / 256);
    let mut len = 0;
    while found == Parsed::Partial && len < input.len() {
        len = (len + step).min(input.len());
        found = parse_request(&input[..len], &mut head, &HeadRules::default());
    }
    match parsed {
        Parsed::Complete { .. } => {
            assert_eq!(found, parsed);
            assert_eq!(
                format!("{:?}", comparable(&head)),
                format!("{:?}", comparable(whole))
            );
        }
        // A mistake in an unfinished line may wait for that line's end, not longer.
        Parsed::Refused(_) if found == Parsed::Partial => {
            let ended = [input, b"\0"].concat();
            found = parse_request(&ended, &mut head, &HeadRules::default());
            assert!(matches!(found, Parsed::Refused(_)));
        }
        Parsed::Refused(_) => assert!(matches!(found, Parsed::Refused(_))),
        Parsed::Partial => assert_eq!(found, Parsed::Partial),
    }
}

fn comparable(head: &RequestHead) -> impl std::fmt::Debug {
    (
        head.method,
        head.target,
        head.host,
        head.content_length,
        head.connection,
        head.fields.clone(),
    )
}
