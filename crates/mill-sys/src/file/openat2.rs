//! openat2(2): opening a file only if its path can be looked up without waiting.

use std::ffi::CStr;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// Opens `path` as openat(2) does, but fails with EAGAIN where a component of it is not in the kernel's cache of names
/// (`RESOLVE_CACHED`, Linux 5.12). ENOSYS, EINVAL or EPERM: the kernel has no such call, or a sandbox forbids it.
pub(super) fn open_cached(directory: RawFd, path: &CStr, flags: i32) -> io::Result<OwnedFd> {
    // Unlike openat(2) this call refuses flags that have no meaning beside O_PATH.
    let flags = if flags & libc::O_PATH == 0 {
        flags
    } else {
        flags & (libc::O_PATH | libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_DIRECTORY)
    };
    // SAFETY: an open_how is plain numbers, for which zero is valid.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = u64::from(flags.cast_unsigned());
    how.resolve = libc::RESOLVE_CACHED;
    // SAFETY: the path is NUL-terminated, `how` is of the size that is said, and both live through the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_openat2,
            directory,
            path.as_ptr(),
            &raw const how,
            size_of::<libc::open_how>(),
        )
    };
    match RawFd::try_from(result) {
        // SAFETY: the kernel just gave us this descriptor, nothing else owns it.
        Ok(descriptor) if descriptor >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(io::Error::last_os_error()),
    }
}
