//! Bytes to send, as the host needs them.

use crate::link::ExternalBytes;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The bytes of one connection that were handed over and are not acknowledged yet. Its first byte is the first
/// unacknowledged one. The host copies ranges into frames, again for each retransmission, and releases acknowledged
/// bytes; where the bytes are stored is up to the owner.
pub trait SendQueue: Default {
    /// Bytes held, sent ones included.
    fn len(&self) -> u64;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies the bytes from `offset` on into the whole of `into`; the host asks only for what is held. An error
    /// means that the bytes don't exist any more (a file became shorter): the connection is reset.
    fn copy(&mut self, offset: u64, into: &mut [u8]) -> Result<(), Vanished>;

    /// Of `len` bytes from `offset` on the last ones, as many as lie in one place and may be sent from there. Those before them have
    /// to be copied. `None` where the last byte has to be, too.
    fn external(&mut self, offset: u64, len: u32) -> Option<ExternalBytes<'_>>;

    /// Releases `count` bytes at the front.
    fn release(&mut self, count: u64);

    /// Releases everything; the queue may be used for another connection.
    fn clear(&mut self);
}

/// Bytes that were promised don't exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vanished;

/// Queues that no connection needs now, kept for the next ones.
#[derive(Debug)]
pub(crate) struct VacantQueues<Q>(Vec<Box<Q>>);

impl<Q: SendQueue> VacantQueues<Q> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// An empty queue; allocates only while more connections send at once than ever before.
    pub(crate) fn take(&mut self) -> Box<Q> {
        self.0.pop().unwrap_or_default()
    }

    /// Forgets what is in it.
    pub(crate) fn put(&mut self, mut queue: Box<Q>) {
        if self.0.len() < Self::COUNT_MAX {
            queue.clear();
            self.0.push(queue);
        }
    }

    /// As many as connections usually send at once.
    const COUNT_MAX: usize = 4096;
}

/// The simplest queue: bytes in memory.
#[derive(Debug, Default)]
pub struct ByteQueue(VecDeque<u8>);

impl ByteQueue {
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    /// Appends up to `count` bytes that `fill` writes into the room that it is given, in order, and returns how many these
    /// are. It is called once or twice, and not again once it has left room.
    pub fn push_with<E>(
        &mut self,
        count: usize,
        mut fill: impl FnMut(&mut [u8]) -> Result<usize, E>,
    ) -> Result<usize, E> {
        let before = self.0.len();
        self.0.resize(before + count, 0);
        let (front, back) = self.0.as_mut_slices();
        let back_start = before.saturating_sub(front.len());
        let rooms = [
            front.get_mut(before..).unwrap_or_default(),
            back.get_mut(back_start..).unwrap_or_default(),
        ];
        let (mut filled, mut result) = (0, Ok(()));
        for room in rooms.into_iter().filter(|room| !room.is_empty()) {
            let len = room.len();
            let count = match fill(room) {
                Ok(count) => count.min(len),
                Err(error) => {
                    result = Err(error);
                    0
                }
            };
            filled += count;
            if count < len {
                break;
            }
        }
        self.0.truncate(before + filled);
        match result {
            Err(error) if filled == 0 => Err(error),
            _ => Ok(filled),
        }
    }
}

impl SendQueue for ByteQueue {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn copy(&mut self, offset: u64, into: &mut [u8]) -> Result<(), Vanished> {
        let start = usize::try_from(offset).map_err(|_| Vanished)?;
        let end = start.checked_add(into.len()).ok_or(Vanished)?;
        if end > self.0.len() {
            return Err(Vanished);
        }
        let (front, back) = self.0.as_slices();
        let from_front = front.get(start..end.min(front.len())).unwrap_or_default();
        let (first, second) = into.split_at_mut(from_front.len());
        first.copy_from_slice(from_front);
        let back_start = start.saturating_sub(front.len());
        let from_back = back.get(back_start..back_start + second.len());
        second.copy_from_slice(from_back.ok_or(Vanished)?);
        Ok(())
    }

    fn external(&mut self, offset: u64, len: u32) -> Option<ExternalBytes<'_>> {
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(usize::try_from(len).ok()?)?;
        let (front, back) = self.0.as_slices();
        let bytes = match end.checked_sub(front.len()) {
            None | Some(0) => front.get(start..end),
            Some(end) => back.get(start.saturating_sub(front.len())..end),
        };
        bytes.map(ExternalBytes::of_memory)
    }

    fn release(&mut self, count: u64) {
        let count = usize::try_from(count)
            .unwrap_or(usize::MAX)
            .min(self.0.len());
        self.0.drain(..count);
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_in_place_wherever_the_ring_begins() {
        let mut queue = ByteQueue::default();
        let mut next = 0_u8;
        let mut expected = Vec::new();
        for round in 0..100 {
            let (count, written) = (round % 23, (round * 7) % 23);
            let mut left = written;
            let filled = queue.push_with(count, |room| {
                let len = left.min(room.len());
                left -= len;
                for place in &mut room[..len] {
                    next = next.wrapping_add(1);
                    *place = next;
                    expected.push(next);
                }
                Ok::<_, ()>(len)
            });
            assert_eq!(filled, Ok(count.min(written)));
            let gone = expected.len().min(5);
            expected.drain(..gone);
            queue.release(gone as u64);
            let mut into = alloc::vec![0; expected.len()];
            assert_eq!(queue.copy(0, &mut into), Ok(()));
            assert_eq!(into, expected);
        }
        let len = queue.len();
        assert_eq!(queue.push_with(9, |_| Err(7)), Err(7));
        assert_eq!(queue.len(), len);
    }

    #[test]
    fn ranges_are_copied_wherever_the_ring_begins() {
        let mut queue = ByteQueue::default();
        for round in 0..50u8 {
            queue.push(&[round, round + 1, round + 2]);
            let mut into = [0; 3];
            assert_eq!(queue.copy(0, &mut into), Ok(()));
            assert_eq!(into, [round, round + 1, round + 2]);
            queue.push(&[0; 40]);
            assert_eq!(queue.copy(2, &mut into[..2]), Ok(()));
            assert_eq!(into[..2], [round + 2, 0]);
            assert_eq!(queue.copy(42, &mut into[..2]), Err(Vanished));
            assert_eq!(queue.copy(42, &mut into[..1]), Ok(()));
            queue.release(43);
            assert!(queue.is_empty());
        }
    }
}
