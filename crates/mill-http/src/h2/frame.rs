//! Frames: RFC 9113 4.1 and 6.

use super::error::ErrorCode;
use alloc::vec::Vec;

/// The number of a stream; 0 is the connection.
pub type StreamId = u32;

/// The nine bytes before each frame's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Bytes of the payload.
    pub len: usize,
    pub kind: u8,
    pub flags: u8,
    pub stream: StreamId,
}

/// Types of frames.
pub mod kind {
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PUSH_PROMISE: u8 = 5;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
    /// RFC 9218 7.1.
    pub const PRIORITY_UPDATE: u8 = 16;
}

/// Flags of frames.
pub mod flag {
    pub const ACK: u8 = 1;
    pub const END_STREAM: u8 = 1;
    pub const END_HEADERS: u8 = 4;
    pub const PADDED: u8 = 8;
    pub const PRIORITY: u8 = 32;
}

impl FrameHeader {
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let [l0, l1, l2, kind, flags, s0, s1, s2, s3] = *bytes.first_chunk::<HEADER_BYTES>()?;
        Some(Self {
            len: u32::from_be_bytes([0, l0, l1, l2]) as usize,
            kind,
            flags,
            stream: u32::from_be_bytes([s0, s1, s2, s3]) & ID_MAX,
        })
    }

    /// The bytes of it.
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let [.., l0, l1, l2] = self.len.to_be_bytes();
        let [s0, s1, s2, s3] = self.stream.to_be_bytes();
        [l0, l1, l2, self.kind, self.flags, s0, s1, s2, s3]
    }

    pub const fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

fn emit(kind: u8, flags: u8, stream: StreamId, payload: &[u8], out: &mut Vec<u8>) {
    let header = FrameHeader {
        len: payload.len(),
        kind,
        flags,
        stream,
    };
    out.extend_from_slice(&header.to_bytes());
    out.extend_from_slice(payload);
}

/// The header of a DATA frame; so many bytes of content follow it.
pub fn data_header(stream: StreamId, len: usize, end: bool) -> [u8; HEADER_BYTES] {
    let flags = if end { flag::END_STREAM } else { 0 };
    FrameHeader {
        len,
        kind: kind::DATA,
        flags,
        stream,
    }
    .to_bytes()
}

/// A block of fields: HEADERS, and CONTINUATION for what does not fit into one frame.
pub fn emit_headers(
    stream: StreamId,
    block: &[u8],
    end: bool,
    frame_bytes_max: usize,
    out: &mut Vec<u8>,
) {
    let (mut first, mut rest) = block.split_at(block.len().min(frame_bytes_max));
    let mut kind = kind::HEADERS;
    let mut flags = if end { flag::END_STREAM } else { 0 };
    loop {
        let ends = if rest.is_empty() {
            flag::END_HEADERS
        } else {
            0
        };
        emit(kind, flags | ends, stream, first, out);
        if rest.is_empty() {
            return;
        }
        (first, rest) = rest.split_at(rest.len().min(frame_bytes_max));
        (kind, flags) = (kind::CONTINUATION, 0);
    }
}

pub(super) fn emit_settings(values: &[(u16, u32)], out: &mut Vec<u8>) {
    let header = FrameHeader {
        len: values.len() * SETTING_BYTES,
        kind: kind::SETTINGS,
        flags: 0,
        stream: 0,
    };
    out.extend_from_slice(&header.to_bytes());
    for (name, value) in values {
        out.extend_from_slice(&name.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

pub(super) fn emit_settings_ack(out: &mut Vec<u8>) {
    emit(kind::SETTINGS, flag::ACK, 0, &[], out);
}

pub(super) fn emit_ping_ack(opaque: &[u8], out: &mut Vec<u8>) {
    emit(kind::PING, flag::ACK, 0, opaque, out);
}

pub(super) fn emit_window_update(stream: StreamId, increment: u32, out: &mut Vec<u8>) {
    emit(
        kind::WINDOW_UPDATE,
        0,
        stream,
        &increment.to_be_bytes(),
        out,
    );
}

pub(super) fn emit_reset(stream: StreamId, code: ErrorCode, out: &mut Vec<u8>) {
    emit(kind::RST_STREAM, 0, stream, &code.0.to_be_bytes(), out);
}

pub(super) fn emit_goaway(last: StreamId, code: ErrorCode, out: &mut Vec<u8>) {
    let [a, b, c, d] = last.to_be_bytes();
    let [e, f, g, h] = code.0.to_be_bytes();
    emit(kind::GOAWAY, 0, 0, &[a, b, c, d, e, f, g, h], out);
}

/// Bytes of a frame's header.
pub const HEADER_BYTES: usize = 9;

/// Bytes of one setting.
pub(super) const SETTING_BYTES: usize = 6;

/// The largest stream number and window.
pub const ID_MAX: u32 = 0x7fff_ffff;

/// What a client sends first (RFC 9113 3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_block_is_continued() {
        let mut out = Vec::new();
        emit_headers(5, b"abcdefg", true, 3, &mut out);
        let mut rest = &out[..];
        let mut found = Vec::new();
        while let Some(header) = FrameHeader::parse(rest) {
            let (payload, behind) = rest[HEADER_BYTES..].split_at(header.len);
            found.push((header.kind, header.flags, payload));
            rest = behind;
            assert_eq!(header.stream, 5);
        }
        let expected: [(u8, u8, &[u8]); 3] = [
            (kind::HEADERS, flag::END_STREAM, b"abc"),
            (kind::CONTINUATION, 0, b"def"),
            (kind::CONTINUATION, flag::END_HEADERS, b"g"),
        ];
        assert_eq!(found, expected);
    }
}
