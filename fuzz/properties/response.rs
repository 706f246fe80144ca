//! What must hold of any bytes that a client takes for responses. The first byte is the request:
//! `H` for HEAD, `C` for CONNECT, any other for the rest; what follows is the stream. Used by the
//! fuzz target and by the ordinary test that replays the corpus.

use mill_http::field::{Field, is_token_byte};
use mill_http::h1::response::{
    Framing, RequestKind, ResponseBody, ResponseFault, ResponseHead, ResponseScan,
};
use mill_http::limits::{ChunkedRules, Reading, ResponseRules};

/// Small, so that the limit is met by short inputs.
const LIMITS: ResponseRules = ResponseRules {
    reading: Reading::Lenient,
    head_bytes_max: 512,
    chunked: ChunkedRules {
        extension_bytes_max: 64,
        trailer_bytes_max: 128,
        framing_bytes_per_content_byte_max: 16,
    },
};

/// What a stream came to, in whatever pieces it arrived.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    heads: Vec<ResponseHead>,
    content: Vec<u8>,
    /// Bytes of the responses that are whole.
    position: usize,
    fault: Option<ResponseFault>,
}

/// Panics if the client's side breaks a promise on `input`.
pub(crate) fn check(input: &[u8]) {
    let Some((request, stream)) = input.split_first() else {
        return;
    };
    let request = match request {
        b'H' => RequestKind::Head,
        b'C' => RequestKind::Connect,
        _ => RequestKind::Other,
    };
    strictly(stream, request);
    let whole = read(stream, request, stream.len());
    assert!(whole.content.len() <= stream.len());
    for step in [1, 7] {
        assert_eq!(read(stream, request, step), whole, "in pieces of {step}");
    }
}

/// Strict reading finds what lenient reading finds, or refuses it, and does not depend on pieces either.
fn strictly(stream: &[u8], request: RequestKind) {
    let strict = ResponseRules {
        reading: Reading::Strict,
        ..LIMITS
    };
    let (whole, fields) = head(stream, request, &strict, stream.len());
    for step in [1, 7] {
        assert_eq!(
            head(stream, request, &strict, step),
            (whole, fields.clone()),
            "strictly, in pieces of {step}"
        );
    }
    let Ok(Some(found)) = whole else { return };
    let (lenient, _) = head(stream, request, &LIMITS, stream.len());
    assert_eq!(lenient, whole, "strictly read, and otherwise leniently");
    let texts = |field: Field| (field.known, field.name.of(stream), field.value.of(stream));
    let later: Vec<_> = found.field_spans(stream).map(texts).collect();
    assert_eq!(later, fields.iter().copied().map(texts).collect::<Vec<_>>());
    for field in &fields {
        assert!(
            field
                .name
                .of(stream)
                .iter()
                .all(|byte| is_token_byte(*byte))
        );
        let mut value = field.value.of(stream).iter();
        assert!(value.all(|byte| *byte == b'\t' || (*byte >= b' ' && *byte != 0x7f)));
    }
    let framing = |name: &[u8]| {
        let is_it = |field: &&Field| field.name.of(stream).eq_ignore_ascii_case(name);
        fields.iter().filter(is_it).count()
    };
    assert!(framing(b"Content-Length") + framing(b"Transfer-Encoding") <= 1);
}

/// The first head of the stream and its fields, read in pieces of `step` bytes.
fn head(
    stream: &[u8],
    request: RequestKind,
    rules: &ResponseRules,
    step: usize,
) -> (Result<Option<ResponseHead>, ResponseFault>, Vec<Field>) {
    let (mut scan, mut fields) = (ResponseScan::new(request, rules), Vec::new());
    let mut arrived = 0;
    loop {
        arrived = (arrived + step.max(1)).min(stream.len());
        let found = scan.parse_fields(&stream[..arrived], |field| fields.push(field));
        if found != Ok(None) || arrived == stream.len() {
            return (found, fields);
        }
    }
}

/// Reads one response after the other, all to the same request, in pieces of `step` bytes.
fn read(stream: &[u8], request: RequestKind, step: usize) -> Found {
    let mut found = Found::default();
    while found.fault.is_none() && found.position < stream.len() {
        match response(&stream[found.position..], request, step.max(1), &mut found) {
            Ok(Some(len)) => found.position += len,
            Ok(None) => break,
            Err(fault) => found.fault = Some(fault),
        }
    }
    found
}

/// The length of the response at the beginning of `stream`, if it is whole.
fn response(
    stream: &[u8],
    request: RequestKind,
    step: usize,
    found: &mut Found,
) -> Result<Option<usize>, ResponseFault> {
    let mut scan = ResponseScan::new(request, &LIMITS);
    let mut arrived = 0;
    let head = loop {
        arrived = (arrived + step).min(stream.len());
        match scan.parse(&stream[..arrived])? {
            Some(head) => break head,
            None if arrived == stream.len() => {
                assert!(stream.len() <= LIMITS.head_bytes_max as usize);
                return Ok(None);
            }
            None => {}
        }
    };
    holds_what_it_says(&head, &stream[..arrived], request);
    found.heads.push(head);
    let mut body = ResponseBody::new(head.framing, &LIMITS);
    let mut position = head.len;
    while !body.is_complete() && position < stream.len() {
        let piece = &stream[position..(position + step).min(stream.len())];
        let before = found.content.len();
        let took = body.on_bytes_with(piece, |content| found.content.extend_from_slice(content))?;
        assert!(took.content <= took.consumed && took.consumed <= piece.len());
        assert!(took.complete || took.consumed == piece.len());
        assert_eq!(found.content.len() - before, took.content);
        position += took.consumed;
    }
    let was_complete = body.is_complete();
    let ended = body.on_end_of_stream();
    let may_end = was_complete || head.framing == Framing::UntilClose;
    assert_eq!(ended.is_ok(), may_end);
    Ok(may_end.then_some(position))
}

fn holds_what_it_says(head: &ResponseHead, bytes: &[u8], request: RequestKind) {
    assert!((100..=999).contains(&head.status));
    assert!(head.len <= bytes.len() && head.len <= LIMITS.head_bytes_max as usize);
    assert!(head.fields_start < head.len);
    let lines = &bytes[..head.len];
    assert!(lines.ends_with(b"\n\r\n") || lines.ends_with(b"\n\n"));
    assert!(!lines.contains(&0));
    let bare_cr = lines
        .windows(2)
        .any(|pair| pair[0] == b'\r' && pair[1] != b'\n');
    assert!(!bare_cr);
    assert!(request != RequestKind::Head || head.framing == Framing::None);
    assert!(!(head.keep_alive && head.framing == Framing::UntilClose));
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let mut taken = 0;
    for (name, value) in head.fields(bytes) {
        assert!(!name.is_empty() && !name.contains(&b':'));
        assert!(!value.first().is_some_and(is_blank) && !value.last().is_some_and(is_blank));
        taken += name.len() + value.len() + 2;
    }
    assert!(taken <= head.len - head.fields_start);
}
