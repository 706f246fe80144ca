//! Memory for copies and chunks of files, used again.

use crate::payload_queue::Outbound;
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::fmt;

/// What all queues of an engine take and give back: buffers of two sizes, and the queues' own bookkeeping. Clones are
/// the same pool.
pub struct Pool<F>(Rc<RefCell<Vacant<F>>>);

struct Vacant<F> {
    small: Vec<Box<[u8]>>,
    large: Vec<Box<[u8]>>,
    #[expect(clippy::vec_box, reason = "the boxes are handed out as they are")]
    queues: Vec<Box<Outbound<F>>>,
}

impl<F> Pool<F> {
    /// A buffer of [`SMALL_BYTES`] if `len` fits into it, else of [`LARGE_BYTES`]; what it contains is undefined.
    /// Allocates if none is vacant.
    pub(crate) fn take(&self, len: usize) -> Box<[u8]> {
        let mut vacant = self.0.borrow_mut();
        let (vacant, size) = if len <= SMALL_BYTES {
            (&mut vacant.small, SMALL_BYTES)
        } else {
            (&mut vacant.large, LARGE_BYTES)
        };
        vacant
            .pop()
            .unwrap_or_else(|| vec![0; size].into_boxed_slice())
    }

    /// Takes a buffer back; beyond a bound it is freed.
    pub(crate) fn put(&self, buffer: Box<[u8]>) {
        let mut vacant = self.0.borrow_mut();
        let (vacant, count_max) = match buffer.len() {
            SMALL_BYTES => (&mut vacant.small, SMALL_VACANT_MAX),
            LARGE_BYTES => (&mut vacant.large, LARGE_VACANT_MAX),
            _ => {
                debug_assert!(false, "only the pool's own buffers come back");
                return;
            }
        };
        if vacant.len() < count_max {
            vacant.push(buffer);
        }
    }

    pub(crate) fn take_queue(&self) -> Box<Outbound<F>> {
        let vacant = self.0.borrow_mut().queues.pop();
        vacant.unwrap_or_else(|| Box::new(Outbound::new()))
    }

    /// Takes an emptied queue back; beyond a bound it is freed.
    pub(crate) fn put_queue(&self, queue: Box<Outbound<F>>) {
        let mut vacant = self.0.borrow_mut();
        if vacant.queues.len() < QUEUES_VACANT_MAX && !queue.is_large() {
            vacant.queues.push(queue);
        }
    }
}

impl<F> Default for Pool<F> {
    fn default() -> Self {
        Self(Rc::new(RefCell::new(Vacant {
            small: Vec::new(),
            large: Vec::new(),
            queues: Vec::new(),
        })))
    }
}

impl<F> Clone for Pool<F> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<F> fmt::Debug for Pool<F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let vacant = self.0.borrow();
        write!(
            formatter,
            "Pool({} small, {} large, {} queues)",
            vacant.small.len(),
            vacant.large.len(),
            vacant.queues.len()
        )
    }
}

/// Bytes of a buffer for a head and a small content: what most responses have, so that ten thousand of them waiting
/// for their acknowledgement take 20 MB.
pub const SMALL_BYTES: usize = 2 * 1024;

/// Bytes of a buffer for long copies and chunks of files: what the largest segment of a device that segments itself
/// carries, so that making one looks at two chunks at the most.
pub const LARGE_BYTES: usize = 64 * 1024;

/// Unused buffers that are kept: 8 MB of small ones and 16 MB of large ones. More are in use only while more
/// connections wait for acknowledgements at once, and then their number changes slowly.
const SMALL_VACANT_MAX: usize = 4096;
const LARGE_VACANT_MAX: usize = 256;

/// Emptied queues that are kept, at about 400 bytes each: one for each connection that answers within the time of
/// one round trip.
const QUEUES_VACANT_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_have_the_smaller_size_that_fits_and_come_back() {
        let pool = Pool::<()>::default();
        let check = |len, size| assert_eq!(pool.take(len).len(), size, "{len}");
        check(0, SMALL_BYTES);
        check(SMALL_BYTES, SMALL_BYTES);
        check(SMALL_BYTES + 1, LARGE_BYTES);
        check(usize::MAX, LARGE_BYTES);
        let mut used = pool.take(1);
        used[0] = 77;
        pool.put(used);
        assert_eq!(pool.take(1)[0], 77, "the same one again");
    }

    #[test]
    fn no_more_are_kept_than_the_bounds_say() {
        let pool = Pool::<()>::default();
        let taken: Vec<_> = (0..LARGE_VACANT_MAX + 5)
            .map(|_| pool.take(LARGE_BYTES))
            .collect();
        for buffer in taken {
            pool.put(buffer);
        }
        for _ in 0..QUEUES_VACANT_MAX + 5 {
            pool.put_queue(Box::new(Outbound::new()));
        }
        let vacant = pool.0.borrow();
        assert_eq!(vacant.large.len(), LARGE_VACANT_MAX);
        assert_eq!(vacant.queues.len(), QUEUES_VACANT_MAX);
    }
}
