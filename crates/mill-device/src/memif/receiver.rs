//! The receiving end of a ring: frames out of shared memory, into memory that nobody else can write.

use super::Broken;
use super::layout::Buffers;
use super::ring::{Descriptor, Index, Ring};
use mill_sys::memory::SharedMemory;

/// Takes frames.
#[derive(Debug)]
pub struct Receiver {
    ring: Ring,
    source: Source,
    /// The count of the next descriptor to be taken.
    next: u16,
    /// Up to which the peer has been told that they were taken.
    given_back: u16,
    /// How far the peer was when it was looked at last.
    seen: u16,
    /// Of the frame that is being taken.
    pieces: Vec<Piece>,
    /// Where the frame of each descriptor lay the last time: with most peers it lies there again.
    places: Vec<Piece>,
}

/// Whose buffers they are.
#[derive(Debug)]
enum Source {
    /// The peer is the slave, and says where each buffer is.
    Theirs,
    /// We are the slave, and know.
    Ours(Buffers),
}

/// A part of a frame, found to be inside its region.
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

/// What was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    Frame {
        len: usize,
        metadata: u32,
    },
    /// A frame of which the peer wrote nonsense, or that is too long.
    Refused,
    Nothing,
}

impl Receiver {
    /// The master's end of a ring from the slave.
    pub fn of_master(ring: Ring) -> Self {
        Self::new(ring, Source::Theirs)
    }

    /// The slave's end of a ring to it. `start` gives the master its buffers.
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

    /// Once both ends know of each other. (DPDK's master sets all indices to zero when it connects.)
    pub fn start(&mut self, regions: &[SharedMemory]) {
        if let Source::Ours(_) = self.source {
            self.post(regions, 0, self.ring.size());
            self.ring.publish(regions, Index::Head, self.ring.size());
        }
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

    /// Tells the peer what was taken: when that is worth it, or `at_once`. The peer has room for the rest of the ring
    /// meanwhile, and who tells of each frame shares each cache line of the ring with a peer who is about to use it.
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

    /// Has the processor fetch a frame that will be taken soon: the peer wrote it on another core.
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

    /// Has the processor fetch what was just found to be there, before it has to be waited for piece after piece: descriptors,
    /// and the first frames where they lay the last time.
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

    /// Looks how far the peer is. It can only go on, and not past what it was given.
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

    /// The first descriptor says that there is a next one.
    fn take_chain(
        &mut self,
        regions: &[SharedMemory],
        first: Descriptor,
        place: &mut [u8],
    ) -> Result<Taken, Broken> {
        self.pieces.clear();
        let mut descriptor = first;
        let mut count = self.next;
        // What fits so far; none once it does not, or makes no sense.
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
                // The rest has not been published. If there is no room for it, it never will be.
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

    /// Where the bytes of a descriptor are; `None` if it makes no sense. The descriptor is a copy, which the peer can
    /// change no more.
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

    /// Gives the master the buffers of these counts; a buffer's slot is always the same.
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

/// A part of the ring: an eighth of its frames is told of at once.
const GIVEN_BACK_SHARE: u16 = 8;

/// Frames between the one that is taken and the one that is fetched: what the stack does with so many takes longer than
/// the way from another core's cache.
const FETCHED_AHEAD: u16 = 3;

/// Bytes of a frame: headers, and the heads of most requests and answers. What is behind comes by itself.
const FETCHED_BYTES: usize = 256;

/// Descriptors that are fetched when they are found to be there: as many as are usually taken before the next look.
const DESCRIPTORS_FETCHED: u16 = 16;
