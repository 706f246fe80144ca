//! Descriptors in messages (unix(7), SCM_RIGHTS): a connection of the stack goes to the other process as a local socket (`lent.rs`), which the
//! library knows there (`borrowing.rs`).

use super::numbers::given;
use crate::borrowing;
use crate::descriptors::{self, Entry, own};
use crate::lent::Lent;
use crate::memory::{errno, input, values};
use crate::originals;
use core::ffi::c_int;
use libc::{cmsghdr, msghdr};
use mill_sockets::errno::Errno;

/// Whether a message passes connections of the stack on.
///
/// # Safety
/// `message` is null or as sendmsg(2) says.
pub(super) unsafe fn has_connections(message: *const msghdr) -> bool {
    let mut found = false;
    let mut look = |number| {
        found |= matches!(descriptors::find(number), Entry::Stream(_));
        number
    };
    // SAFETY: the caller's promise.
    unsafe { each(message, &mut look) };
    found
}

/// sendmsg(2) of a message that passes connections on.
///
/// # Safety
/// As sendmsg(2).
pub(super) unsafe fn pass(fd: c_int, message: *const msghdr, flags: c_int) -> Result<usize, Errno> {
    // SAFETY: the caller's promise.
    let [message] = (unsafe { values(message, 1) }) else {
        return Err(Errno::FAULT);
    };
    // SAFETY: the caller's promise.
    let control = unsafe { input(message.msg_control.cast(), message.msg_controllen) };
    // Headers are aligned as numbers of 64 bits.
    let mut copy = vec![0_u64; control.len().div_ceil(8)];
    let mut message = *message;
    message.msg_control = copy.as_mut_ptr().cast();
    // SAFETY: the copy has room for so many bytes, and is another piece of memory.
    unsafe {
        core::ptr::copy_nonoverlapping(control.as_ptr(), message.msg_control.cast(), control.len())
    };
    let mut lent = Lent::in_message();
    let mut failed = None;
    let mut exchange = |number| match lent.pass(number) {
        Ok(socket) => socket.unwrap_or(number),
        Err(errno) => {
            failed = Some(errno);
            number
        }
    };
    // SAFETY: the message is the caller's with a copy of its control bytes.
    unsafe { each(&raw const message, &mut exchange) };
    let sent = match failed {
        // SAFETY: as above.
        None => usize::try_from(unsafe { originals::sendmsg(fd, &raw const message, flags) })
            .map_err(|_| errno()),
        Some(errno) => Err(errno),
    };
    lent.end(sent.is_ok());
    sent
}

/// Notes the connections of other processes that have come by a message.
///
/// # Safety
/// `message` is as recvmsg(2) has left it.
pub(super) unsafe fn note(message: *const msghdr) {
    let mut look = |number| {
        borrowing::recognize(given(number));
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
    let end = message
        .msg_control
        .addr()
        .saturating_add(message.msg_controllen);
    // SAFETY: the message is as sendmsg(2) says.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !next.is_null() {
        // SAFETY: not null, so it is a header inside of the message's control bytes, which may lie at any address.
        let head = unsafe { next.read_unaligned() };
        // Otherwise the kernel says that it is none (`EINVAL`).
        let room = end.saturating_sub(next.addr());
        if !(size_of::<cmsghdr>()..=room).contains(&head.cmsg_len) {
            return;
        }
        // SAFETY: it is inside, with as many bytes as it says.
        unsafe { each_of(next, &head, change) };
        // SAFETY: as above.
        next = unsafe { libc::CMSG_NXTHDR(message, next) };
    }
}

/// # Safety
/// The header and its data, as long as it says, are inside of a message's control bytes.
unsafe fn each_of(header: *const cmsghdr, head: &cmsghdr, change: &mut dyn FnMut(c_int) -> c_int) {
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
