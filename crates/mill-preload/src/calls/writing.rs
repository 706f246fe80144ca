//! Writing.

use super::connections::{connect_to_send, is_stacks};
use super::rights;
use super::sending::{Pieces, send_all, send_file};
use crate::descriptors::{self, Entry};
use crate::memory::{
    done, message_flags, message_pieces, pieces_count, places, several, transferred, values,
};
use crate::originals;
use crate::process::lost;
use core::ffi::{c_int, c_uint, c_void};
use libc::{iovec, mmsghdr, msghdr, off_t, size_t, sockaddr, socklen_t, ssize_t};
use mill_sockets::errno::Errno;
use mill_sockets::slab::Number;

/// # Safety
/// As write(2).
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn write(fd: c_int, bytes: *const c_void, len: size_t) -> ssize_t {
    match descriptors::find(fd) {
        Entry::Stream(number) => {
            // SAFETY: the caller's promise.
            transferred(send_all(number, &unsafe { Pieces::one(bytes, len) }, 0))
        }
        Entry::Lost => transferred(Err(lost())),
        // SAFETY: the caller's promise.
        _ => unsafe { originals::write(fd, bytes, len) },
    }
}

/// # Safety
/// As send(2).
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn send(
    fd: c_int,
    bytes: *const c_void,
    len: size_t,
    flags: c_int,
) -> ssize_t {
    match descriptors::find(fd) {
        Entry::Stream(_) if flags & libc::MSG_FASTOPEN != 0 => {
            // SAFETY: the caller's promise. Without an address, only a socket that connects goes on.
            unsafe { sendto(fd, bytes, len, flags, core::ptr::null(), 0) }
        }
        Entry::Stream(number) => {
            // SAFETY: the caller's promise.
            transferred(send_all(number, &unsafe { Pieces::one(bytes, len) }, flags))
        }
        Entry::Lost => transferred(Err(lost())),
        // SAFETY: the caller's promise.
        _ => unsafe { originals::send(fd, bytes, len, flags) },
    }
}

/// # Safety
/// As sendto(2).
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn sendto(
    fd: c_int,
    bytes: *const c_void,
    len: size_t,
    flags: c_int,
    to: *const sockaddr,
    to_len: socklen_t,
) -> ssize_t {
    // SAFETY: the caller's promise.
    if flags & libc::MSG_FASTOPEN != 0 && unsafe { is_stacks(fd, to, to_len) } {
        // SAFETY: as above.
        let connected = unsafe { connect_to_send(fd, to, to_len) };
        return match connected {
            // SAFETY: as above.
            Ok(_) => unsafe { send(fd, bytes, len, flags & !libc::MSG_FASTOPEN) },
            Err(errno) => transferred(Err(errno)),
        };
    }
    match descriptors::find(fd) {
        // A stream has one target: Linux does not look at the address.
        // SAFETY: the caller's promise.
        Entry::Stream(_) | Entry::Lost => unsafe { send(fd, bytes, len, flags) },
        // SAFETY: the caller's promise.
        _ => unsafe { originals::sendto(fd, bytes, len, flags, to, to_len) },
    }
}

/// # Safety
/// As writev(2).
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn writev(fd: c_int, pieces: *const iovec, count: c_int) -> ssize_t {
    match descriptors::find(fd) {
        // SAFETY: the caller's promise.
        Entry::Stream(number) => unsafe { write_pieces(number, pieces, count, 0) },
        Entry::Lost => transferred(Err(lost())),
        // SAFETY: the caller's promise.
        _ => unsafe { originals::writev(fd, pieces, count) },
    }
}

/// Without a position it is as writev(2), with flags.
///
/// # Safety
/// As pwritev2(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn pwritev2(
    fd: c_int,
    pieces: *const iovec,
    count: c_int,
    offset: off_t,
    flags: c_int,
) -> ssize_t {
    match (descriptors::find(fd), offset, message_flags(flags)) {
        (Entry::Stream(number), -1, Ok(flags)) => {
            // SAFETY: the caller's promise.
            unsafe { write_pieces(number, pieces, count, flags) }
        }
        (Entry::Stream(_), -1, Err(errno)) => transferred(Err(errno)),
        (Entry::Lost, -1, _) => transferred(Err(lost())),
        // SAFETY: the caller's promise. A connection has no position, as the placeholder says.
        _ => unsafe { originals::pwritev2(fd, pieces, count, offset, flags) },
    }
}

/// # Safety
/// As pwritev2(2): off_t has 64 bits here.
#[unsafe(no_mangle)]
unsafe extern "C" fn pwritev64v2(
    fd: c_int,
    pieces: *const iovec,
    count: c_int,
    offset: off_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe { pwritev2(fd, pieces, count, offset, flags) }
}

/// # Safety
/// As writev(2).
unsafe fn write_pieces(
    number: Number,
    pieces: *const iovec,
    count: c_int,
    flags: c_int,
) -> ssize_t {
    let count = pieces_count(count);
    // SAFETY: the caller's promise.
    let pieces = count.and_then(|count| unsafe { Pieces::of(pieces, count) });
    transferred(pieces.and_then(|pieces| match pieces.wanted {
        0 => Ok(0),
        _ => send_all(number, &pieces, flags),
    }))
}

/// # Safety
/// As sendmsg(2).
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn sendmsg(
    fd: c_int,
    message: *const msghdr,
    flags: c_int,
) -> ssize_t {
    if flags & libc::MSG_FASTOPEN != 0
        // SAFETY: the caller's promise.
        && let [message] = unsafe { values(message, 1) }
        // SAFETY: as above.
        && unsafe { is_stacks(fd, message.msg_name.cast(), message.msg_namelen) }
    {
        // SAFETY: as above.
        let connected =
            unsafe { connect_to_send(fd, message.msg_name.cast(), message.msg_namelen) };
        return match connected {
            // SAFETY: as above.
            Ok(_) => unsafe { sendmsg(fd, message, flags & !libc::MSG_FASTOPEN) },
            Err(errno) => transferred(Err(errno)),
        };
    }
    match descriptors::find(fd) {
        Entry::Stream(number) => {
            // SAFETY: the caller's promise.
            let [message] = (unsafe { values(message, 1) }) else {
                return transferred(Err(Errno::FAULT));
            };
            let count = message_pieces(message.msg_iovlen);
            // SAFETY: the caller's promise.
            let pieces = count.and_then(|count| unsafe { Pieces::of(message.msg_iov, count) });
            transferred(pieces.and_then(|pieces| send_all(number, &pieces, flags)))
        }
        Entry::Lost => transferred(Err(lost())),
        // SAFETY: the caller's promise.
        _ if unsafe { rights::has_connections(message) } => {
            // SAFETY: as above.
            transferred(unsafe { rights::pass(fd, message, flags) })
        }
        // SAFETY: the caller's promise.
        _ => unsafe { originals::sendmsg(fd, message, flags) },
    }
}

/// # Safety
/// As sendmmsg(2).
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn sendmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
) -> c_int {
    let may_open = flags & libc::MSG_FASTOPEN != 0;
    let is_ours = may_open || matches!(descriptors::find(fd), Entry::Stream(_) | Entry::Lost);
    // SAFETY: the caller's promise.
    if !is_ours && !unsafe { pass_connections(messages, count) } {
        // SAFETY: the caller's promise.
        return unsafe { originals::sendmmsg(fd, messages, count, flags) };
    }
    // SAFETY: the caller's promise.
    let messages = match unsafe { several(messages, count) } {
        Ok(messages) => messages,
        Err(errno) => return done(Err(errno)),
    };
    for (index, message) in messages.iter_mut().enumerate() {
        // SAFETY: the caller's promise.
        let sent = unsafe { sendmsg(fd, &raw const message.msg_hdr, flags) };
        match c_uint::try_from(sent) {
            // What was sent is told; the error comes again with the next call.
            Err(_) if index > 0 => return c_int::try_from(index).unwrap_or(c_int::MAX),
            Err(_) => return -1,
            Ok(len) => message.msg_len = len,
        }
    }
    c_int::try_from(messages.len()).unwrap_or(c_int::MAX)
}

/// As many as the kernel takes at a time (`UIO_MAXIOV`).
const MESSAGES_MAX: usize = 1024;

/// Whether one of several messages passes connections of the stack on.
///
/// # Safety
/// As sendmmsg(2).
unsafe fn pass_connections(messages: *mut mmsghdr, count: c_uint) -> bool {
    // SAFETY: the caller's promise.
    let messages = unsafe { values(messages.cast_const(), (count as usize).min(MESSAGES_MAX)) };
    let mut messages = messages.iter();
    // SAFETY: the caller's promise.
    messages.any(|message| unsafe { rights::has_connections(&raw const message.msg_hdr) })
}

/// # Safety
/// As sendfile(2).
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn sendfile(
    to: c_int,
    from: c_int,
    offset: *mut off_t,
    count: size_t,
) -> ssize_t {
    match descriptors::find(to) {
        Entry::Stream(number) => {
            // SAFETY: the caller's promise.
            let offset = unsafe { places(offset, 1) };
            transferred(send_file(number, from, offset, count))
        }
        Entry::Lost => transferred(Err(lost())),
        // SAFETY: the caller's promise.
        _ => unsafe { originals::sendfile(to, from, offset, count) },
    }
}

/// # Safety
/// As sendfile(2): off_t has 64 bits here.
#[unsafe(no_mangle)]
unsafe extern "C" fn sendfile64(
    to: c_int,
    from: c_int,
    offset: *mut off_t,
    count: size_t,
) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe { sendfile(to, from, offset, count) }
}
