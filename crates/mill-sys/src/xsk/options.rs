//! What sockets and their memory are made with: how many frames there are, and which of them are whose.

use crate::memory::frames::Frames;
use std::io;
use std::ops::Range;

/// What socket and memory are made with; whoever opens them has to say the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XskOptions {
    /// Bytes of a frame's place: 2048 or 4096. What is received begins [`super::HEADROOM`] bytes behind its beginning.
    pub frame_bytes: u32,
    /// How many frames receive, of each socket; a power of two.
    pub receive_frames: u32,
    /// How many frames send, of each socket; a power of two.
    pub transmit_frames: u32,
    /// How many sockets share the queue and its memory; 1 if it has one only.
    pub sharers: u32,
    pub copying: Copying,
    /// Frames longer than a place are several pieces (Linux 6.6), instead of being dropped.
    pub in_pieces: bool,
}

/// Whether the kernel copies frames into and out of the memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Copying {
    /// As the driver can; [`super::Xsk::is_zero_copy`] says how it turned out.
    #[default]
    AsDriverCan,
    Always,
    /// Binding fails where the driver can't without.
    Never,
}

impl XskOptions {
    /// How many bytes of memory they take; EINVAL if the numbers make no sense.
    pub fn memory_bytes(&self) -> io::Result<usize> {
        let is_valid = matches!(self.frame_bytes, 2048 | 4096)
            && self.receive_frames.is_power_of_two()
            && self.transmit_frames.is_power_of_two()
            && self.sharers > 0;
        let of_each = self.receive_frames.checked_add(self.transmit_frames);
        let bytes = of_each
            .and_then(|frames| frames.checked_mul(self.sharers))
            .and_then(|count| Frames::bytes_inherited(self.frame_bytes as usize, count));
        bytes
            .filter(|_| is_valid)
            .ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))
    }

    /// Descriptors of the ring of frames to be filled: twice as many as frames. The kernel shows what it has received before
    /// it shows that it took the places from the ring, so that they may come back while it still looks full.
    pub(super) const fn fill_ring(&self) -> u32 {
        self.receivers().saturating_mul(2).next_power_of_two()
    }

    /// Descriptors of the ring of what has been sent: as many as frames.
    pub(super) const fn completion_ring(&self) -> u32 {
        let count = self.transmit_frames.saturating_mul(self.sharers);
        count.next_power_of_two()
    }

    /// How many frames receive, of all sockets: those with the lowest numbers.
    pub(super) const fn receivers(&self) -> u32 {
        self.receive_frames.saturating_mul(self.sharers)
    }

    /// Those that a socket brings along.
    pub(super) const fn receivers_of(&self, place: u32) -> Range<u32> {
        let start = self.receive_frames.saturating_mul(place);
        start..start.saturating_add(self.receive_frames)
    }

    /// The numbers of the frames that send, of one socket.
    pub(super) const fn senders_of(&self, place: u32) -> Range<u32> {
        let before = self.transmit_frames.saturating_mul(place);
        let start = self.receivers().saturating_add(before);
        start..start.saturating_add(self.transmit_frames)
    }

    /// How many frames there are; what `memory_bytes` has accepted.
    pub(super) const fn frames(&self) -> u32 {
        self.senders_of(self.sharers).start
    }
}
