//! Locks on whole files, which the kernel releases when their holder ends.

use crate::process::check;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Locks an open file for its open file description until that is closed: flock(2). `WouldBlock` if another one has the
/// lock.
pub fn lock_exclusive(file: &impl AsFd) -> io::Result<()> {
    let descriptor = file.as_fd().as_raw_fd();
    // SAFETY: flock(2) takes no pointer; the descriptor is open through the call.
    check(unsafe { libc::flock(descriptor, libc::LOCK_EX | libc::LOCK_NB) })
}

/// Locks a file for the calling thread's descriptor table: fcntl(2), F_SETLK. The lock ends with [`unlock_for_table`]
/// or with the table, at the latest when the process ends. `WouldBlock` if another table has the lock. Closing any
/// descriptor of the file in the same table unlocks it too, so a table should have only one.
pub fn lock_for_table(file: &impl AsFd) -> io::Result<()> {
    match set_lock(file, libc::F_WRLCK) {
        Err(error) if error.raw_os_error() == Some(libc::EACCES) => {
            Err(io::Error::from(io::ErrorKind::WouldBlock))
        }
        result => result,
    }
}

/// Releases a lock of [`lock_for_table`].
pub fn unlock_for_table(file: &impl AsFd) -> io::Result<()> {
    set_lock(file, libc::F_UNLCK)
}

fn set_lock(file: &impl AsFd, kind: libc::c_int) -> io::Result<()> {
    // SAFETY: a flock is plain numbers, for which zero is valid: the whole file.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::c_short::try_from(kind).unwrap_or_default();
    lock.l_whence = libc::c_short::try_from(libc::SEEK_SET).unwrap_or_default();
    let descriptor = file.as_fd().as_raw_fd();
    // SAFETY: the pointer is to a value that outlives the call; the descriptor is open through it.
    check(unsafe { libc::fcntl(descriptor, libc::F_SETLK, &raw const lock) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{descriptor, passing};
    use std::fs::File;
    use std::sync::mpsc;

    #[test]
    fn a_table_of_descriptors_locks_out_another_one_until_it_is_gone() {
        let file = passing::memory_file(c"lock").unwrap();
        let same = file.try_clone().unwrap();
        let (is_locked, proceed) = mpsc::channel();
        let (end, ending) = mpsc::channel::<()>();
        let other = std::thread::spawn(move || {
            descriptor::unshare_table().unwrap();
            lock_for_table(&same).unwrap();
            lock_for_table(&same).unwrap();
            is_locked.send(()).unwrap();
            let _ = ending.recv();
            unlock_for_table(&same).unwrap();
            is_locked.send(()).unwrap();
            let _ = ending.recv();
            lock_for_table(&same).unwrap_err()
        });
        proceed.recv().unwrap();
        let refused = lock_for_table(&file).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        end.send(()).unwrap();
        proceed.recv().unwrap();
        lock_for_table(&file).unwrap();
        end.send(()).unwrap();
        assert_eq!(other.join().unwrap().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_lock_ends_with_its_table() {
        let file = passing::memory_file(c"lock").unwrap();
        let same = file.try_clone().unwrap();
        let other = std::thread::spawn(move || {
            descriptor::unshare_table().unwrap();
            lock_for_table(&same).unwrap();
            // Not closed here: the thread's end drops the table.
            std::mem::forget(same);
        });
        other.join().unwrap();
        // The join returns a moment before the kernel has dropped the thread's table.
        let patience = std::time::Duration::from_millis(1);
        while lock_for_table(&file).is_err() {
            descriptor::wait_readable(&[], Some(patience)).unwrap();
        }
    }

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
