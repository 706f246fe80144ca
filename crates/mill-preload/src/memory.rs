//! Values at the caller's pointers: the one place that knows what C's callers promise of them.

use core::ffi::{c_int, c_uint, c_void};
use libc::{iovec, mmsghdr, timespec};
use mill_sockets::errno::Errno;
use mill_tcp::time::Duration;

/// `len` bytes of the caller, none if the pointer is null.
///
/// # Safety
/// The bytes may be read, and nothing writes them meanwhile.
pub(crate) unsafe fn input<'a>(bytes: *const c_void, len: usize) -> &'a [u8] {
    if bytes.is_null() || len == 0 {
        return &[];
    }
    // SAFETY: not null; the rest is the caller's promise, and bytes have no alignment.
    unsafe { core::slice::from_raw_parts(bytes.cast::<u8>(), len) }
}

/// Room of the caller for `len` bytes, none if the pointer is null.
///
/// # Safety
/// The bytes may be written, and nothing else reads them meanwhile.
pub(crate) unsafe fn output<'a>(bytes: *mut c_void, len: usize) -> &'a mut [u8] {
    if bytes.is_null() || len == 0 {
        return &mut [];
    }
    // SAFETY: not null; the rest is the caller's promise, and bytes have no alignment.
    unsafe { core::slice::from_raw_parts_mut(bytes.cast::<u8>(), len) }
}

/// `count` values of the caller, none if the pointer is null.
///
/// # Safety
/// They are initialised and aligned, may be written, and nothing else reads them meanwhile.
pub(crate) unsafe fn places<'a, T>(values: *mut T, count: usize) -> &'a mut [T] {
    if values.is_null() || count == 0 {
        return &mut [];
    }
    // SAFETY: not null; the rest is the caller's promise.
    unsafe { core::slice::from_raw_parts_mut(values, count) }
}

/// A number of the caller, which may lie anywhere (ioctl(2)); `None` if the pointer is null.
///
/// # Safety
/// It may be read.
pub(crate) unsafe fn number(place: *const c_int) -> Option<c_int> {
    // SAFETY: not null; the rest is the caller's promise, and nothing is asked of the alignment.
    (!place.is_null()).then(|| unsafe { place.read_unaligned() })
}

/// Stores a number of the caller; `EFAULT` if the pointer is null.
///
/// # Safety
/// It may be written.
pub(crate) unsafe fn store(number: c_int, place: *mut c_int) -> Result<(), Errno> {
    if place.is_null() {
        return Err(Errno::FAULT);
    }
    // SAFETY: not null; the rest is the caller's promise, and nothing is asked of the alignment.
    unsafe { place.write_unaligned(number) };
    Ok(())
}

/// `count` values of the caller that are only read.
///
/// # Safety
/// They are initialised and aligned, and nothing writes them meanwhile.
pub(crate) unsafe fn values<'a, T>(values: *const T, count: usize) -> &'a [T] {
    if values.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: not null; the rest is the caller's promise.
    unsafe { core::slice::from_raw_parts(values, count) }
}

/// The bytes of all pieces together, at most [`LEN_MAX`]; as Linux says where they are no pieces.
pub(crate) fn total(pieces: &[iovec], count: usize) -> Result<usize, Errno> {
    if pieces.len() < count {
        return Err(Errno::FAULT);
    }
    let mut total: usize = 0;
    for piece in pieces {
        if isize::try_from(piece.iov_len).is_err() {
            return Err(Errno::INVALID);
        }
        total = total.saturating_add(piece.iov_len);
    }
    Ok(total.min(LEN_MAX))
}

/// How many pieces readv(2) and writev(2) take.
pub(crate) fn pieces_count(count: c_int) -> Result<usize, Errno> {
    let count = usize::try_from(count).ok();
    let count = count.filter(|count| *count <= PIECES_MAX);
    count.ok_or(Errno::INVALID)
}

/// The same of a message.
pub(crate) fn message_pieces(count: usize) -> Result<usize, Errno> {
    let is_taken = count <= PIECES_MAX;
    is_taken.then_some(count).ok_or(Errno::MESSAGE_SIZE)
}

/// What flags of preadv2(2) and pwritev2(2) are to a socket; those that files heed are taken.
pub(crate) fn message_flags(flags: c_int) -> Result<c_int, Errno> {
    let of_files = libc::RWF_HIPRI | libc::RWF_DSYNC | libc::RWF_SYNC | libc::RWF_APPEND;
    match flags & !of_files {
        0 => Ok(0),
        libc::RWF_NOWAIT => Ok(libc::MSG_DONTWAIT),
        _ => Err(Errno::NOT_SUPPORTED),
    }
}

/// The messages of recvmmsg(2) and sendmmsg(2).
///
/// # Safety
/// As these.
pub(crate) unsafe fn several<'a>(
    messages: *mut mmsghdr,
    count: c_uint,
) -> Result<&'a mut [mmsghdr], Errno> {
    if messages.is_null() && count > 0 {
        return Err(Errno::FAULT);
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { places(messages, (count as usize).min(PIECES_MAX)) })
}

/// A time of the caller.
pub(crate) fn time_of(time: &timespec) -> Result<Duration, Errno> {
    let seconds = u64::try_from(time.tv_sec).map_err(|_| Errno::INVALID)?;
    let nanos = u32::try_from(time.tv_nsec).map_err(|_| Errno::INVALID)?;
    match nanos {
        0..1_000_000_000 => Ok(Duration::new(seconds, nanos)),
        _ => Err(Errno::INVALID),
    }
}

/// Bytes that one call transfers at most (`MAX_RW_COUNT`).
pub(crate) const LEN_MAX: usize = 0x7fff_f000;

/// Pieces of one call (`UIO_MAXIOV`).
const PIECES_MAX: usize = 1024;

/// A result as C has it: -1 and errno.
pub(crate) fn done(result: Result<c_int, Errno>) -> c_int {
    result.unwrap_or_else(|errno| {
        set_errno(errno.0);
        -1
    })
}

/// The same for a number of bytes.
pub(crate) fn transferred(result: Result<usize, Errno>) -> isize {
    match result {
        Ok(count) => isize::try_from(count).unwrap_or(isize::MAX),
        Err(errno) => {
            set_errno(errno.0);
            -1
        }
    }
}

/// What a function of the C library returned, as a result.
pub(crate) fn returned(result: c_int) -> Result<c_int, Errno> {
    if result == -1 {
        return Err(errno());
    }
    Ok(result)
}

/// The same for a number of bytes.
pub(crate) fn returned_bytes(result: isize) -> Result<usize, Errno> {
    usize::try_from(result).map_err(|_| errno())
}

pub(crate) fn errno() -> Errno {
    // SAFETY: the function has no conditions.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: it points to an int of this thread.
    Errno(unsafe { place.read() })
}

pub(crate) fn set_errno(number: c_int) {
    // SAFETY: the function has no conditions.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: it points to an int of this thread.
    unsafe { place.write(number) };
}

/// Whether so many bytes of memory can be had just now, within the process's limits.
pub(crate) fn can_be_had(bytes: usize) -> bool {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new piece of memory at any address.
    let found = unsafe { libc::mmap(core::ptr::null_mut(), bytes, access, kind, -1, 0) };
    // SAFETY: nothing refers to the memory that was just found.
    found != libc::MAP_FAILED && unsafe { libc::munmap(found, bytes) } == 0
}
