//! fstatfs(2): which kind of file system a file is on.

use crate::process::check;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Kinds of file systems that differ in what reading waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// Its files are in memory: tmpfs, ramfs.
    Memory,
    /// It passes all calls on to file systems below it: overlayfs.
    Overlay,
    Other,
}

/// The file system that an open file is on. It may be asked for it over a network, and not answer.
pub fn file_system(file: BorrowedFd<'_>) -> io::Result<FileSystem> {
    let mut raw = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the pointer is to a local large enough for a statfs.
    check(unsafe { libc::fstatfs(file.as_raw_fd(), raw.as_mut_ptr()) })?;
    // SAFETY: the call succeeded, so the kernel has filled it in.
    let raw = unsafe { raw.assume_init() };
    Ok(match raw.f_type {
        libc::TMPFS_MAGIC | RAMFS_MAGIC => FileSystem::Memory,
        libc::OVERLAYFS_SUPER_MAGIC => FileSystem::Overlay,
        _ => FileSystem::Other,
    })
}

/// Linux's number for ramfs (linux/magic.h).
const RAMFS_MAGIC: libc::c_long = 0x8584_58f6;
