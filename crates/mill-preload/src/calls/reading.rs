//! Reading.

use crate::descriptors::{self, Entry};
use crate::memory::{output, places, transferred, values};
use crate::originals;
use crate::stack;
use crate::waiting;
use core::ffi::{c_int, c_uint, c_void};
use libc::{iovec, mmsghdr, msghdr, size_t, sockaddr, socklen_t, ssize_t, timespec};
use mill_sockets::errno::Errno;
use mill_sockets::slab::Number;

/// # Safety
/// As read(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn read(fd: c_int, into: *mut c_void, len: size_t) -> ssize_t {
    match descriptors::find(fd) {
        Entry::Stream(number) => {
            // SAFETY: the caller's promise.
            let into = unsafe { output(into, len) };
            transferred(receive(number, &mut [into], 0))
        }
        Entry::Lost => transferred(Err(Errno::NOT_CONNECTED)),
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
unsafe extern "C" fn recv(fd: c_int, into: *mut c_void, len: size_t, flags: c_int) -> ssize_t {
    match descriptors::find(fd) {
        Entry::Stream(number) => {
            // SAFETY: the caller's promise.
            let into = unsafe { output(into, len) };
            transferred(receive(number, &mut [into], flags))
        }
        Entry::Lost => transferred(Err(Errno::NOT_CONNECTED)),
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
unsafe extern "C" fn recvfrom(
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
unsafe extern "C" fn readv(fd: c_int, pieces: *const iovec, count: c_int) -> ssize_t {
    match descriptors::find(fd) {
        Entry::Stream(number) => {
            // SAFETY: the caller's promise.
            let mut pieces = unsafe { rooms(pieces, usize::try_from(count).unwrap_or(0)) };
            transferred(receive(number, &mut pieces, 0))
        }
        Entry::Lost => transferred(Err(Errno::NOT_CONNECTED)),
        // SAFETY: the caller's promise.
        _ => unsafe { originals::readv(fd, pieces, count) },
    }
}

/// # Safety
/// As recvmsg(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    match descriptors::find(fd) {
        Entry::Stream(number) => {
            // SAFETY: the caller's promise.
            let [message] = (unsafe { places(message, 1) }) else {
                return transferred(Err(Errno::FAULT));
            };
            // SAFETY: the caller's promise.
            let mut pieces = unsafe { rooms(message.msg_iov, message.msg_iovlen) };
            let received = receive(number, &mut pieces, flags);
            (
                message.msg_namelen,
                message.msg_controllen,
                message.msg_flags,
            ) = (0, 0, 0);
            transferred(received)
        }
        Entry::Lost => transferred(Err(Errno::NOT_CONNECTED)),
        // SAFETY: the caller's promise.
        _ => unsafe { originals::recvmsg(fd, message, flags) },
    }
}

/// # Safety
/// As recvmmsg(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn recvmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
    timeout: *mut timespec,
) -> c_int {
    if !matches!(descriptors::find(fd), Entry::Stream(_) | Entry::Lost) {
        // SAFETY: the caller's promise.
        return unsafe { originals::recvmmsg(fd, messages, count, flags, timeout) };
    }
    // SAFETY: the caller's promise.
    let messages = unsafe { places(messages, count as usize) };
    let mut flags = flags;
    for (index, message) in messages.iter_mut().enumerate() {
        // SAFETY: the caller's promise.
        let received = unsafe { recvmsg(fd, &raw mut message.msg_hdr, flags) };
        match c_uint::try_from(received) {
            // What came before is told; the error comes again with the next call.
            Err(_) if index > 0 => return c_int::try_from(index).unwrap_or(c_int::MAX),
            Err(_) => return -1,
            Ok(len) => message.msg_len = len,
        }
        if flags & libc::MSG_WAITFORONE != 0 {
            flags |= libc::MSG_DONTWAIT;
        }
    }
    c_int::try_from(messages.len()).unwrap_or(c_int::MAX)
}

/// As the C library: a buffer that is too small ends the program.
fn check_size(len: size_t, size: size_t) {
    if len > size {
        crate::say::say("a buffer would overflow: the program is ended");
        std::process::abort();
    }
}

/// # Safety
/// `count` pieces at the pointer, and what they point to, are as readv(2) says.
unsafe fn rooms<'a>(pieces: *const iovec, count: usize) -> Vec<&'a mut [u8]> {
    // SAFETY: the caller's promise.
    let pieces = unsafe { values(pieces, count) }.iter();
    // SAFETY: the caller's promise.
    pieces
        .map(|piece| unsafe { output(piece.iov_base, piece.iov_len) })
        .collect()
}

/// recv(2) on a stream of the stack, into several pieces.
fn receive(number: Number, into: &mut [&mut [u8]], flags: c_int) -> Result<usize, Errno> {
    if flags & libc::MSG_OOB != 0 {
        return Err(Errno::INVALID);
    }
    let wanted: usize = into.iter().map(|piece| piece.len()).sum();
    let least = if flags & libc::MSG_WAITALL != 0 {
        wanted
    } else {
        1
    };
    let is_peek = flags & libc::MSG_PEEK != 0;
    let mut filled = 0;
    let mut attempt = |stack: &mut stack::Stack| -> Option<Result<usize, Errno>> {
        let read = stack.sockets.read(number, |bytes| {
            let count = scatter(bytes, into, filled);
            let is_end = bytes.is_empty();
            (if is_peek { 0 } else { count }, (count, is_end))
        });
        match read.transpose()? {
            Ok((count, is_end)) => {
                filled = if is_peek { count } else { filled + count };
                (is_end || filled >= least || wanted == 0).then_some(Ok(filled))
            }
            // What came before is the program's; the error comes again with the next call.
            Err(_) if filled > 0 => Some(Ok(filled)),
            Err(errno) => Some(Err(errno)),
        }
    };
    if wanted == 0 && flags & libc::MSG_PEEK == 0 {
        return Ok(0);
    }
    let first = stack::on(|stack| {
        let options = stack.sockets.options(number)?;
        let waits = options.waits && flags & libc::MSG_DONTWAIT == 0;
        let timeout = options.receive_timeout;
        let found = attempt(stack).or_else(|| {
            // A program that only asks, and never polls, turns its stack so.
            stack.turn_now_and_then().then(|| attempt(stack)).flatten()
        });
        Ok((found, waits, timeout))
    })?;
    let (found, waits, timeout) = first;
    if let Some(found) = found {
        return found;
    }
    if !waits {
        return if filled > 0 {
            Ok(filled)
        } else {
            Err(Errno::AGAIN)
        };
    }
    let found = waiting::of_call(timeout, |stack, _, _| attempt(stack));
    match found {
        Ok(Some(found)) => found,
        _ if filled > 0 => Ok(filled),
        Ok(None) => Err(Errno::AGAIN),
        Err(errno) => Err(errno),
    }
}

/// Copies bytes into pieces of which `filled` bytes are full already; says how many.
fn scatter(bytes: &[u8], into: &mut [&mut [u8]], filled: usize) -> usize {
    let (mut skipped, mut copied) = (filled, 0);
    for piece in into {
        if skipped >= piece.len() {
            skipped -= piece.len();
            continue;
        }
        let room = &mut piece[core::mem::take(&mut skipped)..];
        let count = room.len().min(bytes.len() - copied);
        room[..count].copy_from_slice(&bytes[copied..copied + count]);
        copied += count;
        if copied == bytes.len() {
            break;
        }
    }
    copied
}
