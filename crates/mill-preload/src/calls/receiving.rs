//! recv(2) on a stream of the stack.

use crate::memory::{LEN_MAX, output, total, values};
use crate::signals::Handled;
use crate::stack::Stack;
use crate::{stacks, waiting};
use core::ffi::c_void;
use libc::{iovec, size_t};
use mill_sockets::errno::Errno;
use mill_sockets::slab::Number;
use mill_tcp::time::Duration;
use smallvec::{SmallVec, smallvec};

/// Where a caller wants bytes.
#[derive(Debug)]
pub(super) struct Rooms<'a> {
    pieces: SmallVec<[&'a mut [u8]; 4]>,
    /// Bytes, also where the pointer is null.
    pub(super) wanted: usize,
}

impl Rooms<'_> {
    /// # Safety
    /// As read(2).
    pub(super) unsafe fn one(into: *mut c_void, len: size_t) -> Self {
        let wanted = len.min(LEN_MAX);
        // SAFETY: the caller's promise.
        let pieces = smallvec![unsafe { output(into, wanted) }];
        Self { pieces, wanted }
    }

    /// # Safety
    /// `count` pieces at the pointer, and what they point to, are as readv(2) says.
    pub(super) unsafe fn of(pieces: *const iovec, count: usize) -> Result<Self, Errno> {
        // SAFETY: the caller's promise.
        let pieces = unsafe { values(pieces, count) };
        let wanted = total(pieces, count)?;
        let mut left = wanted;
        let pieces = pieces.iter().map(|piece| {
            let len = piece.iov_len.min(left);
            left -= len;
            // SAFETY: the caller's promise.
            unsafe { output(piece.iov_base, len) }
        });
        let pieces = pieces.collect();
        Ok(Self { pieces, wanted })
    }

    /// Copies bytes behind the first `filled` ones; says how many.
    fn scatter(&mut self, bytes: &[u8], filled: usize) -> usize {
        let (mut skipped, mut copied) = (filled, 0);
        for piece in &mut self.pieces {
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
}

/// One call: what it wants, and what it has.
struct Receiving<'a, 'b> {
    number: Number,
    rooms: &'a mut Rooms<'b>,
    flags: i32,
    filled: usize,
}

impl Receiving<'_, '_> {
    const fn has(&self, flag: i32) -> bool {
        self.flags & flag != 0
    }

    /// `None` where the call has to wait.
    fn attempt(&mut self, stack: &mut Stack) -> Option<Result<usize, Errno>> {
        // What another process has read that this one has offered the connection to is not this one's.
        stack.settle_loans();
        // What came before is the program's; the error comes with the next call.
        if self.filled > 0 && stack.sockets.has_error(self.number) && self.is_at_end(stack) {
            return Some(Ok(self.filled));
        }
        let (filled, wanted) = (self.filled, self.rooms.wanted);
        let (is_peek, is_discarded) = (self.has(libc::MSG_PEEK), self.has(libc::MSG_TRUNC));
        let rooms = &mut *self.rooms;
        let read = stack.sockets.read(self.number, |bytes| {
            let count = match is_discarded {
                true => bytes.len().min(wanted - filled),
                false => rooms.scatter(bytes, if is_peek { 0 } else { filled }),
            };
            // A pointer is null.
            let is_lost = count
                < bytes
                    .len()
                    .min(wanted.saturating_sub(if is_peek { 0 } else { filled }));
            let taken = if is_peek || is_lost { 0 } else { count };
            (taken, (count, bytes.is_empty(), is_lost))
        });
        let (count, is_end, is_lost) = match read.transpose()? {
            Ok(read) => read,
            Err(errno) => return Some(Err(errno)),
        };
        if is_lost {
            return Some(if filled > 0 {
                Ok(filled)
            } else {
                Err(Errno::FAULT)
            });
        }
        if !is_peek {
            stack.note_read(self.number, count);
        }
        self.filled = if is_peek { count } else { filled + count };
        let least = if self.has(libc::MSG_WAITALL) {
            wanted
        } else {
            1
        };
        (is_end || self.filled >= least || wanted == 0).then_some(Ok(self.filled))
    }

    fn is_at_end(&self, stack: &Stack) -> bool {
        stack.sockets.unread(self.number) == Ok(0)
    }
}

pub(super) fn receive(number: Number, rooms: &mut Rooms<'_>, flags: i32) -> Result<usize, Errno> {
    let handled = Handled::by_this_thread();
    if flags & libc::MSG_ERRQUEUE != 0 {
        // Nothing is queued there.
        return Err(Errno::AGAIN);
    }
    if flags & libc::MSG_OOB != 0 {
        return Err(Errno::INVALID);
    }
    if rooms.wanted == 0 && flags & libc::MSG_PEEK == 0 {
        return Ok(0);
    }
    let mut receiving = Receiving {
        number,
        rooms,
        flags,
        filled: 0,
    };
    let (found, waits, timeout) = stacks::on(number, |stack| {
        let options = stack.sockets.options(number)?;
        let waits = options.waits && flags & libc::MSG_DONTWAIT == 0;
        let timeout = options.receive_timeout;
        let found = receiving.attempt(stack).or_else(|| {
            // A program that only asks, and never polls, turns its stack so.
            let is_turned = stack.turn_now_and_then();
            is_turned.then(|| receiving.attempt(stack)).flatten()
        });
        Ok((found, waits, timeout))
    })?;
    let found = match found {
        Some(found) => return found,
        None if !waits => Err(Errno::AGAIN),
        None => wait(&mut receiving, timeout, handled),
    };
    match found {
        Err(_) if receiving.filled > 0 => Ok(receiving.filled),
        found => found,
    }
}

fn wait(
    receiving: &mut Receiving<'_, '_>,
    timeout: Option<Duration>,
    mut handled: Handled,
) -> Result<usize, Errno> {
    let number = receiving.number;
    loop {
        let attempt = |stack: &mut Stack| receiving.attempt(stack);
        let found = waiting::of_call(number, timeout, handled, attempt);
        if receiving.filled > 0 || !waiting::is_restarted(&found, &mut handled, timeout) {
            return found?.unwrap_or(Err(Errno::AGAIN));
        }
    }
}
