//! One field line, and what the known fields mean for the message.

use crate::authority::parse_authority;
use crate::field::{Field, KnownField, ListElements, NameKind, trim_blanks};
use crate::h1::head::{ConnectionOption, RequestHead};
use crate::h1::parse::Stop;
use crate::h1::refusal::Refusal;
use crate::h1::scan::find_control;
use crate::limits::{CONTENT_LENGTH_MAX, HeadRules};
use crate::span::Span;
use crate::version::Version;

/// What ended: a field line, or with an empty line the head. `end` is where the next byte is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineEnd {
    Field { end: usize },
    Head { end: usize },
}

/// Parses the line that begins at `start` and adds its field to the head.
pub(crate) fn parse(
    bytes: &[u8],
    start: usize,
    head: &mut RequestHead,
    rules: &HeadRules,
) -> Result<LineEnd, Stop> {
    match bytes.get(start..) {
        Some([b'\r', b'\n', ..]) => return Ok(LineEnd::Head { end: start + 2 }),
        Some([b'\r']) => return Err(Stop::Partial),
        Some([b'\r', ..]) => return Err(refuse_line(start, start, head)),
        Some([b'\n', ..]) if rules.accept_bare_lf => return Ok(LineEnd::Head { end: start + 1 }),
        Some([b'\n', ..]) => return Err(Refusal::BareLf.into()),
        _ => {}
    }
    let split = match split_line(bytes, start, rules.accept_bare_lf) {
        Ok(split) => split,
        Err(SplitStop::Partial) => return Err(Stop::Partial),
        Err(SplitStop::BareLf) => return Err(Refusal::BareLf.into()),
        Err(SplitStop::Invalid { at }) => return Err(refuse_line(start, at, head)),
    };
    if split.end - start > rules.field_line_bytes_max as usize {
        head.refused = Span::between(start, split.end);
        return Err(Refusal::FieldTooLarge.into());
    }
    if head.fields.len() >= usize::from(rules.fields_max) {
        return Err(Refusal::TooManyFields.into());
    }
    // No known field has an underscore in its name.
    let known = match split.kind {
        NameKind::Plain => KnownField::parse_valid(split.name.of(bytes)),
        NameKind::Underscored => KnownField::Other,
        NameKind::Odd if looks_like_framing(split.name.of(bytes)) => {
            head.refused = Span::between(start, split.value.end() as usize);
            return Err(Refusal::MisleadingName.into());
        }
        NameKind::Odd => KnownField::Other,
    };
    head.has_odd_names |= split.kind != NameKind::Plain;
    head.fields.push(Field {
        name: split.name,
        value: split.value,
        known,
        kind: split.kind,
        ignored: split.kind != NameKind::Plain && rules.names.ignore(split.kind),
    });
    head.progress.line_start = Span::between(0, split.end).len;
    if known != KnownField::Other {
        apply(bytes, known, split.value, head)?;
    }
    Ok(LineEnd::Field { end: split.end })
}

/// An odd name that some reader may take for one of the fields that say where a message ends or whose it is: with its
/// letters, and other bytes before, between or behind them.
fn looks_like_framing(name: &[u8]) -> bool {
    let is = |field: &[u8]| {
        let letters = name.iter().filter(|byte| byte.is_ascii_alphanumeric());
        letters
            .map(u8::to_ascii_lowercase)
            .eq(field.iter().copied())
    };
    is(b"contentlength") || is(b"transferencoding") || is(b"host")
}

fn refuse_line(start: usize, at: usize, head: &mut RequestHead) -> Stop {
    head.refused = Span::between(start, at + 1);
    Refusal::InvalidFieldLine.into()
}

/// A field line's parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SplitLine {
    pub(crate) name: Span,
    pub(crate) kind: NameKind,
    pub(crate) value: Span,
    pub(crate) end: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum SplitStop {
    Partial,
    BareLf,
    Invalid { at: usize },
}

/// Splits `name: value CRLF` at `start`. RFC 9112 5.1: no blank in or after the name; 5.2: a line
/// that begins with a blank (obs-fold) is invalid; 2.2: so is a bare CR, and a bare LF if it is not accepted.
pub(crate) fn split_line(
    bytes: &[u8],
    start: usize,
    accept_bare_lf: bool,
) -> Result<SplitLine, SplitStop> {
    let mut seen = 0;
    let mut colon = None;
    for (at, byte) in (start..).zip(bytes.get(start..).unwrap_or(&[])) {
        let class = NAME_CLASS
            .get(usize::from(*byte))
            .copied()
            .unwrap_or(NAME_REFUSED);
        if class >= NAME_COLON {
            if class == NAME_REFUSED || at == start {
                return Err(SplitStop::Invalid { at });
            }
            colon = Some(at);
            break;
        }
        seen |= class;
    }
    let colon = colon.ok_or(SplitStop::Partial)?;
    let kind = match seen {
        NAME_VALID => NameKind::Plain,
        NAME_UNDERSCORE => NameKind::Underscored,
        _ => NameKind::Odd,
    };
    let mut value_start = colon + 1;
    while let Some(b' ' | b'\t') = bytes.get(value_start) {
        value_start += 1;
    }
    let mut value_end = find_control(bytes, value_start);
    while bytes.get(value_end) == Some(&b'\t') {
        value_end = find_control(bytes, value_end + 1);
    }
    let end = match bytes.get(value_end..) {
        Some([b'\r', b'\n', ..]) => value_end + 2,
        Some([b'\n', ..]) if accept_bare_lf => value_end + 1,
        Some([b'\n', ..]) => return Err(SplitStop::BareLf),
        Some([b'\r'] | []) | None => return Err(SplitStop::Partial),
        Some(_) => return Err(SplitStop::Invalid { at: value_end }),
    };
    while value_end > value_start && matches!(bytes.get(value_end - 1), Some(b' ' | b'\t')) {
        value_end -= 1;
    }
    let name = Span::between(start, colon);
    Ok(SplitLine {
        name,
        kind,
        value: Span::between(value_start, value_end),
        end,
    })
}

const NAME_VALID: u8 = 0;
const NAME_UNDERSCORE: u8 = 1;
/// The name is not one of nginx's valid names, but the line can still be read.
const NAME_INVALID: u8 = 2;
const NAME_COLON: u8 = 4;
const NAME_REFUSED: u8 = 8;

const NAME_CLASS: [u8; 256] = {
    let mut class = [NAME_INVALID; 256];
    let mut byte = 0_u8;
    loop {
        if byte <= b' ' || byte == 0x7f {
            class[byte as usize] = NAME_REFUSED;
        } else if byte.is_ascii_alphanumeric() || byte == b'-' {
            class[byte as usize] = NAME_VALID;
        }
        if byte == u8::MAX {
            break;
        }
        byte += 1;
    }
    class[b'_' as usize] = NAME_UNDERSCORE;
    class[b':' as usize] = NAME_COLON;
    class
};

/// Fields that nginx refuses when they occur twice. (`Host` as well, in its own words.)
const UNIQUE: u64 = KnownField::IfModifiedSince.bit()
    | KnownField::IfUnmodifiedSince.bit()
    | KnownField::IfMatch.bit()
    | KnownField::IfNoneMatch.bit()
    | KnownField::IfRange.bit()
    | KnownField::ContentLength.bit()
    | KnownField::ContentRange.bit()
    | KnownField::TransferEncoding.bit()
    | KnownField::Expect.bit()
    | KnownField::Authorization.bit();

fn apply(
    bytes: &[u8],
    known: KnownField,
    value: Span,
    head: &mut RequestHead,
) -> Result<(), Refusal> {
    let occurs_again = head.present & known.bit() != 0;
    if occurs_again && UNIQUE & known.bit() != 0 {
        return Err(Refusal::DuplicateField);
    }
    head.present |= known.bit();
    match known {
        KnownField::Host => {
            if occurs_again {
                return Err(Refusal::DuplicateHost);
            }
            let host = parse_authority(value.of(bytes)).ok_or(Refusal::InvalidHost)?;
            // RFC 9112 3.2.2: the authority of the target comes before the Host field.
            if head.host.is_empty() {
                let start = value.start as usize;
                head.host = Span::between(start, start + host.host_len);
                head.host_has_uppercase = host.has_uppercase;
                head.fields_before_server = u16::try_from(head.fields.len()).unwrap_or(u16::MAX);
            }
        }
        KnownField::Connection => apply_connection(value.of(bytes), head),
        KnownField::Expect => {
            head.expect_continue = value.of(bytes).eq_ignore_ascii_case(b"100-continue");
        }
        KnownField::ContentLength => {
            // One that is none is refused when the head is whole: by then it is known by which server.
            head.content_length = parse_content_length(value.of(bytes));
        }
        KnownField::TransferEncoding => {
            head.chunked = value.of(bytes).eq_ignore_ascii_case(b"chunked");
        }
        _ => {}
    }
    Ok(())
}

fn apply_connection(value: &[u8], head: &mut RequestHead) {
    if head.connection == ConnectionOption::Unstated && value.eq_ignore_ascii_case(b"keep-alive") {
        head.connection = ConnectionOption::KeepAlive;
        return;
    }
    for option in ListElements::of(value) {
        head.connection.add(option);
    }
}

/// RFC 9110 8.6: digits only; no sign, no blank, no list, not beyond a file offset.
pub(crate) fn parse_content_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() || trim_blanks(value).len() != value.len() {
        return None;
    }
    let mut length = 0_u64;
    for &byte in value {
        if !byte.is_ascii_digit() {
            return None;
        }
        length = length
            .checked_mul(10)?
            .checked_add(u64::from(byte - b'0'))?;
    }
    (length <= CONTENT_LENGTH_MAX).then_some(length)
}

/// What can only be judged when all fields are known. RFC 9112 3.2 (Host) and 6.3 (length).
pub(crate) fn conclude(bytes: &[u8], head: &mut RequestHead) -> Result<(), Refusal> {
    if head.version == Version::Http11 && !head.has(KnownField::Host) {
        return Err(Refusal::MissingHost);
    }
    if head.has(KnownField::ContentLength) && head.content_length.is_none() {
        return Err(Refusal::InvalidContentLength);
    }
    head.expect_continue &= head.version == Version::Http11;
    if !head.has(KnownField::TransferEncoding) {
        return Ok(());
    }
    head.refused = head.value(KnownField::TransferEncoding).unwrap_or_default();
    if head.version == Version::Http10 {
        return Err(Refusal::TransferEncodingInHttp10);
    }
    if !head.chunked {
        return Err(refuse_codings(head.refused.of(bytes)));
    }
    if head.content_length.is_some() {
        return Err(Refusal::ContentLengthAndTransferEncoding);
    }
    head.refused = Span::EMPTY;
    Ok(())
}

/// Codings that are not `chunked` alone. RFC 9112 6.3: behind `chunked` nothing may follow, for nobody knows where such
/// content ends; 6.1: `chunked` comes once.
fn refuse_codings(value: &[u8]) -> Refusal {
    let is_chunked = |coding: &[u8]| coding.eq_ignore_ascii_case(b"chunked");
    let mut codings = ListElements::of(value);
    match (codings.find(|coding| is_chunked(coding)), codings.next()) {
        (Some(_), Some(_)) => Refusal::ChunkedIsNotLast,
        _ => Refusal::UnknownTransferEncoding,
    }
}
