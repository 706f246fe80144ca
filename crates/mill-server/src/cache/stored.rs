//! An answer as it is kept: its head as the server sent it, how long it is fresh, and for which requests it was made.

use crate::request::Request;
use mill_cache::{Weigh, disk};
use mill_http::caching::freshness::Freshness;
use mill_http::caching::vary::Vary;
use mill_http::field::{Field, KnownField, NameKind};
use mill_http::h1::emit::emit_field;
use mill_http::h1::response::ResponseHead;
use mill_http::span::Span;

/// The head of an answer, beside its content. The head of what a client gets is made of it anew, as it is made of an
/// answer that has just come: so settings of the location hold for both.
#[derive(Debug)]
pub(crate) struct StoredAnswer {
    pub(crate) head: ResponseHead,
    pub(crate) bytes: Box<[u8]>,
    /// The field lines, as spans of `bytes`.
    pub(crate) fields: Box<[Field]>,
    pub(crate) freshness: Freshness,
    vary: Vary,
    /// What the request had in the fields that `Vary` names.
    vary_key: Box<[u8]>,
}

/// All of a [`StoredAnswer`], as it comes from a disk.
pub(super) struct StoredParts {
    pub(super) head: ResponseHead,
    pub(super) bytes: Box<[u8]>,
    pub(super) fields: Box<[Field]>,
    pub(super) freshness: Freshness,
    pub(super) vary: Vary,
    pub(super) vary_key: Box<[u8]>,
}

impl StoredAnswer {
    /// Of what another process has made.
    pub(super) fn of_parts(parts: StoredParts) -> Self {
        Self {
            head: parts.head,
            bytes: parts.bytes,
            fields: parts.fields,
            freshness: parts.freshness,
            vary: parts.vary,
            vary_key: parts.vary_key,
        }
    }

    /// For which requests it was made: by which fields it varies, and what its request had in them.
    pub(super) fn vary(&self) -> (&Vary, &[u8]) {
        (&self.vary, &self.vary_key)
    }

    /// The same in a number, for the name of its file.
    pub(super) fn variant(&self) -> u64 {
        disk::variant(&names(&self.vary), &self.vary_key)
    }

    /// The variant of the answer to this request that varies by the same fields.
    pub(super) fn variant_for(&self, request: &Request) -> u64 {
        let mut key = Vec::new();
        self.vary.emit_key(field_lines(request), &mut key);
        disk::variant(&names(&self.vary), &key)
    }

    /// Of an answer to `request`, with the head of these bytes and these field lines.
    pub(crate) fn new<'a>(
        head: ResponseHead,
        bytes: &[u8],
        lines: impl Iterator<Item = (&'a [u8], &'a [u8])>,
        freshness: Freshness,
        vary: Vary,
        request: &Request,
    ) -> Self {
        let mut vary_key = Vec::new();
        vary.emit_key(field_lines(request), &mut vary_key);
        let mut own = bytes.get(..head.fields_start).unwrap_or_default().to_vec();
        let fields = lines.map(|(name, value)| append_line(name, value, &mut own));
        Self {
            head,
            fields: fields.collect(),
            bytes: own.into(),
            freshness,
            vary,
            vary_key: vary_key.into(),
        }
    }

    /// The field lines, as names and values.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (&[u8], &[u8])> + Clone {
        let fields = self.fields.iter();
        fields.map(|field| (field.name.of(&self.bytes), field.value.of(&self.bytes)))
    }

    /// Whether it answers this request, whose key is its key: the fields that `Vary` names are the same.
    pub(crate) fn fits(&self, request: &Request) -> bool {
        self.vary == Vary::None || self.vary.matches(&self.vary_key, field_lines(request))
    }

    /// Whether requests get it for other reasons than their key.
    pub(crate) fn varies(&self) -> bool {
        self.vary != Vary::None
    }

    /// The value of the first field of this name.
    pub(crate) fn field(&self, known: KnownField) -> Option<&[u8]> {
        let mut fields = self.fields.iter();
        let field = fields.find(|field| field.known == known)?;
        Some(field.value.of(&self.bytes))
    }
}

/// The names of fields, each behind a line feed, which is in none.
fn names(vary: &Vary) -> Vec<u8> {
    match vary {
        Vary::None => Vec::new(),
        Vary::Any => b"*".to_vec(),
        Vary::Names(names) => names
            .iter()
            .flat_map(|name| [b"\n", &**name])
            .flatten()
            .copied()
            .collect(),
    }
}

/// Appends a field line.
fn append_line(name: &[u8], value: &[u8], bytes: &mut Vec<u8>) -> Field {
    let start = bytes.len();
    emit_field(name, value, bytes);
    let value_start = start + name.len() + 2;
    Field {
        name: Span::between(start, start + name.len()),
        value: Span::between(value_start, value_start + value.len()),
        known: KnownField::parse(name),
        kind: NameKind::default(),
        ignored: false,
    }
}

impl Weigh for StoredAnswer {
    fn heap_bytes(&self) -> usize {
        self.bytes.len() + size_of_val(&*self.fields) + self.vary_key.len()
    }
}

/// The fields of a request, as names and values.
pub(crate) fn field_lines(request: &Request) -> impl Iterator<Item = (&[u8], &[u8])> + Clone {
    let message = &request.message;
    let fields = message.head.fields.iter().filter(|field| !field.ignored);
    fields.map(|field| {
        (
            field.name.of(&message.bytes),
            field.value.of(&message.bytes),
        )
    })
}
