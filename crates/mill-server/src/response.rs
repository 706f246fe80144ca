//! An answer before it is sent.

use crate::content::Content;
use mill_http::h1::emit::{emit_field, emit_field_of};
use mill_http::status::Status;
use mill_runtime::payload::Shared;
use mill_runtime::time::UnixTime;
use std::rc::Rc;

/// The bytes of a field.
mod field_text;

pub use field_text::FieldText;

/// A field line that the exchange does not make itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldLine {
    pub name: FieldText,
    pub value: FieldText,
}

impl FieldLine {
    /// Appends it, as a server has sent it where that is how we send it.
    pub fn emit(&self, out: &mut Vec<u8>) {
        match (self.name.in_head(), self.value.in_head()) {
            (Some((head, name)), Some((same, value))) if Rc::ptr_eq(head, same) => {
                emit_field_of(head, name, value, out);
            }
            _ => emit_field(&self.name, &self.value, out),
        }
    }
}

/// An answer, made by a handler, changed by the filters, and sent by the exchange. The exchange adds `Server`, `Date`,
/// `Connection`, `Keep-Alive` and the framing (`Content-Length` or `Transfer-Encoding`) itself.
#[derive(Debug)]
pub struct Response<File> {
    pub status: Status,
    /// The reason phrase, where it is not the usual one of the status.
    pub reason: Option<FieldText>,
    pub content_type: Option<FieldText>,
    /// The character set of the content, set by the handler or by the filter of `charset`; sent as a parameter of the
    /// content type.
    pub charset: Option<Vec<u8>>,
    /// Seconds since 1970; sent as `Last-Modified`, used by conditions.
    pub last_modified: Option<i64>,
    /// With its quotes, and `W/` if weak.
    pub etag: Option<FieldText>,
    /// `Location`, as it is sent.
    pub location: Option<Vec<u8>>,
    /// Send `Vary: Accept-Encoding`: another `Accept-Encoding` would have had another answer.
    pub vary: bool,
    /// Further field lines, in the order in which they are sent.
    pub fields: Vec<FieldLine>,
    /// `Server`, or `Date`, is among them: the exchange makes none.
    pub has_server: bool,
    pub has_date: bool,
    /// Sent after chunked content.
    pub trailers: Vec<FieldLine>,
    /// The content may be sent in ranges: the filters cut them, and add `Accept-Ranges`.
    pub ranges: bool,
    pub content: Content<File>,
    /// The file, in which state, that the content is made from, if any.
    pub identity: Option<FileIdentity>,
    /// No `Content-Length` is sent before the content, even if the length is known: nginx generates such answers while
    /// it sends them. So they are sent in chunks, or end with the connection; the head of an answer to HEAD has
    /// neither.
    pub streamed: bool,
    /// Close the connection after this answer.
    pub close: bool,
    /// An upstream server has answered: the request's conditions were its to evaluate.
    pub proxied: bool,
    /// Unless a cache has it, which asks servers for all: conditions and ranges are ours to evaluate.
    pub is_kept: bool,
}

/// A file in one of its states: a value made from it is valid as long as these are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileIdentity {
    pub device: u64,
    pub inode: u64,
    pub modified: UnixTime,
    pub len: u64,
}

impl<File> Response<File> {
    /// An answer without content.
    pub const fn empty(status: Status) -> Self {
        Self {
            status,
            reason: None,
            content_type: None,
            charset: None,
            last_modified: None,
            etag: None,
            location: None,
            vary: false,
            fields: Vec::new(),
            has_server: false,
            has_date: false,
            trailers: Vec::new(),
            ranges: false,
            content: Content::absent(),
            identity: None,
            streamed: false,
            close: false,
            proxied: false,
            is_kept: false,
        }
    }

    /// An answer with content in memory.
    pub fn with_bytes(status: Status, content_type: &[u8], content: impl Into<Shared>) -> Self {
        Self {
            content_type: Some(FieldText::copy(content_type)),
            content: Content::bytes(content),
            ..Self::empty(status)
        }
    }

    /// `Content-Type` as it is sent: the type with the character set.
    pub fn full_content_type(&self) -> Option<FieldText> {
        let mut full = self.content_type.clone()?;
        if let Some(charset) = self.charset.as_ref().filter(|charset| !charset.is_empty()) {
            let text = full.to_mut();
            text.extend_from_slice(b"; charset=");
            text.extend_from_slice(charset);
        }
        Some(full)
    }

    /// Adds a field line of the server's own.
    pub fn push_field(&mut self, name: &'static str, value: impl Into<FieldText>) {
        self.fields.push(FieldLine {
            name: name.into(),
            value: value.into(),
        });
    }
}
