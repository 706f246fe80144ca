//! Bytes to send that need no memory of their own: a page, repeated.

use mill_stack::link::ExternalBytes;
use mill_stack::queue::{SendQueue, Vanished};

/// In memory and not all alike: for a page of one byte the compiler makes a fill, which reads nothing.
static PAGE: [u8; 4096] = {
    let mut page = [0; 4096];
    let (mut at, mut byte) = (0, 0_u8);
    while at < page.len() {
        page[at] = byte;
        byte = byte.wrapping_add(91);
        at += 1;
    }
    page
};

/// This many bytes, copied from a page that stays in the cache, as a file's chunk just read does.
#[derive(Debug, Default)]
pub(super) struct Pattern {
    pub(super) len: u64,
}

impl SendQueue for Pattern {
    fn len(&self) -> u64 {
        self.len
    }

    fn copy(&mut self, offset: u64, into: &mut [u8]) -> Result<(), Vanished> {
        if offset + into.len() as u64 > self.len {
            return Err(Vanished);
        }
        for piece in into.chunks_mut(PAGE.len()) {
            piece.copy_from_slice(&PAGE[..piece.len()]);
        }
        Ok(())
    }

    fn external(&mut self, _: u64, _: u32) -> Option<ExternalBytes<'_>> {
        None
    }

    fn release(&mut self, count: u64) {
        self.len -= count;
    }

    fn clear(&mut self) {
        self.len = 0;
    }
}
