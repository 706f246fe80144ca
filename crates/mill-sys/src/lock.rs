//! Locks on whole files, which the kernel takes back when their holder ends.

use crate::process::check;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Locks an open file for itself until it is closed: flock(2). `WouldBlock` if another open file of the same holds it.
pub fn lock_exclusive(file: &impl AsFd) -> io::Result<()> {
    let descriptor = file.as_fd().as_raw_fd();
    // SAFETY: flock(2) takes no pointer; the descriptor is open through the call.
    check(unsafe { libc::flock(descriptor, libc::LOCK_EX | libc::LOCK_NB) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn a_locked_file_cannot_be_locked_again_until_it_is_closed() {
        let path = std::env::temp_dir().join(format!("mill-sys-lock-{}", std::process::id()));
        let first = File::create(&path).unwrap();
        let second = File::open(&path).unwrap();
        lock_exclusive(&first).unwrap();
        let refused = lock_exclusive(&second).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        drop(first);
        lock_exclusive(&second).unwrap();
        std::fs::remove_file(&path).unwrap();
    }
}
