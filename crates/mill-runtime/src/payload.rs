//! The bytes handed over in a write.

use alloc::rc::Rc;
use core::ops::Range;

/// Bytes that a stream may keep for as long as it needs them, counted without atomics.
pub type Shared = Rc<[u8]>;

/// One piece of a response. The engine sends the pieces in the order in which they were handed over.
#[derive(Debug)]
pub enum Payload<'a, File> {
    /// Copied by the engine before `write` returns: heads and small bodies.
    Copy(&'a [u8]),
    /// Referenced until it is sent (on a stack of our own: until it is acknowledged).
    Shared(Shared, Range<usize>),
    /// A range of a file, sent without passing through user space where the engine can (`sendfile`).
    /// If the file ends before the range does, the stream fails with `StreamError::Truncated`.
    File { file: File, offset: u64, len: u64 },
}

impl<File> Payload<'_, File> {
    /// How many bytes the peer will receive for this payload.
    pub fn len(&self) -> u64 {
        match self {
            Self::Copy(bytes) => bytes.len() as u64,
            Self::Shared(_, range) => range.len() as u64,
            Self::File { len, .. } => *len,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
