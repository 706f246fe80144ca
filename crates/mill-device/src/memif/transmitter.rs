//! The sending end of a ring: frames into shared memory.

use super::Broken;
use super::layout::Buffers;
use super::ring::{Descriptor, Index, Ring};
use mill_sys::memory::SharedMemory;
use std::collections::VecDeque;

/// Puts frames.
#[derive(Debug)]
pub struct Transmitter {
    ring: Ring,
    target: Target,
    /// The count of the descriptor to write next.
    next: u16,
    /// The count up to which descriptors are published.
    published: u16,
    /// The peer's count when it was read last: frames received, or buffers given.
    seen: u16,
}

/// Which end owns the buffers.
#[derive(Debug)]
enum Target {
    /// This end is the slave.
    Ours(Buffers),
    /// The peer is the slave, and has said where its buffers are and how much they hold.
    Theirs {
        posted: VecDeque<Buffer>,
        /// Capacity of all of them together.
        bytes: usize,
    },
}

/// A buffer of the peer that was found to be inside of its region.
#[derive(Clone, Copy, Debug)]
struct Buffer {
    region: u16,
    offset: u32,
    bytes: u32,
}

impl Transmitter {
    /// The slave's end of a ring from it.
    pub fn of_slave(ring: Ring, buffers: Buffers) -> Self {
        Self::new(ring, Target::Ours(buffers))
    }

    /// The master's end of a ring to the slave.
    pub fn of_master(ring: Ring) -> Self {
        let posted = VecDeque::with_capacity(usize::from(ring.size()));
        Self::new(ring, Target::Theirs { posted, bytes: 0 })
    }

    fn new(ring: Ring, target: Target) -> Self {
        Self {
            ring,
            target,
            next: 0,
            published: 0,
            seen: 0,
        }
    }

    /// Goes on where the ring's last user has left off, as the ring itself says. Only the peer can have changed that, to its own harm.
    pub fn resume(&mut self, regions: &[SharedMemory]) {
        let (published, seen) = match self.target {
            // What the peer has received is found at the next look.
            Target::Ours(_) => {
                let head = self.ring.look(regions, Index::Head);
                (head, head.wrapping_sub(self.ring.size()))
            }
            Target::Theirs { .. } => {
                let tail = self.ring.look(regions, Index::Tail);
                (tail, tail)
            }
        };
        (self.next, self.published, self.seen) = (published, published, seen);
    }

    /// Whether there is room for `len` bytes, or for the most the ring can ever hold.
    pub fn has_room(&mut self, regions: &[SharedMemory], len: usize) -> Result<bool, Broken> {
        if let Target::Theirs { .. } = self.target {
            return self.gather(regions, len);
        }
        if self.holds(len) || self.is_empty() {
            return Ok(true);
        }
        self.look(regions)?;
        Ok(self.holds(len) || self.is_empty())
    }

    /// Writes a frame, into several buffers if needed. False, without effect, if there is no room.
    pub fn put(
        &mut self,
        regions: &[SharedMemory],
        frame: &[u8],
        metadata: u32,
    ) -> Result<bool, Broken> {
        debug_assert!(!frame.is_empty());
        self.has_room(regions, frame.len())?;
        if !self.holds(frame.len()) {
            return Ok(false);
        }
        self.fetch_ahead(regions, frame.len());
        let mut rest = frame;
        let mut metadata = metadata;
        while !rest.is_empty() {
            let Some(buffer) = self.buffer() else {
                debug_assert!(false, "there is room");
                return Err(Broken);
            };
            let room = usize::try_from(buffer.bytes).unwrap_or(usize::MAX);
            let (piece, behind) = rest.split_at(room.min(rest.len()));
            let offset = usize::try_from(buffer.offset).map_err(|_| Broken)?;
            let region = regions.get(usize::from(buffer.region)).ok_or(Broken)?;
            region.write(offset, piece).ok_or(Broken)?;
            let descriptor = Descriptor {
                has_next: !behind.is_empty(),
                region: buffer.region,
                len: u32::try_from(piece.len()).map_err(|_| Broken)?,
                offset: buffer.offset,
                metadata,
            };
            self.ring.set_descriptor(regions, self.next, descriptor);
            self.next = self.next.wrapping_add(1);
            metadata = 0;
            rest = behind;
        }
        Ok(true)
    }

    /// Prefetches what will be written for a frame that follows soon, which is probably as long: another core used it
    /// last.
    fn fetch_ahead(&self, regions: &[SharedMemory], len: usize) {
        if self.free() <= FETCHED_AHEAD {
            return;
        }
        self.ring
            .fetch_descriptors(regions, self.next.wrapping_add(FETCHED_AHEAD));
        let buffer = match &self.target {
            Target::Ours(buffers) => {
                let place = self.next.wrapping_add(FETCHED_AHEAD) & (self.ring.size() - 1);
                Some((0, buffers.offset(place), buffers.buffer_bytes))
            }
            Target::Theirs { posted, .. } => {
                let buffer = posted.get(usize::from(FETCHED_AHEAD));
                buffer.map(|buffer| (usize::from(buffer.region), buffer.offset, buffer.bytes))
            }
        };
        if let Some((region, offset, bytes)) = buffer
            && let (Some(region), Ok(offset)) = (regions.get(region), usize::try_from(offset))
        {
            let room = usize::try_from(bytes).unwrap_or(0);
            region.fetch_to_write(offset, len.min(room).min(FETCHED_BYTES));
        }
    }

    /// Publishes the frames that were written; returns whether the peer wants a signal.
    pub fn publish(&mut self, regions: &[SharedMemory]) -> bool {
        if self.published == self.next {
            return false;
        }
        let index = match self.target {
            Target::Ours(_) => Index::Head,
            Target::Theirs { .. } => Index::Tail,
        };
        self.ring.publish(regions, index, self.next);
        self.published = self.next;
        self.ring.wants_wakeup(regions)
    }

    /// The number of frames that the peer has not received, as far as the ring tells: they are lost when it
    /// disconnects.
    pub fn count_untaken(&mut self, regions: &[SharedMemory]) -> u64 {
        // If the peer's index is invalid, the last valid one counts.
        let _ = self.look(regions);
        let taken = match self.target {
            Target::Ours(_) => self.seen,
            Target::Theirs { .. } => self.seen.wrapping_sub(self.ring.size()),
        };
        let count = self.next.wrapping_sub(taken).min(self.ring.size());
        let untaken = (0..count).filter(|behind| {
            let at = self.next.wrapping_sub(1).wrapping_sub(*behind);
            !self.ring.descriptor(regions, at).has_next
        });
        untaken.count() as u64
    }

    /// Buffers that can be written.
    fn free(&self) -> u16 {
        match &self.target {
            Target::Ours(_) => self.ring.size() - self.next.wrapping_sub(self.seen),
            Target::Theirs { posted, .. } => u16::try_from(posted.len()).unwrap_or(u16::MAX),
        }
    }

    fn is_empty(&self) -> bool {
        self.free() == self.ring.size()
    }

    fn holds(&self, len: usize) -> bool {
        match &self.target {
            Target::Ours(buffers) => {
                let each = usize::try_from(buffers.buffer_bytes).unwrap_or(usize::MAX);
                usize::from(self.free()).saturating_mul(each) >= len
            }
            Target::Theirs { bytes, .. } => *bytes >= len,
        }
    }

    /// Takes over buffers that the peer has given, until they hold `len` bytes or there are no more; and those that are
    /// there already for the frames that follow soon, whose memory is prefetched.
    fn gather(&mut self, regions: &[SharedMemory], len: usize) -> Result<bool, Broken> {
        loop {
            let free = self.free();
            let gathered = self.next.wrapping_add(free);
            let is_up_to_date = gathered == self.seen;
            if self.holds(len) && (is_up_to_date || free > FETCHED_AHEAD) {
                return Ok(true);
            }
            if is_up_to_date && !self.look(regions)? {
                return Ok(self.is_empty());
            }
            let count = self.seen.wrapping_sub(gathered).min(GATHERED);
            for ahead in 0..count {
                let at = gathered.wrapping_add(ahead);
                let descriptor = self.ring.descriptor(regions, at);
                let found = inside(regions, &descriptor).ok_or(Broken)?;
                if let Target::Theirs { posted, bytes } = &mut self.target {
                    *bytes += usize::try_from(found.bytes).unwrap_or(0);
                    posted.push_back(found);
                }
            }
        }
    }

    /// The next buffer to be written.
    fn buffer(&mut self) -> Option<Buffer> {
        match &mut self.target {
            Target::Ours(buffers) => Some(Buffer {
                region: 0,
                offset: buffers.offset(self.next & (self.ring.size() - 1)),
                bytes: buffers.buffer_bytes,
            }),
            Target::Theirs { posted, bytes } => {
                let buffer = posted.pop_front()?;
                *bytes -= usize::try_from(buffer.bytes).unwrap_or(0);
                Some(buffer)
            }
        }
    }

    /// Reads the peer's count. It can only advance: as master not beyond what was published, as slave not beyond the
    /// ring's size from what was returned.
    fn look(&mut self, regions: &[SharedMemory]) -> Result<bool, Broken> {
        let (seen, ahead_max) = match self.target {
            Target::Ours(_) => {
                let seen = self.ring.look(regions, Index::Tail);
                (seen, self.published.wrapping_sub(self.seen))
            }
            Target::Theirs { .. } => {
                let seen = self.ring.look(regions, Index::Head);
                let given = self.seen.wrapping_sub(self.published);
                (seen, self.ring.size().saturating_sub(given))
            }
        };
        let ahead = seen.wrapping_sub(self.seen);
        if ahead > ahead_max {
            return Err(Broken);
        }
        self.seen = seen;
        Ok(ahead > 0)
    }
}

/// The buffer that the peer's descriptor gives, if it is valid.
fn inside(regions: &[SharedMemory], descriptor: &Descriptor) -> Option<Buffer> {
    let region = regions.get(usize::from(descriptor.region))?;
    let offset = usize::try_from(descriptor.offset).ok()?;
    let len = usize::try_from(descriptor.len).ok()?;
    let room = region.len().checked_sub(offset)?;
    (1..=room).contains(&len).then_some(Buffer {
        region: descriptor.region,
        offset: descriptor.offset,
        bytes: descriptor.len,
    })
}

/// Distance of the prefetch in frames: what the stack does for this many takes longer than the transfer from another
/// core's cache.
const FETCHED_AHEAD: u16 = 4;

/// Buffers of the peer that are taken over at once: as many as answers to a share of frames need.
const GATHERED: u16 = 16;

/// Bytes of a frame that are prefetched: headers, and the heads of most requests and answers. The rest is fetched as it
/// is written.
const FETCHED_BYTES: usize = 384;
