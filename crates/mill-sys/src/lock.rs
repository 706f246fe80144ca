//! Locks on whole files, which the kernel releases when their holder ends.

use crate::descriptor;
use crate::process::check;
use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Mutex, PoisonError};

/// Locks an open file for its open file description until that is closed: flock(2). `WouldBlock` if another one has the
/// lock.
pub fn lock_exclusive(file: &impl AsFd) -> io::Result<()> {
    let descriptor = file.as_fd().as_raw_fd();
    // SAFETY: flock(2) takes no pointer; the descriptor is open through the call.
    check(unsafe { libc::flock(descriptor, libc::LOCK_EX | libc::LOCK_NB) })
}

/// One of several in a descriptor table that may lock a file, of which one at a time has the lock of [`lock_for_table`]. The one that has
/// it locks the file once more where the table may have lost the lock, by closing another descriptor of the file.
#[derive(Debug)]
pub struct Holder {
    file: FileNumber,
    has_it: Cell<bool>,
}

/// Device and inode.
type FileNumber = (u64, u64);

/// The locks that are held in this process, each with the number of the process, in which a child differs, and that of the table.
static HELD: Mutex<Vec<(u32, u64, FileNumber)>> = Mutex::new(Vec::new());

impl Holder {
    /// May lock this file.
    pub fn new(file: &impl AsFd) -> io::Result<Self> {
        let mut status = MaybeUninit::<libc::stat>::uninit();
        // SAFETY: the pointer is to room for what the call writes; the descriptor is open through the call.
        check(unsafe { libc::fstat(file.as_fd().as_raw_fd(), status.as_mut_ptr()) })?;
        // SAFETY: the call has filled it.
        let status = unsafe { status.assume_init() };
        Ok(Self {
            file: (status.st_dev, status.st_ino),
            has_it: Cell::new(false),
        })
    }

    /// As [`lock_for_table`]; `WouldBlock` also if another holder of this table has the lock.
    pub fn lock(&self, file: &impl AsFd) -> io::Result<()> {
        if self.has_it.get() {
            return lock_for_table(file);
        }
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        if held.contains(&self.entry()) {
            return Err(io::Error::from(io::ErrorKind::WouldBlock));
        }
        lock_for_table(file)?;
        // Those of a parent are none of this process.
        held.retain(|(process, ..)| *process == std::process::id());
        held.push(self.entry());
        self.has_it.set(true);
        Ok(())
    }

    /// Releases a lock of [`Self::lock`]; without it does nothing.
    pub fn unlock(&self, file: &impl AsFd) -> io::Result<()> {
        if !self.has_it.get() {
            return Ok(());
        }
        self.forget();
        unlock_for_table(file)
    }

    fn forget(&self) {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|entry| *entry != self.entry());
        self.has_it.set(false);
    }

    fn entry(&self) -> (u32, u64, FileNumber) {
        (std::process::id(), descriptor::table(), self.file)
    }
}

/// The descriptor is closed about now, which releases the lock.
impl Drop for Holder {
    fn drop(&mut self) {
        if self.has_it.get() {
            self.forget();
        }
    }
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
    use crate::passing;
    use std::fs::File;
    use std::sync::mpsc;

    #[test]
    fn of_the_holders_of_a_table_one_has_the_lock_which_it_can_renew() {
        let file = passing::memory_file(c"lock").unwrap();
        let holders = [(); 2].map(|()| Holder::new(&file).unwrap());
        let would_block = |result: io::Result<()>| {
            result.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
        };
        holders[0].lock(&file).unwrap();
        assert!(would_block(holders[1].lock(&file)));
        // Closing any descriptor of it unlocks the file.
        drop(file.try_clone().unwrap());
        holders[0].lock(&file).unwrap();
        let other = file.try_clone().unwrap();
        let in_other_table = std::thread::spawn(move || {
            descriptor::unshare_table().unwrap();
            Holder::new(&other).unwrap().lock(&other)
        });
        assert!(would_block(in_other_table.join().unwrap()));
        holders[0].unlock(&file).unwrap();
        holders[1].lock(&file).unwrap();
        assert!(would_block(holders[0].lock(&file)));
        holders[1].unlock(&file).unwrap();
    }

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
