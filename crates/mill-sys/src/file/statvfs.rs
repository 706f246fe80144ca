//! statvfs(3): how much room a file system has.

use super::c_string;
use crate::process::check;
use std::io;
use std::mem::MaybeUninit;

/// Bytes of the file system of this path that a process without special rights may still take. It may be asked for over a
/// network, and not answer.
pub fn free_bytes(path: &[u8]) -> io::Result<u64> {
    let path = c_string(path)?;
    let mut raw = MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the first pointer is to a string that ends in NUL, the second to a local large enough for a statvfs.
    check(unsafe { libc::statvfs(path.as_ptr(), raw.as_mut_ptr()) })?;
    // SAFETY: the call succeeded, so the C library has filled it in.
    let raw = unsafe { raw.assume_init() };
    Ok(raw.f_bavail.saturating_mul(raw.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::free_bytes;

    #[test]
    fn a_file_system_has_room_and_a_path_to_nothing_has_no_file_system() {
        let free = free_bytes(b"/").expect("there is a root");
        assert!(free < 1 << 60, "{free} bytes");
        let error = free_bytes(b"/none/at/all").expect_err("it leads to nothing");
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
    }
}
