//! One end of a ring in shared memory: entries of equal size, one producer and one consumer.
//!
//! Both indices wrap at 2^32 and are masked on use; each side writes its own and reads the other's. The other side's
//! index is cached and only read again when the cached value leaves nothing to do, and the own index is published once
//! for many entries: so that cache lines move between processors only once a burst.

use crate::memory::mapping::Mapping;
use std::io;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering, fence};

/// Offsets of a ring's parts in its mapping, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) producer: usize,
    pub(crate) consumer: usize,
    pub(crate) flags: usize,
    pub(crate) entries: usize,
    /// The number of entries; a power of two.
    pub(crate) count: u32,
}

/// An entry: plain numbers, for which every bit pattern is valid.
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

/// The producer's end.
#[derive(Debug)]
pub(crate) struct Producer<T> {
    ring: Ring<T>,
    /// Entries are written up to `next` and visible to the other side up to `published`.
    next: u32,
    published: u32,
    /// The consumer's index when it was read last.
    taken: u32,
}

/// The consumer's end.
#[derive(Debug)]
pub(crate) struct Consumer<T> {
    ring: Ring<T>,
    /// Entries are read up to `next`, and their room is returned up to `released`.
    next: u32,
    released: u32,
    /// The producer's index when it was read last.
    put: u32,
}

/// The fill level of a ring, for a reader that has neither end.
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
    /// Continues from the ring's current indices.
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

    /// Writes an entry, which is visible once it is published. Returns whether there was room.
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

    /// Publishes the written entries.
    pub(crate) fn publish(&mut self) {
        if self.published != self.next {
            let index = self.ring.index(self.ring.layout.producer);
            index.store(self.next, Ordering::Release);
            self.published = self.next;
            // A driver that is about to sleep sets the flag that asks for a call, then checks the ring once more; this
            // side publishes, then reads the flag (`needs_wakeup`). Without a full fence both could read the old
            // values, and no call would be made.
            fence(Ordering::SeqCst);
        }
    }

    /// The number of published entries that the other side has not taken.
    pub(crate) fn pending(&mut self) -> u32 {
        if self.taken != self.published {
            self.look();
        }
        self.published.wrapping_sub(self.taken)
    }

    /// Whether the other side sleeps and needs a call to see what was published.
    pub(crate) fn needs_wakeup(&self) -> bool {
        let flags = self.ring.index(self.ring.layout.flags);
        flags.load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }

    /// The published entries that the other side has not taken, oldest first.
    pub(crate) fn unseen(&mut self) -> Vec<T> {
        self.look();
        self.ring.between(self.taken, self.published)
    }

    /// The consumer's index, modulo 2^32, when it was read last.
    pub(crate) fn taken_count(&self) -> u32 {
        self.taken
    }

    fn look(&mut self) {
        let index = self.ring.index(self.ring.layout.consumer);
        self.taken = index.load(Ordering::Acquire);
        debug_assert!(
            self.next.wrapping_sub(self.taken) <= self.ring.layout.count,
            "the consumer takes no more than was published"
        );
    }
}

impl<T: Entry> Consumer<T> {
    /// Continues from the ring's current indices.
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

    /// Takes the oldest entry; its room is returned by `release`.
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

    /// The number of entries known to wait.
    pub(crate) fn known(&self) -> u32 {
        self.put.wrapping_sub(self.next)
    }

    /// Returns the room of the entries that were taken.
    pub(crate) fn release(&mut self) {
        if self.released != self.next {
            let index = self.ring.index(self.ring.layout.consumer);
            index.store(self.next, Ordering::Release);
            self.released = self.next;
        }
    }

    /// The entries that wait, oldest first; they are not taken.
    pub(crate) fn waiting(&mut self) -> Vec<T> {
        self.look();
        self.ring.between(self.next, self.put)
    }

    /// The producer's index, modulo 2^32, when it was read last.
    pub(crate) fn put_count(&self) -> u32 {
        self.put
    }

    fn look(&mut self) {
        let index = self.ring.index(self.ring.layout.producer);
        let put = index.load(Ordering::Acquire);
        // An impossible index is ignored: entries that were never written must not be read.
        if put.wrapping_sub(self.released) <= self.ring.layout.count {
            self.put = put;
        }
    }
}

impl Gauge {
    pub(crate) fn new(mapping: Mapping, layout: Layout) -> io::Result<Self> {
        Ring::new(mapping, layout).map(Self)
    }

    /// The approximate number of entries that are published and not taken.
    pub(crate) fn count(&self) -> u32 {
        let [put, taken] = [self.0.layout.producer, self.0.layout.consumer]
            .map(|offset| self.0.index(offset).load(Ordering::Relaxed));
        // Both indices move meanwhile: `taken` may be ahead of the `put` that was read.
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
