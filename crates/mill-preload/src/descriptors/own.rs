//! Descriptors that the library makes for itself. Their numbers are far above those of the program, which would otherwise get others
//! than it counts on (wrk has tables of as many descriptors as it needs); and programs that close all they know do not close them.

use super::{Entry, set};
use crate::originals;
use crate::signals::whole::Whole;
use core::cell::Cell;
use core::ffi::c_int;
use std::os::fd::{IntoRawFd, OwnedFd};

thread_local! {
    /// What this thread makes is the library's.
    static MAKING: Cell<bool> = const { Cell::new(false) };
}

/// Whether what this thread makes is the library's.
pub(crate) fn is_making() -> bool {
    MAKING.get()
}

/// Runs `make`, whose descriptors are the library's.
#[inline]
pub(crate) fn during<R>(make: impl FnOnce() -> R) -> R {
    let _whole = Whole::begin();
    let before = MAKING.replace(true);
    let made = make();
    MAKING.set(before);
    made
}

/// Runs a handler of the program, which may interrupt the library: what it makes is the program's.
pub(crate) fn not_during(handler: impl FnOnce()) {
    let before = MAKING.replace(false);
    handler();
    MAKING.set(before);
}

/// A descriptor was made, unless it is -1; returns the number that it has from now on.
#[inline]
pub(crate) fn note(descriptor: c_int) -> c_int {
    if descriptor < 0 || !is_making() {
        return descriptor;
    }
    let descriptor = raise(descriptor);
    set(descriptor, Entry::Private);
    descriptor
}

/// Closes a descriptor of the library.
pub(crate) fn close(descriptor: impl Into<OwnedFd>) {
    let descriptor = descriptor.into().into_raw_fd();
    // The program's next descriptor may have this number.
    set(descriptor, Entry::Kernel);
    // SAFETY: the call takes no pointer, and the descriptor had one owner.
    unsafe { originals::close(descriptor) };
}

/// Gives a descriptor a number above the program's, if the process may have one.
fn raise(descriptor: c_int) -> c_int {
    if descriptor >= LEAST {
        return descriptor;
    }
    let least = LEAST.unsigned_abs() as usize;
    // SAFETY: the command takes a number.
    let raised = unsafe { originals::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, least) };
    if raised == -1 {
        return descriptor;
    }
    // SAFETY: the call takes no pointer; the number was just made, and nothing else knows it.
    unsafe { originals::close(descriptor) };
    raised
}

/// As for the socket to the keeper (mill-keeper `launch.rs`).
const LEAST: c_int = 500;
