//! Frames in one direction through shared memory, with one writer and one reader.
//!
//! A ring of bytes. A record is its length in four bytes, then its bytes, padded to a multiple of eight. Both indices
//! count bytes and wrap at 2^32; each side writes its own and reads the other's.

use mill_sys::memory::SharedMemory;
use std::sync::atomic::{AtomicU32, Ordering, fence};

/// Offsets of a ring's parts in the memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ring {
    pub(super) put_at: usize,
    pub(super) taken_at: usize,
    pub(super) bytes_at: usize,
    /// A power of two.
    pub(super) bytes: u32,
}

/// The side that adds records.
#[derive(Debug)]
pub(super) struct Writer {
    ring: Ring,
    /// Records are written up to `next`, and visible to the reader up to `published`.
    next: u32,
    published: u32,
    /// The reader's index when it was read last.
    taken: u32,
}

/// The side that removes records.
#[derive(Debug)]
pub(super) struct Reader {
    ring: Ring,
    /// Records are taken up to `next`, and their room is returned up to `released`.
    next: u32,
    released: u32,
    /// The writer's index when it was read last.
    put: u32,
    is_broken: bool,
}

impl Ring {
    fn put<'a>(&self, memory: &'a SharedMemory) -> &'a AtomicU32 {
        memory.atomic_u32(self.put_at).expect(INSIDE)
    }

    fn taken<'a>(&self, memory: &'a SharedMemory) -> &'a AtomicU32 {
        memory.atomic_u32(self.taken_at).expect(INSIDE)
    }

    /// Where `len` bytes from `index` on lie: the offset and length of the first part; the second one is at the ring's
    /// start.
    fn parts(&self, index: u32, len: usize) -> (usize, usize) {
        let at = (index & (self.bytes - 1)) as usize;
        let first = len.min(self.bytes as usize - at);
        (self.bytes_at + at, first)
    }

    fn write(&self, memory: &SharedMemory, index: u32, from: &[u8]) {
        let (at, first) = self.parts(index, from.len());
        let (first, second) = from.split_at(first);
        let is_inside =
            memory.write(at, first).is_some() && memory.write(self.bytes_at, second).is_some();
        debug_assert!(is_inside, "{INSIDE}");
    }

    fn read(&self, memory: &SharedMemory, index: u32, to: &mut [u8]) {
        let (at, first) = self.parts(index, to.len());
        let (first, second) = to.split_at_mut(first);
        let is_inside =
            memory.read(at, first).is_some() && memory.read(self.bytes_at, second).is_some();
        debug_assert!(is_inside, "{INSIDE}");
    }
}

impl Writer {
    /// The writer of an unused ring, or of one that another process has written until now. `None` if its indices are impossible.
    pub(super) fn resume(ring: Ring, memory: &SharedMemory) -> Option<Self> {
        let put = ring.put(memory).load(Ordering::Acquire);
        let taken = ring.taken(memory).load(Ordering::Acquire);
        (put.wrapping_sub(taken) <= ring.bytes).then_some(Self {
            ring,
            next: put,
            published: put,
            taken,
        })
    }

    /// Whether a record of `len` bytes has room.
    pub(super) fn has_room(&mut self, memory: &SharedMemory, len: usize) -> bool {
        let Some(needed) = record_bytes(len) else {
            return false;
        };
        if self.ring.bytes - self.used() < needed {
            let taken = self.ring.taken(memory).load(Ordering::Acquire);
            // Ignore an impossible index: the reader cannot have taken more than was written.
            if self.next.wrapping_sub(taken) <= self.used() {
                self.taken = taken;
            }
        }
        self.ring.bytes - self.used() >= needed
    }

    /// Writes a record of two parts, if it has room.
    pub(super) fn put(&mut self, memory: &SharedMemory, parts: [&[u8]; 2]) -> bool {
        let len = parts[0].len() + parts[1].len();
        if !self.has_room(memory, len) {
            return false;
        }
        let (Ok(number), Some(needed)) = (u32::try_from(len), record_bytes(len)) else {
            return false;
        };
        let mut at = self.next;
        for part in [&number.to_ne_bytes()[..], parts[0], parts[1]] {
            self.ring.write(memory, at, part);
            at = at.wrapping_add(u32::try_from(part.len()).unwrap_or_default());
        }
        self.next = self.next.wrapping_add(needed);
        true
    }

    /// Makes written records visible; whether the reader has to be woken because it may have found the ring empty.
    pub(super) fn publish(&mut self, memory: &SharedMemory) -> bool {
        if self.published == self.next {
            return false;
        }
        let before = std::mem::replace(&mut self.published, self.next);
        self.ring.put(memory).store(self.next, Ordering::Release);
        // The reader stores its index and then loads the writer's; this side stores its own and then loads the
        // reader's. With the two fences at least one side sees the other's store, so no wakeup is lost.
        fence(Ordering::SeqCst);
        self.ring.taken(memory).load(Ordering::Acquire) == before
    }

    fn used(&self) -> u32 {
        self.next.wrapping_sub(self.taken)
    }
}

impl Reader {
    /// The reader of an unused ring, or of one that another process has read until now. `None` if its indices are impossible.
    pub(super) fn resume(ring: Ring, memory: &SharedMemory) -> Option<Self> {
        let taken = ring.taken(memory).load(Ordering::Acquire);
        let put = ring.put(memory).load(Ordering::Acquire);
        (put.wrapping_sub(taken) <= ring.bytes).then_some(Self {
            ring,
            next: taken,
            released: taken,
            put,
            is_broken: false,
        })
    }

    /// Length of the next record; `None` if there is none.
    #[inline]
    pub(super) fn waiting(&mut self, memory: &SharedMemory) -> Option<usize> {
        if self.next == self.put {
            self.put = self.ring.put(memory).load(Ordering::Acquire);
            if self.next == self.put || self.is_broken {
                return None;
            }
        }
        self.record(memory)
    }

    fn record(&mut self, memory: &SharedMemory) -> Option<usize> {
        let there = self.put.wrapping_sub(self.next);
        let mut len = [0; LEN_BYTES];
        self.ring.read(memory, self.next, &mut len);
        let len = u32::from_ne_bytes(len) as usize;
        let is_possible =
            there <= self.ring.bytes && record_bytes(len).is_some_and(|needed| needed <= there);
        self.is_broken |= !is_possible;
        (!self.is_broken).then_some(len)
    }

    /// Copies bytes of the next record, from offset `from` on; `false` if they are not all inside it.
    pub(super) fn read(&mut self, memory: &SharedMemory, from: usize, to: &mut [u8]) -> bool {
        let len = self.waiting(memory).unwrap_or_default();
        if from + to.len() > len {
            return false;
        }
        let from = u32::try_from(LEN_BYTES + from).unwrap_or_default();
        self.ring.read(memory, self.next.wrapping_add(from), to);
        true
    }

    /// Skips to the next record.
    pub(super) fn pass(&mut self, memory: &SharedMemory) {
        let needed = self.waiting(memory).and_then(record_bytes);
        self.next = self.next.wrapping_add(needed.unwrap_or_default());
    }

    /// Returns the room of taken records. Whether records have arrived since the writer's index was read: the writer
    /// wakes a reader only if it saw that everything had been taken.
    pub(super) fn release(&mut self, memory: &SharedMemory) -> bool {
        if self.released == self.next {
            return false;
        }
        self.released = self.next;
        self.ring.taken(memory).store(self.next, Ordering::Release);
        fence(Ordering::SeqCst);
        let put = self.ring.put(memory).load(Ordering::Acquire);
        put != self.put && !self.is_broken
    }

    /// Marks the ring's contents as invalid.
    pub(super) const fn set_broken(&mut self) {
        self.is_broken = true;
    }

    pub(super) const fn is_broken(&self) -> bool {
        self.is_broken
    }
}

/// Bytes that a record takes; `None` of one that is longer than any frame.
fn record_bytes(len: usize) -> Option<u32> {
    let bytes = (LEN_BYTES + len).next_multiple_of(8);
    u32::try_from(bytes)
        .ok()
        .filter(|bytes| *bytes <= RECORD_BYTES_MAX)
}

/// Bytes of a record's length.
const LEN_BYTES: usize = 4;

/// Bytes of the longest record: a packet of 64 KiB with its headers and note.
const RECORD_BYTES_MAX: u32 = (64 << 10) + 256;

/// Why an access can't fail.
const INSIDE: &str = "the memory is as large as the rings, which its end has looked at";
