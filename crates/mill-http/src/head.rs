//! The head of a request as a value.

use alloc::vec::Vec;

use crate::field::{Field, KnownField};
use crate::limits::NameRules;
use crate::method::Method;
use crate::span::Span;
use crate::version::Version;

/// A request head: places in the buffer it was parsed from, and what the fields mean for the
/// message. The caller owns it and reuses it: `clear` before each request, then
/// `parse_request` until it no longer says `Partial`. The field list keeps its memory, so a
/// reused head allocates nothing.
#[derive(Clone, Debug, Default)]
pub struct RequestHead {
    pub method: Method,
    pub method_name: Span,
    pub version: Version,
    /// From the method to the version, without CRLF: `$request`.
    pub request_line: Span,
    pub target: Target,
    /// The server's name: the authority of an absolute-form target, else `Host`; without port and
    /// final dot. Empty in an HTTP/1.0 request that names none.
    pub host: Span,
    /// `host` has upper-case letters: look it up in lower case.
    pub host_has_uppercase: bool,
    /// Of `Content-Length`, which is refused together with `Transfer-Encoding`.
    pub content_length: Option<u64>,
    /// `Transfer-Encoding: chunked`.
    pub chunked: bool,
    pub connection: ConnectionOption,
    /// `Expect: 100-continue` in HTTP/1.1.
    pub expect_continue: bool,
    pub fields: Vec<Field>,
    /// Some field's name is not of letters, digits and `-` only.
    pub has_odd_names: bool,
    /// The empty line at the end was reached.
    pub is_whole: bool,
    /// How many fields had been read when `host` became known, the one that told it included.
    pub(crate) fields_before_server: u16,
    /// Set of `KnownField::bit` of the fields that occur (and are not ignored).
    pub(crate) present: u64,
    pub(crate) progress: Progress,
    /// The line or value that a refusal speaks of.
    pub(crate) refused: Span,
}

/// What the request asks for, RFC 9112 3.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Target {
    pub form: TargetForm,
    /// Path and query as sent: `$request_uri`. For an absolute-form target this begins at its
    /// path; with an empty path it is the slash after the scheme, or, with a query, the query
    /// with its question mark (as in nginx).
    pub whole: Span,
    /// The path as sent, without the query; the slash after the scheme stands in for an empty one.
    pub path: Span,
    /// What follows the first `?`.
    pub query: Span,
    /// There was a `?`, even with nothing after it.
    pub has_query: bool,
    pub scheme: Span,
    /// The path has `//` or `/.`: it may need rewriting.
    pub complex: bool,
    /// The path has `%`: it needs decoding.
    pub quoted: bool,
    /// The path has `+`.
    pub plus: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TargetForm {
    /// `/path?query`
    #[default]
    Origin,
    /// `http://host/path?query`
    Absolute,
    /// `host:port`, for CONNECT only
    Authority,
    /// `*`, for OPTIONS only
    Asterisk,
}

/// What `Connection` asks for. `close` wins over `keep-alive`, RFC 9112 9.3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectionOption {
    #[default]
    Unstated,
    KeepAlive,
    Close,
}

impl ConnectionOption {
    /// The sender wants the connection to persist: HTTP/1.1 does by itself, 1.0 if it says so (RFC 9112 9.3).
    #[inline]
    pub const fn persists(self, version: Version) -> bool {
        match self {
            Self::Close => false,
            Self::KeepAlive => true,
            Self::Unstated => matches!(version, Version::Http11),
        }
    }

    /// Takes in one element of a `Connection` list.
    pub(crate) fn add(&mut self, option: &[u8]) {
        if option.eq_ignore_ascii_case(b"close") {
            *self = Self::Close;
        } else if option.eq_ignore_ascii_case(b"keep-alive") && *self == Self::Unstated {
            *self = Self::KeepAlive;
        }
    }
}

/// How far an unfinished head has been parsed: whole lines are never parsed twice.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// The request line is done.
    pub(crate) has_request_line: bool,
    /// Where the first unfinished line begins.
    pub(crate) line_start: u32,
    /// Bytes before this offset belong to the unfinished line and hold nothing that ends it.
    pub(crate) examined: u32,
}

/// Fields without which the answer to a GET or HEAD depends on the target and host alone.
const NOT_PLAIN: u64 = KnownField::Range.bit()
    | KnownField::IfMatch.bit()
    | KnownField::IfNoneMatch.bit()
    | KnownField::IfModifiedSince.bit()
    | KnownField::IfUnmodifiedSince.bit()
    | KnownField::IfRange.bit()
    | KnownField::ContentLength.bit()
    | KnownField::TransferEncoding.bit()
    | KnownField::Expect.bit()
    | KnownField::Upgrade.bit()
    | KnownField::Te.bit();

impl RequestHead {
    /// Makes the head ready for the next request. Keeps the field list's memory.
    pub fn clear(&mut self) {
        let mut fields = core::mem::take(&mut self.fields);
        fields.clear();
        *self = Self {
            fields,
            ..Self::default()
        };
    }

    /// No `Range`, `If-…`, body, `Expect`, `Upgrade` or `TE`, no odd field name (which may be said in a log),
    /// and an origin-form target that needs no decoding: a GET or HEAD of this kind may get a pre-serialised answer.
    /// `Accept-Encoding`, `Via` and `Authorization` are the caller's to look at.
    pub fn is_plain(&self) -> bool {
        self.present & NOT_PLAIN == 0
            && !self.has_odd_names
            && self.target.form == TargetForm::Origin
            && !self.target.complex
            && !self.target.quoted
    }

    pub const fn has(&self, known: KnownField) -> bool {
        self.present & known.bit() != 0
    }

    /// The value of the first field of this name, as nginx takes the first of several.
    pub fn value(&self, known: KnownField) -> Option<Span> {
        if !self.has(known) {
            return None;
        }
        self.known(known).next()
    }

    /// The values of all fields of this name, in order.
    pub fn known(&self, known: KnownField) -> impl Iterator<Item = Span> + '_ {
        self.fields
            .iter()
            .filter(move |field| field.known == known && !field.ignored)
            .map(|field| field.value)
    }

    /// Judges the fields behind the one that named the server by that server's rules, as nginx does; those before it
    /// have been judged by the default server's.
    pub fn judge_names(&mut self, rules: NameRules) {
        if !self.has_odd_names || self.host.is_empty() {
            return;
        }
        let first = usize::from(self.fields_before_server);
        for field in self.fields.iter_mut().skip(first) {
            field.ignored = rules.ignore(field.kind);
        }
    }

    /// The fields that have no effect because of their names, in the order in which they came: those that the default
    /// server's rules were for, or those behind the one that named the server.
    pub fn ignored_fields(&self, behind_server: bool) -> impl Iterator<Item = &Field> {
        let count = match self.host.is_empty() {
            true => self.fields.len(),
            false => usize::from(self.fields_before_server),
        };
        let (before, behind) = self.fields.split_at_checked(count).unwrap_or_default();
        let fields = if behind_server { behind } else { before };
        fields.iter().filter(|field| field.ignored)
    }

    /// `$request_length`: bytes of the lines that were read whole, from the request line on; 0 before that is whole.
    pub const fn length_bytes(&self) -> u32 {
        if self.progress.has_request_line {
            self.progress.line_start - self.request_line.start
        } else {
            0
        }
    }

    /// What nginx's log lines append after "while".
    pub(crate) const fn action(&self) -> &'static str {
        if self.progress.has_request_line {
            "reading client request headers"
        } else {
            "reading client request line"
        }
    }

    /// Bytes of the request line with its end; 0 before it is whole.
    pub fn request_line_bytes(&self) -> u32 {
        match self.fields.first() {
            Some(field) => field.name.start - self.request_line.start,
            // Then the empty line is all that follows.
            None if self.is_whole => self.length_bytes().saturating_sub(2),
            None => self.length_bytes(),
        }
    }

    /// Takes back what a request line said that is refused, or that will never be whole. (HEAD stays: its answer has no
    /// content all the same.)
    pub fn give_up(&mut self) {
        if !self.progress.has_request_line {
            self.method_name = Span::EMPTY;
            self.target = Target::default();
            self.host = Span::EMPTY;
        }
    }

    /// `Accept-Encoding`, the first one.
    pub fn accept_encoding(&self) -> Option<Span> {
        self.value(KnownField::AcceptEncoding)
    }

    /// The message has a body, perhaps an empty one.
    pub const fn has_body(&self) -> bool {
        self.chunked || self.content_length.is_some()
    }

    /// The line or value that the refusal speaks of; empty if it speaks of none.
    pub const fn refused(&self) -> Span {
        self.refused
    }
}
