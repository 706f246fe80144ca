//! The receiving end of a ring: frames from shared memory into private memory.

use super::Broken;
use super::layout::Buffers;
use super::ring::{Descriptor, Index, Ring};
use mill_sys::memory::SharedMemory;

/// Takes frames.
#[derive(Debug)]
pub struct Receiver {
    ring: Ring,
    source: Source,
    /// The count of the descriptor to receive next.
    next: u16,
    /// The count up to which the peer knows that descriptors were received.
    given_back: u16,
    /// The peer's count when it was read last.
    seen: u16,
    /// The pieces of the frame that is being received.
    pieces: Vec<Piece>,
    /// Where the frame of each descriptor lay the last time; with most peers it lies there again.
    places: Vec<Piece>,
}

/// Which end owns the buffers.
#[derive(Debug)]
enum Source {
    /// The peer is the slave, and its descriptors say where each buffer is.
    Theirs,
    /// This end is the slave, and buffers lie where the layout says.
    Ours(Buffers),
}

/// A part of a frame that was found to be inside of its region.
#[derive(Clone, Copy, Debug)]
struct Piece {
    region: usize,
    offset: usize,
    len: usize,
}

impl Piece {
    const NOWHERE: Self = Self {
        region: 0,
        offset: 0,
        len: 0,
    };
}

/// The result of receiving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    Frame {
        len: usize,
        metadata: u32,
    },
    /// A frame whose descriptors are invalid, or that is too long.
    Refused,
    Nothing,
}

impl Receiver {
    /// The master's end of a ring from the slave.
    pub fn of_master(ring: Ring) -> Self {
        Self::new(ring, Source::Theirs)
    }

    /// The slave's end of a ring to it. `start` gives the master the buffers.
    pub fn of_slave(ring: Ring, buffers: Buffers) -> Self {
        Self::new(ring, Source::Ours(buffers))
    }

    fn new(ring: Ring, source: Source) -> Self {
        Self {
            ring,
            source,
            next: 0,
            given_back: 0,
            seen: 0,
            pieces: Vec::new(),
            places: vec![Piece::NOWHERE; usize::from(ring.size())],
        }
    }

    /// Called once both ends have mapped the rings. (DPDK's master sets all indices to zero when it connects.)
    pub fn start(&mut self, regions: &[SharedMemory]) {
        if let Source::Ours(_) = self.source {
            self.post(regions, 0, self.ring.size());
            self.ring.publish(regions, Index::Head, self.ring.size());
        }
    }

    /// Goes on where the ring's last user has left off, as the ring itself says. Only the peer can have changed that, to its own harm.
    pub fn resume(&mut self, regions: &[SharedMemory]) {
        let published = match self.source {
            Source::Theirs => self.ring.look(regions, Index::Tail),
            Source::Ours(_) => {
                let head = self.ring.look(regions, Index::Head);
                head.wrapping_sub(self.ring.size())
            }
        };
        (self.next, self.given_back, self.seen) = (published, published, published);
    }

    /// Copies the next frame into `place`.
    pub fn take(&mut self, regions: &[SharedMemory], place: &mut [u8]) -> Result<Taken, Broken> {
        if self.seen == self.next {
            if !self.look(regions)? {
                return Ok(Taken::Nothing);
            }
            self.fetch_first(regions);
        }
        let first = self.ring.descriptor(regions, self.next);
        self.fetch_ahead(regions);
        if first.has_next {
            return self.take_chain(regions, first, place);
        }
        let count = self.next;
        self.next = self.next.wrapping_add(1);
        let room = self
            .piece(regions, count, &first)
            .and_then(|piece| Some((piece, place.get_mut(..piece.len)?)));
        let Some((piece, to)) = room else {
            return Ok(Taken::Refused);
        };
        self.note_place(count, piece);
        let metadata = first.metadata;
        Ok(match copy(regions, piece, to) {
            Some(()) => Taken::Frame {
                len: piece.len,
                metadata,
            },
            None => Taken::Refused,
        })
    }

    /// Publishes what was received: when enough has accumulated, or `at_once`. Until then the peer has the rest of the
    /// ring; publishing each frame would move a cache line of the ring between the cores for each frame.
    pub fn give_back(&mut self, regions: &[SharedMemory], at_once: bool) {
        let taken = self.next.wrapping_sub(self.given_back);
        if taken == 0 || (!at_once && taken < self.ring.size() / GIVEN_BACK_SHARE) {
            return;
        }
        match self.source {
            Source::Theirs => self.ring.publish(regions, Index::Tail, self.next),
            Source::Ours(_) => {
                self.post(regions, self.given_back, self.next);
                let head = self.next.wrapping_add(self.ring.size());
                self.ring.publish(regions, Index::Head, head);
            }
        }
        self.given_back = self.next;
    }

    pub fn set_wakeups(&self, regions: &[SharedMemory], wanted: bool) {
        self.ring.set_wakeups(regions, wanted);
    }

    /// Prefetches a frame that will be received soon: the peer wrote it on another core.
    fn fetch_ahead(&self, regions: &[SharedMemory]) {
        let ahead = self.next.wrapping_add(FETCHED_AHEAD);
        let left = self.seen.wrapping_sub(self.next);
        if left <= FETCHED_AHEAD {
            return;
        }
        let descriptor = self.ring.descriptor(regions, ahead);
        if let Some(Piece {
            region,
            offset,
            len,
        }) = self.piece(regions, ahead, &descriptor)
            && let Some(memory) = regions.get(region)
        {
            memory.fetch(offset, len.min(FETCHED_BYTES));
        }
    }

    /// Prefetches what was just found, instead of waiting for one piece after the other: descriptors, and the first
    /// frames at the places where they lay the last time.
    fn fetch_first(&self, regions: &[SharedMemory]) {
        let count = self.seen.wrapping_sub(self.next);
        for ahead in (0..count.min(DESCRIPTORS_FETCHED)).step_by(4) {
            self.ring
                .fetch_descriptor(regions, self.next.wrapping_add(ahead));
        }
        for ahead in 0..count.min(FETCHED_AHEAD) {
            let slot = self.next.wrapping_add(ahead) & (self.ring.size() - 1);
            if let Some(piece) = self.places.get(usize::from(slot))
                && let Some(memory) = regions.get(piece.region)
            {
                memory.fetch(piece.offset, piece.len.min(FETCHED_BYTES));
            }
        }
    }

    fn note_place(&mut self, count: u16, piece: Piece) {
        let slot = usize::from(count & (self.ring.size() - 1));
        if let Some(place) = self.places.get_mut(slot) {
            *place = piece;
        }
    }

    /// Reads the peer's count. It can only advance, and not beyond what the peer was given.
    fn look(&mut self, regions: &[SharedMemory]) -> Result<bool, Broken> {
        let index = match self.source {
            Source::Theirs => Index::Head,
            Source::Ours(_) => Index::Tail,
        };
        let seen = self.ring.look(regions, index);
        let ahead = seen.wrapping_sub(self.given_back);
        if ahead > self.ring.size() || ahead < self.seen.wrapping_sub(self.given_back) {
            return Err(Broken);
        }
        let is_more = seen != self.seen;
        self.seen = seen;
        Ok(is_more)
    }

    /// Receives a frame of several descriptors.
    fn take_chain(
        &mut self,
        regions: &[SharedMemory],
        first: Descriptor,
        place: &mut [u8],
    ) -> Result<Taken, Broken> {
        self.pieces.clear();
        let mut descriptor = first;
        let mut count = self.next;
        // Bytes so far; `None` once they do not fit or a descriptor is invalid.
        let mut len = Some(0_usize);
        loop {
            len = len.and_then(|len| {
                let piece = self.piece(regions, count, &descriptor)?;
                self.pieces.push(piece);
                len.checked_add(piece.len).filter(|len| *len <= place.len())
            });
            count = count.wrapping_add(1);
            if !descriptor.has_next {
                break;
            }
            if count == self.seen && !self.look(regions)? {
                // The rest is not published yet. If the ring has no room for it, it never will be.
                let is_endless = count.wrapping_sub(self.given_back) >= self.ring.size();
                return if is_endless && self.given_back == self.next {
                    Err(Broken)
                } else {
                    Ok(Taken::Nothing)
                };
            }
            descriptor = self.ring.descriptor(regions, count);
        }
        self.next = count;
        let Some(len) = len else {
            return Ok(Taken::Refused);
        };
        let mut rest = place;
        for piece in &self.pieces {
            let Some((to, behind)) = rest.split_at_mut_checked(piece.len) else {
                return Ok(Taken::Refused);
            };
            if copy(regions, *piece, to).is_none() {
                return Ok(Taken::Refused);
            }
            rest = behind;
        }
        let metadata = first.metadata;
        Ok(Taken::Frame { len, metadata })
    }

    /// Where the bytes of a descriptor are; `None` if it is invalid. The descriptor is a copy, which the peer cannot
    /// change any more.
    fn piece(
        &self,
        regions: &[SharedMemory],
        count: u16,
        descriptor: &Descriptor,
    ) -> Option<Piece> {
        let len = usize::try_from(descriptor.len).ok()?;
        let (region, offset, room) = match &self.source {
            Source::Theirs => {
                let region = usize::from(descriptor.region);
                let offset = usize::try_from(descriptor.offset).ok()?;
                let room = regions.get(region)?.len().checked_sub(offset)?;
                (region, offset, room)
            }
            Source::Ours(buffers) => {
                let offset = buffers.offset(count & (self.ring.size() - 1));
                let room = usize::try_from(buffers.buffer_bytes).ok()?;
                (0, usize::try_from(offset).ok()?, room)
            }
        };
        (1..=room).contains(&len).then_some(Piece {
            region,
            offset,
            len,
        })
    }

    /// Gives the master the buffers of these counts; each slot always has the same buffer.
    fn post(&self, regions: &[SharedMemory], from: u16, to: u16) {
        let Source::Ours(buffers) = &self.source else {
            return;
        };
        let mut count = from;
        while count != to {
            let descriptor = Descriptor {
                has_next: false,
                region: 0,
                len: buffers.buffer_bytes,
                offset: buffers.offset(count & (self.ring.size() - 1)),
                metadata: 0,
            };
            self.ring.set_descriptor(regions, count, descriptor);
            count = count.wrapping_add(1);
        }
    }
}

fn copy(regions: &[SharedMemory], piece: Piece, to: &mut [u8]) -> Option<()> {
    regions.get(piece.region)?.read(piece.offset, to)
}

/// The part of the ring after which receipt is published: an eighth.
const GIVEN_BACK_SHARE: u16 = 8;

/// Distance of the prefetch in frames: what the stack does with this many takes longer than the transfer from another
/// core's cache.
const FETCHED_AHEAD: u16 = 3;

/// Bytes of a frame that are prefetched: headers, and the heads of most requests and answers. The hardware prefetches
/// the rest.
const FETCHED_BYTES: usize = 256;

/// Descriptors that are prefetched at once: as many as are usually received before the next look.
const DESCRIPTORS_FETCHED: u16 = 16;
