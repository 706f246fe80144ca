//! Frames between two processes that share a device: the one that has it, and another that sends and receives through it.
//!
//! Two rings in shared memory, one each way, and two descriptors that wake who sleeps. Both ends are processes of ours, but
//! perhaps of two versions: whatever the other has written is copied before it is checked, and an end that finds nonsense
//! uses the relay no more.

use mill_stack::link::ReceivedChecksum;
use mill_sys::eventfd;
use mill_sys::memory::{Pages, SharedMemory};
use note::NOTE_BYTES;
use ring::{Reader, Ring, Writer};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// One way of it.
mod ring;

/// What is said about a frame.
mod note;

pub use note::Note;

/// One end. Frames that are put are seen by the other end after [`Relay::publish`].
#[derive(Debug)]
pub struct Relay {
    memory: SharedMemory,
    outgoing: Writer,
    incoming: Reader,
    own_bell: OwnedFd,
    other_bell: OwnedFd,
    counters: RelayCounters,
}

/// What has passed one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelayCounters {
    pub received: u64,
    pub received_bytes: u64,
    pub transmitted: u64,
    pub transmitted_bytes: u64,
    /// Frames that found no room.
    pub lost: u64,
}

/// What the other end is made of, in another process.
#[derive(Debug)]
pub struct FarEnd {
    pub memory: OwnedFd,
    /// The maker's doorbell, and the other's.
    pub doorbells: [OwnedFd; 2],
}

impl Relay {
    /// Makes the memory; the maker's end of it, and what the other end is.
    pub fn new() -> io::Result<(Self, FarEnd)> {
        let memory = SharedMemory::create("millstream-relay", MEMORY_BYTES, Pages::Small)?;
        let doorbells = [eventfd::create()?, eventfd::create()?];
        let [own, other] = [doorbells[0].try_clone()?, doorbells[1].try_clone()?];
        let far = FarEnd {
            memory: memory.as_fd().try_clone_to_owned()?,
            doorbells,
        };
        let relay = Self::over(memory, [THERE, BACK], [own, other]);
        Ok((relay, far))
    }

    /// The end that somebody else has sent.
    pub fn join(far: FarEnd) -> io::Result<Self> {
        let memory = SharedMemory::open(far.memory)?;
        if memory.len() < MEMORY_BYTES || !memory.is_sealed() {
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        }
        let [other, own] = far.doorbells;
        Ok(Self::over(memory, [BACK, THERE], [own, other]))
    }

    fn over(
        memory: SharedMemory,
        [outgoing, incoming]: [Ring; 2],
        [own_bell, other_bell]: [OwnedFd; 2],
    ) -> Self {
        Self {
            memory,
            outgoing: Writer::new(outgoing),
            incoming: Reader::new(incoming),
            own_bell,
            other_bell,
            counters: RelayCounters::default(),
        }
    }

    /// Wakes this end when frames have come: its readers need not read it, but be told of each change.
    pub fn doorbell_fd(&self) -> BorrowedFd<'_> {
        self.own_bell.as_fd()
    }

    /// Passes on what waits, by `pass`, which takes the frame of so many bytes; `false` of it is that it can't yet, and the
    /// frame waits. Whether one does, of whose time to go nobody tells.
    pub fn carry(&mut self, mut pass: impl FnMut(&mut Self, usize) -> bool) -> bool {
        while let Some(len) = self.waiting() {
            if !pass(self, len) {
                self.release();
                return true;
            }
        }
        if self.release() {
            // It came while we went.
            self.ring_own_bell();
        }
        false
    }

    /// Has this end woken as if a frame had come.
    fn ring_own_bell(&self) {
        // It can't be waited for what does not work; it is looked again with the next frame.
        let _ = eventfd::signal(self.own_bell.as_fd());
    }

    /// Whether there is room for a frame of so many bytes.
    pub fn has_room(&mut self, len: usize) -> bool {
        self.outgoing.has_room(&self.memory, NOTE_BYTES + len)
    }

    /// Puts a frame in; `false`, and counted, if there is no room.
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

    /// Lets the other end see what was put, and wakes it if it may sleep.
    pub fn publish(&mut self) {
        if self.outgoing.publish(&self.memory) {
            // As above.
            let _ = eventfd::signal(self.other_bell.as_fd());
        }
    }

    /// Bytes of the frame that waits, at least one; `None` if none does, or if there is nothing but nonsense.
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

    /// Takes the frame that waits into `to`, as long as it; what does not fit is lost.
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

    /// Gives the room of what was taken back. Whether more has come meanwhile, for which nobody was woken.
    pub fn release(&mut self) -> bool {
        self.incoming.release(&self.memory)
    }

    pub fn counters(&self) -> RelayCounters {
        self.counters
    }

    /// Nothing that the other end says makes sense any more.
    pub fn is_broken(&self) -> bool {
        self.incoming.is_broken()
    }
}

impl Note {
    /// Of a frame that has arrived.
    pub fn arrived(checksum: ReceivedChecksum, merged: u16) -> Self {
        Self {
            checksum,
            merged,
            ..Self::default()
        }
    }
}

/// Bytes of frames and their notes on each way; a power of two. As much as a device's
/// queue of 1400 frames, which holds no flow's whole window either.
const RING_BYTES: u32 = 2 << 20;

/// The rings' indices, each in a cache line of its own and one between, then what they hold.
const THERE: Ring = Ring {
    put_at: 0,
    taken_at: 128,
    bytes_at: 4096,
    bytes: RING_BYTES,
};
const BACK: Ring = Ring {
    put_at: 256,
    taken_at: 384,
    bytes_at: 4096 + RING_BYTES as usize,
    bytes: RING_BYTES,
};
const MEMORY_BYTES: usize = 4096 + 2 * RING_BYTES as usize;

#[cfg(test)]
mod tests;
