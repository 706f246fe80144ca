//! What must hold of any bytes that are taken for the answer of a FastCGI server. The first byte is the request: bit 0
//! for HEAD, bit 1 for a connection that is to be kept. Used by the fuzz target and by the ordinary test that replays the
//! corpus.

use mill_http::h1::response::{RequestKind, ResponseHead};
use mill_upstream::fastcgi::{AnswerHead, FastcgiFault};

/// Small, so that the limit is met by short inputs.
const BYTES_MAX: u32 = 64;

/// What an answer came to, in whatever pieces it arrived.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    head: Option<ResponseHead>,
    head_bytes: Vec<u8>,
    content: Vec<u8>,
    stderr: Vec<u8>,
    taken: usize,
    /// Complete, with surplus, may be kept, complete at the end of the stream.
    end: [bool; 4],
    fault: Option<FastcgiFault>,
}

/// Panics if the codec breaks a promise on `input`.
pub(crate) fn check(input: &[u8]) {
    let Some((options, stream)) = input.split_first() else {
        return;
    };
    let whole = read(stream, *options, stream.len());
    for step in [1, 7] {
        assert_eq!(read(stream, *options, step), whole, "in pieces of {step}");
    }
    assert!(whole.content.len() + whole.stderr.len() <= stream.len());
    let [complete, surplus, kept, _] = whole.end;
    assert!(complete || !(surplus || kept));
    assert!(!kept || (!surplus && options & 2 != 0));
}

fn read(stream: &[u8], options: u8, step: usize) -> Found {
    let mut found = Found::default();
    if let Err(fault) = answer(stream, options, step.max(1), &mut found) {
        // How far it came before the fault depends on the pieces.
        found.taken = 0;
        found.head_bytes.clear();
        found.fault = Some(fault);
    }
    found
}

fn answer(stream: &[u8], options: u8, step: usize, found: &mut Found) -> Result<(), FastcgiFault> {
    let request = match options & 1 {
        0 => RequestKind::Other,
        _ => RequestKind::Head,
    };
    let piece = |at: usize| &stream[at..(at + step).min(stream.len())];
    let mut reading = AnswerHead::new(request, BYTES_MAX);
    let head = loop {
        if found.taken == stream.len() {
            return Ok(());
        }
        let bytes = piece(found.taken);
        let (head_bytes, stderr) = (&mut found.head_bytes, &mut found.stderr);
        let on_stderr = |text: &[u8]| stderr.extend_from_slice(text);
        let result = reading.on_bytes(bytes, head_bytes, on_stderr);
        assert!(found.head_bytes.len() <= BYTES_MAX as usize + 1);
        let (taken, head) = result?;
        assert!(taken <= bytes.len() && (head.is_some() || taken == bytes.len()));
        found.taken += taken;
        if let Some(head) = head {
            break head;
        }
    };
    assert_eq!(head.len, found.head_bytes.len());
    found.head = Some(head);
    let mut body = reading.into_body(&head, options & 2 != 0);
    while !body.is_complete() && found.taken < stream.len() {
        let bytes = piece(found.taken);
        let (content, stderr) = (&mut found.content, &mut found.stderr);
        let before = content.len();
        let taken = body.on_bytes(
            bytes,
            |bytes| content.extend_from_slice(bytes),
            |text| stderr.extend_from_slice(text),
        )?;
        assert_eq!(found.content.len() - before, taken.content);
        assert!(taken.consumed <= bytes.len());
        assert!(taken.complete || taken.consumed == bytes.len());
        found.taken += taken.consumed;
    }
    let (complete, kept) = (body.is_complete(), body.may_be_kept());
    let ended = body.on_end_of_stream().is_ok();
    assert!(ended || !complete);
    found.end = [complete, body.has_surplus(), kept, ended];
    Ok(())
}
