//! Streams of stdio over connections of the stack. The C library's own streams call its inner read(2), write(2) and close(2), which no
//! preloaded library sees; a stream that is made for a connection gets ours instead (fopencookie(3)).

use super::numbers::close;
use super::reading::read;
use super::writing::write;
use crate::descriptors::{self, Entry};
use crate::lock::{Lock, LockGuard, Locked};
use crate::memory::{done, input};
use crate::originals;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::{null_mut, with_exposed_provenance_mut};
use libc::{FILE, off64_t, size_t, ssize_t};
use mill_sockets::errno::Errno;

/// The whole of a function with variable arguments behind so many others: lists them as System V's ABI says of x86-64 (3.5.7), and goes on
/// in [`print`]. More instructions put the other arguments in place.
///
/// ```text
/// rsp + 0         8               16          24      32                      80             208
///       | offsets | further ones | registers | unused | rdi to r9, 8 bytes each | xmm0 to xmm7 |
/// ```
#[cfg(target_arch = "x86_64")]
macro_rules! list_arguments {
    ($before:literal $(, $instruction:literal)*) => {
        core::arch::naked_asm!(
            "sub rsp, 216",
            "mov [rsp + 48], rdx",
            "mov [rsp + 56], rcx",
            "mov [rsp + 64], r8",
            "mov [rsp + 72], r9",
            "test al, al",
            "je 2f",
            "movaps [rsp + 80], xmm0",
            "movaps [rsp + 96], xmm1",
            "movaps [rsp + 112], xmm2",
            "movaps [rsp + 128], xmm3",
            "movaps [rsp + 144], xmm4",
            "movaps [rsp + 160], xmm5",
            "movaps [rsp + 176], xmm6",
            "movaps [rsp + 192], xmm7",
            "2:",
            "mov dword ptr [rsp], {general}",
            "mov dword ptr [rsp + 4], 48",
            "lea rax, [rsp + 224]",
            "mov [rsp + 8], rax",
            "lea rax, [rsp + 32]",
            "mov [rsp + 16], rax",
            $($instruction,)*
            "mov rcx, rsp",
            "call {print}",
            "add rsp, 216",
            "ret",
            general = const 8 * $before,
            print = sym print,
        )
    };
}

/// # Safety
/// As fdopen(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn fdopen(fd: c_int, mode: *const c_char) -> *mut FILE {
    // What is no connection yet may become one.
    if let Entry::Inherited(_) = descriptors::peek(fd) {
        descriptors::find(fd);
    }
    let is_ours = matches!(
        descriptors::peek(fd),
        Entry::Stream(_) | Entry::Lost | Entry::Fresh(_)
    );
    if !is_ours || mode.is_null() {
        // SAFETY: the caller's promise.
        return unsafe { originals::fdopen(fd, mode) };
    }
    // SAFETY: the caller's promise: it ends with a NUL.
    let mode = unsafe { CStr::from_ptr(mode) };
    let Some(mode) = inner_mode(mode.to_bytes()) else {
        done(Err(Errno::INVALID));
        return null_mut();
    };
    open(fd, mode)
}

/// What of a mode matters to a connection: which ways there are.
fn inner_mode(mode: &[u8]) -> Option<&'static CStr> {
    let is_both = mode.contains(&b'+');
    match (mode.first()?, is_both) {
        (b'r', false) => Some(c"r"),
        (b'w' | b'a', false) => Some(c"w"),
        (b'r' | b'w' | b'a', true) => Some(c"r+"),
        _ => None,
    }
}

fn open(fd: c_int, mode: &CStr) -> *mut FILE {
    let cookie = Box::into_raw(Box::new(fd)).cast::<c_void>();
    let calls = CookieCalls {
        read: read_cookie,
        write: write_cookie,
        seek: seek_cookie,
        close: close_cookie,
    };
    // SAFETY: the mode ends with a NUL, and the functions are as fopencookie(3) says.
    let stream = unsafe { originals::fopencookie(cookie, mode.as_ptr(), calls) };
    if stream.is_null() {
        // SAFETY: it was just made, and nothing else knows it.
        drop(unsafe { Box::from_raw(cookie.cast::<c_int>()) });
        return stream;
    }
    // SAFETY: it was just made, and nothing else knows it.
    unsafe { number(stream, fd) };
    let open = Open {
        cookie: cookie.expose_provenance(),
        stream: stream.expose_provenance(),
    };
    streams().push(open);
    stream
}

/// A stream that is open: where it and its cookie are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    cookie: usize,
    stream: usize,
}

static STREAMS: Lock<Vec<Open>> = Lock::new(Vec::new());

/// The streams that are open, which stay so while this is held. It is taken before the locks of stacks.
fn streams() -> LockGuard<'static, Vec<Open>> {
    STREAMS.lock()
}

/// For fork(2).
pub(crate) fn lock() -> Locked {
    Box::new(streams())
}

/// Has fileno(3) tell the number.
///
/// # Safety
/// The stream is open, and no other thread uses it.
unsafe fn number(stream: *mut FILE, fd: c_int) {
    // SAFETY: every FILE of the C library has that many bytes at least.
    let place = unsafe { stream.byte_add(FILENO_AT) }.cast::<c_int>();
    // SAFETY: as above; the place is that of an int.
    if unsafe { place.read() } == OF_COOKIE {
        // SAFETY: as above.
        unsafe { place.write(fd) };
    }
}

/// Bytes before `_fileno` in a FILE of glibc on x86-64 (`bits/types/struct_FILE.h`): flags, eleven pointers of buffers, one to markers and
/// one to the next stream. It is part of glibc's binary interface.
const FILENO_AT: usize = 8 + 11 * 8 + 8 + 8;

/// What glibc has there in a stream of fopencookie(3).
const OF_COOKIE: c_int = -2;

/// At the end of the process, before its connections are closed: what streams hold back is written, but for those in which a thread
/// waits, as by exit(3).
pub(crate) fn flush() {
    // Writing may wait, for which handlers do not.
    for open in &*streams().interruptible() {
        let stream = with_exposed_provenance_mut::<FILE>(open.stream);
        // SAFETY: the stream is open: it is taken from the list before it goes.
        if unsafe { ftrylockfile(stream) } != 0 {
            continue;
        }
        // SAFETY: as above, and this thread has its lock.
        unsafe { fflush_unlocked(stream) };
        // SAFETY: as above.
        unsafe { funlockfile(stream) };
    }
}

unsafe extern "C" {
    /// flockfile(3).
    fn ftrylockfile(stream: *mut FILE) -> c_int;
    /// flockfile(3).
    fn funlockfile(stream: *mut FILE);
    /// unlocked_stdio(3).
    fn fflush_unlocked(stream: *mut FILE) -> c_int;
}

/// `cookie_io_functions_t`.
#[repr(C)]
pub(crate) struct CookieCalls {
    read: unsafe extern "C" fn(*mut c_void, *mut c_char, size_t) -> ssize_t,
    write: unsafe extern "C" fn(*mut c_void, *const c_char, size_t) -> ssize_t,
    seek: unsafe extern "C" fn(*mut c_void, *mut off64_t, c_int) -> c_int,
    close: unsafe extern "C" fn(*mut c_void) -> c_int,
}

/// # Safety
/// As [`open`] has made it.
unsafe fn descriptor(cookie: *mut c_void) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { cookie.cast::<c_int>().read() }
}

unsafe extern "C" fn read_cookie(cookie: *mut c_void, into: *mut c_char, len: size_t) -> ssize_t {
    // SAFETY: the cookie is ours until the stream is closed.
    let fd = unsafe { descriptor(cookie) };
    // SAFETY: the C library has room for so many bytes.
    unsafe { read(fd, into.cast(), len) }
}

/// All is written, or what was written before an error, as of the C library's own streams.
unsafe extern "C" fn write_cookie(
    cookie: *mut c_void,
    bytes: *const c_char,
    len: size_t,
) -> ssize_t {
    // SAFETY: the C library has so many bytes.
    let bytes = unsafe { input(bytes.cast(), len) };
    // SAFETY: the cookie is ours until the stream is closed.
    let fd = unsafe { descriptor(cookie) };
    let written = write_all(fd, bytes);
    ssize_t::try_from(written).unwrap_or(ssize_t::MAX)
}

/// Says how much was written before an error, if one came.
fn write_all(fd: c_int, bytes: &[u8]) -> usize {
    let mut written = 0;
    while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
        // SAFETY: the bytes live through the call.
        let more = unsafe { write(fd, rest.as_ptr().cast(), rest.len()) };
        match usize::try_from(more) {
            Ok(1..) => written += more.unsigned_abs(),
            _ => break,
        }
    }
    written
}

/// As lseek(2) of a socket.
unsafe extern "C" fn seek_cookie(_: *mut c_void, _: *mut off64_t, _: c_int) -> c_int {
    done(Err(Errno::ILLEGAL_SEEK))
}

unsafe extern "C" fn close_cookie(cookie: *mut c_void) -> c_int {
    let place = cookie.expose_provenance();
    streams().retain(|open| open.cookie != place);
    // SAFETY: the C library does not use it any more.
    let fd = unsafe { Box::from_raw(cookie.cast::<c_int>()) };
    // SAFETY: the call takes no pointer.
    unsafe { close(*fd) }
}

/// # Safety
/// As dprintf(3), which has any arguments behind these: they become a `va_list`.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn dprintf(fd: c_int, format: *const c_char) -> c_int {
    list_arguments!(2, "mov rdx, rsi", "xor esi, esi")
}

/// # Safety
/// As dprintf(3), which compilers call so with a word on how to check the format.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn __dprintf_chk(fd: c_int, flag: c_int, format: *const c_char) -> c_int {
    list_arguments!(3)
}

/// # Safety
/// As vdprintf(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn vdprintf(fd: c_int, format: *const c_char, arguments: *mut c_void) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { print(fd, 0, format, arguments) }
}

/// # Safety
/// As vdprintf(3), which compilers call so with a word on how to check the format.
#[unsafe(no_mangle)]
unsafe extern "C" fn __vdprintf_chk(
    fd: c_int,
    flag: c_int,
    format: *const c_char,
    arguments: *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { print(fd, flag, format, arguments) }
}

/// # Safety
/// As vdprintf(3); the arguments are a `va_list`.
unsafe extern "C" fn print(
    fd: c_int,
    flag: c_int,
    format: *const c_char,
    arguments: *mut c_void,
) -> c_int {
    if !matches!(descriptors::find(fd), Entry::Stream(_) | Entry::Lost) {
        // SAFETY: the caller's promise.
        return unsafe { originals::__vdprintf_chk(fd, flag, format, arguments) };
    }
    let mut text = null_mut();
    // SAFETY: the caller's promise.
    let len = unsafe { originals::__vasprintf_chk(&raw mut text, flag, format, arguments) };
    let Ok(bytes_len) = usize::try_from(len) else {
        return -1;
    };
    // SAFETY: the C library has made so many bytes there.
    let bytes = unsafe { input(text.cast(), bytes_len) };
    let written = write_all(fd, bytes);
    // SAFETY: as vasprintf(3) says, nothing else knows the text.
    unsafe { libc::free(text.cast()) };
    match written == bytes_len {
        true => len,
        false => -1,
    }
}
