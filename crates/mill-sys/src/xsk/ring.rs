//! One end of a ring in shared memory: entries of equal size, one side that puts in and one that takes out.
//!
//! Both indices run freely in 32 bits and are masked on use; each side writes its own and reads the other's. The other's
//! is kept and only read again when it leaves nothing to do, and our own is published once for many entries: so that the
//! cache lines travel between processors once a burst.

use crate::memory::mapping::Mapping;
use std::io;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering, fence};

/// Where the parts of a ring lie in its mapping, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) producer: usize,
    pub(crate) consumer: usize,
    pub(crate) flags: usize,
    pub(crate) entries: usize,
    /// How many entries; a power of two.
    pub(crate) count: u32,
}

/// What may lie in a ring: plain numbers, every pattern of bits of which is valid.
pub(crate) trait Entry: Copy {}

impl Entry for u64 {}

/// A piece of a frame (xdp_desc of if_xdp.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Descriptor {
    pub(crate) address: u64,
    pub(crate) len: u32,
    pub(crate) options: u32,
}

impl Entry for Descriptor {}

/// The end that puts entries in.
#[derive(Debug)]
pub(crate) struct Producer<T> {
    ring: Ring<T>,
    /// Up to where entries are written, and up to where they are published.
    next: u32,
    published: u32,
    /// Up to where the other side had taken when we looked last.
    taken: u32,
}

/// The end that takes entries out.
#[derive(Debug)]
pub(crate) struct Consumer<T> {
    ring: Ring<T>,
    /// Up to where entries are read, and up to where the other side knows.
    next: u32,
    released: u32,
    /// Up to where the other side had put when we looked last.
    put: u32,
}

/// How full a ring is, for who has neither end.
#[derive(Debug)]
pub(crate) struct Gauge(Ring<u64>);

#[derive(Debug)]
struct Ring<T> {
    mapping: Mapping,
    layout: Layout,
    mask: u32,
    entries: PhantomData<T>,
}

impl<T: Entry> Producer<T> {
    /// Goes on where the ring stands.
    pub(crate) fn new(mapping: Mapping, layout: Layout) -> io::Result<Self> {
        let ring = Ring::new(mapping, layout)?;
        let next = ring.index(layout.producer).load(Ordering::Acquire);
        let taken = ring.index(layout.consumer).load(Ordering::Acquire);
        Ok(Self {
            next,
            published: next,
            taken,
            ring,
        })
    }

    /// Puts an entry in; the other side sees it once it is published. Says whether there was room.
    #[must_use]
    pub(crate) fn put(&mut self, entry: T) -> bool {
        if self.next.wrapping_sub(self.taken) >= self.ring.layout.count {
            self.look();
            if self.next.wrapping_sub(self.taken) >= self.ring.layout.count {
                return false;
            }
        }
        let place = self.ring.place(self.next);
        // SAFETY: inside the mapping and aligned; the other side has taken what was there and looks again only after
        // `publish`.
        unsafe { place.write(entry) };
        self.next = self.next.wrapping_add(1);
        true
    }

    /// Lets the other side see what was put in.
    pub(crate) fn publish(&mut self) {
        if self.published != self.next {
            let index = self.ring.index(self.ring.layout.producer);
            index.store(self.next, Ordering::Release);
            self.published = self.next;
            // A driver that is about to sleep says that it needs a call, then looks once more; we let it see the entries,
            // then read what it says (`needs_wakeup`). Without this both could see what was before, and nobody would call.
            fence(Ordering::SeqCst);
        }
    }

    /// How many published entries the other side has not taken.
    pub(crate) fn pending(&mut self) -> u32 {
        if self.taken != self.published {
            self.look();
        }
        self.published.wrapping_sub(self.taken)
    }

    /// Whether the other side sleeps and wants a call to see what was published.
    pub(crate) fn needs_wakeup(&self) -> bool {
        let flags = self.ring.index(self.ring.layout.flags);
        flags.load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }

    /// The published entries that the other side has not taken, oldest first.
    pub(crate) fn unseen(&mut self) -> Vec<T> {
        self.look();
        self.ring.between(self.taken, self.published)
    }

    /// How many entries the other side has taken ever, modulo 2^32, when we looked last.
    pub(crate) fn taken_count(&self) -> u32 {
        self.taken
    }

    fn look(&mut self) {
        let index = self.ring.index(self.ring.layout.consumer);
        self.taken = index.load(Ordering::Acquire);
        debug_assert!(
            self.next.wrapping_sub(self.taken) <= self.ring.layout.count,
            "the other side takes what was put in"
        );
    }
}

impl<T: Entry> Consumer<T> {
    /// Goes on where the ring stands.
    pub(crate) fn new(mapping: Mapping, layout: Layout) -> io::Result<Self> {
        let ring = Ring::new(mapping, layout)?;
        let next = ring.index(layout.consumer).load(Ordering::Acquire);
        Ok(Self {
            next,
            released: next,
            put: next,
            ring,
        })
    }

    /// Takes the oldest entry out; the other side may use its place again once it is released.
    pub(crate) fn take(&mut self) -> Option<T> {
        if self.next == self.put {
            self.look();
            if self.next == self.put {
                return None;
            }
        }
        let place = self.ring.place(self.next);
        // SAFETY: inside the mapping and aligned; the other side has put it there and leaves it until `release`; any bits
        // are valid.
        let entry = unsafe { place.read() };
        self.next = self.next.wrapping_add(1);
        Some(entry)
    }

    /// How many entries wait, as far as we know.
    pub(crate) fn known(&self) -> u32 {
        self.put.wrapping_sub(self.next)
    }

    /// Gives the places of what was taken back.
    pub(crate) fn release(&mut self) {
        if self.released != self.next {
            let index = self.ring.index(self.ring.layout.consumer);
            index.store(self.next, Ordering::Release);
            self.released = self.next;
        }
    }

    /// What waits to be taken, oldest first; it goes on waiting.
    pub(crate) fn waiting(&mut self) -> Vec<T> {
        self.look();
        self.ring.between(self.next, self.put)
    }

    /// How many entries the other side has put in ever, modulo 2^32, when we looked last.
    pub(crate) fn put_count(&self) -> u32 {
        self.put
    }

    fn look(&mut self) {
        let index = self.ring.index(self.ring.layout.producer);
        let put = index.load(Ordering::Acquire);
        // A count that can't be is taken for none: entries that nobody has put in must not be believed.
        if put.wrapping_sub(self.released) <= self.ring.layout.count {
            self.put = put;
        }
    }
}

impl Gauge {
    pub(crate) fn new(mapping: Mapping, layout: Layout) -> io::Result<Self> {
        Ring::new(mapping, layout).map(Self)
    }

    /// How many entries are published and not taken, about.
    pub(crate) fn count(&self) -> u32 {
        let [put, taken] = [self.0.layout.producer, self.0.layout.consumer]
            .map(|offset| self.0.index(offset).load(Ordering::Relaxed));
        // Both move meanwhile: what was taken may be ahead of what we know to have been put.
        let count = put.wrapping_sub(taken);
        if count <= self.0.layout.count {
            count
        } else {
            0
        }
    }
}

impl<T: Entry> Ring<T> {
    /// EINVAL if the layout does not fit into the mapping.
    fn new(mapping: Mapping, layout: Layout) -> io::Result<Self> {
        let bytes = size_of::<T>().checked_mul(layout.count as usize);
        let is_inside = bytes.is_some_and(|bytes| mapping.at(layout.entries, bytes).is_some())
            && [layout.producer, layout.consumer, layout.flags]
                .iter()
                .all(|offset| mapping.atomic_u32(*offset).is_some());
        let is_aligned = layout.entries.is_multiple_of(align_of::<T>());
        if !is_inside || !is_aligned || !layout.count.is_power_of_two() {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        Ok(Self {
            mapping,
            layout,
            mask: layout.count - 1,
            entries: PhantomData,
        })
    }

    fn index(&self, offset: usize) -> &AtomicU32 {
        let index = self.mapping.atomic_u32(offset);
        index.expect("the offsets were checked when the ring was made")
    }

    fn place(&self, index: u32) -> NonNull<T> {
        let number = (index & self.mask) as usize;
        let offset = self.layout.entries + number * size_of::<T>();
        let place = self.mapping.at(offset, size_of::<T>());
        place
            .expect("the entries were checked when the ring was made")
            .cast()
    }

    fn between(&self, from: u32, to: u32) -> Vec<T> {
        let count = to.wrapping_sub(from).min(self.layout.count);
        (0..count)
            .map(|step| {
                let place = self.place(from.wrapping_add(step));
                // SAFETY: inside the mapping and aligned; any bits are valid.
                unsafe { place.read() }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
