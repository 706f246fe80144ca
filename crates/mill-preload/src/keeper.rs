//! The keeper of this process's `millstream run`, as the process has it: a socket to ask it, and a channel whose end tells it that
//! the process has ended.

use crate::descriptors::{self, Entry};
use crate::originals;
use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, Ordering};
use std::os::fd::{BorrowedFd, IntoRawFd, OwnedFd};

static SOCKET: AtomicI32 = AtomicI32::new(NONE);

static MEMBERSHIP: AtomicI32 = AtomicI32::new(NONE);

const NONE: c_int = -1;

/// The socket has this number; the program can't close it.
pub(crate) fn begin(socket: c_int) {
    SOCKET.store(socket, Ordering::Relaxed);
    descriptors::set(socket, Entry::Private);
}

/// The socket, of a process that has begun with one.
pub(crate) fn socket() -> BorrowedFd<'static> {
    let socket = SOCKET.load(Ordering::Relaxed);
    // SAFETY: the descriptor is open: programs cannot close it, and this library does not.
    unsafe { BorrowedFd::borrow_raw(socket) }
}

/// The keeper has admitted this process, which lives as long as this is open.
pub(crate) fn join(membership: OwnedFd) {
    MEMBERSHIP.store(membership.into_raw_fd(), Ordering::Relaxed);
}

/// In a child: the parent's membership is not its own.
pub(crate) fn leave() {
    let membership = MEMBERSHIP.swap(NONE, Ordering::Relaxed);
    if membership != NONE {
        // The program's next descriptor may have this number.
        descriptors::set(membership, Entry::Kernel);
        // SAFETY: the descriptor is this library's, and no value owns it.
        unsafe { originals::close(membership) };
    }
}
