//! The memory of received frames: slots of equal size, taken and released by number.

use mill_stack::link::FrameId;

/// The slots. Only those that were filled once take physical memory.
#[derive(Debug)]
pub(crate) struct Frames {
    memory: Vec<u8>,
    place_bytes: usize,
    /// Bytes of each frame; zero while the slot is vacant.
    lens: Vec<usize>,
    /// The last one released is taken first: it may still be in the processor's cache.
    vacant: Vec<u32>,
}

impl Frames {
    pub(crate) fn new(count: u32, place_bytes: usize) -> Self {
        let places = usize::try_from(count).unwrap_or(0);
        Self {
            memory: vec![0; places * place_bytes],
            place_bytes,
            lens: vec![0; places],
            vacant: (0..count).rev().collect(),
        }
    }

    /// Bytes of the longest frame that has room.
    pub(crate) fn place_bytes(&self) -> usize {
        self.place_bytes
    }

    /// Has `fill` fill a slot, and return the number of bytes, at least one; after an error the slot stays vacant.
    /// `None` if no slot is vacant.
    pub(crate) fn fill<E>(
        &mut self,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Option<Result<FrameId, E>> {
        let number = *self.vacant.last()?;
        let place = place_of(&mut self.memory, self.place_bytes, number)?;
        let filled = fill(place);
        Some(filled.map(|len| {
            debug_assert!(len > 0 && len <= self.place_bytes);
            self.vacant.pop();
            if let Some(entry) = self.lens.get_mut(number as usize) {
                *entry = len;
            }
            FrameId(number)
        }))
    }

    /// The bytes of a frame; none if the slot is vacant.
    pub(crate) fn frame(&mut self, id: FrameId) -> &mut [u8] {
        let len = self.lens.get(id.0 as usize).copied().unwrap_or_default();
        debug_assert!(len > 0, "{id:?} is not held");
        place_of(&mut self.memory, self.place_bytes, id.0)
            .and_then(|place| place.get_mut(..len))
            .unwrap_or_default()
    }

    /// The length of a frame; zero if the slot is vacant.
    pub(crate) fn len(&self, id: FrameId) -> usize {
        self.lens.get(id.0 as usize).copied().unwrap_or_default()
    }

    pub(crate) fn release(&mut self, id: FrameId) {
        match self.lens.get_mut(id.0 as usize) {
            Some(len) if *len > 0 => {
                *len = 0;
                self.vacant.push(id.0);
            }
            _ => debug_assert!(false, "{id:?} was released already"),
        }
    }

    /// The number of slots in use.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.lens.len() - self.vacant.len()
    }
}

fn place_of(memory: &mut [u8], place_bytes: usize, number: u32) -> Option<&mut [u8]> {
    let from = place_bytes.checked_mul(usize::try_from(number).ok()?)?;
    memory.get_mut(from..)?.get_mut(..place_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(frames: &mut Frames, byte: u8) -> Option<FrameId> {
        let filled = frames.fill(|place| {
            place.fill(byte);
            Ok::<_, ()>(3)
        });
        filled.map(Result::unwrap)
    }

    #[test]
    fn slots_are_taken_until_none_is_left_and_again_once_they_are_released() {
        let mut frames = Frames::new(2, 8);
        let first = put(&mut frames, 1).unwrap();
        let second = put(&mut frames, 2).unwrap();
        assert_ne!(first, second);
        assert_eq!((put(&mut frames, 3), frames.held()), (None, 2));
        assert_eq!(frames.frame(first), [1; 3]);
        assert_eq!(frames.frame(second), [2; 3]);
        frames.release(first);
        let third = put(&mut frames, 3).unwrap();
        assert_eq!(frames.frame(third), [3; 3]);
        assert_eq!(frames.frame(second), [2; 3]);
    }

    #[test]
    fn a_slot_that_was_not_filled_stays_vacant() {
        let mut frames = Frames::new(1, 8);
        assert_eq!(
            frames.fill(|_| Err("nothing there")),
            Some(Err("nothing there"))
        );
        assert_eq!(frames.held(), 0);
        assert!(put(&mut frames, 1).is_some());
    }
}
