//! pthread_cancel(3).

use crate::originals;
use crate::signals::whole;
use crate::stacks;
use core::ffi::c_int;

/// Waits until no thread is in the midst of the library's work, and has none be cancelled there from now on.
///
/// # Safety
/// As pthread_cancel(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_cancel(thread: libc::pthread_t) -> c_int {
    // SAFETY: the caller's promise.
    let cancel = || unsafe { originals::pthread_cancel(thread) };
    // SAFETY: the call has no conditions.
    let is_own = unsafe { libc::pthread_self() } == thread;
    if !stacks::is_offered() || stacks::is_inside() || is_own {
        return cancel();
    }
    whole::begin_cancelling();
    let _guards = stacks::lock_all();
    cancel()
}
