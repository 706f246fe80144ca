//! Received bytes that are given away with the memory they stand in.

use alloc::rc::Rc;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::fmt;
use core::ops::{Deref, Range};

/// Buffers that an engine receives into. Those that are not in use are kept for the next.
#[derive(Debug)]
pub struct ReceiveBuffers {
    vacant: RefCell<Vec<Vec<u8>>>,
    /// The size of each.
    buffer_bytes: usize,
    kept_max: usize,
}

impl ReceiveBuffers {
    pub fn new(buffer_bytes: usize, kept_max: usize) -> Rc<Self> {
        Rc::new(Self {
            vacant: RefCell::default(),
            buffer_bytes,
            kept_max,
        })
    }

    /// A buffer of `buffer_bytes`, whatever is in it.
    pub fn take(&self) -> Vec<u8> {
        let vacant = self.vacant.borrow_mut().pop();
        vacant.unwrap_or_else(|| vec![0; self.buffer_bytes])
    }

    fn put(&self, buffer: Vec<u8>) {
        let mut vacant = self.vacant.borrow_mut();
        if vacant.len() < self.kept_max {
            vacant.push(buffer);
        }
    }
}

/// Received bytes. Their buffer goes back when they are dropped.
pub struct Received {
    buffer: Vec<u8>,
    range: Range<usize>,
    home: Rc<ReceiveBuffers>,
}

impl Received {
    /// The bytes at `range` of a buffer that was taken from `home`.
    pub const fn new(buffer: Vec<u8>, range: Range<usize>, home: Rc<ReceiveBuffers>) -> Self {
        Self {
            buffer,
            range,
            home,
        }
    }
}

impl Deref for Received {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.buffer.get(self.range.clone()).unwrap_or_default()
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        self.home.put(core::mem::take(&mut self.buffer));
    }
}

impl fmt::Debug for Received {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Received({} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_goes_back_when_its_bytes_are_dropped_and_no_more_are_kept_than_allowed() {
        let buffers = ReceiveBuffers::new(4, 1);
        let fill = |byte| {
            let mut buffer = buffers.take();
            assert_eq!(buffer.len(), 4);
            buffer.fill(byte);
            Received::new(buffer, 1..3, Rc::clone(&buffers))
        };
        let (first, second) = (fill(1), fill(2));
        assert_eq!((&*first, &*second), (&[1, 1][..], &[2, 2][..]));
        drop(first);
        drop(second);
        assert_eq!(buffers.take(), [1; 4], "the first was kept");
        assert_eq!(buffers.take(), [0; 4], "the second was not");
    }
}
