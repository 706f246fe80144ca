//! Every limit and setting of the pure HTTP code, with unit, default and the directive that sets it.

use crate::field::NameKind;

/// The limits of a request head. One value per listening server, shared by its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadRules {
    /// Bytes of the request line with its CRLF. Beyond: 414. From `large_client_header_buffers`
    /// (one buffer's size) or `client_header_buffer_size`, whichever is larger.
    pub request_line_bytes_max: u32,
    /// Bytes of one field line with its CRLF. Beyond: nginx's 494, sent as 400. Same source.
    pub field_line_bytes_max: u32,
    /// Bytes of the whole head, empty lines before it included. Beyond: as above. From all buffers.
    pub head_bytes_max: u32,
    /// Field lines in one head: `max_headers` (nginx 1.29, and Debian's 1.22). Without a limit,
    /// 5-byte fields would cost four times their size in memory.
    pub fields_max: u16,
    pub names: NameRules,
    /// `accept_bare_lf`: a line of the head may end in LF without CR (RFC 9112 2.2 allows a server to accept it).
    pub accept_bare_lf: bool,
}

/// Which fields with odd names are ignored. The default server's rules apply until the server is known, then that
/// server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameRules {
    /// `ignore_invalid_headers`: a field with an invalid name is ignored (on) or kept (off).
    pub ignore_invalid_headers: bool,
    /// `underscores_in_headers`: whether `_` is valid in a field name.
    pub underscores_in_headers: bool,
}

impl NameRules {
    /// Whether a field with a name of this kind is ignored.
    pub const fn ignore(self, kind: NameKind) -> bool {
        let is_valid = match kind {
            NameKind::Plain => true,
            NameKind::Underscored => self.underscores_in_headers,
            NameKind::Odd => false,
        };
        self.ignore_invalid_headers && !is_valid
    }
}

impl Default for NameRules {
    /// nginx's defaults.
    fn default() -> Self {
        Self {
            ignore_invalid_headers: true,
            underscores_in_headers: false,
        }
    }
}

impl HeadRules {
    /// The limits that nginx's buffers amount to. nginx copies an unfinished line to a fresh
    /// buffer and leaves the old one's tail unused, so its own total varies by up to a line.
    pub fn of_buffers(client_header_buffer_bytes: u32, large_count: u32, large_bytes: u32) -> Self {
        let line = client_header_buffer_bytes.max(large_bytes);
        Self {
            request_line_bytes_max: line,
            field_line_bytes_max: line,
            head_bytes_max: large_count
                .saturating_mul(large_bytes)
                .saturating_add(client_header_buffer_bytes),
            fields_max: FIELDS_MAX,
            names: NameRules::default(),
            accept_bare_lf: false,
        }
    }
}

impl Default for HeadRules {
    /// nginx's defaults: `client_header_buffer_size 1k; large_client_header_buffers 4 8k;`.
    fn default() -> Self {
        Self::of_buffers(
            CLIENT_HEADER_BUFFER_BYTES,
            LARGE_BUFFERS,
            LARGE_BUFFER_BYTES,
        )
    }
}

/// The limits of a chunked body, except its content's length, which the server bounds (`client_max_body_size`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkedRules {
    /// Bytes of one chunk-size line's extension. RFC 9112 7.1.1 asks for a limit; nginx has none.
    pub extension_bytes_max: u32,
    /// Bytes of the whole trailer section.
    pub trailer_bytes_max: u32,
    /// Bytes spent on framing beyond the content: a stream of 1-byte chunks costs the reader much more than the sender.
    /// As a factor on the content, plus `trailer_bytes_max`.
    pub framing_bytes_per_content_byte_max: u32,
}

impl Default for ChunkedRules {
    fn default() -> Self {
        Self {
            extension_bytes_max: CHUNK_EXTENSION_BYTES_MAX,
            trailer_bytes_max: LARGE_BUFFER_BYTES,
            framing_bytes_per_content_byte_max: CHUNK_FRAMING_FACTOR_MAX,
        }
    }
}

/// The limits of a response, except its content's length, which the client bounds. By default it is strict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseRules {
    pub reading: Reading,
    /// Bytes of a response's head, empty lines before it included. Beyond: a fault.
    pub head_bytes_max: u32,
    pub chunked: ChunkedRules,
}

/// How strictly a response is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// Everything that two readers could understand differently is a fault: for answers that are passed on.
    #[default]
    Strict,
    /// Forms with one likely meaning are accepted: for answers that are counted. `h1::response` lists them.
    Lenient,
}

impl ResponseRules {
    /// For a client that counts answers and passes none on.
    pub fn lenient() -> Self {
        Self {
            reading: Reading::Lenient,
            ..Self::default()
        }
    }
}

impl Default for ResponseRules {
    fn default() -> Self {
        Self {
            reading: Reading::Strict,
            head_bytes_max: RESPONSE_HEAD_BYTES_MAX,
            chunked: ChunkedRules::default(),
        }
    }
}

/// Bytes; our choice: eight times the head that nginx accepts from an upstream (`proxy_buffer_size 8k`), so that no
/// real answer exceeds it. It bounds the memory for a head without end.
pub const RESPONSE_HEAD_BYTES_MAX: u32 = 64 * 1024;
/// Bytes; nginx's default of `client_header_buffer_size`.
pub const CLIENT_HEADER_BUFFER_BYTES: u32 = 1024;
/// Count; nginx's default of `large_client_header_buffers`, first word.
pub const LARGE_BUFFERS: u32 = 4;
/// Bytes; nginx's default of `large_client_header_buffers`, second word.
pub const LARGE_BUFFER_BYTES: u32 = 8192;
/// Field lines; nginx's default of `max_headers`.
pub const FIELDS_MAX: u16 = 1000;
/// Bytes; extensions are unused in practice, so a small bound breaks nothing.
pub const CHUNK_EXTENSION_BYTES_MAX: u32 = 256;
/// Bytes of framing per byte of content; a one-byte chunk `1\r\nx\r\n` needs 5, so only padded
/// chunk sizes and extensions on tiny chunks come near.
pub const CHUNK_FRAMING_FACTOR_MAX: u32 = 16;
/// Hexadecimal digits of a chunk size: 16 digits are 64 bits, leading zeros included.
pub const CHUNK_SIZE_DIGITS_MAX: u8 = 16;
/// Largest content length: nginx's largest file offset, 2^63 - 1.
pub const CONTENT_LENGTH_MAX: u64 = i64::MAX as u64;
/// Ranges kept by a request when `max_ranges` is unset. nginx has no bound; a field line of 8 KiB
/// holds about 2000, each of which costs a part header.
pub const RANGES_MAX: usize = 2048;
