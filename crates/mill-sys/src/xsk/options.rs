//! Options of sockets and their memory: the number of frames, and the sockets they belong to.

use crate::memory::frames::Frames;
use std::io;
use std::ops::Range;

/// Options of a socket and its memory; opening them takes the same options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XskOptions {
    /// Bytes of a frame's slot: 2048 or 4096. Received frames begin [`super::HEADROOM`] bytes after its start.
    pub frame_bytes: u32,
    /// Frames for receiving, of each socket; a power of two.
    pub receive_frames: u32,
    /// Frames for sending, of each socket; a power of two.
    pub transmit_frames: u32,
    /// Sockets that share the queue and its memory; 1 if it has only one.
    pub sharers: u32,
    pub copying: Copying,
    /// Frames longer than a slot arrive in several pieces (Linux 6.6) instead of being dropped.
    pub in_pieces: bool,
}

/// Whether the kernel copies frames into and out of the memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Copying {
    /// Depending on the driver; [`super::Xsk::is_zero_copy`] tells which.
    #[default]
    AsDriverCan,
    Always,
    /// Binding fails if the driver cannot do without.
    Never,
}

impl XskOptions {
    /// Bytes of memory that the options need; EINVAL if the numbers are invalid.
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

    /// Entries of the fill ring: twice as many as frames. The kernel publishes received frames before it releases their
    /// slots in the ring, so that they may come back while the ring still looks full.
    pub(super) const fn fill_ring(&self) -> u32 {
        self.receivers().saturating_mul(2).next_power_of_two()
    }

    /// Entries of the completion ring: as many as frames.
    pub(super) const fn completion_ring(&self) -> u32 {
        let count = self.transmit_frames.saturating_mul(self.sharers);
        count.next_power_of_two()
    }

    /// Frames for receiving, of all sockets: those with the lowest numbers.
    pub(super) const fn receivers(&self) -> u32 {
        self.receive_frames.saturating_mul(self.sharers)
    }

    /// The receive frames that one socket adds.
    pub(super) const fn receivers_of(&self, place: u32) -> Range<u32> {
        let start = self.receive_frames.saturating_mul(place);
        start..start.saturating_add(self.receive_frames)
    }

    /// One socket's frames for sending.
    pub(super) const fn senders_of(&self, place: u32) -> Range<u32> {
        let before = self.transmit_frames.saturating_mul(place);
        let start = self.receivers().saturating_add(before);
        start..start.saturating_add(self.transmit_frames)
    }

    /// The number of frames; checked by `memory_bytes`.
    pub(super) const fn frames(&self) -> u32 {
        self.senders_of(self.sharers).start
    }
}
