//! Descriptors in messages (unix(7), SCM_RIGHTS): a connection of the stack goes to the other process as a local socket (`lent.rs`), which the
//! library knows there (`borrowing.rs`).

use crate::borrowing;
use crate::descriptors::{self, Entry, own};
use crate::lent::Lent;
use crate::memory::{errno, values};
use crate::originals;
use core::ffi::c_int;
use libc::{cmsghdr, msghdr};
use mill_sockets::errno::Errno;

/// The connections of the stack that a message passes on.
///
/// # Safety
/// `message` is null or as sendmsg(2) says.
pub(super) unsafe fn connections(message: *const msghdr) -> Vec<c_int> {
    let mut found = Vec::new();
    let mut look = |number| {
        if matches!(descriptors::find(number), Entry::Stream(_)) {
            found.push(number);
        }
        number
    };
    // SAFETY: the caller's promise.
    unsafe { each(message, &mut look) };
    found
}

/// sendmsg(2) of a message that passes these on. It does not wait while their descriptors are local sockets.
///
/// # Safety
/// As sendmsg(2).
pub(super) unsafe fn pass(
    fd: c_int,
    message: *const msghdr,
    flags: c_int,
    connections: &[c_int],
) -> Result<usize, Errno> {
    loop {
        let mut lent = Lent::begin();
        let are_lent = connections
            .iter()
            .all(|connection| lent.lend(*connection, *connection).is_some());
        if !are_lent {
            lent.end(false);
            return Err(Errno::NO_DESCRIPTOR);
        }
        // SAFETY: the caller's promise.
        let sent = unsafe { originals::sendmsg(fd, message, flags | libc::MSG_DONTWAIT) };
        let sent = usize::try_from(sent).map_err(|_| errno());
        lent.end(sent.is_ok());
        match sent {
            Err(Errno::AGAIN) if waits(fd, flags) => wait_for_room(fd)?,
            sent => return sent,
        }
    }
}

fn waits(fd: c_int, flags: c_int) -> bool {
    // SAFETY: the command takes no argument.
    let status = unsafe { originals::fcntl(fd, libc::F_GETFL, 0) };
    status & libc::O_NONBLOCK == 0 && flags & libc::MSG_DONTWAIT == 0
}

fn wait_for_room(fd: c_int) -> Result<(), Errno> {
    let mut polled = libc::pollfd {
        fd,
        events: libc::POLLOUT,
        revents: 0,
    };
    // SAFETY: the pointer is to a local, of which there is one.
    match unsafe { originals::poll(&raw mut polled, 1, -1) } {
        -1 => Err(errno()),
        _ => Ok(()),
    }
}

/// Notes the connections of other processes that have come by a message.
///
/// # Safety
/// `message` is as recvmsg(2) has left it.
pub(super) unsafe fn note(message: *const msghdr) {
    let mut look = |number| {
        borrowing::recognize(number);
        number
    };
    // SAFETY: the caller's promise.
    unsafe { each(message, &mut look) };
}

/// Notes the descriptors of a message that has come for this library, and gives them the numbers that they have then.
///
/// # Safety
/// `message` is as recvmsg(2) has left it.
pub(super) unsafe fn note_own(message: *const msghdr) {
    // SAFETY: the caller's promise.
    unsafe { each(message, &mut own::note) };
}

/// Has `change` say which number stands in a message for each of its descriptors.
///
/// # Safety
/// `message` is null or as sendmsg(2) says.
unsafe fn each(message: *const msghdr, change: &mut dyn FnMut(c_int) -> c_int) {
    // SAFETY: the caller's promise.
    let Some(message) = (unsafe { values(message, 1) }).first() else {
        return;
    };
    if message.msg_controllen == 0 {
        return;
    }
    // SAFETY: the message is as sendmsg(2) says.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !next.is_null() {
        // SAFETY: not null, so it is a header inside of the message's control bytes.
        unsafe { each_of(next, change) };
        // SAFETY: as above.
        next = unsafe { libc::CMSG_NXTHDR(message, next) };
    }
}

/// # Safety
/// The header and its data are inside of a message's control bytes.
unsafe fn each_of(header: *const cmsghdr, change: &mut dyn FnMut(c_int) -> c_int) {
    // SAFETY: the caller's promise; headers may lie at any address.
    let head = unsafe { header.read_unaligned() };
    if head.cmsg_level != libc::SOL_SOCKET || head.cmsg_type != libc::SCM_RIGHTS {
        return;
    }
    // SAFETY: the function computes a size.
    let before = unsafe { libc::CMSG_LEN(0) } as usize;
    let count = head.cmsg_len.saturating_sub(before) / size_of::<c_int>();
    // SAFETY: the data follow the header.
    let data = unsafe { libc::CMSG_DATA(header) }.cast::<c_int>();
    for place in 0..count {
        // SAFETY: `count` numbers are there.
        let place = unsafe { data.add(place) };
        // SAFETY: as above; they may lie at any address.
        let number = unsafe { place.read_unaligned() };
        let changed = change(number);
        if changed != number {
            // SAFETY: as above; the message is the library's own.
            unsafe { place.write_unaligned(changed) };
        }
    }
}
