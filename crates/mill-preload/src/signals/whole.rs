//! Parts of the library's work that no handler of the program may interrupt. One that forks, uses sockets or does not come back
//! (siglongjmp(3)) would find locks taken for ever, lists half changed, and the allocator in the midst of its own work: the functions
//! that stand for system calls are async-signal-safe (signal-safety(7)), also where the library allocates for them, which it does from a
//! heap of its own.

use super::postponed;
use core::cell::Cell;
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering, compiler_fence};

/// The program cancels threads.
static CANCELS: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The cancellation state (pthread_setcancelstate(3)) from before the outermost part; where the program cancels no thread it is not asked for.
    static CANCEL_STATE: Cell<Option<c_int>> = const { Cell::new(None) };

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
        if CANCELS.load(Ordering::Relaxed) {
            forbid_cancellation();
        }
        Self(())
    }

    /// The thread sleeps, within such a part, and may be cancelled.
    pub(crate) fn permit_cancellation() {
        if let Some(before) = CANCEL_STATE.take() {
            set_cancel_state(before);
        }
    }

    /// It sleeps no more.
    pub(crate) fn end_permission() {
        if CANCELS.load(Ordering::Relaxed) && Self::is_on() {
            forbid_cancellation();
        }
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
            Self::permit_cancellation();
        }
    }
}

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

/// From now on no thread is cancelled in the midst of the library's work: it would leave locks taken.
pub(crate) fn begin_cancelling() {
    CANCELS.store(true, Ordering::SeqCst);
}

#[cold]
fn forbid_cancellation() {
    if CANCEL_STATE.get().is_none() {
        CANCEL_STATE.set(Some(set_cancel_state(PTHREAD_CANCEL_DISABLE)));
    }
}

fn set_cancel_state(state: c_int) -> c_int {
    let mut before = 0;
    // SAFETY: the pointer is to a local.
    unsafe { pthread_setcancelstate(state, &raw mut before) };
    before
}

/// pthread.h of the C library.
const PTHREAD_CANCEL_DISABLE: c_int = 1;
