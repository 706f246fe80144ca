//! Reading.

use super::receiving::{Rooms, receive};
use super::rights;
use crate::descriptors::{self, Entry, own};
use crate::memory::{
    done, errno, message_flags, message_pieces, pieces_count, places, several, time_of,
    transferred, values,
};
use crate::originals;
use crate::process::lost;
use crate::stack::now;
use crate::stacks;
use core::ffi::{c_int, c_uint, c_void};
use libc::{iovec, mmsghdr, msghdr, off_t, size_t, sockaddr, socklen_t, ssize_t, timespec};
use mill_sockets::errno::Errno;
use mill_sockets::slab::Number;

/// # Safety
/// As read(2).
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn read(fd: c_int, into: *mut c_void, len: size_t) -> ssize_t {
    match descriptors::find(fd) {
        Entry::Stream(number) => {
            // SAFETY: the caller's promise.
            let mut rooms = unsafe { Rooms::one(into, len) };
            transferred(receive(number, &mut rooms, 0))
        }
        Entry::Lost => transferred(Err(lost())),
        // SAFETY: the caller's promise.
        _ => unsafe { originals::read(fd, into, len) },
    }
}

/// # Safety
/// As read(2), which compilers call so with the size of the buffer.
#[unsafe(no_mangle)]
unsafe extern "C" fn __read_chk(
    fd: c_int,
    into: *mut c_void,
    len: size_t,
    size: size_t,
) -> ssize_t {
    check_size(len, size);
    // SAFETY: the caller's promise.
    unsafe { read(fd, into, len) }
}

/// # Safety
/// As recv(2).
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn recv(
    fd: c_int,
    into: *mut c_void,
    len: size_t,
    flags: c_int,
) -> ssize_t {
    match descriptors::find(fd) {
        Entry::Stream(number) => {
            // SAFETY: the caller's promise.
            let mut rooms = unsafe { Rooms::one(into, len) };
            transferred(receive(number, &mut rooms, flags))
        }
        Entry::Lost => transferred(Err(lost())),
        // SAFETY: the caller's promise.
        _ => unsafe { originals::recv(fd, into, len, flags) },
    }
}

/// # Safety
/// As recv(2), which compilers call so with the size of the buffer.
#[unsafe(no_mangle)]
unsafe extern "C" fn __recv_chk(
    fd: c_int,
    into: *mut c_void,
    len: size_t,
    size: size_t,
    flags: c_int,
) -> ssize_t {
    check_size(len, size);
    // SAFETY: the caller's promise.
    unsafe { recv(fd, into, len, flags) }
}

/// # Safety
/// As recvfrom(2).
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn recvfrom(
    fd: c_int,
    into: *mut c_void,
    len: size_t,
    flags: c_int,
    from: *mut sockaddr,
    from_len: *mut socklen_t,
) -> ssize_t {
    match descriptors::find(fd) {
        // A stream tells no address.
        Entry::Stream(_) | Entry::Lost => {
            // SAFETY: the caller's promise.
            if let [len] = unsafe { places(from_len, 1) } {
                *len = 0;
            }
            // SAFETY: the caller's promise.
            unsafe { recv(fd, into, len, flags) }
        }
        // SAFETY: the caller's promise.
        _ => unsafe { originals::recvfrom(fd, into, len, flags, from, from_len) },
    }
}

/// # Safety
/// As recvfrom(2), which compilers call so with the size of the buffer.
#[unsafe(no_mangle)]
unsafe extern "C" fn __recvfrom_chk(
    fd: c_int,
    into: *mut c_void,
    len: size_t,
    size: size_t,
    flags: c_int,
    from: *mut sockaddr,
    from_len: *mut socklen_t,
) -> ssize_t {
    check_size(len, size);
    // SAFETY: the caller's promise.
    unsafe { recvfrom(fd, into, len, flags, from, from_len) }
}

/// # Safety
/// As readv(2).
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn readv(fd: c_int, pieces: *const iovec, count: c_int) -> ssize_t {
    match descriptors::find(fd) {
        // SAFETY: the caller's promise.
        Entry::Stream(number) => unsafe { read_pieces(number, pieces, count, 0) },
        Entry::Lost => transferred(Err(lost())),
        // SAFETY: the caller's promise.
        _ => unsafe { originals::readv(fd, pieces, count) },
    }
}

/// Without a position it is as readv(2), with flags.
///
/// # Safety
/// As preadv2(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn preadv2(
    fd: c_int,
    pieces: *const iovec,
    count: c_int,
    offset: off_t,
    flags: c_int,
) -> ssize_t {
    match (descriptors::find(fd), offset, message_flags(flags)) {
        (Entry::Stream(number), -1, Ok(flags)) => {
            // SAFETY: the caller's promise.
            unsafe { read_pieces(number, pieces, count, flags) }
        }
        (Entry::Stream(_), -1, Err(errno)) => transferred(Err(errno)),
        (Entry::Lost, -1, _) => transferred(Err(lost())),
        // SAFETY: the caller's promise. A connection has no position, as the placeholder says.
        _ => unsafe { originals::preadv2(fd, pieces, count, offset, flags) },
    }
}

/// # Safety
/// As preadv2(2): off_t has 64 bits here.
#[unsafe(no_mangle)]
unsafe extern "C" fn preadv64v2(
    fd: c_int,
    pieces: *const iovec,
    count: c_int,
    offset: off_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe { preadv2(fd, pieces, count, offset, flags) }
}

/// # Safety
/// As readv(2).
unsafe fn read_pieces(number: Number, pieces: *const iovec, count: c_int, flags: c_int) -> ssize_t {
    let count = pieces_count(count);
    // SAFETY: the caller's promise.
    let rooms = count.and_then(|count| unsafe { Rooms::of(pieces, count) });
    transferred(rooms.and_then(|mut rooms| match rooms.wanted {
        0 => Ok(0),
        _ => receive(number, &mut rooms, flags),
    }))
}

/// # Safety
/// As recvmsg(2).
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    match descriptors::find(fd) {
        Entry::Stream(number) => {
            // SAFETY: the caller's promise.
            let [message] = (unsafe { places(message, 1) }) else {
                return transferred(Err(Errno::FAULT));
            };
            let count = message_pieces(message.msg_iovlen);
            // SAFETY: the caller's promise.
            let rooms = count.and_then(|count| unsafe { Rooms::of(message.msg_iov, count) });
            let received = rooms.and_then(|mut rooms| receive(number, &mut rooms, flags));
            if received.is_err() {
                return transferred(received);
            }
            (
                message.msg_namelen,
                message.msg_controllen,
                message.msg_flags,
            ) = (0, 0, 0);
            transferred(received)
        }
        Entry::Lost => transferred(Err(lost())),
        _ => {
            // SAFETY: the caller's promise.
            let received = unsafe { originals::recvmsg(fd, message, flags) };
            match received {
                ..0 => {}
                // SAFETY: the call has filled it.
                _ if own::is_making() => unsafe { rights::note_own(message) },
                // SAFETY: as above.
                _ => unsafe { rights::note(message) },
            }
            received
        }
    }
}

/// # Safety
/// As recvmmsg(2).
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn recvmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
    timeout: *mut timespec,
) -> c_int {
    if !matches!(descriptors::find(fd), Entry::Stream(_) | Entry::Lost) {
        // SAFETY: the caller's promise.
        let received = unsafe { originals::recvmmsg(fd, messages, count, flags, timeout) };
        // SAFETY: the caller's promise; so many were filled.
        let filled = unsafe { values(messages, usize::try_from(received).unwrap_or(0)) };
        for message in filled {
            // SAFETY: the call has filled it.
            unsafe { rights::note(&raw const message.msg_hdr) };
        }
        return received;
    }
    // SAFETY: the caller's promise.
    let deadline = match unsafe { timeout.as_ref() }.map(time_of).transpose() {
        Ok(timeout) => timeout.map(|timeout| now() + timeout),
        Err(errno) => return done(Err(errno)),
    };
    // SAFETY: the caller's promise.
    let messages = match unsafe { several(messages, count) } {
        Ok(messages) => messages,
        Err(errno) => return done(Err(errno)),
    };
    if let Err(errno) = take_error(fd) {
        return done(Err(errno));
    }
    let mut flags = flags;
    for (index, message) in messages.iter_mut().enumerate() {
        // SAFETY: the caller's promise.
        let received = unsafe { recvmsg(fd, &raw mut message.msg_hdr, flags) };
        match c_uint::try_from(received) {
            // What came before is told; the error comes again with the next call.
            Err(_) if index > 0 => {
                keep(fd, errno());
                return c_int::try_from(index).unwrap_or(c_int::MAX);
            }
            Err(_) => return -1,
            Ok(len) => message.msg_len = len,
        }
        // As Linux, which looks at the time after each message only.
        if deadline.is_some_and(|deadline| now() >= deadline) {
            return c_int::try_from(index + 1).unwrap_or(c_int::MAX);
        }
        if flags & libc::MSG_WAITFORONE != 0 {
            flags |= libc::MSG_DONTWAIT;
        }
    }
    c_int::try_from(messages.len()).unwrap_or(c_int::MAX)
}

/// As Linux, which tells an error before any message.
fn take_error(fd: c_int) -> Result<(), Errno> {
    let Entry::Stream(number) = descriptors::find(fd) else {
        return Ok(());
    };
    match stacks::on(number, |stack| stack.sockets.take_error(number))? {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// The next call on a stream of the stack tells this error.
fn keep(fd: c_int, error: Errno) {
    if let Entry::Stream(number) = descriptors::find(fd)
        && error != Errno::AGAIN
    {
        stacks::with(number, |stack| stack.sockets.keep_error(number, error));
    }
}

/// As the C library: a buffer that is too small ends the program.
fn check_size(len: size_t, size: size_t) {
    if len > size {
        crate::say::say("a buffer would overflow: the program is ended");
        std::process::abort();
    }
}
