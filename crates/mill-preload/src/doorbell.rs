//! What ends the sleep of a thread: each has one, which others ring.

use crate::descriptors::{self, Entry, own};
use crate::{originals, stacks};
use core::ffi::c_int;
use mill_sys::eventfd;
use std::os::fd::IntoRawFd;

thread_local! {
    static DOORBELL: Option<Doorbell> = Doorbell::new();
}

/// This thread's; `None` without a descriptor for it.
pub(crate) fn doorbell() -> Option<c_int> {
    DOORBELL.with(|doorbell| Some(doorbell.as_ref()?.0))
}

/// What ends a thread's sleep. Its number is the library's as long as the thread lives: another thread writes there.
struct Doorbell(c_int);

impl Doorbell {
    fn new() -> Option<Self> {
        let made = own::during(eventfd::create);
        Some(Self(made.ok()?.into_raw_fd()))
    }
}

impl Drop for Doorbell {
    fn drop(&mut self) {
        // A thread that was cancelled in its sleep is still listed.
        for number in stacks::made() {
            stacks::with_stack(number, |stack| stack.remove_sleeper(self.0));
        }
        descriptors::set(self.0, Entry::Kernel);
        // SAFETY: the descriptor is this value's, and programs cannot have closed it.
        unsafe { originals::close(self.0) };
    }
}
