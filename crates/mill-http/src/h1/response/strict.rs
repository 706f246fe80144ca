//! What strict reading refuses beyond lenient reading: everything that another reader may take for something else.
//! Checked once, when the head is complete. For programs that pass answers on.

use super::{ResponseFault, ResponseHead};
use crate::field::{KnownField, is_token_byte};
use crate::field_meaning::parse_content_length;
use crate::h1::response::framing::{CONTENT_LENGTH_LEN, TRANSFER_ENCODING_LEN};
use crate::h1::scan::{find_control, find_line_stop};
use crate::status::Status;
use crate::version::Version;

/// `bytes` are those of a head that was read leniently.
pub(super) fn check(bytes: &[u8], head: &ResponseHead) -> Result<(), ResponseFault> {
    let mut lines = Lines {
        rest: bytes.get(..head.len).unwrap_or(bytes),
    };
    status_line(lines.next()?)?;
    let mut framing = FramingChecks::NONE;
    loop {
        let line = lines.next()?;
        if line.is_empty() {
            return framing.conclude(head);
        }
        framing.on_line(line)?;
    }
}

/// The lines of a head without their ends, which are CR LF each (RFC 9112 2.2 lets a recipient take LF alone).
struct Lines<'a> {
    rest: &'a [u8],
}

impl<'a> Lines<'a> {
    fn next(&mut self) -> Result<&'a [u8], ResponseFault> {
        let mut end = find_line_stop(self.rest, 0);
        while !matches!(self.rest.get(end), Some(b'\n') | None) {
            end = find_line_stop(self.rest, end + 1);
        }
        let (line, rest) = self.rest.split_at(self.rest.len().min(end + 1));
        self.rest = rest;
        line.strip_suffix(b"\r\n").ok_or(ResponseFault::BareLf)
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
    pub(super) lengths: u32,
    /// The last one of them.
    pub(super) length: u64,
    pub(super) codings: u32,
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
        match KnownField::parse_valid(name) {
            KnownField::ContentLength => {
                self.lengths += 1;
                let length = parse_content_length(rest.trim_ascii());
                self.length = length.ok_or(ResponseFault::ContentLength)?;
                Ok(())
            }
            KnownField::TransferEncoding => {
                self.codings += 1;
                let is_chunked = rest.trim_ascii().eq_ignore_ascii_case(b"chunked");
                is_chunked.then_some(()).ok_or(ResponseFault::UnknownCoding)
            }
            _ => Ok(()),
        }
    }

    /// RFC 9112 6.1, 6.3: what a proxy must not accept or pass on.
    fn conclude(&self, head: &ResponseHead) -> Result<(), ResponseFault> {
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
