//! Descriptors in messages (unix(7), SCM_RIGHTS): those of connections of the stack would arrive as sockets without connection.

use crate::descriptors::{self, Entry, own};
use crate::memory::values;
use crate::say::say;
use core::ffi::c_int;
use libc::{cmsghdr, msghdr};
use std::sync::Once;

/// Whether a message passes a connection of the stack on; said once.
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
    if found {
        SAID.call_once(|| {
            say(
                "a connection of the stack can't be passed to another process (SCM_RIGHTS): sendmsg() fails with EOPNOTSUPP",
            );
        });
    }
    found
}

static SAID: Once = Once::new();

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
