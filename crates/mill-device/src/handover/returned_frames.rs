//! Frames that the owner has given to another process and that come back: that has ended before it took them, or does not have the connection any
//! more, and does not listen any more. The owner receives them once more, and its host finds out whose they are now.
//!
//! ```text
//!               give_listed, pass_to                 give_back
//! owner ──────── relay ────────▶ another process ──── relay ───▶ carry ─┐
//!   ▲                             ╳ ends: what lies in the relay ───────┤
//!   └──────────────────────────── receive ◀──────── ReturnedFrames ◀────┘
//! ```

use crate::frames::Frames;
use crate::relay::{Note, RETURNS_MAX, Relay};
use mill_stack::link::{Burst, FrameId, Received};
use std::collections::VecDeque;

/// Those that the host has not received again yet, and those that it holds.
#[derive(Debug, Default)]
pub(crate) struct ReturnedFrames {
    /// Made with the first one.
    frames: Option<Frames>,
    /// The oldest first.
    waiting: VecDeque<Received>,
}

/// Whether a frame is one of these, or one that was and was given to this process again, by its id.
pub(crate) const fn is_returned(id: FrameId) -> bool {
    id.0 & RETURNED != 0
}

/// The id that says so of a frame, and how many times it has come back.
pub(crate) fn returned(id: FrameId, returns: u8) -> FrameId {
    debug_assert!(id.0 >> RETURNS_SHIFT == 0 && returns <= RETURNS_MAX);
    FrameId(id.0 | u32::from(returns) << RETURNS_SHIFT | RETURNED)
}

/// How many times a frame has come back.
pub(crate) fn returns(id: FrameId) -> u8 {
    match is_returned(id) {
        true => u8::try_from(id.0 >> RETURNS_SHIFT & u32::from(RETURNS_MAX)).unwrap_or(0),
        false => 0,
    }
}

/// The id of the same frame in the memory of those that have come.
pub(crate) const fn plain(id: FrameId) -> FrameId {
    match is_returned(id) {
        true => FrameId(id.0 & ((1 << RETURNS_SHIFT) - 1)),
        false => id,
    }
}

impl ReturnedFrames {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Keeps a copy; `false` if there is no room. The device's frames have `len_max` bytes at most.
    #[cold]
    pub(crate) fn keep(&mut self, note: Note, bytes: &[u8], len_max: usize) -> bool {
        let frames = self
            .frames
            .get_or_insert_with(|| Frames::new(COUNT, len_max));
        let filled = frames.fill(|place| {
            let place = place.get_mut(..bytes.len()).filter(|it| !it.is_empty());
            place.ok_or(())?.copy_from_slice(bytes);
            Ok::<_, ()>(bytes.len())
        });
        let Some(Ok(id)) = filled else {
            return false;
        };
        self.waiting.push_back(Received {
            id: returned(id, note.returns),
            checksum: note.checksum,
            merged: note.merged,
        });
        true
    }

    /// Takes back what a process that has ended has not taken from its relay.
    pub(crate) fn take_back(&mut self, relay: Relay, len_max: usize) {
        let Ok(mut relay) = relay.turned_back() else {
            return;
        };
        let mut bytes = vec![0; len_max];
        while let Some(len) = relay.waiting() {
            if let Some(note) = relay.take(&mut bytes) {
                // Without room it is lost, as on a full link.
                self.keep(note, bytes.get(..len).unwrap_or_default(), len_max);
            }
        }
    }

    /// Those that are not received again yet, for the process that gets the device.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = (Note, Vec<u8>)> {
        let waiting = core::mem::take(&mut self.waiting);
        waiting.into_iter().map(|received| {
            let note = Note {
                returns: returns(received.id),
                ..Note::arrived(received.checksum, received.merged)
            };
            (note, self.frame(received.id).to_vec())
        })
    }

    /// Puts them into a burst, as far as that has room.
    #[cold]
    pub(crate) fn receive(&mut self, burst: &mut Burst) {
        while burst.room() > 0
            && let Some(received) = self.waiting.pop_front()
        {
            burst.push(received);
        }
    }

    /// The bytes of one.
    #[cold]
    pub(crate) fn frame(&mut self, id: FrameId) -> &mut [u8] {
        let frames = self.frames.as_mut();
        frames.map_or(&mut [], |frames| frames.frame(plain(id)))
    }

    #[cold]
    pub(crate) fn release(&mut self, id: FrameId) {
        if let Some(frames) = &mut self.frames {
            frames.release(plain(id));
        }
    }
}

/// As many as come in some milliseconds.
const COUNT: u32 = 256;

/// A bit that no frame of a queue has, but in the last one of 64 workers with 2^17 frames each: below the number of the queue.
const RETURNED: u32 = 1 << 23;

/// Where it stands how many times: above the number of a frame.
const RETURNS_SHIFT: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;
    use mill_stack::link::ReceivedChecksum;

    fn received(returned: &mut ReturnedFrames) -> Vec<Received> {
        let mut burst = Burst::new(64);
        returned.receive(&mut burst);
        burst.as_slice().to_vec()
    }

    #[test]
    fn a_frame_is_received_once_more_as_it_came() {
        let mut returned = ReturnedFrames::default();
        let note = Note {
            returns: 2,
            ..Note::arrived(ReceivedChecksum::Verified, 3)
        };
        assert!(returned.is_empty() && returned.keep(note, b"frame", 8));
        assert!(!returned.is_empty());
        let all = received(&mut returned);
        let [frame] = all[..] else {
            panic!("{all:?}");
        };
        assert!(returned.is_empty() && is_returned(frame.id));
        assert_eq!(returns(frame.id), 2);
        assert_eq!(
            (frame.checksum, frame.merged),
            (ReceivedChecksum::Verified, 3)
        );
        assert_eq!(returned.frame(frame.id), b"frame");
        returned.release(frame.id);
    }

    #[test]
    fn what_an_ended_process_has_not_taken_comes_back() {
        let (mut near, far) = Relay::new().unwrap();
        let mut far = Relay::join(far).unwrap();
        let mut returned = ReturnedFrames::default();
        for byte in 0..3_u8 {
            assert!(near.put(&Note::default(), &[byte; 20]));
        }
        near.publish();
        assert!(far.take(&mut [0; 64]).is_some());
        far.release();
        drop(far);
        // It was not visible to the other end yet.
        assert!(near.put(&Note::default(), &[3; 20]));
        returned.take_back(near, 64);
        let all = received(&mut returned);
        let bytes = all.iter().map(|frame| returned.frame(frame.id).to_vec());
        let bytes: Vec<Vec<u8>> = bytes.collect();
        assert_eq!(bytes, [vec![1; 20], vec![2; 20], vec![3; 20]]);
    }

    #[test]
    fn there_is_room_for_a_number_of_frames_and_none_for_one_that_is_too_long() {
        let mut returned = ReturnedFrames::default();
        assert!(!returned.keep(Note::default(), &[0; 9], 8));
        assert!(!returned.keep(Note::default(), &[], 8));
        for _ in 0..COUNT {
            assert!(returned.keep(Note::default(), &[1; 8], 8));
        }
        assert!(!returned.keep(Note::default(), &[1; 8], 8));
        let held = received(&mut returned);
        returned.release(held[0].id);
        assert!(returned.keep(Note::default(), &[2; 8], 8));
    }
}
