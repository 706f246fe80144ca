//! Writing.

use crate::descriptors::{self, Entry};
use crate::memory::{input, places, returned_bytes, transferred, values};
use crate::originals;
use crate::stack::{self, Stack};
use crate::waiting;
use core::ffi::{c_int, c_uint, c_void};
use libc::{iovec, mmsghdr, msghdr, off_t, size_t, sockaddr, socklen_t, ssize_t};
use mill_sockets::errno::Errno;
use mill_sockets::slab::Number;
use mill_stack::queue::ByteQueue;

/// # Safety
/// As write(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn write(fd: c_int, bytes: *const c_void, len: size_t) -> ssize_t {
    match descriptors::find(fd) {
        // SAFETY: the caller's promise.
        Entry::Stream(number) => transferred(send_all(number, &[unsafe { input(bytes, len) }], 0)),
        Entry::Lost => transferred(Err(Errno::NOT_CONNECTED)),
        // SAFETY: the caller's promise.
        _ => unsafe { originals::write(fd, bytes, len) },
    }
}

/// # Safety
/// As send(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn send(fd: c_int, bytes: *const c_void, len: size_t, flags: c_int) -> ssize_t {
    match descriptors::find(fd) {
        Entry::Stream(number) => {
            // SAFETY: the caller's promise.
            transferred(send_all(number, &[unsafe { input(bytes, len) }], flags))
        }
        Entry::Lost => transferred(Err(Errno::NOT_CONNECTED)),
        // SAFETY: the caller's promise.
        _ => unsafe { originals::send(fd, bytes, len, flags) },
    }
}

/// # Safety
/// As sendto(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn sendto(
    fd: c_int,
    bytes: *const c_void,
    len: size_t,
    flags: c_int,
    to: *const sockaddr,
    to_len: socklen_t,
) -> ssize_t {
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
unsafe extern "C" fn writev(fd: c_int, pieces: *const iovec, count: c_int) -> ssize_t {
    match descriptors::find(fd) {
        Entry::Stream(number) => {
            // SAFETY: the caller's promise.
            let pieces = unsafe { pieces_of(pieces, usize::try_from(count).unwrap_or(0)) };
            transferred(send_all(number, &pieces, 0))
        }
        Entry::Lost => transferred(Err(Errno::NOT_CONNECTED)),
        // SAFETY: the caller's promise.
        _ => unsafe { originals::writev(fd, pieces, count) },
    }
}

/// # Safety
/// As sendmsg(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    match descriptors::find(fd) {
        Entry::Stream(number) => {
            // SAFETY: the caller's promise.
            let [message] = (unsafe { values(message, 1) }) else {
                return transferred(Err(Errno::FAULT));
            };
            // SAFETY: the caller's promise.
            let pieces = unsafe { pieces_of(message.msg_iov, message.msg_iovlen) };
            transferred(send_all(number, &pieces, flags))
        }
        Entry::Lost => transferred(Err(Errno::NOT_CONNECTED)),
        // SAFETY: the caller's promise.
        _ => unsafe { originals::sendmsg(fd, message, flags) },
    }
}

/// # Safety
/// As sendmmsg(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn sendmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
) -> c_int {
    if !matches!(descriptors::find(fd), Entry::Stream(_) | Entry::Lost) {
        // SAFETY: the caller's promise.
        return unsafe { originals::sendmmsg(fd, messages, count, flags) };
    }
    // SAFETY: the caller's promise.
    let messages = unsafe { places(messages, count as usize) };
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

/// # Safety
/// As sendfile(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn sendfile(
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
        Entry::Lost => transferred(Err(Errno::NOT_CONNECTED)),
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

/// # Safety
/// `count` pieces at the pointer, and what they point to, are as writev(2) says.
unsafe fn pieces_of<'a>(pieces: *const iovec, count: usize) -> Vec<&'a [u8]> {
    // SAFETY: the caller's promise.
    let pieces = unsafe { values(pieces, count) }.iter();
    // SAFETY: the caller's promise.
    pieces
        .map(|piece| unsafe { input(piece.iov_base, piece.iov_len) })
        .collect()
}

/// send(2) on a stream of the stack, of several pieces; a socket that waits sends all.
fn send_all(number: Number, pieces: &[&[u8]], flags: c_int) -> Result<usize, Errno> {
    let total: usize = pieces.iter().map(|piece| piece.len()).sum();
    let has_more = flags & libc::MSG_MORE != 0;
    let mut sent = 0;
    transfer(number, flags, total, &mut sent, |stack, sent| {
        stack.sockets.write(number, has_more, |queue, room| {
            gather(pieces, sent, room, queue)
        })
    })
}

/// Writes until `total` bytes are sent, or as much as there is room for where the socket does not wait.
fn transfer(
    number: Number,
    flags: c_int,
    total: usize,
    sent: &mut usize,
    mut write: impl FnMut(&mut Stack, usize) -> Result<Option<usize>, Errno>,
) -> Result<usize, Errno> {
    let mut attempt = |stack: &mut Stack| match write(stack, *sent).transpose()? {
        Ok(count) => {
            *sent += count;
            (*sent >= total || count == 0).then_some(Ok(*sent))
        }
        // What was sent is told; the error comes again with the next call.
        Err(_) if *sent > 0 => Some(Ok(*sent)),
        Err(errno) => Some(Err(errno)),
    };
    let first = stack::on(|stack| {
        let options = stack.sockets.options(number)?;
        let waits = options.waits && flags & libc::MSG_DONTWAIT == 0;
        let timeout = options.send_timeout;
        let found = attempt(stack);
        // A socket that waits may be read next, by a program that never polls.
        match waits {
            true => stack.sockets.flush(),
            false => stack.flush_now_and_then(),
        }
        Ok((found, waits, timeout))
    })?;
    let (found, waits, timeout) = first;
    let result = match found {
        Some(found) => found,
        None if !waits => Err(Errno::AGAIN),
        None => {
            let found = waiting::of_call(timeout, |stack, _, _| attempt(stack));
            found.and_then(|found| found.unwrap_or(Err(Errno::AGAIN)))
        }
    };
    let result = match result {
        Err(Errno::AGAIN | Errno::INTERRUPTED) if *sent > 0 => Ok(*sent),
        result => result,
    };
    if result == Err(Errno::BROKEN_PIPE) && flags & libc::MSG_NOSIGNAL == 0 {
        // SAFETY: raise(3) takes a number.
        unsafe { libc::raise(libc::SIGPIPE) };
    }
    result
}

/// Appends what is left of pieces of which `sent` bytes were sent, up to `room` bytes.
fn gather(pieces: &[&[u8]], sent: usize, room: usize, queue: &mut ByteQueue) -> usize {
    let (mut skipped, mut left) = (sent, room);
    for piece in pieces {
        if skipped >= piece.len() {
            skipped -= piece.len();
            continue;
        }
        let rest = &piece[core::mem::take(&mut skipped)..];
        let count = rest.len().min(left);
        queue.push(&rest[..count]);
        left -= count;
        if left == 0 {
            break;
        }
    }
    room - left
}

/// sendfile(2) into a stream of the stack: as much of the file as there is room for.
fn send_file(
    number: Number,
    from: c_int,
    offset: &mut [off_t],
    count: size_t,
) -> Result<usize, Errno> {
    let mut sent = 0;
    let mut failed = None;
    let result = transfer(number, 0, count, &mut sent, |stack, sent| {
        stack.sockets.write(number, false, |queue, room| {
            let wanted = (count - sent).min(room).min(FILE_BYTES);
            let read = queue.push_with(wanted, |room| read_file(from, offset, room));
            read.unwrap_or_else(|errno| {
                failed = Some(errno);
                0
            })
        })
    });
    match (failed, result) {
        (Some(errno), Ok(0)) => Err(errno),
        (_, result) => result,
    }
}

/// Reads the next bytes of a file, from where the offset says or the file is; says how many.
fn read_file(from: c_int, offset: &mut [off_t], room: &mut [u8]) -> Result<usize, Errno> {
    let (place, len) = (room.as_mut_ptr().cast(), room.len());
    let read = match offset {
        // SAFETY: the pointer is to so many bytes.
        [offset] => unsafe { originals::pread(from, place, len, *offset) },
        // SAFETY: as above.
        _ => unsafe { originals::read(from, place, len) },
    };
    let count = returned_bytes(read)?;
    if let [offset] = offset {
        *offset += off_t::try_from(count).unwrap_or(0);
    }
    Ok(count)
}

/// Bytes of a file that are read at once.
const FILE_BYTES: usize = 256 * 1024;
