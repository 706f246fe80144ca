//! Pointers to values: the one place that knows what packetdrill promises of them.

use crate::stage::Stage;
use core::ffi::{c_int, c_void};
use mill_sockets::errno::Errno;

unsafe extern "C" {
    /// Where this thread's errno lies (glibc and musl).
    fn __errno_location() -> *mut c_int;
}

/// # Safety
/// `userdata` is what `packetdrill_interface_init` put into the table, and was not freed.
pub(super) unsafe fn stage<'a>(userdata: *mut c_void) -> &'a Stage {
    // SAFETY: it is a leaked box of a `Stage`, which is shared between threads by reference only.
    unsafe { &*userdata.cast::<Stage>() }
}

/// `len` bytes of the caller, none if the pointer is null.
///
/// # Safety
/// The bytes may be read, and nothing writes them meanwhile.
pub(super) unsafe fn input<'a>(bytes: *const c_void, len: usize) -> &'a [u8] {
    if bytes.is_null() {
        return &[];
    }
    // SAFETY: not null; the rest is the caller's promise, and bytes have no alignment.
    unsafe { core::slice::from_raw_parts(bytes.cast::<u8>(), len) }
}

/// Room of the caller for `len` bytes, none if the pointer is null.
///
/// # Safety
/// The bytes are initialised, may be written, and nothing else reads them meanwhile.
pub(super) unsafe fn output<'a>(bytes: *mut c_void, len: usize) -> &'a mut [u8] {
    if bytes.is_null() {
        return &mut [];
    }
    // SAFETY: not null; the rest is the caller's promise, and bytes have no alignment.
    unsafe { core::slice::from_raw_parts_mut(bytes.cast::<u8>(), len) }
}

/// `count` values of the caller, none if the pointer is null.
///
/// # Safety
/// They are initialised and aligned, may be written, and nothing else reads them meanwhile.
pub(super) unsafe fn places<'a, T>(values: *mut T, count: usize) -> &'a mut [T] {
    if values.is_null() {
        return &mut [];
    }
    // SAFETY: not null; the rest is the caller's promise.
    unsafe { core::slice::from_raw_parts_mut(values, count) }
}

/// One value of the caller, unless the pointer is null.
///
/// # Safety
/// As `places`.
pub(super) unsafe fn place<'a, T>(value: *mut T) -> Option<&'a mut T> {
    // SAFETY: the caller's promise.
    unsafe { value.as_mut() }
}

/// A result as C has it: -1 and errno.
pub(super) fn done(result: Result<c_int, Errno>) -> c_int {
    result.unwrap_or_else(|errno| {
        set_errno(errno);
        -1
    })
}

/// The same for a number of bytes.
pub(super) fn transferred(result: Result<usize, Errno>) -> isize {
    match result {
        Ok(count) => isize::try_from(count).unwrap_or(isize::MAX),
        Err(errno) => {
            set_errno(errno);
            -1
        }
    }
}

fn set_errno(errno: Errno) {
    // SAFETY: the function has no conditions.
    let place = unsafe { __errno_location() };
    // SAFETY: it points to an int of this thread.
    unsafe { place.write(errno.0) };
}
