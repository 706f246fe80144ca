//! The head of a request as a value.

use alloc::vec::Vec;

use crate::field::{Field, KnownField};
use crate::limits::NameRules;
use crate::method::Method;
use crate::span::Span;
use crate::version::Version;

/// A request head: spans of the buffer it was parsed from, and what the fields mean for the message. The caller owns it
/// and reuses it: `clear` before each request, then `parse_request` until it no longer returns `Partial`. The field
/// list keeps its memory, so a reused head allocates nothing.
#[derive(Clone, Debug, Default)]
pub struct RequestHead {
    pub method: Method,
    pub method_name: Span,
    pub version: Version,
    /// From the method to the version, without CRLF: `$request`.
    pub request_line: Span,
    pub target: Target,
    /// The host: the authority of an absolute-form target, else `Host`; without port and final dot. Empty in an
    /// HTTP/1.0 request without one.
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
    /// To be set before it is parsed: the text was made of the fields of HTTP/2 (`h2::connection`), and its version is 2.0.
    pub is_of_fields: bool,
    /// How many fields had been read when `host` became known, the one that set it included.
    pub(crate) fields_before_server: u16,
    /// Set of `KnownField::bit` of the fields that occur (and are not ignored).
    pub(crate) present: u64,
    pub(crate) progress: Progress,
    /// The line or value that a refusal is about.
    pub(crate) refused: Span,
}

/// The request target, RFC 9112 3.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Target {
    pub form: TargetForm,
    /// Path and query as sent: `$request_uri`. For an absolute-form target this begins at its
    /// path; with an empty path it is the slash after the scheme, or, with a query, the query
    /// with its question mark (as in nginx).
    pub whole: Span,
    /// The path as sent, without the query; for an empty one the slash after the scheme.
    pub path: Span,
    /// The part after the first `?`.
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
    /// Whether the sender wants the connection to persist: the default of HTTP/1.1, an option of 1.0 (RFC 9112 9.3).
    #[inline]
    pub const fn persists(self, version: Version) -> bool {
        match self {
            Self::Close => false,
            Self::KeepAlive => true,
            Self::Unstated => !matches!(version, Version::Http10),
        }
    }

    /// Applies one element of a `Connection` list.
    pub(crate) fn add(&mut self, option: &[u8]) {
        if option.eq_ignore_ascii_case(b"close") {
            *self = Self::Close;
        } else if option.eq_ignore_ascii_case(b"keep-alive") && *self == Self::Unstated {
            *self = Self::KeepAlive;
        }
    }
}

/// The state of an unfinished head: complete lines are never parsed twice.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// The request line is complete.
    pub(crate) has_request_line: bool,
    /// Where the first unfinished line begins.
    pub(crate) line_start: u32,
    /// Bytes before this offset belong to the unfinished line and contain no line end.
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

    /// No `Range`, `If-…`, body, `Expect`, `Upgrade` or `TE`, no odd field name (which may have to be logged), and an
    /// origin-form target that needs no decoding: a GET or HEAD of this kind may get a hot answer. The caller checks
    /// `Accept-Encoding`, `Via` and `Authorization`.
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

    /// Applies a server's rules for names to the fields after the one that named the server, as nginx does; those
    /// before it were read by the default server's rules.
    pub fn judge_names(&mut self, rules: NameRules) {
        if !self.has_odd_names || self.host.is_empty() {
            return;
        }
        let first = usize::from(self.fields_before_server);
        for field in self.fields.iter_mut().skip(first) {
            field.ignored = rules.ignore(field.kind);
        }
    }

    /// The fields that are ignored because of their names, in order: those read by the default server's rules, or those
    /// after the one that named the server.
    pub fn ignored_fields(&self, behind_server: bool) -> impl Iterator<Item = &Field> {
        let count = match self.host.is_empty() {
            true => self.fields.len(),
            false => usize::from(self.fields_before_server),
        };
        let (before, behind) = self.fields.split_at_checked(count).unwrap_or_default();
        let fields = if behind_server { behind } else { before };
        fields.iter().filter(|field| field.ignored)
    }

    /// `$request_length`: bytes of the complete lines, from the request line on; 0 before that is complete.
    pub const fn length_bytes(&self) -> u32 {
        if self.progress.has_request_line {
            self.progress.line_start - self.request_line.start
        } else {
            0
        }
    }

    /// The text that nginx's log lines append after "while".
    pub(crate) const fn action(&self) -> &'static str {
        if self.progress.has_request_line {
            "reading client request headers"
        } else {
            "reading client request line"
        }
    }

    /// Bytes of the request line with its end; 0 before it is complete.
    pub fn request_line_bytes(&self) -> u32 {
        match self.fields.first() {
            Some(field) => field.name.start - self.request_line.start,
            // Only the empty line follows.
            None if self.is_whole => self.length_bytes().saturating_sub(2),
            None => self.length_bytes(),
        }
    }

    /// Removes the parts of a request line that is refused or will never be complete. (HEAD stays: its answer has no
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

    /// The line or value that the refusal is about; empty if there is none.
    pub const fn refused(&self) -> Span {
        self.refused
    }
}
