//! Which descriptors are ours: a table by number, read without a lock, for each call of the program asks it.

use crate::borrowing;
use core::ffi::c_int;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use fresh::Fresh;
use mill_sockets::slab::Number;

/// Descriptors of this library.
pub(crate) mod own;

/// Sockets that are not used yet.
pub(crate) mod fresh;

/// What a descriptor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// The kernel's alone, or not looked at yet.
    Kernel,
    /// A connection of the stack; the descriptor only keeps its number.
    Stream(Number),
    /// A listener of kernel and stack.
    Listener(Number),
    /// An epoll set of the kernel, and one of the stack beside it.
    Set(Number),
    /// A connection of the parent's stack, which is not this process's.
    Lost,
    /// One that the parent lends and that was not used yet; the descriptor only keeps its number.
    Inherited(Number),
    /// One that the parent lends, by this place among those of the process; the descriptor is a local socket's.
    Borrowed(u64),
    /// A socket of TCP that nothing was done with; the descriptor only keeps its number.
    Fresh(Fresh),
    /// Of this library: programs that close all they know do not close it.
    Private,
}

const CHUNK: usize = 4096;

type Chunk = [AtomicU64; CHUNK];

/// Numbers below `CHUNK * CHUNKS`, the largest `RLIMIT_NOFILE` there usually is (`fs.nr_open`).
const CHUNKS: usize = 256;

static TABLE: [AtomicPtr<Chunk>; CHUNKS] = [const { AtomicPtr::new(null_mut()) }; CHUNKS];

#[inline]
fn place(descriptor: c_int) -> Option<&'static AtomicU64> {
    let number = usize::try_from(descriptor).ok()?;
    let chunk = TABLE.get(number / CHUNK)?.load(Ordering::Acquire);
    // SAFETY: null, or a chunk that was leaked for good.
    let chunk = unsafe { chunk.as_ref() }?;
    chunk.get(number % CHUNK)
}

/// What a descriptor is: one load. A fresh socket becomes the kernel's, and an inherited connection a borrowed one: the caller does
/// something with it.
#[inline]
pub(crate) fn find(descriptor: c_int) -> Entry {
    match peek(descriptor) {
        Entry::Fresh(fresh) => fresh::settle(descriptor, fresh),
        Entry::Inherited(_) => borrowing::take(descriptor),
        entry => entry,
    }
}

/// What a descriptor is, for those that know what to do with a fresh socket and an inherited connection.
#[inline]
pub(crate) fn peek(descriptor: c_int) -> Entry {
    place(descriptor).map_or(Entry::Kernel, |place| {
        Entry::from_bits(place.load(Ordering::Acquire))
    })
}

/// Notes what a descriptor is. False if its number is larger than the table.
pub(crate) fn set(descriptor: c_int, entry: Entry) -> bool {
    let place = match entry {
        Entry::Kernel => place(descriptor),
        _ => made_place(descriptor),
    };
    if let Some(place) = place {
        place.store(entry.to_bits(), Ordering::Release);
    }
    place.is_some() || entry == Entry::Kernel
}

/// Notes what a descriptor is that was the kernel's alone. False if another thread was first, or its number is larger than the
/// table.
pub(crate) fn claim(descriptor: c_int, entry: Entry) -> bool {
    exchange(descriptor, Entry::Kernel, entry)
}

/// A connection ends with its process, whatever its descriptor is used for until then. False if it is something else by now.
pub(crate) fn lose(descriptor: c_int, connection: Entry) -> bool {
    exchange(descriptor, connection, Entry::Lost)
}

/// Notes what a descriptor is instead of what it was. False if it was something else.
fn exchange(descriptor: c_int, from: Entry, to: Entry) -> bool {
    let (from, to) = (from.to_bits(), to.to_bits());
    let place = made_place(descriptor);
    place.is_some_and(|place| {
        let claimed = place.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
        claimed.is_ok()
    })
}

/// The place of a number, whose part of the table is made if there is none yet.
fn made_place(descriptor: c_int) -> Option<&'static AtomicU64> {
    if let Some(place) = place(descriptor) {
        return Some(place);
    }
    let number = usize::try_from(descriptor).ok()?;
    let slot = TABLE.get(number / CHUNK)?;
    // Not by `Box::new`, which would make all of its 32 kB on the thread's stack first, where a program may have little.
    let chunk: Box<[AtomicU64]> = (0..CHUNK).map(|_| AtomicU64::new(0)).collect();
    let chunk: Box<Chunk> = chunk.try_into().ok()?;
    let chunk = Box::into_raw(chunk);
    let placed = slot.compare_exchange(null_mut(), chunk, Ordering::AcqRel, Ordering::Acquire);
    if placed.is_err() {
        // SAFETY: another thread was first, so this one has no user.
        drop(unsafe { Box::from_raw(chunk) });
    }
    place(descriptor)
}

/// All descriptors that are not the kernel's alone.
pub(crate) fn all() -> impl Iterator<Item = (c_int, Entry)> {
    let chunks = TABLE.iter().enumerate().filter_map(|(index, chunk)| {
        // SAFETY: null, or a chunk that was leaked for good.
        let chunk = unsafe { chunk.load(Ordering::Acquire).as_ref() };
        Some((index, chunk?))
    });
    chunks.flat_map(|(index, chunk)| {
        let entries = chunk.iter().enumerate();
        entries.filter_map(move |(offset, place)| {
            let entry = Entry::from_bits(place.load(Ordering::Acquire));
            let number = c_int::try_from(index * CHUNK + offset).ok()?;
            (entry != Entry::Kernel).then_some((number, entry))
        })
    })
}

/// No place among borrowed connections has this number.
const LOST: u64 = (1 << Entry::SHIFT) - 1;

/// Three bits of kind above the number's 61.
impl Entry {
    const SHIFT: u32 = Number::BITS;

    const fn to_bits(self) -> u64 {
        let (kind, number) = match self {
            Self::Kernel => (0, 0),
            Self::Stream(number) => (1, number.to_bits()),
            Self::Listener(number) => (2, number.to_bits()),
            Self::Set(number) => (3, number.to_bits()),
            Self::Inherited(number) => (4, number.to_bits()),
            Self::Private => (5, 0),
            Self::Fresh(fresh) => (6, fresh.to_bits()),
            Self::Borrowed(place) => (7, place),
            Self::Lost => (7, LOST),
        };
        kind << Self::SHIFT | number
    }

    #[inline]
    const fn from_bits(bits: u64) -> Self {
        let bits_below = bits & ((1 << Self::SHIFT) - 1);
        let number = Number::from_bits(bits_below);
        match bits >> Self::SHIFT {
            1 => Self::Stream(number),
            2 => Self::Listener(number),
            3 => Self::Set(number),
            4 => Self::Inherited(number),
            7 if bits_below == LOST => Self::Lost,
            7 => Self::Borrowed(bits_below),
            5 => Self::Private,
            6 => Self::Fresh(Fresh::from_bits(bits_below)),
            _ => Self::Kernel,
        }
    }
}
