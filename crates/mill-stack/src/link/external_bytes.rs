//! Payload that a link sends from where it lies, without a copy.

use core::marker::PhantomData;

/// Payload outside of the link's packet memory.
///
/// Of a mapped file (mmap(2)) only the address is known: the kernel may read it, the program must not. If another program makes the
/// file shorter, a read of the program's own ends it (SIGBUS), and one of the kernel's is an error (EFAULT).
#[derive(Clone, Copy, Debug)]
pub struct ExternalBytes<'a> {
    place: Place<'a>,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
enum Place<'a> {
    /// An address, valid as long as the mapping is borrowed.
    Mapped(usize, PhantomData<&'a ()>),
    Memory(&'a [u8]),
}

impl<'a> ExternalBytes<'a> {
    /// `len` bytes at `address`, which are mapped as long as `_mapping` lives.
    pub const fn of_mapping<M: ?Sized>(_mapping: &'a M, address: usize, len: usize) -> Self {
        Self {
            place: Place::Mapped(address, PhantomData),
            len,
        }
    }

    pub const fn of_memory(bytes: &'a [u8]) -> Self {
        Self {
            place: Place::Memory(bytes),
            len: bytes.len(),
        }
    }

    pub const fn len(&self) -> usize {
        self.len
    }

    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where they lie, for a system call.
    pub fn address(&self) -> usize {
        match self.place {
            Place::Mapped(address, _) => address,
            Place::Memory(bytes) => bytes.as_ptr().addr(),
        }
    }

    /// The bytes themselves, where the program may read them.
    pub const fn as_slice(&self) -> Option<&'a [u8]> {
        match self.place {
            Place::Mapped(..) => None,
            Place::Memory(bytes) => Some(bytes),
        }
    }
}

/// What became of a segment with external payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExternalSent {
    /// It has left, or the device has lost it.
    Yes,
    /// There is no room for it now; as with a `reserve` that gives none. Nothing has left.
    Full,
    /// The bytes do not exist any more: the file has become shorter. Nothing has left.
    Vanished,
    /// The link does not send from memory of others: it has to be copied into the room. Nothing has left.
    Unable,
}
