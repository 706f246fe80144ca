//! splice(2) between a pipe and a stream of the stack: as a copy, through a pipe of its own, so that the kernel's rules hold at the
//! program's.

use super::reading::recv;
use super::writing::send;
use crate::descriptors::{self, Entry};
use crate::memory::{done, errno, returned};
use crate::{originals, stacks};
use core::ffi::{c_int, c_uint};
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use libc::{loff_t, size_t, ssize_t};
use mill_sockets::errno::Errno;
use mill_sockets::slab::Number;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// # Safety
/// As splice(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn splice(
    from: c_int,
    from_offset: *mut loff_t,
    to: c_int,
    to_offset: *mut loff_t,
    len: size_t,
    flags: c_uint,
) -> ssize_t {
    let [source, target] = [from, to].map(descriptors::find);
    let is_ours = |entry: Entry| matches!(entry, Entry::Stream(_) | Entry::Lost);
    if !is_ours(source) && !is_ours(target) {
        // SAFETY: the caller's promise.
        return unsafe { originals::splice(from, from_offset, to, to_offset, len, flags) };
    }
    // The program's pipe, whether it is written, and the offsets of pipe and stream.
    let (pipe, access, offsets) = match is_ours(source) {
        true => (to, libc::O_WRONLY, [to_offset, from_offset]),
        false => (from, libc::O_RDONLY, [from_offset, to_offset]),
    };
    let [pipe_offset, stream_offset] = offsets;
    let moved = if source == Entry::Lost || target == Entry::Lost {
        Err(Errno::NOT_CONNECTED)
    } else if !is_open_for(pipe, access) {
        Err(Errno::BAD_DESCRIPTOR)
    } else if is_pipe(pipe) && !pipe_offset.is_null() {
        Err(Errno(libc::ESPIPE))
    } else if !is_pipe(pipe) || !stream_offset.is_null() {
        Err(Errno::INVALID)
    } else {
        match target {
            Entry::Stream(number) => to_stream(number, from, to, len, flags),
            _ => from_stream(from, to, len, flags),
        }
    };
    let moved = moved.map(|count| c_int::try_from(count).unwrap_or(c_int::MAX));
    ssize_t::try_from(done(moved)).unwrap_or(-1)
}

/// What lies between: a pipe of this call.
struct Between {
    reader: OwnedFd,
    writer: OwnedFd,
}

impl Between {
    fn new() -> Result<Self, Errno> {
        let mut ends: [c_int; 2] = [-1; 2];
        // SAFETY: the pointer is to room for two numbers.
        returned(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
        let [reader, writer] = ends;
        // SAFETY: the kernel has just returned it, and nothing else owns it.
        let reader = unsafe { OwnedFd::from_raw_fd(reader) };
        // SAFETY: as above.
        let writer = unsafe { OwnedFd::from_raw_fd(writer) };
        Ok(Self { reader, writer })
    }

    /// Moves from the program's pipe what it has.
    fn fill(&self, from: c_int, len: usize, flags: c_uint) -> Result<usize, Errno> {
        let writer = self.writer.as_raw_fd();
        // SAFETY: no offset is given.
        let moved = unsafe { originals::splice(from, null_mut(), writer, null_mut(), len, flags) };
        usize::try_from(moved).map_err(|_| errno())
    }

    /// Moves to the program's pipe what it takes.
    fn empty(&self, to: c_int, len: usize, flags: c_uint) -> Result<usize, Errno> {
        let reader = self.reader.as_raw_fd();
        // SAFETY: no offset is given.
        let moved = unsafe { originals::splice(reader, null_mut(), to, null_mut(), len, flags) };
        usize::try_from(moved).map_err(|_| errno())
    }
}

fn to_stream(
    number: Number,
    from: c_int,
    to: c_int,
    len: usize,
    flags: c_uint,
) -> Result<usize, Errno> {
    let between = Between::new()?;
    // No more than there is room for, so that nothing that was taken has to go back; at least a byte, which waits if need be.
    let room = stacks::on(number, |stack| {
        let mut found = 0;
        stack.sockets.write(number, false, |_, room| {
            found = room;
            0
        })?;
        let waits = stack.sockets.options(number)?.waits;
        Ok(if waits { found.max(1) } else { found })
    });
    let room = match room {
        Ok(room) => room,
        Err(why) => {
            // Nothing is taken; the signal that Linux raises (SIGPIPE) comes with a write that fails.
            // SAFETY: the byte lives through the call.
            unsafe { send(to, [0_u8].as_ptr().cast(), 1, 0) };
            return Err(why);
        }
    };
    let wanted = len.min(room).min(PIPE_BYTES);
    if wanted == 0 && len > 0 {
        return Err(Errno::AGAIN);
    }
    let taken = between.fill(from, wanted, flags)?;
    let mut bytes = vec![0_u8; taken];
    let reader = between.reader.as_raw_fd();
    // SAFETY: the buffer has so many bytes.
    let read = unsafe { originals::read(reader, bytes.as_mut_ptr().cast(), taken) };
    let mut left = bytes
        .get(..usize::try_from(read).unwrap_or(0))
        .unwrap_or_default();
    let more = if flags & libc::SPLICE_F_MORE != 0 {
        libc::MSG_MORE
    } else {
        0
    };
    while !left.is_empty() {
        // SAFETY: the bytes live through the call.
        let sent = unsafe { send(to, left.as_ptr().cast(), left.len(), more) };
        let Ok(sent) = usize::try_from(sent) else {
            return Err(errno());
        };
        left = left.get(sent..).unwrap_or_default();
    }
    Ok(taken)
}

fn from_stream(from: c_int, to: c_int, len: usize, flags: c_uint) -> Result<usize, Errno> {
    let between = Between::new()?;
    let mut bytes = vec![0_u8; len.min(PIPE_BYTES)];
    let receive = |bytes: &mut [u8], flags| {
        // SAFETY: the buffer lives through the call.
        let count = unsafe { recv(from, bytes.as_mut_ptr().cast(), bytes.len(), flags) };
        usize::try_from(count).map_err(|_| errno())
    };
    let found = receive(&mut bytes, libc::MSG_PEEK)?;
    if found == 0 {
        return Ok(0);
    }
    let writer = between.writer.as_raw_fd();
    // SAFETY: the buffer has so many bytes; a new pipe has room for them.
    let written = unsafe { originals::write(writer, bytes.as_ptr().cast(), found) };
    let written = usize::try_from(written).map_err(|_| errno())?;
    let moved = between.empty(to, written, flags)?;
    let moved_bytes = bytes.get_mut(..moved).unwrap_or_default();
    receive(moved_bytes, libc::MSG_DONTWAIT)?;
    Ok(moved)
}

fn is_open_for(descriptor: c_int, access: c_int) -> bool {
    // SAFETY: the command takes no argument.
    let flags = unsafe { originals::fcntl(descriptor, libc::F_GETFL, 0) };
    let mode = flags & libc::O_ACCMODE;
    flags != -1 && (mode == access || mode == libc::O_RDWR)
}

fn is_pipe(descriptor: c_int) -> bool {
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the pointer is to room for what the call writes.
    let result = unsafe { libc::fstat(descriptor, status.as_mut_ptr()) };
    if result != 0 {
        return false;
    }
    // SAFETY: the call has filled it.
    let status = unsafe { status.assume_init() };
    status.st_mode & libc::S_IFMT == libc::S_IFIFO
}

/// What a new pipe has room for.
const PIPE_BYTES: usize = 64 * 1024;
