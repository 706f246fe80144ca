//! The bookkeeping of a queue while it is not empty: chunks in order, found by position.

use super::FileMemory;
use super::chunk::{Body, Chunk, read_whole};
use crate::file_bytes::FileBytes;
use crate::pool::{LARGE_BYTES, Pool};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::ops::Range;
use mill_runtime::payload::Shared;
use mill_runtime::stream::StreamError;
use mill_stack::link::ExternalBytes;
use mill_stack::queue::Vanished;

/// Chunks without a gap between them; the first may begin before `start`, as far as it is released.
pub(crate) struct Outbound<F> {
    /// `None` only while the pool itself keeps this.
    pool: Option<Pool<F>>,
    chunks: VecDeque<Chunk<F>>,
    /// Positions of the first byte held, of the first byte never in memory, and behind the last byte.
    start: u64,
    loaded_end: u64,
    end: u64,
    /// The chunk that was copied from last.
    cursor: usize,
    /// Bytes of buffers that hold parts of files, and how many there may be.
    file_bytes: usize,
    file_bytes_max: usize,
    /// The link may send files from where they are mapped.
    maps_files: bool,
}

impl<F> Outbound<F> {
    pub(crate) fn new() -> Self {
        Self {
            pool: None,
            chunks: VecDeque::new(),
            start: 0,
            loaded_end: 0,
            end: 0,
            cursor: 0,
            file_bytes: 0,
            file_bytes_max: 0,
            maps_files: false,
        }
    }

    /// Whether its memory is too much to be kept.
    pub(crate) fn is_large(&self) -> bool {
        self.chunks.capacity() > SPARE_CAPACITY_MAX
    }

    pub(super) fn len(&self) -> u64 {
        self.end - self.start
    }

    pub(super) fn loaded(&self) -> u64 {
        self.loaded_end - self.start
    }

    pub(super) fn file_bytes(&self) -> usize {
        self.file_bytes
    }

    #[cfg(test)]
    pub(super) fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// Empties it, and gives everything to the pool.
    pub(super) fn give_back(mut self: Box<Self>) {
        let Some(pool) = self.pool.take() else { return };
        for chunk in self.chunks.drain(..) {
            if let Some(buffer) = chunk.into_buffer() {
                pool.put(buffer);
            }
        }
        (self.start, self.loaded_end, self.end) = (0, 0, 0);
        (self.cursor, self.file_bytes) = (0, 0);
        pool.put_queue(self);
    }
}

/// Appending.
impl<F: FileBytes> Outbound<F> {
    pub(super) fn attach(&mut self, pool: &Pool<F>, files: FileMemory) {
        if self.pool.is_none() {
            self.pool = Some(pool.clone());
        }
        (self.file_bytes_max, self.maps_files) = (files.bytes_max, files.is_mapped);
    }

    /// Appends a copy: into what room the last chunk has, then into buffers of its own.
    pub(super) fn push_copy(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        if let Some(Chunk { start, end, body }) = self.chunks.back_mut()
            && let Body::Copy(buffer) = body
        {
            let used = usize::try_from(*end - *start).unwrap_or(usize::MAX);
            let room = buffer.get_mut(used..).unwrap_or_default();
            let (fits, behind) = rest.split_at(rest.len().min(room.len()));
            if let Some(room) = room.get_mut(..fits.len()) {
                room.copy_from_slice(fits);
            }
            *end += fits.len() as u64;
            rest = behind;
            self.grow(fits.len() as u64, true);
        }
        while !rest.is_empty() {
            let mut buffer = self.buffer(rest.len());
            let (fits, behind) = rest.split_at(rest.len().min(buffer.len()));
            if let Some(room) = buffer.get_mut(..fits.len()) {
                room.copy_from_slice(fits);
            }
            self.push(Body::Copy(buffer), fits.len() as u64);
            rest = behind;
        }
    }

    /// Appends a reference; the range lies within the bytes.
    pub(super) fn push_shared(&mut self, bytes: Shared, range: Range<usize>) {
        debug_assert!(range.end <= bytes.len(), "the range was checked");
        let len = range.len() as u64;
        self.push(Body::Shared(bytes, range.start), len);
    }

    /// Appends a range of a file, and reads its first chunk if all before it is in memory and that is not too much
    /// already. On an error nothing is appended.
    pub(super) fn push_file(&mut self, file: F, offset: u64, len: u64) -> Result<(), StreamError> {
        // No payload is that long: a file's last byte has a position of 63 bits.
        if self.end.checked_add(len).is_none() || offset.checked_add(len).is_none() {
            return Err(StreamError::Truncated);
        }
        let reads_now =
            self.loaded_end == self.end && self.loaded() < self.file_bytes_max.max(1) as u64;
        let at = self.end;
        let is_mapped = self.maps_files && file.mapped(offset, len).is_some();
        self.push(
            Body::File {
                file,
                offset,
                bytes: None,
                is_mapped,
            },
            len,
        );
        if reads_now && !is_mapped {
            let index = self.chunks.len() - 1;
            if let Err(error) = self.load(index, at) {
                let whole = self.chunks.partition_point(|chunk| chunk.end <= at);
                self.chunks.truncate(whole);
                self.end = at;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Appends one byte that does not exist.
    pub(super) fn push_missing(&mut self) {
        self.push(Body::Missing, 1);
    }

    fn push(&mut self, body: Body<F>, len: u64) {
        debug_assert!(len > 0, "a chunk has bytes");
        let (start, end) = (self.end, self.end + len);
        let chunk = Chunk { start, end, body };
        let in_memory = chunk.is_in_memory();
        self.chunks.push_back(chunk);
        self.grow(len, in_memory);
    }

    fn grow(&mut self, len: u64, in_memory: bool) {
        if in_memory && self.loaded_end == self.end {
            self.loaded_end += len;
        }
        self.end += len;
    }

    fn buffer(&self, len: usize) -> Box<[u8]> {
        let pool = self.pool.as_ref();
        pool.expect("attached before anything is pushed").take(len)
    }
}

/// Sending and releasing.
impl<F: FileBytes> Outbound<F> {
    pub(super) fn copy(&mut self, offset: u64, into: &mut [u8]) -> Result<(), Vanished> {
        let mut at = self.start.checked_add(offset).ok_or(Vanished)?;
        let behind = at.checked_add(into.len() as u64).ok_or(Vanished)?;
        debug_assert!(behind <= self.end, "only what is held is asked for");
        if behind > self.end {
            return Err(Vanished);
        }
        let mut rest = into;
        while !rest.is_empty() {
            let index = self.load(self.find(at), at).map_err(|_| Vanished)?;
            self.cursor = index;
            let source = self.chunks.get(index).and_then(|chunk| chunk.bytes(at));
            let source = source.ok_or(Vanished)?;
            let count = source.len().min(rest.len());
            let (target, left) = rest.split_at_mut(count);
            target.copy_from_slice(source.get(..count).ok_or(Vanished)?);
            at += count as u64;
            rest = left;
        }
        Ok(())
    }

    /// As [`SendQueue::external`](mill_stack::queue::SendQueue::external).
    pub(super) fn external(&mut self, offset: u64, len: u32) -> Option<ExternalBytes<'_>> {
        let first = self.start.checked_add(offset)?;
        let last = first.checked_add(u64::from(len).checked_sub(1)?)?;
        let index = self.find(last);
        let chunk = self.chunks.get(index)?;
        let first = first.max(chunk.start);
        let len = last + 1 - first;
        if len < EXTERNAL_BYTES_MIN {
            return None;
        }
        self.cursor = index;
        match &chunk.body {
            Body::File {
                file,
                offset,
                is_mapped: true,
                ..
            } => file.mapped(offset + (first - chunk.start), len),
            _ => {
                let bytes = chunk.bytes(first)?.get(..usize::try_from(len).ok()?);
                bytes.map(ExternalBytes::of_memory)
            }
        }
    }

    pub(super) fn release(&mut self, count: u64) {
        debug_assert!(
            count <= self.len(),
            "no more is acknowledged than was queued"
        );
        self.start += count.min(self.len());
        self.loaded_end = self.loaded_end.max(self.start);
        while self
            .chunks
            .front()
            .is_some_and(|chunk| chunk.end <= self.start)
        {
            let Some(chunk) = self.chunks.pop_front() else {
                return;
            };
            self.cursor = self.cursor.saturating_sub(1);
            self.file_bytes -= chunk.file_bytes();
            if let (Some(pool), Some(buffer)) = (&self.pool, chunk.into_buffer()) {
                pool.put(buffer);
            }
        }
    }

    /// The chunk that has the byte at a position: the one copied from last, the one behind it, else by search.
    fn find(&self, at: u64) -> usize {
        let has = |index: usize| {
            let chunk = self.chunks.get(index);
            chunk.is_some_and(|chunk| chunk.start <= at && at < chunk.end)
        };
        if has(self.cursor) {
            self.cursor
        } else if has(self.cursor + 1) {
            self.cursor + 1
        } else {
            self.chunks.partition_point(|chunk| chunk.end <= at)
        }
    }

    /// Brings the byte at `at`, which chunk `index` has, into memory; returns the index of the chunk that has it
    /// then.
    fn load(&mut self, index: usize, at: u64) -> Result<usize, StreamError> {
        let is_absent = |chunk: &Chunk<F>| matches!(chunk.body, Body::File { bytes: None, .. });
        if !self.chunks.get(index).is_some_and(is_absent) {
            return Ok(index);
        }
        let index = self.cut(index, at);
        let Some(chunk) = self.chunks.get(index) else {
            return Err(StreamError::Truncated);
        };
        let Body::File { file, offset, .. } = &chunk.body else {
            return Ok(index);
        };
        let len = usize::try_from(chunk.end - chunk.start).unwrap_or(LARGE_BYTES);
        let mut buffer = self.buffer(len);
        let read = read_whole(file, *offset, buffer.get_mut(..len).unwrap_or_default());
        if let (Err(_), Some(pool)) = (&read, &self.pool) {
            pool.put(buffer);
            return read.map(|()| index);
        }
        self.file_bytes += buffer.len();
        if let Some(chunk) = self.chunks.get_mut(index)
            && let Body::File { bytes, .. } = &mut chunk.body
        {
            *bytes = Some(buffer);
        }
        self.evict(index);
        self.note_loaded();
        Ok(index)
    }

    /// Cuts a range of a file so that the byte at `at` lies in a chunk of one buffer's size; returns that chunk's
    /// index.
    fn cut(&mut self, index: usize, at: u64) -> usize {
        let Some(chunk) = self.chunks.get(index) else {
            return index;
        };
        let first = chunk.start + (at - chunk.start) / CHUNK_BYTES * CHUNK_BYTES;
        let behind = first.saturating_add(CHUNK_BYTES);
        self.split(index, behind);
        self.split(index, first)
    }

    /// Splits a range of a file at a position; returns the index of the chunk that begins there.
    fn split(&mut self, index: usize, at: u64) -> usize {
        let Some(chunk) = self.chunks.get_mut(index) else {
            return index;
        };
        let Body::File {
            file,
            offset,
            is_mapped,
            ..
        } = &chunk.body
        else {
            return index;
        };
        if at <= chunk.start || at >= chunk.end {
            return index;
        }
        let body = Body::File {
            file: file.clone(),
            offset: offset + (at - chunk.start),
            bytes: None,
            is_mapped: *is_mapped,
        };
        let end = core::mem::replace(&mut chunk.end, at);
        let rest = Chunk {
            start: at,
            end,
            body,
        };
        self.chunks.insert(index + 1, rest);
        index + 1
    }

    /// Drops the oldest parts of files, but not the one at `keep`, until no more are in memory than may be.
    fn evict(&mut self, keep: usize) {
        let mut index = 0;
        while self.file_bytes > self.file_bytes_max {
            let Some(chunk) = self.chunks.get_mut(index) else {
                return;
            };
            if index != keep
                && let Body::File { bytes, .. } = &mut chunk.body
                && let Some(buffer) = bytes.take()
            {
                self.file_bytes -= buffer.len();
                if let Some(pool) = &self.pool {
                    pool.put(buffer);
                }
            }
            index += 1;
        }
    }

    /// Moves `loaded_end` behind everything that is in memory next to it.
    fn note_loaded(&mut self) {
        let mut index = self.find(self.loaded_end);
        while let Some(chunk) = self.chunks.get(index)
            && chunk.is_in_memory()
        {
            debug_assert!(chunk.end > self.loaded_end, "it moves forward");
            self.loaded_end = chunk.end;
            index += 1;
        }
    }
}

/// How much of a file is read at once.
const CHUNK_BYTES: u64 = LARGE_BYTES as u64;

/// Fewer bytes are copied: another piece costs as much.
const EXTERNAL_BYTES_MIN: u64 = 4096;

/// Chunks for which an emptied queue may keep room: twice what a response in memory usually has.
const SPARE_CAPACITY_MAX: usize = 8;
