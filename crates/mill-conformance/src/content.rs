//! Bytes that streams carry.

use mill_runtime::stream::Stream;

/// Reads all that is here.
pub fn take_all(stream: &impl Stream) -> Vec<u8> {
    stream.read(|bytes| (bytes.len(), bytes.to_vec()))
}

/// Bytes in which a lost or doubled piece shows: its period has no factor in common with any buffer's size.
pub fn pattern(len: usize) -> Vec<u8> {
    (0..=250).cycle().take(len).collect()
}
