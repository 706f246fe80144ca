//! Files and pipes: the kernel's alone, whatever their numbers were before.

use super::numbers::given;
use crate::originals;
use core::ffi::{c_char, c_int, c_uint};
use libc::FILE;

/// The third argument of open(2) is a mode, if there is one.
///
/// # Safety
/// As open(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: the caller's promise.
    given(unsafe { originals::open(path, flags, mode) })
}

/// # Safety
/// As open(2): off_t has 64 bits here.
#[unsafe(no_mangle)]
unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { open(path, flags, mode) }
}

/// # Safety
/// As open(2), which compilers call so where there is no mode.
#[unsafe(no_mangle)]
unsafe extern "C" fn __open_2(path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: the caller's promise.
    given(unsafe { originals::__open_2(path, flags) })
}

/// # Safety
/// As open(2), which compilers call so where there is no mode.
#[unsafe(no_mangle)]
unsafe extern "C" fn __open64_2(path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { __open_2(path, flags) }
}

/// # Safety
/// As creat(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn creat(path: *const c_char, mode: c_uint) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { open(path, libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC, mode) }
}

/// # Safety
/// As creat(2): off_t has 64 bits here.
#[unsafe(no_mangle)]
unsafe extern "C" fn creat64(path: *const c_char, mode: c_uint) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { creat(path, mode) }
}

/// # Safety
/// As openat(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn openat(
    folder: c_int,
    path: *const c_char,
    flags: c_int,
    mode: c_uint,
) -> c_int {
    // SAFETY: the caller's promise.
    given(unsafe { originals::openat(folder, path, flags, mode) })
}

/// # Safety
/// As openat(2): off_t has 64 bits here.
#[unsafe(no_mangle)]
unsafe extern "C" fn openat64(
    folder: c_int,
    path: *const c_char,
    flags: c_int,
    mode: c_uint,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { openat(folder, path, flags, mode) }
}

/// # Safety
/// As openat(2), which compilers call so where there is no mode.
#[unsafe(no_mangle)]
unsafe extern "C" fn __openat_2(folder: c_int, path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: the caller's promise.
    given(unsafe { originals::__openat_2(folder, path, flags) })
}

/// # Safety
/// As openat(2), which compilers call so where there is no mode.
#[unsafe(no_mangle)]
unsafe extern "C" fn __openat64_2(folder: c_int, path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { __openat_2(folder, path, flags) }
}

/// # Safety
/// As pipe(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn pipe(ends: *mut c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { pipe2(ends, 0) }
}

/// # Safety
/// As pipe2(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn pipe2(ends: *mut c_int, flags: c_int) -> c_int {
    // SAFETY: the caller's promise.
    let result = unsafe { originals::pipe2(ends, flags) };
    if result == 0 {
        // SAFETY: the call has filled two numbers.
        let ends = unsafe { core::slice::from_raw_parts(ends, 2) };
        for end in ends {
            given(*end);
        }
    }
    result
}

/// # Safety
/// As fopen(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn fopen(path: *const c_char, mode: *const c_char) -> *mut FILE {
    // SAFETY: the caller's promise.
    let stream = unsafe { originals::fopen(path, mode) };
    if !stream.is_null() {
        // SAFETY: it is open, and nothing else knows it.
        given(unsafe { libc::fileno(stream) });
    }
    stream
}

/// # Safety
/// As fopen(3): off_t has 64 bits here.
#[unsafe(no_mangle)]
unsafe extern "C" fn fopen64(path: *const c_char, mode: *const c_char) -> *mut FILE {
    // SAFETY: the caller's promise.
    unsafe { fopen(path, mode) }
}
