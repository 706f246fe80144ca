//! Bytes that have arrived in order and wait for their reader: where they arrived, or gathered.

use crate::link::FrameId;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// What of one connection is unread. It is always one piece, because readers get it as one.
#[derive(Debug, Default)]
pub(crate) enum Unread {
    #[default]
    Nothing,
    /// In a frame that is held until the turn ends; nothing was copied.
    Frame { id: FrameId, start: u32, len: u32 },
    /// Copied together: more than one segment, or older than this turn.
    Gathered(Box<Gathered>),
}

const _: () = assert!(size_of::<Unread>() == 16);

impl Unread {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Frame { len, .. } => *len as usize,
            Self::Gathered(gathered) => gathered.as_slice().len(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::Nothing)
    }
}

/// Bytes from `start` on are unread.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    bytes: Vec<u8>,
    start: usize,
}

impl Gathered {
    pub(crate) fn as_slice(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.start..).unwrap_or_default()
    }

    /// Appends bytes. What was read is cut off once it is the larger part, so that each byte moves twice at most.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        if self.start > 0 && self.start >= self.bytes.len() - self.start {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Forgets `count` bytes at the front; says whether none are left.
    pub(crate) fn consume(&mut self, count: usize) -> bool {
        self.start += count;
        debug_assert!(self.start <= self.bytes.len());
        self.start >= self.bytes.len()
    }
}

/// Buffers to gather into. Those that are vacant are kept for the next ones, within bounds.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    #[expect(clippy::vec_box, reason = "the boxes are handed out as they are")]
    vacant: Vec<Box<Gathered>>,
    /// Handed out and not back yet.
    in_use: usize,
}

impl Buffers {
    pub(crate) fn take(&mut self) -> Box<Gathered> {
        self.in_use += 1;
        self.vacant.pop().unwrap_or_default()
    }

    pub(crate) fn put(&mut self, mut gathered: Box<Gathered>) {
        self.in_use -= 1;
        if self.vacant.len() < VACANT_MAX && gathered.bytes.capacity() <= CAPACITY_KEPT_MAX {
            gathered.bytes.clear();
            gathered.start = 0;
            self.vacant.push(gathered);
        }
    }

    pub(crate) const fn in_use(&self) -> usize {
        self.in_use
    }
}

/// Vacant buffers kept, as many as connections are usually behind in one turn; 16 MiB at most.
const VACANT_MAX: usize = 64;

/// Bytes of the largest buffer that is kept: two bursts of 64 full frames, doubled while growing.
const CAPACITY_KEPT_MAX: usize = 256 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_in_the_order_in_which_they_went_in() {
        let mut gathered = Gathered::default();
        let mut next_in = 0u8;
        let mut next_out = 0u8;
        for round in 1..200 {
            for _ in 0..round % 7 + 1 {
                gathered.append(&[next_in, next_in.wrapping_add(1)]);
                next_in = next_in.wrapping_add(2);
            }
            let count = gathered.as_slice().len().min(round % 11);
            for byte in gathered.as_slice().iter().take(count) {
                assert_eq!(*byte, next_out);
                next_out = next_out.wrapping_add(1);
            }
            let is_empty = gathered.consume(count);
            assert_eq!(is_empty, gathered.as_slice().is_empty());
            assert!(gathered.bytes.len() <= 2 * gathered.as_slice().len() + 22);
        }
    }

    #[test]
    fn large_buffers_are_not_kept() {
        let mut buffers = Buffers::default();
        let mut large = buffers.take();
        large.append(&[0; CAPACITY_KEPT_MAX + 1]);
        let mut small = buffers.take();
        small.append(&[0]);
        buffers.put(large);
        buffers.put(small);
        assert_eq!((buffers.vacant.len(), buffers.in_use()), (1, 0));
        assert!(buffers.take().as_slice().is_empty());
    }
}
