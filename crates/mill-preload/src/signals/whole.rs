//! Parts of the library's work that no handler of the program may interrupt. One that forks, uses sockets or does not come back
//! (siglongjmp(3)) would find locks taken for ever, lists half changed, and the allocator in the midst of its own work: the functions
//! that stand for system calls are async-signal-safe (signal-safety(7)), also where the library allocates for them. What is not covered
//! is a handler that interrupts the program's own allocations, and has the library allocate.

use super::postponed;
use core::cell::Cell;
use core::sync::atomic::{Ordering, compiler_fence};

thread_local! {
    /// Such parts that this thread is in, one within the other.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Until it is dropped the handlers of this thread wait, which then run ([`postponed`]). Two additions, where none waits.
#[derive(Debug)]
pub(crate) struct Whole(());

impl Whole {
    #[inline]
    pub(crate) fn begin() -> Self {
        DEPTH.set(DEPTH.get() + 1);
        // A handler of this thread has to see it before anything else is done.
        compiler_fence(Ordering::SeqCst);
        Self(())
    }

    /// Whether handlers of this thread have to wait.
    pub(super) fn is_on() -> bool {
        DEPTH.get() > 0
    }
}

impl Drop for Whole {
    #[inline]
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        let depth = DEPTH.get() - 1;
        DEPTH.set(depth);
        // A handler may have come until now, which is looked for next.
        compiler_fence(Ordering::SeqCst);
        if depth == 0 {
            postponed::run();
        }
    }
}
