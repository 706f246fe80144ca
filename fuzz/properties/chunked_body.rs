//! What must hold of any bytes given to the chunked decoder. Used by the fuzz target and by the
//! ordinary test that replays the corpus.

use mill_http::h1::body::{ChunkedBody, ChunkedEvent};
use mill_http::limits::ChunkedRules;

#[derive(Debug, PartialEq, Eq)]
enum End {
    Whole,
    Unfinished,
    Invalid,
}

/// Panics if the decoder breaks a promise on `input`.
pub(crate) fn check(input: &[u8]) {
    let whole = decode(input, input.len().max(1));
    assert_eq!(decode(input, 1), whole, "byte by byte");
    assert_eq!(decode(input, 7), whole, "by sevens");
    assert!(whole.1.len() <= input.len());
}

/// The end, the content and where the body ended, fed in pieces of `step` bytes.
fn decode(input: &[u8], step: usize) -> (End, Vec<u8>, usize) {
    let mut body = ChunkedBody::new(ChunkedRules::default());
    let mut content = Vec::new();
    let mut position = 0;
    for piece in input.chunks(step) {
        let mut rest = piece;
        loop {
            let (consumed, event) = body.on_bytes(rest);
            rest = &rest[consumed..];
            position += consumed;
            match event {
                ChunkedEvent::Content(bytes) => {
                    assert!(!bytes.is_empty());
                    content.extend_from_slice(bytes);
                }
                ChunkedEvent::NeedMore => {
                    assert!(rest.is_empty());
                    break;
                }
                ChunkedEvent::End => return (End::Whole, content, position),
                ChunkedEvent::Invalid => return (End::Invalid, content, position),
            }
        }
        assert_eq!(body.content_bytes(), content.len() as u64);
    }
    (End::Unfinished, content, position)
}
