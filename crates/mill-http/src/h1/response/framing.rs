//! Where a response ends and whether its connection persists: RFC 9112 6.3 and 9.3.

use crate::field::{KnownField, ListElements};
use crate::field_meaning::parse_content_length;
use crate::h1::response::line::trim;
use crate::h1::response::{Framing, RequestKind, ResponseFault, SWITCHING_PROTOCOLS};
use crate::head::ConnectionOption;
use crate::status::Status;
use crate::version::Version;

/// The values of the three relevant fields so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct FramingFields {
    length: Length,
    coding: Coding,
    connection: ConnectionOption,
}

/// Of all `Content-Length` together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    Absent,
    Bytes(u64),
    Faulty(ResponseFault),
}

/// The last one of all `Transfer-Encoding` together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Absent,
    Chunked,
    ChunkedWithParameters,
    Other,
}

impl FramingFields {
    pub(super) const NONE: Self = Self {
        length: Length::Absent,
        coding: Coding::Absent,
        connection: ConnectionOption::Unstated,
    };

    /// Applies the field line from `start` to `end`.
    #[inline]
    pub(super) fn on_line(&mut self, bytes: &[u8], start: usize, colon: usize, end: usize) {
        let name = bytes.get(start..colon).unwrap_or(&[]);
        let may_matter = matches!(
            name.len(),
            CONNECTION_LEN | CONTENT_LENGTH_LEN | TRANSFER_ENCODING_LEN
        );
        if may_matter || matches!(name, [.., b' ' | b'\t']) {
            self.on_field(trim(name), trim(bytes.get(colon + 1..end).unwrap_or(&[])));
        }
    }

    /// Applies a field whose name is known or irrelevant.
    #[inline]
    pub(super) fn on_known(&mut self, known: KnownField, value: &[u8]) {
        if matches!(
            known,
            KnownField::ContentLength | KnownField::TransferEncoding | KnownField::Connection
        ) {
            self.apply(known, value);
        }
    }

    /// `parse_valid` needs a name whose bytes were checked: of the bytes below 0x20, one of which it would take for a
    /// hyphen, this one contains only tabs.
    fn on_field(&mut self, name: &[u8], value: &[u8]) {
        self.apply(KnownField::parse_valid(name), value);
    }

    fn apply(&mut self, known: KnownField, value: &[u8]) {
        match known {
            KnownField::ContentLength => self.on_content_length(value),
            KnownField::TransferEncoding => self.on_transfer_encoding(value),
            KnownField::Connection if !value.contains(&b',') => self.connection.add(value),
            KnownField::Connection => {
                elements(value).for_each(|option| self.connection.add(option));
            }
            _ => {}
        }
    }

    /// RFC 9112 6.3, fifth: a length may be repeated, as a field or in a list, if it is the same.
    fn on_content_length(&mut self, value: &[u8]) {
        match parse_content_length(value) {
            Some(bytes) => self.add_length(bytes),
            None => self.on_length_list(value),
        }
    }

    #[cold]
    fn on_length_list(&mut self, value: &[u8]) {
        let mut is_empty = true;
        for element in elements(value) {
            is_empty = false;
            match parse_content_length(element) {
                Some(bytes) => self.add_length(bytes),
                None => self.length = Length::Faulty(ResponseFault::ContentLength),
            }
        }
        if is_empty {
            self.length = Length::Faulty(ResponseFault::ContentLength);
        }
    }

    fn add_length(&mut self, bytes: u64) {
        self.length = match self.length {
            Length::Absent => Length::Bytes(bytes),
            Length::Bytes(before) if before != bytes => {
                Length::Faulty(ResponseFault::ContentLengthsDiffer)
            }
            said => said,
        };
    }

    fn on_transfer_encoding(&mut self, value: &[u8]) {
        if self.coding == Coding::Absent {
            self.coding = Coding::Other;
        }
        if let Some(coding) = elements(value).last() {
            let name_len = coding.iter().position(|byte| *byte == b';');
            let name = trim(
                coding
                    .get(..name_len.unwrap_or(coding.len()))
                    .unwrap_or(coding),
            );
            self.coding = match (name.eq_ignore_ascii_case(b"chunked"), name_len) {
                (true, None) => Coding::Chunked,
                (true, Some(_)) => Coding::ChunkedWithParameters,
                (false, _) => Coding::Other,
            };
        }
    }

    /// How the content ends, and whether the connection may be used again after it.
    pub(super) fn conclude(
        &self,
        request: RequestKind,
        status: u16,
        version: Version,
    ) -> Result<(Framing, bool), ResponseFault> {
        let framing = self.framing(request, status)?;
        let asked = self.connection.persists(version);
        let ends = framing == Framing::UntilClose || status == SWITCHING_PROTOCOLS;
        Ok((framing, asked && !ends && !self.is_doubtful(version)))
    }

    /// RFC 9112 6.3, in its order.
    fn framing(&self, request: RequestKind, status: u16) -> Result<Framing, ResponseFault> {
        // First. Fields are ignored, even faulty ones.
        if request == RequestKind::Head || Status(status).has_no_content() {
            return Ok(Framing::None);
        }
        // Second. The following bytes are the tunnel's.
        if request == RequestKind::Connect && matches!(status, 200..=299) {
            return Ok(Framing::UntilClose);
        }
        match self.coding {
            // Third and fourth: a length beside it is ignored.
            Coding::Chunked => return Ok(Framing::Chunked),
            Coding::Other => return Ok(Framing::UntilClose),
            Coding::ChunkedWithParameters => return Err(ResponseFault::ChunkedParameters),
            Coding::Absent => {}
        }
        match self.length {
            // Fifth.
            Length::Faulty(fault) => Err(fault),
            // Sixth.
            Length::Bytes(bytes) => Ok(Framing::Length(bytes)),
            // Eighth. (The seventh is of requests.)
            Length::Absent => Ok(Framing::UntilClose),
        }
    }

    /// RFC 9112 6.1: a coding beside a length, or from a server of HTTP/1.0, may have passed an intermediary that read
    /// it otherwise. The message is accepted, the connection is not reused.
    fn is_doubtful(&self, version: Version) -> bool {
        self.coding != Coding::Absent
            && (self.length != Length::Absent || version == Version::Http10)
    }
}

/// The elements of a list that may be folded.
fn elements(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    ListElements::of(value)
        .map(trim)
        .filter(|element| !element.is_empty())
}

/// Most names have another length, which is quicker to compare than their letters.
const CONNECTION_LEN: usize = "connection".len();
pub(super) const CONTENT_LENGTH_LEN: usize = "content-length".len();
pub(super) const TRANSFER_ENCODING_LEN: usize = "transfer-encoding".len();
