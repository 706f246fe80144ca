//! A part of a queue that is in one place: a buffer, shared memory, a range of a file.

use crate::file_bytes::FileBytes;
use alloc::boxed::Box;
use mill_runtime::files::FileError;
use mill_runtime::payload::Shared;
use mill_runtime::stream::StreamError;

/// A part of a queue that is in one place. Positions are those of the queue's life.
pub(super) struct Chunk<F> {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) body: Body<F>,
}

/// Where the bytes are.
pub(super) enum Body<F> {
    /// The chunk's bytes, and room for more.
    Copy(Box<[u8]>),
    /// The chunk's bytes begin at the index.
    Shared(Shared, usize),
    File {
        file: F,
        offset: u64,
        /// The chunk's bytes, while they are in memory.
        bytes: Option<Box<[u8]>>,
        /// They are mapped, and need not be read where a link sends them from there.
        is_mapped: bool,
    },
    /// Bytes that were promised and do not exist.
    Missing,
}

impl<F> Chunk<F> {
    /// The bytes that are in memory from a position on.
    pub(super) fn bytes(&self, at: u64) -> Option<&[u8]> {
        let from = usize::try_from(at - self.start).ok()?;
        let len = usize::try_from(self.end - self.start).ok()?;
        match &self.body {
            Body::Copy(buffer) => buffer.get(from..len),
            Body::Shared(bytes, start) => bytes.get(start + from..start + len),
            Body::File { bytes, .. } => bytes.as_ref()?.get(from..len),
            Body::Missing => None,
        }
    }

    pub(super) fn is_in_memory(&self) -> bool {
        match &self.body {
            Body::Copy(_) | Body::Shared(..) => true,
            Body::File {
                bytes, is_mapped, ..
            } => *is_mapped || bytes.is_some(),
            Body::Missing => false,
        }
    }

    pub(super) fn file_bytes(&self) -> usize {
        match &self.body {
            Body::File { bytes, .. } => bytes.as_ref().map_or(0, |buffer| buffer.len()),
            _ => 0,
        }
    }

    pub(super) fn into_buffer(self) -> Option<Box<[u8]>> {
        match self.body {
            Body::Copy(buffer) => Some(buffer),
            Body::File { bytes, .. } => bytes,
            Body::Shared(..) | Body::Missing => None,
        }
    }
}

/// Fills all of `into`.
pub(super) fn read_whole<F: FileBytes>(
    file: &F,
    offset: u64,
    into: &mut [u8],
) -> Result<(), StreamError> {
    let mut done = 0;
    while let Some(rest) = into.get_mut(done..)
        && !rest.is_empty()
    {
        match file.read_at(offset.saturating_add(done as u64), rest) {
            Ok(0) => return Err(StreamError::Truncated),
            Ok(count) => done += count,
            Err(FileError { code, .. }) => return Err(StreamError::Other(code)),
        }
    }
    Ok(())
}
