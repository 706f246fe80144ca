//! Frames of equal size in shared memory, each with its owner: this process, or the other side of a ring.
//!
//! A byte for each frame has the owner. It changes when the frame's number goes into a ring or comes out, and each
//! access checks it, so that an invalid number from the other side is detected. The bytes lie outside of the memory,
//! or, where the other side is the kernel, behind the frames: then the next process knows the owner of each frame.

use super::SharedMemory;
use std::io;

/// The frames.
#[derive(Debug)]
pub struct Frames {
    memory: SharedMemory,
    offset: usize,
    frame_bytes: usize,
    count: u32,
    table: Table,
}

/// Where the owner byte of each frame is: [`US`], or any other value.
#[derive(Debug)]
enum Table {
    Here(Box<[u8]>),
    /// In the memory, from this offset on.
    Behind(usize),
}

/// The value of new memory.
const US: u8 = 0;
const OTHER: u8 = 1;

impl Frames {
    /// Divides the memory from `offset` on into `count` frames of `frame_bytes`, all of them owned by this process.
    /// EINVAL if they are not inside.
    pub fn new(
        memory: SharedMemory,
        offset: usize,
        frame_bytes: usize,
        count: u32,
    ) -> io::Result<Self> {
        let end = end_of(offset, frame_bytes, count);
        if frame_bytes == 0 || end.is_none_or(|end| end > memory.len()) {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        Ok(Self {
            memory,
            offset,
            frame_bytes,
            count,
            table: Table::Here(vec![US; count as usize].into_boxed_slice()),
        })
    }

    /// `count` frames at the start of the memory, followed by their owner bytes, as the former process has left them.
    /// Only for memory that no process but this one and the kernel can write.
    pub fn inherited(memory: SharedMemory, frame_bytes: usize, count: u32) -> io::Result<Self> {
        let needed = Self::bytes_inherited(frame_bytes, count);
        if needed.is_none_or(|needed| needed > memory.len()) {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let mut frames = Self::new(memory, 0, frame_bytes, count)?;
        frames.table = Table::Behind(frames.offset_of(count));
        Ok(frames)
    }

    /// The bytes of memory that [`Self::inherited`] needs.
    pub fn bytes_inherited(frame_bytes: usize, count: u32) -> Option<usize> {
        end_of(0, frame_bytes, count)?.checked_add(count as usize)
    }

    pub fn count(&self) -> u32 {
        self.count
    }

    pub fn frame_bytes(&self) -> usize {
        self.frame_bytes
    }

    /// The memory that contains the frames.
    pub fn memory(&self) -> &SharedMemory {
        &self.memory
    }

    /// The offset of a frame in the memory.
    pub fn offset_of(&self, number: u32) -> usize {
        self.offset + number as usize * self.frame_bytes
    }

    /// Whether this process owns a frame; false for a number that does not exist.
    pub fn is_ours(&mut self, number: u32) -> bool {
        matches!(self.owner(number), Some(&mut US))
    }

    /// The bytes of a frame; `None` if this process does not own it.
    pub fn bytes(&mut self, number: u32) -> Option<&mut [u8]> {
        self.run(number, 1)
    }

    /// The bytes of adjacent frames; `None` unless this process owns all of them.
    pub fn run(&mut self, first: u32, count: u32) -> Option<&mut [u8]> {
        for number in first..first.checked_add(count)? {
            if !self.is_ours(number) {
                return None;
            }
        }
        let offset = self.offset_of(first);
        let bytes = count as usize * self.frame_bytes;
        self.memory.mapping().bytes(offset, bytes)
    }

    /// `len` bytes of a frame from `from` on; `None` if this process does not own it or they are not inside.
    pub fn part(&mut self, number: u32, from: usize, len: usize) -> Option<&mut [u8]> {
        self.bytes(number)?.get_mut(from..)?.get_mut(..len)
    }

    /// Gives a frame to the other side. Returns whether this process owned it.
    #[must_use]
    pub fn give(&mut self, number: u32) -> bool {
        self.change(number, true, OTHER)
    }

    /// Takes a frame back. Returns whether the other side owned it.
    #[must_use]
    pub fn take(&mut self, number: u32) -> bool {
        self.change(number, false, US)
    }

    fn change(&mut self, number: u32, was_ours: bool, to: u8) -> bool {
        match self.owner(number) {
            Some(owner) if (*owner == US) == was_ours => {
                *owner = to;
                true
            }
            _ => false,
        }
    }

    fn owner(&mut self, number: u32) -> Option<&mut u8> {
        if number >= self.count {
            return None;
        }
        match &mut self.table {
            Table::Here(owners) => owners.get_mut(number as usize),
            Table::Behind(offset) => {
                let bytes = self.memory.mapping().bytes(*offset + number as usize, 1)?;
                bytes.first_mut()
            }
        }
    }
}

fn end_of(offset: usize, frame_bytes: usize, count: u32) -> Option<usize> {
    (count as usize)
        .checked_mul(frame_bytes)?
        .checked_add(offset)
}

#[cfg(test)]
mod tests {
    use super::super::Pages;
    use super::*;
    use std::os::fd::AsFd;

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
        assert!(!frames.give(2), "the other side owns it already");
        assert!(!frames.is_ours(2));
        assert_eq!(frames.bytes(2), None);
        assert_eq!(frames.part(2, 0, 1), None);
        assert!(frames.take(2));
        assert!(!frames.take(2), "this side owns it already");
        assert!(frames.bytes(2).is_some());
        assert!(!frames.give(4) && !frames.take(4), "there is no such frame");
    }

    #[test]
    fn the_next_process_knows_the_owner_of_each_frame() {
        let bytes = Frames::bytes_inherited(2048, 4).unwrap();
        let memory = SharedMemory::create("frames", bytes, Pages::Small).unwrap();
        let again = memory.as_fd().try_clone_to_owned().unwrap();
        let mut one = Frames::inherited(memory, 2048, 4).unwrap();
        assert!(one.give(1) && one.give(3) && one.take(3));
        one.bytes(3).unwrap().fill(0xff);
        let again = SharedMemory::open(again).unwrap();
        let mut other = Frames::inherited(again, 2048, 4).unwrap();
        let ours = [0, 1, 2, 3, 4].map(|number| other.is_ours(number));
        assert_eq!(ours, [true, false, true, true, false]);
        let memory = SharedMemory::create("frames", bytes, Pages::Small).unwrap();
        assert!(Frames::inherited(memory, 4096, 3).is_err());
    }

    #[test]
    fn adjacent_frames_are_accessible_at_once_if_all_are_owned() {
        let mut frames = frames();
        assert_eq!(frames.run(1, 3).map(|run| run.len()), Some(3 * 1008));
        assert_eq!(frames.run(1, 4), None);
        assert_eq!(frames.run(u32::MAX, 2), None);
        assert!(frames.give(3));
        assert_eq!(frames.run(1, 3), None);
        assert!(frames.run(1, 2).is_some());
    }

    #[test]
    fn a_part_of_a_frame_is_inside_of_it() {
        let mut frames = frames();
        assert_eq!(frames.part(0, 1000, 8).map(|part| part.len()), Some(8));
        assert_eq!(frames.part(0, 1000, 9), None);
        assert_eq!(frames.part(0, 1009, 0), None);
    }
}
