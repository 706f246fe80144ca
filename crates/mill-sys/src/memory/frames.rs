//! Frames of equal size in shared memory, and who owns each: us, or the other side of a ring.
//!
//! A byte a frame outside of the shared memory says so. It changes when a frame's number goes into or comes out of a ring,
//! and each access looks at it; a number that the other side makes up is thereby found out.

use super::SharedMemory;
use std::io;

/// The frames.
#[derive(Debug)]
pub struct Frames {
    memory: SharedMemory,
    offset: usize,
    frame_bytes: usize,
    owners: Box<[Owner]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Owner {
    Us,
    Other,
}

impl Frames {
    /// Cuts `count` frames of `frame_bytes` out of the memory from `offset` on; all of them are ours. EINVAL if they are
    /// not inside.
    pub fn new(
        memory: SharedMemory,
        offset: usize,
        frame_bytes: usize,
        count: u32,
    ) -> io::Result<Self> {
        let frames = count as usize;
        let end = frames
            .checked_mul(frame_bytes)
            .and_then(|bytes| bytes.checked_add(offset));
        if frame_bytes == 0 || end.is_none_or(|end| end > memory.len()) {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        Ok(Self {
            memory,
            offset,
            frame_bytes,
            owners: vec![Owner::Us; frames].into_boxed_slice(),
        })
    }

    pub fn count(&self) -> u32 {
        u32::try_from(self.owners.len()).expect("they were counted in 32 bits")
    }

    pub fn frame_bytes(&self) -> usize {
        self.frame_bytes
    }

    /// What lies around them.
    pub fn memory(&self) -> &SharedMemory {
        &self.memory
    }

    /// Where a frame begins in the memory.
    pub fn offset_of(&self, number: u32) -> usize {
        self.offset + number as usize * self.frame_bytes
    }

    /// Whether a frame is ours; one that there is not is nobody's.
    pub fn is_ours(&self, number: u32) -> bool {
        self.owners.get(number as usize) == Some(&Owner::Us)
    }

    /// The bytes of a frame; `None` if it is not ours.
    pub fn bytes(&mut self, number: u32) -> Option<&mut [u8]> {
        if !self.is_ours(number) {
            return None;
        }
        let offset = self.offset_of(number);
        self.memory.mapping().bytes(offset, self.frame_bytes)
    }

    /// `len` bytes of a frame from `from` on; `None` if it is not ours or they are not inside.
    pub fn part(&mut self, number: u32, from: usize, len: usize) -> Option<&mut [u8]> {
        self.bytes(number)?.get_mut(from..)?.get_mut(..len)
    }

    /// The other side gets a frame. Says whether it was ours.
    #[must_use]
    pub fn give(&mut self, number: u32) -> bool {
        self.change(number, Owner::Us, Owner::Other)
    }

    /// The other side has given a frame back. Says whether it had it.
    #[must_use]
    pub fn take(&mut self, number: u32) -> bool {
        self.change(number, Owner::Other, Owner::Us)
    }

    fn change(&mut self, number: u32, from: Owner, to: Owner) -> bool {
        match self.owners.get_mut(number as usize) {
            Some(owner) if *owner == from => {
                *owner = to;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Pages;
    use super::*;

    fn frames() -> Frames {
        let memory = SharedMemory::create("frames", 4096, Pages::Small).unwrap();
        Frames::new(memory, 64, 1008, 4).unwrap()
    }

    #[test]
    fn frames_lie_side_by_side_and_all_inside() {
        let mut frames = frames();
        for number in 0..4 {
            let byte = u8::try_from(number).unwrap() + 1;
            frames.bytes(number).unwrap().fill(byte);
        }
        for number in 0..4 {
            let expected = [u8::try_from(number).unwrap() + 1; 1008];
            assert_eq!(frames.bytes(number).unwrap(), expected);
        }
        assert_eq!(frames.bytes(4), None);
        let mut before = [1; 64];
        frames.memory().read(0, &mut before).unwrap();
        assert_eq!(before, [0; 64]);
        let check = |offset, frame_bytes, count, is_inside| {
            let memory = SharedMemory::create("frames", 4096, Pages::Small).unwrap();
            let made = Frames::new(memory, offset, frame_bytes, count);
            assert_eq!(made.is_ok(), is_inside, "{offset} {frame_bytes} {count}");
        };
        check(0, 1024, 4, true);
        check(1, 1024, 4, false);
        check(0, 1024, 5, false);
        check(0, 0, 1, false);
        check(usize::MAX, 1, 1, false);
        check(0, usize::MAX, 2, false);
    }

    #[test]
    fn only_frames_that_are_ours_can_be_seen_and_given() {
        let mut frames = frames();
        assert!(frames.give(2));
        assert!(!frames.give(2), "it is theirs already");
        assert!(!frames.is_ours(2));
        assert_eq!(frames.bytes(2), None);
        assert_eq!(frames.part(2, 0, 1), None);
        assert!(frames.take(2));
        assert!(!frames.take(2), "it is ours already");
        assert!(frames.bytes(2).is_some());
        assert!(!frames.give(4) && !frames.take(4), "there is none");
    }

    #[test]
    fn a_part_of_a_frame_is_inside_of_it() {
        let mut frames = frames();
        assert_eq!(frames.part(0, 1000, 8).map(|part| part.len()), Some(8));
        assert_eq!(frames.part(0, 1000, 9), None);
        assert_eq!(frames.part(0, 1009, 0), None);
    }
}
