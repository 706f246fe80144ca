//! The keeper of this process's `millstream run`, as the process has it: a socket to ask it, and for each stack a channel whose end
//! tells it that the process has ended.

use crate::descriptors::{self, Entry};
use crate::stacks::COUNT_MAX;
use crate::{kernel_options, originals};
use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, Ordering};
use std::os::fd::{BorrowedFd, IntoRawFd, OwnedFd};

static SOCKET: AtomicI32 = AtomicI32::new(NONE);

/// One for each stack.
static MEMBERSHIPS: [AtomicI32; COUNT_MAX as usize] =
    [const { AtomicI32::new(NONE) }; COUNT_MAX as usize];

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

/// Programs that are started have it, whatever this one has said of all its descriptors.
pub(crate) fn stay_open() {
    if let Some(number) = number() {
        // SAFETY: the command takes a number.
        unsafe { originals::fcntl(number, libc::F_SETFD, 0) };
    }
}

/// Whether a number is that of a socket to a keeper: a program may have closed it for those that it starts, and they have something else there.
pub(crate) fn is_one(number: c_int) -> bool {
    let option = |name| kernel_options::number(number, libc::SOL_SOCKET, name);
    option(libc::SO_DOMAIN) == Some(libc::AF_UNIX)
        && option(libc::SO_TYPE) == Some(libc::SOCK_SEQPACKET)
}

/// The socket's number, if there is one.
pub(crate) fn number() -> Option<c_int> {
    let socket = SOCKET.load(Ordering::Relaxed);
    (socket != NONE).then_some(socket)
}

/// The keeper has admitted the stack of this number, which lives as long as this is open.
pub(crate) fn join(number: u8, membership: OwnedFd) -> BorrowedFd<'static> {
    let membership = membership.into_raw_fd();
    let place = &MEMBERSHIPS[usize::from(number % COUNT_MAX)];
    place.store(membership, Ordering::Relaxed);
    // SAFETY: the descriptor is open until the process is another one (`leave`): programs cannot close it.
    unsafe { BorrowedFd::borrow_raw(membership) }
}

/// By which the keeper tells the stack of this number what other processes pass to it.
pub(crate) fn membership(number: u8) -> Option<BorrowedFd<'static>> {
    let membership = MEMBERSHIPS[usize::from(number % COUNT_MAX)].load(Ordering::Relaxed);
    // SAFETY: as above.
    (membership != NONE).then(|| unsafe { BorrowedFd::borrow_raw(membership) })
}

/// In a child: the parent's memberships are not its own.
pub(crate) fn leave() {
    for place in &MEMBERSHIPS {
        let membership = place.swap(NONE, Ordering::Relaxed);
        if membership != NONE {
            // The program's next descriptor may have this number.
            descriptors::set(membership, Entry::Kernel);
            // SAFETY: the descriptor is this library's, and no value owns it.
            unsafe { originals::close(membership) };
        }
    }
}
