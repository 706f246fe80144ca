//! What each side announces in SETTINGS: RFC 9113 6.5.

use super::error::ErrorCode;
use super::frame::{ID_MAX, SETTING_BYTES};
use super::hpack::TABLE_BYTES;

/// The values of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Bytes of the dynamic table with which this side decodes.
    pub header_table_size: u32,
    pub enable_push: bool,
    /// Streams that the other side may have open at once.
    pub max_concurrent_streams: u32,
    /// Bytes of content that a new stream may carry to this side before it has said more.
    pub initial_window_size: u32,
    /// Bytes of a frame's payload that this side accepts.
    pub max_frame_size: u32,
    /// Bytes of a field section that this side accepts, as RFC 9113 10.5.1 counts them.
    pub max_header_list_size: u32,
    /// Extended CONNECT (RFC 8441).
    pub enable_connect_protocol: bool,
    /// The priorities of RFC 7540 are not used (RFC 9218 2.1).
    pub no_rfc7540_priorities: bool,
}

/// Numbers of settings.
const HEADER_TABLE_SIZE: u16 = 1;
const ENABLE_PUSH: u16 = 2;
const MAX_CONCURRENT_STREAMS: u16 = 3;
const INITIAL_WINDOW_SIZE: u16 = 4;
const MAX_FRAME_SIZE: u16 = 5;
const MAX_HEADER_LIST_SIZE: u16 = 6;
const ENABLE_CONNECT_PROTOCOL: u16 = 8;
const NO_RFC7540_PRIORITIES: u16 = 9;

impl Default for Settings {
    /// What holds until SETTINGS arrive.
    fn default() -> Self {
        Self {
            header_table_size: HEADER_TABLE_BYTES,
            enable_push: true,
            max_concurrent_streams: u32::MAX,
            initial_window_size: WINDOW_BYTES,
            max_frame_size: FRAME_BYTES,
            max_header_list_size: u32::MAX,
            enable_connect_protocol: false,
            no_rfc7540_priorities: false,
        }
    }
}

impl Settings {
    /// Applies the payload of a SETTINGS frame, whose length is a multiple of six.
    pub(super) fn apply(&mut self, payload: &[u8]) -> Result<(), ErrorCode> {
        for entry in payload.chunks_exact(SETTING_BYTES) {
            let [n0, n1, v0, v1, v2, v3] = *entry else {
                return Err(ErrorCode::FRAME_SIZE_ERROR);
            };
            let value = u32::from_be_bytes([v0, v1, v2, v3]);
            self.set(u16::from_be_bytes([n0, n1]), value)?;
        }
        Ok(())
    }

    fn set(&mut self, name: u16, value: u32) -> Result<(), ErrorCode> {
        let flag = |value| match value {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(ErrorCode::PROTOCOL_ERROR),
        };
        match name {
            HEADER_TABLE_SIZE => self.header_table_size = value,
            ENABLE_PUSH => self.enable_push = flag(value)?,
            MAX_CONCURRENT_STREAMS => self.max_concurrent_streams = value,
            INITIAL_WINDOW_SIZE if value > ID_MAX => return Err(ErrorCode::FLOW_CONTROL_ERROR),
            INITIAL_WINDOW_SIZE => self.initial_window_size = value,
            MAX_FRAME_SIZE if !(FRAME_BYTES..=FRAME_BYTES_MAX).contains(&value) => {
                return Err(ErrorCode::PROTOCOL_ERROR);
            }
            MAX_FRAME_SIZE => self.max_frame_size = value,
            MAX_HEADER_LIST_SIZE => self.max_header_list_size = value,
            ENABLE_CONNECT_PROTOCOL => self.enable_connect_protocol = flag(value)?,
            NO_RFC7540_PRIORITIES => self.no_rfc7540_priorities = flag(value)?,
            _ => {}
        }
        Ok(())
    }

    /// What a client sends.
    pub(super) const fn of_client(self) -> [(u16, u32); 4] {
        [
            (ENABLE_PUSH, 0),
            (MAX_CONCURRENT_STREAMS, 0),
            (INITIAL_WINDOW_SIZE, self.initial_window_size),
            (MAX_FRAME_SIZE, self.max_frame_size),
        ]
    }

    /// What a server sends.
    pub(super) const fn of_server(self) -> [(u16, u32); 5] {
        [
            (MAX_CONCURRENT_STREAMS, self.max_concurrent_streams),
            (INITIAL_WINDOW_SIZE, self.initial_window_size),
            (MAX_FRAME_SIZE, self.max_frame_size),
            (ENABLE_CONNECT_PROTOCOL, self.enable_connect_protocol as u32),
            (NO_RFC7540_PRIORITIES, self.no_rfc7540_priorities as u32),
        ]
    }
}

/// As [`TABLE_BYTES`].
const HEADER_TABLE_BYTES: u32 = 4096;

const _: () = assert!(HEADER_TABLE_BYTES as usize == TABLE_BYTES);

/// The window of a stream, and of a connection, at first.
pub(super) const WINDOW_BYTES: u32 = 65_535;

/// Bytes of a frame's payload that every peer accepts.
pub(super) const FRAME_BYTES: u32 = 16_384;

const FRAME_BYTES_MAX: u32 = (1 << 24) - 1;
