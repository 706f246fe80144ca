//! What strict reading refuses beyond lenient reading: everything that another reader may take for something else.
//! Checked line by line. For programs that pass answers on.

use super::line::{self, Stop};
use super::{ResponseFault, ResponseHead};
use crate::field::{Field, KnownField, is_token_byte};
use crate::field_meaning::parse_content_length;
use crate::h1::response::framing::{CONTENT_LENGTH_LEN, TRANSFER_ENCODING_LEN};
use crate::h1::scan::{find_control, find_name_stop};
use crate::span::Span;
use crate::status::Status;
use crate::version::Version;

/// Checks what stands before the fields: a status line from the first byte on, which ends with CR LF (RFC 9112 2.2 lets
/// a recipient take LF alone).
pub(super) fn first_line(bytes: &[u8]) -> Result<(), ResponseFault> {
    match bytes.strip_suffix(b"\r\n") {
        Some(line) if !line.starts_with(b"\n") => status_line(line),
        _ => Err(ResponseFault::BareLf),
    }
}

/// The field line at `start`, and where the next one begins. Bytes before `from` were looked at and do not end it.
#[inline]
pub(super) fn field_line(
    bytes: &[u8],
    start: usize,
    from: usize,
    checks: &mut FramingChecks,
) -> Result<(usize, Field), Stop> {
    if from > start {
        line::end(bytes, from)?;
    }
    let colon = find_name_stop(bytes, start);
    let name = bytes.get(start..colon).unwrap_or(&[]);
    let known = KnownField::parse_valid(name);
    let is_token = || !name.is_empty() && name.iter().all(|byte| is_token_byte(*byte));
    if bytes.get(colon) != Some(&b':') || (known == KnownField::Other && !is_token()) {
        return Err(name_stop(bytes, start, from));
    }
    let mut end = find_control(bytes, colon + 1);
    while bytes.get(end) == Some(&b'\t') {
        end = find_control(bytes, end + 1);
    }
    let Some([b'\r', b'\n', ..]) = bytes.get(end..) else {
        return Err(value_stop(bytes, end));
    };
    let field = Field {
        name: Span::between(start, colon),
        value: line::trimmed(bytes, colon + 1, end),
        known,
        ..Field::default()
    };
    checks.on_field(field.known, field.value.of(bytes))?;
    Ok((end + 2, field))
}

/// Why the line at `start` has no valid name with a colon behind it.
#[cold]
fn name_stop(bytes: &[u8], start: usize, from: usize) -> Stop {
    let found = line::end(bytes, from).and_then(|next| Ok((line::colon(bytes, start)?, next)));
    let (colon, next) = match found {
        Ok(found) => found,
        Err(stop) => return stop,
    };
    Stop::Fault(match bytes.get(start..next) {
        Some([.., b'\r', b'\n']) => match bytes.get(start..colon) {
            // RFC 9112 5.1: a proxy must remove it.
            Some([.., b' ' | b'\t']) => ResponseFault::Blank,
            _ => ResponseFault::FieldLine,
        },
        _ => ResponseFault::BareLf,
    })
}

/// Why no CR LF ends the line at `at`, which is the first byte that a value may not have.
#[cold]
fn value_stop(bytes: &[u8], at: usize) -> Stop {
    match line::end(bytes, at) {
        Ok(next) => match bytes.get(at..next) {
            Some([.., b'\r', b'\n']) => Stop::Fault(ResponseFault::Control),
            _ => Stop::Fault(ResponseFault::BareLf),
        },
        Err(stop) => stop,
    }
}

/// RFC 9112 4: single spaces. The phrase may be missing, and the space before it too, as from many servers.
pub(super) fn status_line(line: &[u8]) -> Result<(), ResponseFault> {
    let code = line
        .strip_prefix(b"HTTP/1.")
        .ok_or(ResponseFault::NotHttp1)?;
    let [_, b' ', b'0'..=b'9', b'0'..=b'9', b'0'..=b'9', phrase @ ..] = code else {
        return Err(ResponseFault::Blank);
    };
    match phrase {
        [] => Ok(()),
        [b' ', phrase @ ..] => value(phrase),
        _ => Err(ResponseFault::Blank),
    }
}

/// RFC 9110 5.5: no control bytes but tabs.
fn value(text: &[u8]) -> Result<(), ResponseFault> {
    let mut at = find_control(text, 0);
    while text.get(at) == Some(&b'\t') {
        at = find_control(text, at + 1);
    }
    if at == text.len() {
        Ok(())
    } else {
        Err(ResponseFault::Control)
    }
}

/// Why a line does not begin with a valid name and a colon.
#[cold]
fn name_fault(line: &[u8]) -> ResponseFault {
    let colon = line.iter().position(|byte| *byte == b':');
    match colon.and_then(|colon| line.get(..colon)) {
        // RFC 9112 5.1: a proxy must remove it.
        Some([.., b' ' | b'\t']) => ResponseFault::Blank,
        _ => ResponseFault::FieldLine,
    }
}

/// The fields that define where the content ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct FramingChecks {
    pub(super) lengths: u8,
    /// The last one of them.
    pub(super) length: u64,
    pub(super) codings: u8,
}

impl FramingChecks {
    pub(super) const NONE: Self = Self {
        lengths: 0,
        length: 0,
        codings: 0,
    };

    /// Checks a field line without its end, and counts it.
    pub(super) fn on_line(&mut self, line: &[u8]) -> Result<(), ResponseFault> {
        // RFC 9112 5.2: replaced by blanks, or refused.
        if let [b' ' | b'\t', ..] = line {
            return Err(ResponseFault::Fold);
        }
        let name_end = line.iter().position(|byte| !is_token_byte(*byte));
        let (name, rest) = line.split_at(name_end.unwrap_or(line.len()));
        let rest = match rest {
            [b':', rest @ ..] if !name.is_empty() => rest,
            _ => return Err(name_fault(line)),
        };
        value(rest)?;
        if !matches!(name.len(), CONTENT_LENGTH_LEN | TRANSFER_ENCODING_LEN) {
            return Ok(());
        }
        self.on_field(KnownField::parse_valid(name), rest.trim_ascii())
    }

    /// Counts a field.
    #[inline]
    fn on_field(&mut self, known: KnownField, value: &[u8]) -> Result<(), ResponseFault> {
        match known {
            KnownField::ContentLength => {
                self.lengths = self.lengths.saturating_add(1);
                self.length = parse_content_length(value).ok_or(ResponseFault::ContentLength)?;
                Ok(())
            }
            KnownField::TransferEncoding => {
                self.codings = self.codings.saturating_add(1);
                let is_chunked = value.eq_ignore_ascii_case(b"chunked");
                is_chunked.then_some(()).ok_or(ResponseFault::UnknownCoding)
            }
            _ => Ok(()),
        }
    }

    /// RFC 9112 6.1, 6.3: what a proxy must not accept or pass on.
    pub(super) fn conclude(&self, head: &ResponseHead) -> Result<(), ResponseFault> {
        let has_no_content = Status(head.status).has_no_content() && head.status != 304;
        match (self.lengths, self.codings) {
            (0 | 1, 0) | (0, 1) => {}
            (_, 0) => return Err(ResponseFault::ContentLengthAgain),
            (0, _) => return Err(ResponseFault::UnknownCoding),
            _ => return Err(ResponseFault::LengthAndCoding),
        }
        let has_coding = self.codings > 0;
        if has_coding && head.version == Version::Http10 {
            return Err(ResponseFault::CodingInHttp10);
        }
        // RFC 9110 8.6. A length of 0 is harmless.
        if has_no_content && (has_coding || self.length > 0) {
            return Err(ResponseFault::FramingWithoutContent);
        }
        Ok(())
    }
}
