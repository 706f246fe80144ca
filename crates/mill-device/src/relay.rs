//! Frames between the process that has a device and one that stands by (see [`crate::handover`]).
//!
//! An end goes on in another process when that gets the device: all that it knows stands in the memory.
//!
//! Two rings in shared memory, one for each direction, and an eventfd for each end as doorbell. The processes may run
//! different versions of the program: what the peer has written is copied before it is checked, and an end that finds
//! invalid data stops using the relay.

use mill_stack::link::ReceivedChecksum;
use mill_sys::eventfd;
use mill_sys::memory::SharedMemory;
use note::NOTE_BYTES;
use ring::{Reader, Ring, Writer};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The ring of one direction.
mod ring;

/// What accompanies a frame.
mod note;

pub use note::{Note, RETURNS_MAX};

/// One end of a relay. The other end sees frames after [`Relay::publish`].
#[derive(Debug)]
pub struct Relay {
    memory: SharedMemory,
    outgoing: Writer,
    incoming: Reader,
    own_doorbell: OwnedFd,
    peer_doorbell: OwnedFd,
    is_makers_end: bool,
    counters: RelayCounters,
}

/// What has passed one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelayCounters {
    pub received: u64,
    pub received_bytes: u64,
    pub transmitted: u64,
    pub transmitted_bytes: u64,
    /// Frames dropped for lack of room.
    pub lost: u64,
}

impl RelayCounters {
    #[must_use]
    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            received: self.received + other.received,
            received_bytes: self.received_bytes + other.received_bytes,
            transmitted: self.transmitted + other.transmitted,
            transmitted_bytes: self.transmitted_bytes + other.transmitted_bytes,
            lost: self.lost + other.lost,
        }
    }
}

/// The descriptors that the other process needs to open its end.
#[derive(Debug)]
pub struct FarEnd {
    pub memory: OwnedFd,
    /// The doorbell of the end that made the relay, and the one of the other end.
    pub doorbells: [OwnedFd; 2],
}

impl Relay {
    /// Makes a relay: this end, and the descriptors for the other one.
    pub fn new() -> io::Result<(Self, FarEnd)> {
        // An owner has one for each process that stands by, through most of which little ever goes.
        let memory = SharedMemory::create_unallocated("millstream-relay", MEMORY_BYTES)?;
        let doorbells = [eventfd::create()?, eventfd::create()?];
        let [own, other] = [doorbells[0].try_clone()?, doorbells[1].try_clone()?];
        let far = FarEnd {
            memory: memory.as_fd().try_clone_to_owned()?,
            doorbells,
        };
        let relay = Self::over(memory, true, [own, other])?;
        Ok((relay, far))
    }

    /// Opens the end whose descriptors another process has sent.
    pub fn join(far: FarEnd) -> io::Result<Self> {
        Self::resume(far, false)
    }

    /// Goes on with an end that another process has had, and does not use any more: the maker's, or the other one.
    pub fn resume(far: FarEnd, is_makers_end: bool) -> io::Result<Self> {
        let memory = SharedMemory::open(far.memory)?;
        if memory.len() < MEMORY_BYTES || !memory.is_sealed() {
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        }
        let [makers, others] = far.doorbells;
        let doorbells = match is_makers_end {
            true => [makers, others],
            false => [others, makers],
        };
        Self::over(memory, is_makers_end, doorbells)
    }

    fn over(
        memory: SharedMemory,
        is_makers_end: bool,
        [own_doorbell, peer_doorbell]: [OwnedFd; 2],
    ) -> io::Result<Self> {
        let [outgoing, incoming] = match is_makers_end {
            true => [MAKER_TO_PEER, PEER_TO_MAKER],
            false => [PEER_TO_MAKER, MAKER_TO_PEER],
        };
        let invalid = || io::Error::from(io::ErrorKind::InvalidData);
        Ok(Self {
            outgoing: Writer::resume(outgoing, &memory).ok_or_else(invalid)?,
            incoming: Reader::resume(incoming, &memory).ok_or_else(invalid)?,
            memory,
            own_doorbell,
            peer_doorbell,
            is_makers_end,
            counters: RelayCounters::default(),
        })
    }

    /// Leaves this end to another process: all that was written is visible, and all that was taken has been given back. The
    /// descriptors for [`Self::resume`], and whether it is the maker's end.
    pub fn leave(mut self) -> io::Result<(FarEnd, bool)> {
        self.publish();
        self.release();
        let memory = self.memory.as_fd().try_clone_to_owned()?;
        let doorbells = match self.is_makers_end {
            true => [self.own_doorbell, self.peer_doorbell],
            false => [self.peer_doorbell, self.own_doorbell],
        };
        Ok((FarEnd { memory, doorbells }, self.is_makers_end))
    }

    /// Of a relay whose other end has ended: what this end has written there and the other one has not taken arrives here.
    pub fn turned_back(mut self) -> io::Result<Self> {
        self.publish();
        let memory = self.memory;
        Self::over(
            memory,
            !self.is_makers_end,
            [self.peer_doorbell, self.own_doorbell],
        )
    }

    /// The eventfd that tells this end of new frames. It is never read: watch it edge-triggered.
    pub fn doorbell_fd(&self) -> BorrowedFd<'_> {
        self.own_doorbell.as_fd()
    }

    /// Calls `pass` with the length of each waiting frame, until it returns `false` because it cannot take the frame
    /// yet. Whether a frame is left; nothing rings when it could be taken.
    pub fn carry(&mut self, mut pass: impl FnMut(&mut Self, usize) -> bool) -> bool {
        while let Some(len) = self.waiting() {
            if !pass(self, len) {
                self.release();
                return true;
            }
        }
        if self.release() {
            // A frame arrived while the last ones were being taken.
            self.ring_own_doorbell();
        }
        false
    }

    /// Wakes this end as if a frame had arrived.
    fn ring_own_doorbell(&self) {
        // On failure the ring is polled with the next frame.
        let _ = eventfd::signal(self.own_doorbell.as_fd());
    }

    /// Whether there is room for a frame of `len` bytes.
    pub fn has_room(&mut self, len: usize) -> bool {
        self.outgoing.has_room(&self.memory, NOTE_BYTES + len)
    }

    /// Writes a frame into the ring. `false` if there is no room; the frame counts as lost then.
    pub fn put(&mut self, note: &Note, frame: &[u8]) -> bool {
        let parts = [&note.to_bytes()[..], frame];
        let is_put = self.outgoing.put(&self.memory, parts);
        if is_put {
            self.counters.transmitted += 1;
            self.counters.transmitted_bytes += frame.len() as u64;
        } else {
            self.counters.lost += 1;
        }
        is_put
    }

    /// Makes written frames visible to the other end, and rings its doorbell if it may be asleep.
    pub fn publish(&mut self) {
        if self.outgoing.publish(&self.memory) {
            // As in `ring_own_doorbell`.
            let _ = eventfd::signal(self.peer_doorbell.as_fd());
        }
    }

    /// Length of the next frame, at least 1; `None` if there is none, or if the ring's contents are invalid.
    #[inline]
    pub fn waiting(&mut self) -> Option<usize> {
        loop {
            let len = self.incoming.waiting(&self.memory)?;
            match len.checked_sub(NOTE_BYTES) {
                Some(0) => self.incoming.pass(&self.memory),
                Some(len) => return Some(len),
                None => self.incoming.set_broken(),
            }
        }
    }

    /// Copies the next frame to the start of `to`. A frame that does not fit is dropped.
    pub fn take(&mut self, to: &mut [u8]) -> Option<Note> {
        let len = self.waiting()?;
        let mut note = [0; NOTE_BYTES];
        let is_read = self.incoming.read(&self.memory, 0, &mut note)
            && to
                .get_mut(..len)
                .is_some_and(|to| self.incoming.read(&self.memory, NOTE_BYTES, to));
        self.incoming.pass(&self.memory);
        if !is_read {
            return None;
        }
        self.counters.received += 1;
        self.counters.received_bytes += len as u64;
        Some(Note::from_bytes(&note))
    }

    /// Returns the room of taken frames to the other end. Whether frames have arrived meanwhile without a ring of the
    /// doorbell.
    pub fn release(&mut self) -> bool {
        self.incoming.release(&self.memory)
    }

    pub fn counters(&self) -> RelayCounters {
        self.counters
    }

    /// Whether the other end has written invalid data.
    pub fn is_broken(&self) -> bool {
        self.incoming.is_broken()
    }
}

impl Note {
    /// The note of a received frame.
    pub const fn arrived(checksum: ReceivedChecksum, merged: u16) -> Self {
        Self {
            checksum,
            merged,
            ..Self::PLAIN
        }
    }
}

/// Size of a ring, frames and their notes; a power of two. It holds as much as a device queue of 1400 frames, and less
/// than some flows' windows, as such a queue does.
const RING_BYTES: u32 = 2 << 20;

/// The indices take a cache line each, with a cache line between any two; then the rings' bytes.
const MAKER_TO_PEER: Ring = Ring {
    put_at: 0,
    taken_at: 128,
    bytes_at: 4096,
    bytes: RING_BYTES,
};
const PEER_TO_MAKER: Ring = Ring {
    put_at: 256,
    taken_at: 384,
    bytes_at: 4096 + RING_BYTES as usize,
    bytes: RING_BYTES,
};
const MEMORY_BYTES: usize = 4096 + 2 * RING_BYTES as usize;

#[cfg(test)]
mod tests;
