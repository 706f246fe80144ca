//! The library's memory is of a heap of its own, so that a handler of the program may interrupt the program's allocator and use sockets
//! all the same, and a process that is about to end may still work (`signals/ending.rs`). Handlers wait while their thread is in this heap.

use crate::signals::whole::Whole;
use core::cell::{Cell, UnsafeCell};
use core::mem::ManuallyDrop;
use dlmalloc::Dlmalloc;
use std::alloc::{GlobalAlloc, Layout};
use std::sync::{Mutex, MutexGuard, PoisonError};

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

// SAFETY: all is the heap's, with the caller's promises.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        self.with(|heap| unsafe { heap.malloc(layout.size(), layout.align()) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        self.with(|heap| unsafe { heap.calloc(layout.size(), layout.align()) })
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        self.with(|heap| unsafe { heap.realloc(at, layout.size(), layout.align(), new_size) })
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        self.with(|heap| unsafe { heap.free(at, layout.size(), layout.align()) });
    }
}
