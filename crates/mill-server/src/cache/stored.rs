//! An answer as it is kept: its head as the server sent it, how long it is fresh, and for which requests it was made.

use crate::request::Request;
use mill_cache::{Content, Weigh, disk};
use mill_http::caching::freshness::Freshness;
use mill_http::caching::validation::ResponseValidators;
use mill_http::caching::vary::Vary;
use mill_http::field::{Field, KnownField, NameKind};
use mill_http::h1::emit::emit_field;
use mill_http::h1::response::ResponseHead;
use mill_http::range::ByteRange;
use mill_http::span::Span;
use std::sync::Weak;

/// The head of an answer, beside its content. The head of what a client gets is made of it anew, as it is made of an
/// answer that has just come: so settings of the location hold for both.
#[derive(Clone, Debug)]
pub(crate) struct StoredAnswer {
    pub(crate) head: ResponseHead,
    pub(crate) bytes: Box<[u8]>,
    /// The field lines, as spans of `bytes`.
    pub(crate) fields: Box<[Field]>,
    pub(crate) freshness: Freshness,
    pub(crate) vary: Vary,
    /// What the request had in the fields that `Vary` names.
    vary_key: Box<[u8]>,
    /// Its content is this part of the whole; `None` of a whole.
    pub(crate) place: Option<Place>,
    /// Its content is another one's, compressed; it has no head.
    pub(crate) compressed: Option<CompressedOf>,
}

/// What a compressed content was made of.
#[derive(Clone, Debug)]
pub(crate) struct CompressedOf {
    /// The content that an answer has, as long as something keeps that.
    pub(crate) content: Weak<Content>,
    pub(crate) level: u8,
}

/// Where a part is (RFC 9110 14.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) range: ByteRange,
    /// Bytes of the whole.
    pub(crate) complete_length: u64,
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
            place: None,
            compressed: None,
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
        let (bytes, fields) = head_of(head, bytes, lines);
        Self {
            head,
            bytes,
            fields,
            freshness,
            vary,
            vary_key: vary_key.into(),
            place: None,
            compressed: None,
        }
    }

    /// What stands for its content in another form.
    pub(crate) fn of_compressed(&self, compressed: CompressedOf) -> Self {
        Self {
            head: self.head,
            bytes: Box::default(),
            fields: Box::default(),
            freshness: self.freshness,
            vary: Vary::None,
            vary_key: Box::default(),
            place: None,
            compressed: Some(compressed),
        }
    }

    /// Without a field.
    #[cfg(test)]
    pub(crate) fn blank() -> Self {
        use mill_http::caching::nginx_validity::NginxValidity;
        use mill_http::h1::response::Framing;
        use mill_http::status::Status;
        use mill_http::version::Version;
        Self {
            head: ResponseHead {
                status: 200,
                version: Version::Http11,
                framing: Framing::Chunked,
                keep_alive: true,
                len: 0,
                fields_start: 0,
            },
            bytes: Box::default(),
            fields: Box::default(),
            freshness: Freshness::of_nginx(Status::OK, [], &NginxValidity::default(), 0),
            vary: Vary::None,
            vary_key: Box::default(),
            place: None,
            compressed: None,
        }
    }

    /// The same answer with other field lines, for the same requests.
    pub(crate) fn renewed<'a>(
        &self,
        lines: impl Iterator<Item = (&'a [u8], &'a [u8])>,
        freshness: Freshness,
    ) -> Self {
        let (bytes, fields) = head_of(self.head, &self.bytes, lines);
        Self {
            bytes,
            fields,
            freshness,
            ..self.clone()
        }
    }

    /// The same as a part of a whole.
    pub(crate) fn of_part(self, place: Place) -> Self {
        Self {
            place: Some(place),
            ..self
        }
    }

    /// What tells its state of the representation from others.
    pub(crate) fn validators(&self) -> ResponseValidators<'_> {
        ResponseValidators::of_fields(self.lines(), self.freshness.date)
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

/// The start of a head with these lines: its bytes, and where the lines are.
fn head_of<'a>(
    head: ResponseHead,
    bytes: &[u8],
    lines: impl Iterator<Item = (&'a [u8], &'a [u8])>,
) -> (Box<[u8]>, Box<[Field]>) {
    let mut own = bytes.get(..head.fields_start).unwrap_or_default().to_vec();
    let fields = lines.map(|(name, value)| append_line(name, value, &mut own));
    let fields = fields.collect();
    (own.into(), fields)
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
