//! Bytes to request head; the hot path.
//!
//! Read this first: RFC 9112 2 to 6. The parser is strict about everything that two implementations could read
//! differently (bare CR or LF, blanks before the colon, obs-fold, control bytes, competing lengths): such a request is
//! refused and its connection closed. The one exception is LF without CR at a line's end, which `accept_bare_lf`
//! accepts.
//!
//! One pass: each line is checked, split and classified as it is read. When the bytes end inside a line, the head
//! remembers where that line began and how far it was searched; the next call searches only the new bytes until
//! something ends the line, then parses that line once more. So a head costs at most two looks at each byte, however
//! finely it is split. (The price: a mistake in a later piece of an unfinished line is noticed when a control byte or
//! the line's end arrives, or when the line is too long.)

use crate::field_meaning::conclude;
use crate::h1::field_line::{self, LineEnd};
use crate::h1::request_line;
use crate::h1::scan::find_control;
use crate::head::RequestHead;
use crate::limits::HeadRules;
use crate::refusal::Refusal;
use crate::span::Span;

/// The result of [`parse_request`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// The head is complete: `consumed` bytes, empty lines before it included. The content follows.
    Complete { consumed: usize },
    /// More bytes are needed; call again with the same bytes and those after them.
    Partial,
    /// Answer with `Refusal::status` and close. `head` holds what was parsed until then: method, target and version
    /// once the request line was complete.
    Refused(Refusal),
}

/// Why a line's parser stopped before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Partial,
    Refused(Refusal),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Parses the request head at the beginning of `bytes` into `head`, which must be cleared before the first call for a
/// request and not changed between calls for the same one. `bytes` must begin at the same byte in each call; the buffer
/// itself may move. Allocates only when the head has more fields than any head before it.
pub fn parse_request(bytes: &[u8], head: &mut RequestHead, rules: &HeadRules) -> Parsed {
    match parse_lines(bytes, head, rules) {
        Ok(consumed) => Parsed::Complete { consumed },
        Err(Stop::Refused(refusal)) => refuse(refusal, head),
        Err(Stop::Partial) => match refuse_if_too_long(bytes, head, rules) {
            Some(refusal) => refuse(refusal, head),
            None => Parsed::Partial,
        },
    }
}

fn refuse(refusal: Refusal, head: &mut RequestHead) -> Parsed {
    head.give_up();
    Parsed::Refused(refusal)
}

fn parse_lines(bytes: &[u8], head: &mut RequestHead, rules: &HeadRules) -> Result<usize, Stop> {
    let mut at = head.progress.line_start as usize;
    if head.progress.examined > head.progress.line_start {
        let mut stop = find_control(bytes, head.progress.examined as usize);
        // A field line may contain tabs; in a request line they end it, as an error.
        while head.progress.has_request_line && bytes.get(stop) == Some(&b'\t') {
            stop = find_control(bytes, stop + 1);
        }
        head.progress.examined = Span::between(0, stop).len;
        if stop == bytes.len() {
            return Err(Stop::Partial);
        }
    }
    if !head.progress.has_request_line {
        let bare_lf = rules.accept_bare_lf;
        at = skip_empty_lines(bytes, at, head, bare_lf)?;
        let end = request_line::parse(bytes, at, head, bare_lf)
            .inspect_err(|_| examined_all(bytes, head))?;
        if end - at > rules.request_line_bytes_max as usize {
            return Err(Refusal::TargetTooLong.into());
        }
        head.progress.has_request_line = true;
        at = end;
    }
    loop {
        head.progress.line_start = Span::between(0, at).len;
        match field_line::parse(bytes, at, head, rules)
            .inspect_err(|_| examined_all(bytes, head))?
        {
            LineEnd::Field { end } => {
                if end > rules.head_bytes_max as usize {
                    return Err(Refusal::HeadTooLarge.into());
                }
                at = end;
            }
            LineEnd::Head { end } => {
                if end > rules.head_bytes_max as usize {
                    return Err(Refusal::HeadTooLarge.into());
                }
                head.progress.line_start = Span::between(0, end).len;
                head.is_whole = true;
                conclude(bytes, head)?;
                return Ok(end);
            }
        }
    }
}

/// RFC 9112 2.2: empty lines before the request line are skipped. They count towards `head_bytes_max`, so a client
/// can't send them without end.
fn skip_empty_lines(
    bytes: &[u8],
    mut at: usize,
    head: &mut RequestHead,
    accept_bare_lf: bool,
) -> Result<usize, Stop> {
    loop {
        match bytes.get(at..) {
            Some([b'\r', b'\n', ..]) => at += 2,
            Some([b'\n', ..]) if accept_bare_lf => at += 1,
            Some([b'\n', ..]) => return Err(Refusal::BareLf.into()),
            Some([b'\r'] | []) | None => {
                head.progress.line_start = Span::between(0, at).len;
                return Err(Stop::Partial);
            }
            Some(_) => {
                head.progress.line_start = Span::between(0, at).len;
                return Ok(at);
            }
        }
    }
}

/// No byte up to the end of `bytes` ends the line. A final CR may, if LF follows it.
fn examined_all(bytes: &[u8], head: &mut RequestHead) {
    let len = if bytes.last() == Some(&b'\r') {
        bytes.len() - 1
    } else {
        bytes.len()
    };
    head.progress.examined = Span::between(0, len).len;
}

/// An incomplete line that is already too long never becomes valid.
fn refuse_if_too_long(bytes: &[u8], head: &mut RequestHead, rules: &HeadRules) -> Option<Refusal> {
    let line = Span::between(head.progress.line_start as usize, bytes.len());
    if !head.progress.has_request_line {
        if line.len >= rules.request_line_bytes_max {
            return Some(Refusal::TargetTooLong);
        }
    } else if line.len >= rules.field_line_bytes_max {
        head.refused = line;
        return Some(Refusal::FieldTooLarge);
    }
    (bytes.len() >= rules.head_bytes_max as usize).then_some(Refusal::HeadTooLarge)
}

#[cfg(test)]
mod tests;
