//! What must hold of any bytes that are taken for the head of a CGI response. Used by the fuzz target and by the
//! ordinary test that replays the corpus.

use mill_http::h1::response::{CgiScan, Framing, RequestKind, ResponseFault, ResponseHead};

/// Small, so that the limit is met by short inputs.
const BYTES_MAX: u32 = 256;

/// Panics if the scan breaks a promise on `input`.
pub(crate) fn check(input: &[u8]) {
    let whole = read(input, input.len());
    for step in [1, 7] {
        assert_eq!(read(input, step), whole, "in pieces of {step}");
    }
    match whole {
        Ok(Some(head)) => holds_what_it_says(&head, input),
        Ok(None) => assert!(input.len() <= BYTES_MAX as usize),
        Err(_) => {}
    }
}

fn read(input: &[u8], step: usize) -> Result<Option<ResponseHead>, ResponseFault> {
    let mut scan = CgiScan::new(RequestKind::Other, BYTES_MAX);
    let mut arrived = 0;
    loop {
        arrived = (arrived + step.max(1)).min(input.len());
        match scan.parse(&input[..arrived])? {
            None if arrived < input.len() => {}
            found => return Ok(found),
        }
    }
}

fn holds_what_it_says(head: &ResponseHead, input: &[u8]) {
    assert!((100..=999).contains(&head.status));
    assert!(head.len <= input.len() && head.len <= BYTES_MAX as usize);
    assert!(!head.keep_alive);
    let lines = &input[..head.len];
    let is_control = |byte: &u8| byte.is_ascii_control() && !matches!(byte, b'\t' | b'\r' | b'\n');
    assert!(!lines.iter().any(is_control));
    let mut lengths = 0;
    for (name, value) in head.fields(input) {
        assert!(!name.is_empty() && !name.iter().any(|byte| matches!(byte, b':' | b' ' | b'\t')));
        assert!(!value.iter().any(|byte| matches!(byte, b'\r' | b'\n')));
        assert!(!name.eq_ignore_ascii_case(b"transfer-encoding"));
        lengths += u32::from(name.eq_ignore_ascii_case(b"content-length"));
    }
    assert!(lengths <= 1);
    assert!(lengths == 1 || !matches!(head.framing, Framing::Length(_)));
    assert!(!head.reason(input).contains(&b'\n'));
}
