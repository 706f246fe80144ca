//! What is kept beside the content, as bytes in a file.

use crate::cache::StoredAnswer;
use crate::cache::stored::StoredParts;
use mill_http::caching::freshness::{FRESHNESS_BYTES, Freshness};
use mill_http::caching::vary::Vary;
use mill_http::field::{Field, KnownField, NameKind};
use mill_http::h1::response::{Framing, ResponseHead};
use mill_http::span::Span;
use mill_http::version::Version;

/// Of this form; a file with another one is a miss.
const FORM: u8 = 1;

/// The answer's metadata.
pub(super) fn emit(stored: &StoredAnswer) -> Vec<u8> {
    let mut out = vec![FORM];
    emit_head(&stored.head, &mut out);
    out.extend_from_slice(&stored.freshness.to_bytes());
    emit_text(&stored.bytes, &mut out);
    emit_number(stored.fields.len(), &mut out);
    for field in &stored.fields {
        for span in [field.name, field.value] {
            out.extend_from_slice(&span.start.to_le_bytes());
            out.extend_from_slice(&span.end().to_le_bytes());
        }
    }
    let (vary, vary_key) = stored.vary();
    match vary {
        Vary::None => out.push(0),
        Vary::Any => out.push(1),
        Vary::Names(names) => {
            out.push(2);
            emit_number(names.len(), &mut out);
            names.iter().for_each(|name| emit_text(name, &mut out));
        }
    }
    emit_text(vary_key, &mut out);
    out
}

fn emit_head(head: &ResponseHead, out: &mut Vec<u8>) {
    out.extend_from_slice(&head.status.to_le_bytes());
    out.push(match head.version {
        Version::Http10 => 0,
        Version::Http11 => 1,
        Version::Http2 => 2,
    });
    let (kind, len) = match head.framing {
        Framing::None => (0, 0),
        Framing::Length(len) => (1, len),
        Framing::Chunked => (2, 0),
        Framing::UntilClose => (3, 0),
    };
    out.push(kind);
    out.extend_from_slice(&len.to_le_bytes());
    out.push(u8::from(head.keep_alive));
    emit_number(head.len, out);
    emit_number(head.fields_start, out);
}

fn emit_number(number: usize, out: &mut Vec<u8>) {
    // Heads are far shorter.
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    out.extend_from_slice(&number.to_le_bytes());
}

fn emit_text(text: &[u8], out: &mut Vec<u8>) {
    emit_number(text.len(), out);
    out.extend_from_slice(text);
}

/// The metadata of these bytes; `None` if they make no sense.
pub(super) fn parse(bytes: &[u8]) -> Option<StoredAnswer> {
    let mut reading = Reading(bytes);
    if reading.byte()? != FORM {
        return None;
    }
    let head = reading.head()?;
    let freshness = Freshness::from_bytes(reading.array::<FRESHNESS_BYTES>()?)?;
    let bytes: Box<[u8]> = reading.text()?.into();
    let fields = reading.fields(&bytes)?;
    let vary = reading.vary()?;
    let vary_key = reading.text()?.into();
    if !reading.0.is_empty() || head.fields_start > bytes.len() {
        return None;
    }
    Some(StoredAnswer::of_parts(StoredParts {
        head,
        bytes,
        fields,
        freshness,
        vary,
        vary_key,
    }))
}

struct Reading<'a>(&'a [u8]);

impl<'a> Reading<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const LEN: usize>(&mut self) -> Option<&'a [u8; LEN]> {
        self.take(LEN)?.try_into().ok()
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn number(&mut self) -> Option<usize> {
        usize::try_from(u32::from_le_bytes(*self.array()?)).ok()
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let len = self.number()?;
        self.take(len)
    }

    fn head(&mut self) -> Option<ResponseHead> {
        let status = u16::from_le_bytes(*self.array()?);
        let version = match self.byte()? {
            0 => Version::Http10,
            1 => Version::Http11,
            2 => Version::Http2,
            _ => return None,
        };
        let kind = self.byte()?;
        let len = u64::from_le_bytes(*self.array()?);
        let framing = match kind {
            0 => Framing::None,
            1 => Framing::Length(len),
            2 => Framing::Chunked,
            3 => Framing::UntilClose,
            _ => return None,
        };
        Some(ResponseHead {
            status,
            version,
            framing,
            keep_alive: self.byte()? != 0,
            len: self.number()?,
            fields_start: self.number()?,
        })
    }

    fn fields(&mut self, bytes: &[u8]) -> Option<Box<[Field]>> {
        let count = self.number()?;
        let mut fields = Vec::new();
        for _ in 0..count {
            let (name, value) = (self.span(bytes)?, self.span(bytes)?);
            fields.push(Field {
                name,
                value,
                known: KnownField::parse(name.of(bytes)),
                kind: NameKind::default(),
                ignored: false,
            });
        }
        Some(fields.into())
    }

    fn span(&mut self, bytes: &[u8]) -> Option<Span> {
        let (start, end) = (self.number()?, self.number()?);
        (start <= end && end <= bytes.len()).then(|| Span::between(start, end))
    }

    fn vary(&mut self) -> Option<Vary> {
        match self.byte()? {
            0 => Some(Vary::None),
            1 => Some(Vary::Any),
            2 => {
                let count = self.number()?;
                let mut names = Vec::new();
                for _ in 0..count {
                    names.push(self.text()?.into());
                }
                Some(Vary::Names(names.into()))
            }
            _ => None,
        }
    }
}
