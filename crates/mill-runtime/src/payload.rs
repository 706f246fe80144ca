//! The bytes handed over in a write.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::{Deref, Range};

/// Bytes that a stream may keep for as long as it needs them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shared {
    /// Of one worker, counted without atomics.
    Own(Rc<[u8]>),
    /// Of all workers, such as what a cache keeps: a clone is an atomic addition.
    Common(Arc<[u8]>),
}

impl Deref for Shared {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Common(bytes) => bytes,
        }
    }
}

impl From<Vec<u8>> for Shared {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Own(bytes.into())
    }
}

impl From<Box<[u8]>> for Shared {
    fn from(bytes: Box<[u8]>) -> Self {
        Self::Own(bytes.into())
    }
}

impl From<&[u8]> for Shared {
    fn from(bytes: &[u8]) -> Self {
        Self::Own(bytes.into())
    }
}

impl<const LEN: usize> From<[u8; LEN]> for Shared {
    fn from(bytes: [u8; LEN]) -> Self {
        Self::Own(Rc::new(bytes))
    }
}

impl<const LEN: usize> From<&[u8; LEN]> for Shared {
    fn from(bytes: &[u8; LEN]) -> Self {
        Self::from(&bytes[..])
    }
}

impl From<Rc<[u8]>> for Shared {
    fn from(bytes: Rc<[u8]>) -> Self {
        Self::Own(bytes)
    }
}

impl From<Arc<[u8]>> for Shared {
    fn from(bytes: Arc<[u8]>) -> Self {
        Self::Common(bytes)
    }
}

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
