//! Lines of a response's head: where each ends, and where a field line's colon is.

use crate::h1::response::ResponseFault;
use crate::h1::scan::{find_line_stop, find_name_stop};
use crate::span::Span;

/// Why a line's end was not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// It has not arrived. The search may continue at `examined`.
    Partial {
        examined: usize,
    },
    Fault(ResponseFault),
}

impl From<ResponseFault> for Stop {
    fn from(fault: ResponseFault) -> Self {
        Self::Fault(fault)
    }
}

/// The end of the line that does not end before `from`; the next one begins there. RFC 9112 2.2: at LF, with or without
/// a CR before it.
#[inline(always)]
pub(super) fn end(bytes: &[u8], mut from: usize) -> Result<usize, Stop> {
    loop {
        let at = find_line_stop(bytes, from);
        match bytes.get(at..) {
            Some([b'\r', b'\n', ..]) => return Ok(at + 2),
            Some([b'\n', ..]) => return Ok(at + 1),
            Some([b'\r'] | []) | None => return Err(Stop::Partial { examined: at }),
            Some([b'\r', ..]) => return Err(Stop::Fault(ResponseFault::BareCr)),
            Some([0, ..]) => return Err(Stop::Fault(ResponseFault::Nul)),
            // RFC 9110 5.5 lets a recipient keep the other control bytes.
            Some(_) => from = at + 1,
        }
    }
}

/// As `end`, for a field line: RFC 9112 5.2, a line that begins with a blank continues the one before it. So the end is
/// known only with the next byte, and there always is one: the empty line ends the head.
#[inline(always)]
pub(super) fn field_end(bytes: &[u8], mut from: usize) -> Result<usize, Stop> {
    loop {
        let next = end(bytes, from)?;
        match bytes.get(next) {
            Some(b' ' | b'\t') => from = next + 1,
            Some(_) => return Ok(next),
            // The LF is searched for again.
            None => return Err(Stop::Partial { examined: next - 1 }),
        }
    }
}

/// The position of the colon in the complete field line at `start`. RFC 9112 5: there is one, after a name without
/// control bytes. 5.1: blanks before it, tabs too, are no part of the name.
#[inline]
pub(super) fn colon(bytes: &[u8], start: usize) -> Result<usize, Stop> {
    let at = find_name_stop(bytes, start);
    if at != start && bytes.get(at) == Some(&b':') {
        Ok(at)
    } else {
        colon_behind_tabs(bytes, start, at)
    }
}

#[cold]
fn colon_behind_tabs(bytes: &[u8], start: usize, mut at: usize) -> Result<usize, Stop> {
    while bytes.get(at) == Some(&b'\t') {
        at = find_name_stop(bytes, at + 1);
    }
    if at != start && bytes.get(at) == Some(&b':') {
        Ok(at)
    } else {
        Err(Stop::Fault(ResponseFault::FieldLine))
    }
}

/// `text` without blanks and line ends around it: those of a folded line count as blanks.
#[inline]
pub(super) fn trim(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t' | b'\r' | b'\n', rest @ ..] = text {
        text = rest;
    }
    while let [rest @ .., b' ' | b'\t' | b'\r' | b'\n'] = text {
        text = rest;
    }
    text
}

/// As `trim`, for the bytes from `start` to `end`.
#[inline]
pub(super) fn trimmed(bytes: &[u8], mut start: usize, mut end: usize) -> Span {
    let is_blank = |at: usize| matches!(bytes.get(at), Some(b' ' | b'\t' | b'\r' | b'\n'));
    while start < end && is_blank(start) {
        start += 1;
    }
    while start < end && is_blank(end - 1) {
        end -= 1;
    }
    Span::between(start, end)
}
