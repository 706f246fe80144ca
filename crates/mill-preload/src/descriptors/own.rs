//! Descriptors that the library makes for itself while it makes a stack: programs that close all they know do not close them.

use super::{Entry, set};
use core::cell::Cell;
use core::ffi::c_int;

thread_local! {
    /// What this thread makes is the library's.
    static MAKING: Cell<bool> = const { Cell::new(false) };
}

/// Whether what this thread makes is the library's.
pub(crate) fn is_making() -> bool {
    MAKING.get()
}

/// Runs `make`, whose descriptors are the library's.
pub(crate) fn during<R>(make: impl FnOnce() -> R) -> R {
    MAKING.set(true);
    let made = make();
    MAKING.set(false);
    made
}

/// A descriptor was made, unless it is -1; returns it.
pub(crate) fn note(descriptor: c_int) -> c_int {
    if descriptor >= 0 && is_making() {
        set(descriptor, Entry::Private);
    }
    descriptor
}
