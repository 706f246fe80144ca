//! An allocator that counts, for tests that say where nothing is allocated, and how many bytes something holds.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, which counts the calls of each thread, and the bytes that it holds.
#[derive(Debug)]
pub struct CountingAllocator;

/// How often the calling thread has asked a [`CountingAllocator`] for memory, or for more of it.
pub fn allocations() -> u64 {
    ALLOCATIONS.get()
}

/// Bytes that the calling thread has asked for and not given back, less those that it has given back for other threads.
pub fn bytes_held() -> i64 {
    BYTES_HELD.get()
}

thread_local! {
    /// They need no memory of their own, and nothing is dropped with the thread.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static BYTES_HELD: Cell<i64> = const { Cell::new(0) };
}

fn count_allocation(bytes: usize) {
    ALLOCATIONS.set(ALLOCATIONS.get() + 1);
    BYTES_HELD.set(BYTES_HELD.get().wrapping_add_unsigned(bytes as u64));
}

fn count_release(bytes: usize) {
    BYTES_HELD.set(BYTES_HELD.get().wrapping_sub_unsigned(bytes as u64));
}

// SAFETY: every call is the system allocator's; counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_allocation(layout.size());
        // SAFETY: the caller's promises about `layout` are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count_allocation(layout.size());
        // SAFETY: as in `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count_release(layout.size());
        count_allocation(size);
        // SAFETY: `memory` is of `System`, with this layout, as the caller promises.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count_release(layout.size());
        // SAFETY: as in `realloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}
