//! The library's memory is of a heap of its own, so that a handler of the program may interrupt the program's allocator and use sockets
//! all the same, and a process that is about to end may still work (`signals/ending.rs`). Handlers wait while their thread is in this heap.
//!
//! What is large has pages of its own, which take no memory before they are used (the frames of devices that another process has).

use crate::signals::whole::Whole;
use core::cell::{Cell, UnsafeCell};
use core::mem::ManuallyDrop;
use dlmalloc::Dlmalloc;
use std::alloc::{GlobalAlloc, Layout};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What has pages of its own.
mod large;

struct Heap {
    lock: Mutex<()>,
    /// Only for a thread that has the lock.
    heap: UnsafeCell<Dlmalloc>,
}

// SAFETY: the heap is reached with the lock only.
unsafe impl Sync for Heap {}

#[global_allocator]
static HEAP: Heap = Heap {
    lock: Mutex::new(()),
    heap: UnsafeCell::new(
        const {
            let mut heap = Dlmalloc::new();
            assert!(heap.set_granularity(GRANULARITY), "a power of two");
            heap
        },
    ),
};

/// What is asked of the kernel at a time.
const GRANULARITY: usize = 256 << 10;

type Held = ManuallyDrop<MutexGuard<'static, ()>>;

thread_local! {
    /// The lock, while fork(2) copies the heap.
    static HELD: Cell<Option<Held>> = const { Cell::new(None) };

    /// Whether this thread has it there.
    static IS_HELD: Cell<bool> = const { Cell::new(false) };
}

impl Heap {
    fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<R>(&self, work: impl FnOnce(&mut Dlmalloc) -> R) -> R {
        let _whole = Whole::begin();
        let _guard = (!IS_HELD.get()).then(|| self.lock());
        // SAFETY: this thread has the lock, and nothing interrupts it here that would come here again.
        work(unsafe { &mut *self.heap.get() })
    }
}

/// Until [`after_fork`] no other thread changes the heap, of which a child gets a copy; this one may use it.
pub(crate) fn before_fork() {
    HELD.set(Some(ManuallyDrop::new(HEAP.lock())));
    IS_HELD.set(true);
}

/// In both processes.
pub(crate) fn after_fork() {
    IS_HELD.set(false);
    HELD.take().map(ManuallyDrop::into_inner);
}

// SAFETY: all is the heap's or of its own pages, which its size tells; the rest is the caller's promises.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if large::is(layout) {
            return large::alloc(layout.size());
        }
        // SAFETY: the caller's promise.
        self.with(|heap| unsafe { heap.malloc(layout.size(), layout.align()) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if large::is(layout) {
            return large::alloc(layout.size());
        }
        // SAFETY: the caller's promise.
        self.with(|heap| unsafe { heap.calloc(layout.size(), layout.align()) })
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller promises that the size is none that overflows with this alignment.
        let new = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        match (large::is(layout), large::is(new)) {
            // SAFETY: the caller's promise.
            (true, true) => unsafe { large::realloc(at, layout.size(), new_size) },
            (false, false) => self.with(|heap| {
                // SAFETY: the caller's promise.
                unsafe { heap.realloc(at, layout.size(), layout.align(), new_size) }
            }),
            // SAFETY: as above.
            _ => unsafe { self.move_to(at, layout, new) },
        }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        if large::is(layout) {
            // SAFETY: the caller's promise.
            return unsafe { large::dealloc(at, layout.size()) };
        }
        // SAFETY: the caller's promise.
        self.with(|heap| unsafe { heap.free(at, layout.size(), layout.align()) });
    }
}

impl Heap {
    /// # Safety
    /// As `GlobalAlloc::realloc`.
    unsafe fn move_to(&self, at: *mut u8, layout: Layout, new: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let found = unsafe { self.alloc(new) };
        if !found.is_null() {
            let size = layout.size().min(new.size());
            // SAFETY: both have that many bytes, and nothing else refers to the new ones.
            unsafe { core::ptr::copy_nonoverlapping(at, found, size) };
            // SAFETY: the caller's promise.
            unsafe { self.dealloc(at, layout) };
        }
        found
    }
}
