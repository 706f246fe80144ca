//! What must hold of any bytes that are taken for memcached's answer. The first byte is the length of the key that
//! follows it. Used by the fuzz target and by the ordinary test that replays the corpus.

use mill_upstream::memcached::{MemcachedHead, Value, emit_get, parse_head};

/// Small, so that the limit is met by short inputs.
const BYTES_MAX: u32 = 64;

/// Panics if the codec breaks a promise on `input`.
pub(crate) fn check(input: &[u8]) {
    let Some((key_len, rest)) = input.split_first() else {
        return;
    };
    let Some((key, answer)) = rest.split_at_checked(usize::from(*key_len % 32)) else {
        return;
    };
    let mut request = Vec::new();
    let range = emit_get(key, &mut request);
    let key = &request[range];
    assert!(!key.iter().any(|byte| *byte <= b' '));
    let whole = parse_head(answer, key, BYTES_MAX);
    let mut parts = (0..=answer.len()).map(|len| parse_head(&answer[..len], key, BYTES_MAX));
    let first = parts.find(|found| *found != Ok(None));
    assert_eq!(first.unwrap_or(Ok(None)), whole);
    match whole {
        Ok(Some(head)) => {
            assert!(head.len <= answer.len().min(BYTES_MAX as usize));
            content_does_not_depend_on_the_split(&head, &answer[head.len..]);
        }
        Ok(None) => assert!(answer.len() <= BYTES_MAX as usize),
        Err(fault) => assert!(!fault.describe(answer, key).to_string().contains('\n')),
    }
}

fn content_does_not_depend_on_the_split(head: &MemcachedHead, bytes: &[u8]) {
    let Some(value_head) = &head.value else {
        return;
    };
    let read = |step: usize| {
        let mut value = Value::new(value_head);
        let (mut content, mut at) = (Vec::new(), 0);
        while !value.is_complete() && at < bytes.len() {
            let piece = &bytes[at..(at + step).min(bytes.len())];
            let step = value.on_bytes(piece, |bytes| content.extend_from_slice(bytes));
            assert!(step.complete || step.consumed == piece.len());
            at += step.consumed;
        }
        assert!(content.len() as u64 <= value_head.length);
        assert!(!value.is_complete() || content.len() as u64 == value_head.length);
        (content, at, value.is_complete(), value.has_trailer())
    };
    let whole = read(bytes.len().max(1));
    for step in [1, 7] {
        assert_eq!(read(step), whole, "in pieces of {step}");
    }
}
