//! send(2) and sendfile(2) on a stream of the stack.

use super::connections::wait_for_handshake;
use crate::memory::{LEN_MAX, input, returned_bytes, total, values};
use crate::originals;
use crate::say::say;
use crate::signals::Handled;
use crate::stack::Stack;
use crate::{stacks, waiting};
use core::ffi::{c_int, c_void};
use libc::{iovec, off_t, size_t};
use mill_sockets::errno::Errno;
use mill_sockets::slab::Number;
use mill_stack::queue::ByteQueue;
use mill_tcp::time::Duration;
use smallvec::{SmallVec, smallvec};
use std::sync::Once;

/// What a caller wants to send.
#[derive(Debug)]
pub(super) struct Pieces<'a> {
    pieces: SmallVec<[&'a [u8]; 4]>,
    /// Bytes, also where the pointer is null.
    pub(super) wanted: usize,
}

impl Pieces<'_> {
    /// # Safety
    /// As write(2).
    pub(super) unsafe fn one(bytes: *const c_void, len: size_t) -> Self {
        let wanted = len.min(LEN_MAX);
        // SAFETY: the caller's promise.
        let pieces = smallvec![unsafe { input(bytes, wanted) }];
        Self { pieces, wanted }
    }

    /// # Safety
    /// `count` pieces at the pointer, and what they point to, are as writev(2) says.
    pub(super) unsafe fn of(pieces: *const iovec, count: usize) -> Result<Self, Errno> {
        // SAFETY: the caller's promise.
        let pieces = unsafe { values(pieces, count) };
        let wanted = total(pieces, count)?;
        let mut left = wanted;
        let pieces = pieces.iter().map(|piece| {
            let len = piece.iov_len.min(left);
            left -= len;
            // SAFETY: the caller's promise.
            unsafe { input(piece.iov_base, len) }
        });
        let pieces = pieces.collect();
        Ok(Self { pieces, wanted })
    }
}

/// send(2) of several pieces; a socket that waits sends all.
pub(super) fn send_all(number: Number, what: &Pieces<'_>, flags: c_int) -> Result<usize, Errno> {
    if flags & libc::MSG_OOB != 0 {
        return Err(without_urgent_data());
    }
    let pieces = &what.pieces;
    let total: usize = pieces.iter().map(|piece| piece.len()).sum();
    let is_lost = total < what.wanted;
    let has_more = flags & libc::MSG_MORE != 0;
    let mut sent = 0;
    let mut failed = None;
    let result = transfer(number, flags, total, &mut sent, |stack, sent| {
        stack.sockets.write(number, has_more, |queue, room| {
            if is_lost {
                // A pointer is null.
                failed = Some(Errno::FAULT);
                return 0;
            }
            gather(pieces, sent, room, queue)
        })
    });
    failed.map_or(result, Err)
}

/// As of a kernel without them; said once. Among the other bytes they would be taken for such.
#[cold]
fn without_urgent_data() -> Errno {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        say("the stack has no out-of-band data (MSG_OOB): sending it fails with EOPNOTSUPP");
    });
    Errno::NOT_SUPPORTED
}

/// Writes until `total` bytes are sent, or as much as there is room for where the socket does not wait.
fn transfer(
    number: Number,
    flags: c_int,
    total: usize,
    sent: &mut usize,
    mut write: impl FnMut(&mut Stack, usize) -> Result<Option<usize>, Errno>,
) -> Result<usize, Errno> {
    let handled = Handled::by_this_thread();
    let mut attempt = |stack: &mut Stack| {
        // What was sent is told; the error comes with the next call.
        if *sent > 0 && stack.sockets.has_error(number) {
            return Some(Ok(*sent));
        }
        match write(stack, *sent).transpose()? {
            Ok(count) => {
                *sent += count;
                (*sent >= total || count == 0).then_some(Ok(*sent))
            }
            Err(_) if *sent > 0 => Some(Ok(*sent)),
            Err(errno) => Some(Err(errno)),
        }
    };
    let first = stacks::on(number, |stack| {
        let options = stack.sockets.options(number)?;
        let waits = options.waits && flags & libc::MSG_DONTWAIT == 0;
        let timeout = options.send_timeout;
        let opens = options.listen.each.fast_open && stack.sockets.is_deferred(number);
        stack.settle_loans();
        let found = attempt(stack);
        // A socket that waits may be read next, by a program that never polls.
        match waits {
            true => stack.sockets.flush(),
            false => stack.flush_now_and_then(),
        }
        Ok((found, waits, timeout, opens))
    })?;
    let (found, waits, timeout, opens) = first;
    let opened = match opens {
        true => opened((number, handled), waits, &found),
        false => Ok(()),
    };
    let result = match (opened, found) {
        (Err(errno), _) => Err(errno),
        (_, Some(found)) => found,
        (_, None) if !waits => Err(Errno::AGAIN),
        (_, None) => wait((number, handled), timeout, &mut attempt),
    };
    let result = match result {
        Err(Errno::AGAIN | Errno::IN_PROGRESS | Errno::INTERRUPTED) if *sent > 0 => Ok(*sent),
        result => result,
    };
    if result == Err(Errno::BROKEN_PIPE) && flags & libc::MSG_NOSIGNAL == 0 {
        // SAFETY: raise(3) takes a number.
        unsafe { libc::raise(libc::SIGPIPE) };
    }
    result
}

/// The first bytes have begun the connection: a call that waits does so for its handshake.
#[cold]
fn opened(
    call: (Number, Handled),
    waits: bool,
    found: &Option<Result<usize, Errno>>,
) -> Result<(), Errno> {
    match found {
        // That they can't is the answer.
        Some(Err(_)) => Ok(()),
        Some(Ok(0)) if !waits => Err(Errno::IN_PROGRESS),
        _ if !waits => Ok(()),
        _ => wait_for_handshake(call, Errno::IN_PROGRESS).map(|_| ()),
    }
}

/// Waits for room. A call that has sent something is not begun anew.
fn wait(
    (number, mut handled): (Number, Handled),
    timeout: Option<Duration>,
    attempt: &mut impl FnMut(&mut Stack) -> Option<Result<usize, Errno>>,
) -> Result<usize, Errno> {
    loop {
        let found = waiting::of_call(number, timeout, handled, &mut *attempt);
        if !waiting::is_restarted(&found, &mut handled, timeout) {
            return found?.unwrap_or(Err(Errno::AGAIN));
        }
    }
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

/// sendfile(2): as much of the file as there is room for.
pub(super) fn send_file(
    number: Number,
    from: c_int,
    offset: &mut [off_t],
    count: size_t,
) -> Result<usize, Errno> {
    let mut file = Source::new(from, offset)?;
    let count = count.min(LEN_MAX);
    let mut sent = 0;
    let mut failed = None;
    let result = transfer(number, 0, count, &mut sent, |stack, sent| {
        // As Linux, which reads first: of nothing nothing is written.
        if sent == 0 && !stack.sockets.is_writable(number) {
            let byte: &mut [u8] = &mut [0];
            if count == 0 || file.read(byte)? == 0 {
                return Ok(Some(0));
            }
        }
        stack.sockets.write(number, false, |queue, room| {
            let wanted = (count - sent).min(room);
            let mut sent = 0;
            while sent < wanted {
                let part = (wanted - sent).min(FILE_BYTES);
                let read = queue.push_with(part, |room| {
                    let count = file.read(room)?;
                    file.advance(count);
                    Ok(count)
                });
                sent += read.unwrap_or_else(|errno| {
                    failed = Some(errno);
                    0
                });
                if read != Ok(part) {
                    break;
                }
            }
            sent
        })
    });
    file.store(offset);
    match (failed, result) {
        (Some(errno), Ok(0)) => Err(errno),
        (_, result) => result,
    }
}

/// A file, from where the offset says or the file is.
struct Source {
    file: c_int,
    at: off_t,
}

impl Source {
    fn new(file: c_int, offset: &[off_t]) -> Result<Self, Errno> {
        if let [offset] = offset {
            return match *offset < 0 {
                true => Err(Errno::INVALID),
                false => Ok(Self { file, at: *offset }),
            };
        }
        // SAFETY: the call takes no pointer.
        let at = unsafe { libc::lseek64(file, 0, libc::SEEK_CUR) };
        match (at, crate::memory::errno()) {
            (-1, Errno::ILLEGAL_SEEK) => Err(Errno::INVALID),
            (-1, errno) => Err(errno),
            _ => Ok(Self { file, at }),
        }
    }

    /// Reads what is next; says how many bytes.
    fn read(&self, room: &mut [u8]) -> Result<usize, Errno> {
        let (place, len) = (room.as_mut_ptr().cast(), room.len());
        // SAFETY: the pointer is to so many bytes.
        let read = unsafe { originals::pread(self.file, place, len, self.at) };
        // As Linux says of a folder.
        returned_bytes(read).map_err(|errno| match errno {
            Errno::IS_FOLDER => Errno::INVALID,
            errno => errno,
        })
    }

    fn advance(&mut self, count: usize) {
        self.at += off_t::try_from(count).unwrap_or(0);
    }

    /// Says how far the caller has come.
    fn store(&self, offset: &mut [off_t]) {
        if let [offset] = offset {
            *offset = self.at;
            return;
        }
        // SAFETY: the call takes no pointer.
        unsafe { libc::lseek64(self.file, self.at, libc::SEEK_SET) };
    }
}

/// Bytes of a file that are read at once: room for all of them is made before it is known how many there are.
const FILE_BYTES: usize = 256 * 1024;
