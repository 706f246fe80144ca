//! What was written, until it is acknowledged.
//!
//! ```text
//! release                  copy                       push
//!    |                      |                          |
//!    start ------- loaded_end -------------------------- end      positions in the queue's life
//!    [copy][shared][ file 64 KiB ][ file 64 KiB ][ file: the rest ][copy]
//!     in memory     read           read           not read yet
//! ```
//!
//! Where the device cuts long segments, a file that is mapped is sent from there and takes no memory, but for what has to leave in
//! short segments. Of others, and of that:
//!
//! A range of a file is read when its bytes are sent first, in chunks; the first chunk as soon as nothing unread stands
//! before it, so that a small file is in memory before its writer goes on. Chunks are kept until they are acknowledged,
//! but not more bytes of files than the send buffer has: then the oldest go, and are read again should they have to be
//! sent again.

/// The bookkeeping of a queue that is not empty: chunks in order, found by position.
mod outbound;

/// A part of a queue that is in one place: a buffer, shared memory, a range of a file.
mod chunk;

#[cfg(test)]
mod tests;

use crate::file_bytes::FileBytes;
use crate::pool::Pool;
use alloc::boxed::Box;
use core::fmt;
use mill_runtime::payload::Payload;
use mill_runtime::stream::StreamError;
use mill_stack::link::ExternalBytes;
use mill_stack::queue::{SendQueue, Vanished};
pub(crate) use outbound::Outbound;

/// How a connection's files come into memory.
#[derive(Clone, Copy, Debug)]
pub struct FileMemory {
    /// Bytes of files that are kept in memory together, at most.
    pub bytes_max: usize,
    /// Whether the link may send them from where they are mapped.
    pub is_mapped: bool,
}

/// The queue of one connection of the stack. Empty it is a null pointer.
pub struct PayloadQueue<F>(Option<Box<Outbound<F>>>);

impl<F: FileBytes> PayloadQueue<F> {
    /// Appends a payload, whose memory comes from `pool`.
    ///
    /// An error means that the payload's bytes do not exist. The queue is then longer by one byte that cannot be
    /// read, so that the connection is reset after the bytes before it were sent.
    pub fn push(
        &mut self,
        payload: Payload<'_, F>,
        pool: &Pool<F>,
        files: FileMemory,
    ) -> Result<(), StreamError> {
        if payload.is_empty() {
            return Ok(());
        }
        let outbound = self.0.get_or_insert_with(|| pool.take_queue());
        outbound.attach(pool, files);
        let pushed = match payload {
            Payload::Copy(bytes) => {
                outbound.push_copy(bytes);
                Ok(())
            }
            Payload::Shared(bytes, range) if bytes.get(range.clone()).is_some() => {
                outbound.push_shared(bytes, range);
                Ok(())
            }
            Payload::Shared(..) => Err(StreamError::Truncated),
            Payload::File { file, offset, len } => outbound.push_file(file, offset, len),
        };
        pushed.inspect_err(|_| outbound.push_missing())
    }

    /// Bytes at the front that are in memory, or were.
    pub fn loaded(&self) -> u64 {
        self.0.as_ref().map_or(0, |outbound| outbound.loaded())
    }

    /// Bytes of files that are in memory now.
    pub fn file_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |outbound| outbound.file_bytes())
    }
}

impl<F: FileBytes> SendQueue for PayloadQueue<F> {
    fn len(&self) -> u64 {
        self.0.as_ref().map_or(0, |outbound| outbound.len())
    }

    fn copy(&mut self, offset: u64, into: &mut [u8]) -> Result<(), Vanished> {
        match &mut self.0 {
            Some(outbound) => outbound.copy(offset, into),
            None if into.is_empty() => Ok(()),
            None => Err(Vanished),
        }
    }

    fn external(&mut self, offset: u64, len: u32) -> Option<ExternalBytes<'_>> {
        self.0.as_mut()?.external(offset, len)
    }

    fn release(&mut self, count: u64) {
        let Some(outbound) = &mut self.0 else {
            debug_assert!(count == 0, "no more is acknowledged than was queued");
            return;
        };
        outbound.release(count);
        if outbound.len() == 0 {
            self.clear();
        }
    }

    fn clear(&mut self) {
        if let Some(outbound) = self.0.take() {
            outbound.give_back();
        }
    }
}

impl<F> Default for PayloadQueue<F> {
    fn default() -> Self {
        Self(None)
    }
}

impl<F> Drop for PayloadQueue<F> {
    fn drop(&mut self) {
        if let Some(outbound) = self.0.take() {
            outbound.give_back();
        }
    }
}

impl<F> fmt::Debug for PayloadQueue<F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = self.0.as_ref().map_or(0, |outbound| outbound.len());
        write!(formatter, "PayloadQueue({len} bytes)")
    }
}

/// Part of what an idle connection takes.
const _: () = assert!(size_of::<PayloadQueue<()>>() == size_of::<usize>());
