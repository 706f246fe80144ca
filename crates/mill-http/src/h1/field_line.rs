//! One field line: its name, its value, and where it ends.

use crate::field::{Field, KnownField, NameKind};
use crate::field_meaning::{apply, looks_like_framing};
use crate::h1::parse::Stop;
use crate::h1::scan::{find_control, find_name_stop};
use crate::head::RequestHead;
use crate::limits::HeadRules;
use crate::refusal::Refusal;
use crate::span::Span;

/// The end of a field line, or with an empty line of the head. `end` is where the next byte is.
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
    if split.kind == NameKind::Odd && looks_like_framing(split.name.of(bytes)) {
        head.refused = Span::between(start, split.value.end() as usize);
        return Err(Refusal::MisleadingName.into());
    }
    let known = split.known;
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

fn refuse_line(start: usize, at: usize, head: &mut RequestHead) -> Stop {
    head.refused = Span::between(start, at + 1);
    Refusal::InvalidFieldLine.into()
}

/// A field line's parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SplitLine {
    pub(crate) name: Span,
    pub(crate) known: KnownField,
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

/// Splits `name: value CRLF` at `start`. RFC 9112 5.1: no blank in or after the name; 5.2: a line that begins with a
/// blank (obs-fold) is invalid; 2.2: so is a bare CR, and a bare LF if it is not accepted.
pub(crate) fn split_line(
    bytes: &[u8],
    start: usize,
    accept_bare_lf: bool,
) -> Result<SplitLine, SplitStop> {
    let stop = find_name_stop(bytes, start);
    let name = bytes.get(start..stop).unwrap_or(&[]);
    // A control byte or the end of the bytes behind a known name is judged with the others.
    let known = match bytes.get(stop) {
        Some(b':') => KnownField::parse_valid(name),
        _ => KnownField::Other,
    };
    let (colon, kind) = match known {
        KnownField::Other => split_name(bytes, start)?,
        _ => (stop, NameKind::Plain),
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
    Ok(SplitLine {
        name: Span::between(start, colon),
        known,
        kind,
        value: Span::between(value_start, value_end),
        end,
    })
}

/// The colon behind the name at `start`, and how that is spelled.
fn split_name(bytes: &[u8], start: usize) -> Result<(usize, NameKind), SplitStop> {
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
    Ok((colon, kind))
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
