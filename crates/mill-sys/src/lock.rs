//! Locks on files and on bytes of them, which the kernel releases when their holder ends.

use crate::descriptor;
use crate::process::check;
use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks an open file for its open file description until that is closed: flock(2). `WouldBlock` if another one has the
/// lock.
pub fn lock_exclusive(file: &impl AsFd) -> io::Result<()> {
    let descriptor = file.as_fd().as_raw_fd();
    // SAFETY: flock(2) takes no pointer; the descriptor is open through the call.
    check(unsafe { libc::flock(descriptor, libc::LOCK_EX | libc::LOCK_NB) })
}

/// One of several in a descriptor table that may lock a byte of a file, of which one at a time has the lock: fcntl(2), F_SETLK. The
/// lock ends with [`Self::unlock`], or with the table, at the latest when the process ends. Closing any descriptor of the file in the
/// same table ends it too: a table should have only one, or [`Self::renew`] the lock.
#[derive(Debug)]
pub struct Holder {
    file: FileNumber,
    byte: u32,
    has_it: Cell<bool>,
}

/// Device and inode.
type FileNumber = (u64, u64);

/// The locks that are held in this process, each with the number of the process, in which a child differs, that of the table, the
/// file, and the byte.
static HELD: Mutex<Vec<(u32, u64, FileNumber, u32)>> = Mutex::new(Vec::new());

impl Holder {
    /// May lock this byte of a file, which need not be as long.
    pub fn new(file: &impl AsFd, byte: u32) -> io::Result<Self> {
        Ok(Self {
            file: number_of(file)?,
            byte,
            has_it: Cell::new(false),
        })
    }

    /// `WouldBlock` if another holder has the lock, of this table or of another one.
    pub fn lock(&self, file: &impl AsFd) -> io::Result<()> {
        if self.has_it.get() {
            return self.renew(file);
        }
        let mut held = held();
        if held.contains(&self.entry()) {
            return Err(io::Error::from(io::ErrorKind::WouldBlock));
        }
        set_lock(file, libc::F_WRLCK, self.byte)?;
        // Those of a parent are none of this process.
        held.retain(|(process, ..)| *process == std::process::id());
        held.push(self.entry());
        self.has_it.set(true);
        Ok(())
    }

    /// Locks the byte once more where the table may have lost the lock; `WouldBlock` if another table has it now. Without the lock
    /// it does nothing.
    pub fn renew(&self, file: &impl AsFd) -> io::Result<()> {
        if !self.has_it.get() {
            return Ok(());
        }
        set_lock(file, libc::F_WRLCK, self.byte)?;
        // In a child that goes on in its parent's place what is held was the parent's.
        let mut held = held();
        if !held.contains(&self.entry()) {
            held.push(self.entry());
        }
        Ok(())
    }

    /// Releases the lock; without it does nothing.
    pub fn unlock(&self, file: &impl AsFd) -> io::Result<()> {
        if !self.has_it.get() {
            return Ok(());
        }
        self.forget();
        set_lock(file, libc::F_UNLCK, self.byte)
    }

    pub fn has_it(&self) -> bool {
        self.has_it.get()
    }

    /// Whether another holder, of this table or of another one, has a lock on any of these bytes. Also `true` if that can't be found
    /// out.
    pub fn is_held_by_another(&self, file: &impl AsFd, bytes: RangeInclusive<u32>) -> bool {
        let (process, table, file_number, own) = self.entry();
        let is_other = |byte: u32| bytes.contains(&byte) && !(self.has_it.get() && byte == own);
        // The kernel does not tell a table of its own locks.
        let in_table = held().iter().any(|(of, at, number, byte)| {
            (*of, *at, *number) == (process, table, file_number) && is_other(*byte)
        });
        in_table || is_locked_by_others(file, &bytes)
    }

    fn forget(&self) {
        held().retain(|entry| *entry != self.entry());
        self.has_it.set(false);
    }

    fn entry(&self) -> (u32, u64, FileNumber, u32) {
        (
            std::process::id(),
            descriptor::table(),
            self.file,
            self.byte,
        )
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

fn held() -> MutexGuard<'static, Vec<(u32, u64, FileNumber, u32)>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

fn number_of(file: &impl AsFd) -> io::Result<FileNumber> {
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the pointer is to room for what the call writes; the descriptor is open through the call.
    check(unsafe { libc::fstat(file.as_fd().as_raw_fd(), status.as_mut_ptr()) })?;
    // SAFETY: the call has filled it.
    let status = unsafe { status.assume_init() };
    Ok((status.st_dev, status.st_ino))
}

/// `WouldBlock` if another table has the lock.
fn set_lock(file: &impl AsFd, kind: libc::c_int, byte: u32) -> io::Result<()> {
    let mut lock = lock_of(kind, byte, 1);
    match control(file, libc::F_SETLK, &mut lock) {
        Err(error) if error.raw_os_error() == Some(libc::EACCES) => {
            Err(io::Error::from(io::ErrorKind::WouldBlock))
        }
        result => result,
    }
}

fn is_locked_by_others(file: &impl AsFd, bytes: &RangeInclusive<u32>) -> bool {
    let count = i64::from(*bytes.end()) - i64::from(*bytes.start()) + 1;
    let mut lock = lock_of(libc::F_WRLCK, *bytes.start(), count);
    let is_known = control(file, libc::F_GETLK, &mut lock).is_ok();
    !is_known || libc::c_int::from(lock.l_type) != libc::F_UNLCK
}

fn lock_of(kind: libc::c_int, first: u32, count: i64) -> libc::flock {
    // SAFETY: a flock is plain numbers, for which zero is valid.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::c_short::try_from(kind).unwrap_or_default();
    lock.l_whence = libc::c_short::try_from(libc::SEEK_SET).unwrap_or_default();
    lock.l_start = i64::from(first);
    lock.l_len = count;
    lock
}

fn control(file: &impl AsFd, command: libc::c_int, lock: &mut libc::flock) -> io::Result<()> {
    let descriptor = file.as_fd().as_raw_fd();
    // SAFETY: the pointer is to a value that outlives the call; the descriptor is open through it.
    check(unsafe { libc::fcntl(descriptor, command, &raw mut *lock) })
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
        let holders = [(); 2].map(|()| Holder::new(&file, 0).unwrap());
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
            Holder::new(&other, 0).unwrap().lock(&other)
        });
        assert!(would_block(in_other_table.join().unwrap()));
        holders[0].unlock(&file).unwrap();
        holders[1].lock(&file).unwrap();
        assert!(would_block(holders[0].lock(&file)));
        holders[1].unlock(&file).unwrap();
    }

    /// A holder of a byte on a thread that has a descriptor table of its own.
    struct Process {
        orders: mpsc::Sender<fn(&Holder, &File) -> io::Result<()>>,
        results: mpsc::Receiver<io::Result<()>>,
        thread: std::thread::JoinHandle<()>,
    }

    impl Process {
        fn of(file: &File, byte: u32) -> Self {
            let file = file.try_clone().unwrap();
            let (orders, inbox) = mpsc::channel::<fn(&Holder, &File) -> io::Result<()>>();
            let (done, results) = mpsc::channel();
            let thread = std::thread::spawn(move || {
                descriptor::unshare_table().unwrap();
                let holder = Holder::new(&file, byte).unwrap();
                for order in inbox {
                    done.send(order(&holder, &file)).unwrap();
                }
                // Not closed here: the thread's end drops the table.
                std::mem::forget(file);
            });
            Self {
                orders,
                results,
                thread,
            }
        }

        fn order(&self, order: fn(&Holder, &File) -> io::Result<()>) -> io::Result<()> {
            self.orders.send(order).unwrap();
            self.results.recv().unwrap()
        }

        fn end(self) {
            drop(self.orders);
            self.thread.join().unwrap();
        }
    }

    /// The kernel drops a thread's table a moment after the thread was joined.
    fn wait_for(mut holds: impl FnMut() -> bool) {
        let patience = std::time::Duration::from_millis(1);
        while !holds() {
            descriptor::wait_readable(&[], Some(patience)).unwrap();
        }
    }

    #[test]
    fn a_table_of_descriptors_locks_out_another_one_until_it_is_gone() {
        let file = passing::memory_file(c"lock").unwrap();
        let [one, other] = [(); 2].map(|()| Process::of(&file, 3));
        let elsewhere = Process::of(&file, 4);
        one.order(Holder::lock).unwrap();
        one.order(Holder::lock).unwrap();
        elsewhere.order(Holder::lock).unwrap();
        let refused = other.order(Holder::lock).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        one.order(Holder::unlock).unwrap();
        other.order(Holder::lock).unwrap();
        let refused = one.order(Holder::lock).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        other.end();
        wait_for(|| one.order(Holder::lock).is_ok());
    }

    #[test]
    fn locks_of_others_are_seen_in_this_table_and_in_another_one() {
        let file = passing::memory_file(c"lock").unwrap();
        let [own, sibling] = [5, 6].map(|byte| Holder::new(&file, byte).unwrap());
        let other = Process::of(&file, 1 << 20);
        let seen = |bytes| own.is_held_by_another(&file, bytes);
        own.lock(&file).unwrap();
        assert!(!seen(0..=1 << 20), "the own one is not another one's");
        sibling.lock(&file).unwrap();
        other.order(Holder::lock).unwrap();
        assert!(seen(6..=6) && seen(1 << 20..=1 << 20) && seen(0..=6));
        assert!(!seen(7..=(1 << 20) - 1) && !seen(0..=5));
        sibling.unlock(&file).unwrap();
        other.end();
        wait_for(|| !seen(0..=u32::MAX));
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
