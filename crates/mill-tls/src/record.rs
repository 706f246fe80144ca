//! The header of a record (RFC 8446 5.1, RFC 5246 6.2.1).

/// What a record carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentType {
    ChangeCipherSpec,
    Alert,
    Handshake,
    ApplicationData,
}

/// The first five bytes of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    pub content_type: ContentType,
    /// Bytes behind the header.
    pub len: usize,
}

/// Why bytes are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderError {
    /// No content type of TLS: the peer does not speak it.
    ContentType,
    /// The major version is not 3.
    Version,
    /// Longer than any record may be.
    Overflow,
}

impl ContentType {
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            20 => Some(Self::ChangeCipherSpec),
            21 => Some(Self::Alert),
            22 => Some(Self::Handshake),
            23 => Some(Self::ApplicationData),
            _ => None,
        }
    }

    pub const fn byte(self) -> u8 {
        match self {
            Self::ChangeCipherSpec => 20,
            Self::Alert => 21,
            Self::Handshake => 22,
            Self::ApplicationData => 23,
        }
    }
}

impl RecordHeader {
    /// `None` as long as fewer than [`HEADER_BYTES`] are there.
    pub fn parse(bytes: &[u8]) -> Option<Result<Self, HeaderError>> {
        let &[content_type, major, _, high, low] = bytes.first_chunk::<HEADER_BYTES>()?;
        let Some(content_type) = ContentType::from_byte(content_type) else {
            return Some(Err(HeaderError::ContentType));
        };
        if major != 3 {
            return Some(Err(HeaderError::Version));
        }
        let len = usize::from(u16::from_be_bytes([high, low]));
        if len > BODY_BYTES_MAX {
            return Some(Err(HeaderError::Overflow));
        }
        Some(Ok(Self { content_type, len }))
    }

    /// The header with the version that all records say since TLS 1.2.
    pub fn emit(self) -> [u8; HEADER_BYTES] {
        let [.., high, low] = self.len.to_be_bytes();
        [self.content_type.byte(), 3, 3, high, low]
    }
}

pub const HEADER_BYTES: usize = 5;

/// Plaintext of a record at most (RFC 8446 5.1).
pub const PLAIN_BYTES_MAX: usize = 1 << 14;

/// A protected record at most: that of TLS 1.2 (RFC 5246 6.2.3), the larger one.
pub const BODY_BYTES_MAX: usize = PLAIN_BYTES_MAX + 2048;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_parsed_as_it_was_emitted() {
        for byte in 20..=23 {
            let header = RecordHeader {
                content_type: ContentType::from_byte(byte).unwrap(),
                len: 0x0102,
            };
            assert_eq!(header.emit(), [byte, 3, 3, 1, 2]);
            assert_eq!(RecordHeader::parse(&header.emit()), Some(Ok(header)));
        }
    }

    #[test]
    fn what_is_no_record_is_refused_by_its_first_five_bytes() {
        for (bytes, expected) in [
            (&b"\x16\x03\x01\x00"[..], None),
            (b"GET /", Some(Err(HeaderError::ContentType))),
            (b"\x16\x02\x00\x00\x05", Some(Err(HeaderError::Version))),
            (b"\x17\x03\x03\x48\x01", Some(Err(HeaderError::Overflow))),
        ] {
            assert_eq!(RecordHeader::parse(bytes), expected, "{bytes:?}");
        }
    }
}
