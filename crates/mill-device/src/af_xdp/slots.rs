//! The memory of frames to be sent: groups of adjacent kernel slots, as many as the longest frame takes, so that a
//! frame is written in one piece.

use super::frame_len_max;
use std::ops::Range;

/// The groups. The kernel returns places one by one; a group is vacant when all of its places are back.
#[derive(Debug)]
pub(super) struct Slots {
    /// First places of vacant groups. The last one returned is used first: it may still be in the processor's cache.
    vacant: Vec<u32>,
    /// The number of places of each group that the kernel has.
    out: Box<[u8]>,
    first: u32,
    pieces: u32,
    frame_bytes: usize,
}

impl Slots {
    /// Divides the places `senders` into groups for an MTU. Those for which `is_ours` is false are still the kernel's.
    pub(super) fn new(
        senders: Range<u32>,
        frame_bytes: usize,
        mtu: u16,
        mut is_ours: impl FnMut(u32) -> bool,
    ) -> Self {
        let pieces = frame_len_max(mtu).div_ceil(frame_bytes);
        let pieces = u32::try_from(pieces).expect("a frame has less than 64 KiB");
        let count = (senders.end - senders.start) / pieces;
        let mut vacant = Vec::with_capacity(count as usize);
        let mut out = vec![0_u8; count as usize].into_boxed_slice();
        for (slot, out) in (0..count).zip(&mut out).rev() {
            let start = senders.start + slot * pieces;
            for number in start..start + pieces {
                *out += u8::from(!is_ours(number));
            }
            if *out == 0 {
                vacant.push(start);
            }
        }
        Self {
            vacant,
            out,
            first: senders.start,
            pieces,
            frame_bytes,
        }
    }

    /// Bytes of a group.
    pub(super) fn bytes(&self) -> usize {
        self.frame_bytes * self.pieces as usize
    }

    /// Places of a group.
    pub(super) fn pieces(&self) -> u32 {
        self.pieces
    }

    /// Whether no group is vacant.
    pub(super) fn is_empty(&self) -> bool {
        self.vacant.is_empty()
    }

    /// The first place of the group that is used next.
    pub(super) fn first(&self) -> Option<u32> {
        self.vacant.last().copied()
    }

    /// Takes the group of [`Self::first`]: the places that `len` bytes need go to the kernel. `None` if there is none,
    /// or if the bytes do not fit.
    pub(super) fn take(&mut self, len: usize) -> Option<Range<u32>> {
        let needed = len.div_ceil(self.frame_bytes).max(1);
        let needed = u32::try_from(needed).ok()?;
        if needed > self.pieces {
            return None;
        }
        let start = *self.vacant.last()?;
        let slot = (start - self.first) / self.pieces;
        *self.out.get_mut(slot as usize)? = u8::try_from(needed).ok()?;
        self.vacant.pop();
        Some(start..start + needed)
    }

    /// The kernel has returned a place.
    pub(super) fn complete(&mut self, number: u32) {
        let slot = (number - self.first) / self.pieces;
        // Places that are left over belong to no group, and the kernel never gets them.
        let Some(out) = self.out.get_mut(slot as usize) else {
            debug_assert!(false, "{number} belongs to no slot");
            return;
        };
        debug_assert!(*out > 0, "{number} was given back already");
        *out -= 1;
        if *out == 0 {
            self.vacant.push(self.first + slot * self.pieces);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_has_room_for_the_longest_frame() {
        let check = |frame_bytes, mtu, pieces, slots| {
            let made = Slots::new(64..128, frame_bytes, mtu, |_| true);
            assert_eq!((made.pieces(), made.vacant.len()), (pieces, slots), "{mtu}");
            assert!(made.bytes() >= frame_len_max(mtu));
        };
        check(2048, 1500, 1, 64);
        check(2048, 2026, 1, 64);
        check(2048, 2027, 2, 32);
        check(4096, 4074, 1, 64);
        check(4096, 9000, 3, 21);
        check(4096, u16::MAX, 17, 3);
    }

    #[test]
    fn a_slot_is_vacant_again_once_all_of_its_places_are_returned() {
        let mut slots = Slots::new(10..16, 4096, 9000, |_| true);
        assert_eq!(slots.first(), Some(10));
        assert_eq!(slots.take(9014), Some(10..13));
        assert_eq!(slots.take(4097), Some(13..15));
        assert_eq!((slots.first(), slots.take(1)), (None, None));
        slots.complete(12);
        slots.complete(10);
        slots.complete(13);
        assert!(slots.is_empty());
        slots.complete(14);
        assert_eq!(slots.first(), Some(13));
        slots.complete(11);
        assert_eq!(slots.first(), Some(10));
        assert_eq!(slots.take(3 * 4096 + 1), None);
        assert_eq!(slots.take(3 * 4096), Some(10..13));
    }

    #[test]
    fn slots_that_the_kernel_has_already_are_not_vacant() {
        let mut slots = Slots::new(0..6, 4096, 5000, |number| ![0, 4, 5].contains(&number));
        assert_eq!(slots.vacant, [2]);
        slots.complete(5);
        assert_eq!(slots.vacant, [2]);
        slots.complete(4);
        slots.complete(0);
        assert_eq!(slots.vacant, [2, 4, 0]);
    }
}
