//! What was written and not sent yet: memory and file ranges, in order.

use crate::files::KernelFile;
use mill_runtime::payload::Shared;
use std::collections::VecDeque;
use std::io::IoSlice;
use std::ops::Range;

/// A connection's queue. Exists only while something is in it.
#[derive(Debug, Default)]
pub(super) struct Outbound {
    chunks: VecDeque<Chunk>,
    len: u64,
    /// Memory of a copy that was sent, for the next one.
    spare: Vec<u8>,
}

/// A piece of a response, shrinking from its front.
#[derive(Debug)]
pub(super) enum Chunk {
    Owned(Vec<u8>, usize),
    Shared(Shared, Range<usize>),
    File {
        file: KernelFile,
        offset: u64,
        len: u64,
    },
}

impl Chunk {
    fn len(&self) -> u64 {
        match self {
            Self::Owned(bytes, start) => (bytes.len() - start) as u64,
            Self::Shared(_, range) => range.len() as u64,
            Self::File { len, .. } => *len,
        }
    }

    fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Owned(bytes, start) => bytes.get(*start..),
            Self::Shared(bytes, range) => bytes.get(range.clone()),
            Self::File { .. } => None,
        }
    }

    fn advance(&mut self, count: u64) {
        let count_memory = usize::try_from(count).unwrap_or(usize::MAX);
        match self {
            Self::Owned(_, start) => *start += count_memory,
            Self::Shared(_, range) => range.start += count_memory,
            Self::File { offset, len, .. } => {
                *offset += count;
                *len -= count;
            }
        }
    }
}

impl Outbound {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Whether it has grown too large to be kept for reuse.
    pub(super) fn is_large(&self) -> bool {
        self.chunks.capacity() > SPARE_CAPACITY_MAX
    }

    pub(super) fn clear(&mut self) {
        self.chunks.clear();
        self.len = 0;
    }

    pub(super) fn push(&mut self, chunk: Chunk) {
        if chunk.len() > 0 {
            self.len += chunk.len();
            self.chunks.push_back(chunk);
        }
    }

    /// Appends a copy, to the last piece if that is a copy with room.
    pub(super) fn push_copy(&mut self, bytes: &[u8]) {
        if let Some(Chunk::Owned(last, _)) = self.chunks.back_mut()
            && last.len() + bytes.len() <= COPY_MAX
        {
            last.extend_from_slice(bytes);
            self.len += bytes.len() as u64;
            return;
        }
        let copy = self.copy(bytes);
        self.push(copy);
    }

    pub(super) fn front(&self) -> Option<&Chunk> {
        self.chunks.front()
    }

    /// Puts a copy before everything else.
    pub(super) fn push_front_copy(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.len += bytes.len() as u64;
            let copy = self.copy(bytes);
            self.chunks.push_front(copy);
        }
    }

    fn copy(&mut self, bytes: &[u8]) -> Chunk {
        let mut memory = std::mem::take(&mut self.spare);
        memory.clear();
        memory.extend_from_slice(bytes);
        Chunk::Owned(memory, 0)
    }

    /// The memory at the front, as pieces: their number, and whether more follows them.
    pub(super) fn memory<'a>(&'a self, pieces: &mut [IoSlice<'a>; PIECES]) -> (usize, bool) {
        let mut count = 0;
        for chunk in &self.chunks {
            let (Some(bytes), Some(piece)) = (chunk.bytes(), pieces.get_mut(count)) else {
                return (count, true);
            };
            *piece = IoSlice::new(bytes);
            count += 1;
        }
        (count, false)
    }

    /// Takes `count` bytes off the front.
    pub(super) fn advance(&mut self, mut count: u64) {
        debug_assert!(count <= self.len, "no more was sent than was queued");
        self.len -= count.min(self.len);
        while let Some(front) = self.chunks.front_mut() {
            let len = front.len();
            if count < len {
                front.advance(count);
                return;
            }
            count -= len;
            if let Some(Chunk::Owned(memory, _)) = self.chunks.pop_front()
                && memory.capacity() <= SPARE_COPY_MAX
            {
                self.spare = memory;
            }
        }
    }
}

/// Pieces of memory sent in one call.
pub(super) const PIECES: usize = 16;

/// Pieces for which a kept queue may have room: four times those of a usual response.
const SPARE_CAPACITY_MAX: usize = 16;

/// Bytes of a copy whose memory is kept for reuse: the head of a usual response, whose content follows it from elsewhere.
const SPARE_COPY_MAX: usize = 1024;

/// A copied piece grows up to this size, in bytes.
const COPY_MAX: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(pieces: &[IoSlice<'_>]) -> Vec<u8> {
        pieces
            .iter()
            .flat_map(|piece| piece.iter().copied())
            .collect()
    }

    #[test]
    fn the_memory_of_a_short_copy_serves_for_the_next_one() {
        for (len, is_kept) in [(100, true), (SPARE_COPY_MAX + 1, false)] {
            let mut outbound = Outbound::default();
            outbound.push_front_copy(&vec![b'a'; len]);
            outbound.advance(len as u64);
            assert_eq!(outbound.spare.capacity() > 0, is_kept, "{len}");
            outbound.push_front_copy(b"head");
            let mut pieces = [IoSlice::new(&[]); PIECES];
            let (count, _) = outbound.memory(&mut pieces);
            assert_eq!(joined(&pieces[..count]), b"head");
        }
    }

    #[test]
    fn pieces_leave_in_the_order_they_came() {
        let mut outbound = Outbound::default();
        outbound.push_copy(b"head");
        outbound.push(Chunk::Shared(b"0body1"[..].into(), 1..5));
        assert_eq!(outbound.len(), 8);
        outbound.push_front_copy(b"x");
        let mut pieces = [IoSlice::new(&[]); PIECES];
        let (count, more) = outbound.memory(&mut pieces);
        assert_eq!((count, more), (3, false));
        assert_eq!(joined(&pieces[..count]), b"xheadbody");
        outbound.advance(7);
        let mut pieces = [IoSlice::new(&[]); PIECES];
        let (count, _) = outbound.memory(&mut pieces);
        assert_eq!(joined(&pieces[..count]), b"dy");
        outbound.advance(2);
        assert!(outbound.is_empty());
    }

    #[test]
    fn copies_share_a_piece_until_it_is_full() {
        let mut outbound = Outbound::default();
        outbound.push_copy(&[b'a'; COPY_MAX - 1]);
        outbound.push_copy(b"b");
        assert_eq!(outbound.chunks.len(), 1);
        outbound.push_copy(b"c");
        assert_eq!(outbound.chunks.len(), 2);
        assert_eq!(outbound.len(), COPY_MAX as u64 + 1);
    }
}
