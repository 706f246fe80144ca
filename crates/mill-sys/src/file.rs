//! Opening and examining files for serving: never waits for a FIFO's other end, never follows a refused link.

/// Which kind of file system a file is on.
mod fstatfs;
/// Files as memory that the kernel reads.
mod mapping;
/// Opening only what is in the kernel's cache of names.
mod openat2;
/// Reading only what is in the page cache.
mod preadv2;
/// How much room a file system has.
mod statvfs;

pub use fstatfs::{FileSystem, file_system};
pub use mapping::{FILE_MAPPINGS_MAX, FileMapping, write_mapped};
pub use preadv2::read_cached_at;
pub use statvfs::free_bytes;

use crate::process::check;
use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// What serving needs of stat(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The file type and permission bits (`st_mode`).
    pub mode: u32,
    pub len: u64,
    pub modified_s: i64,
    pub modified_ns: u32,
    pub inode: u64,
    pub device: u64,
    pub owner: u32,
}

impl Status {
    pub fn is_regular(&self) -> bool {
        self.mode & libc::S_IFMT == libc::S_IFREG
    }

    pub fn is_directory(&self) -> bool {
        self.mode & libc::S_IFMT == libc::S_IFDIR
    }

    pub fn is_symlink(&self) -> bool {
        self.mode & libc::S_IFMT == libc::S_IFLNK
    }

    /// At least one class of users may execute it.
    pub fn is_executable(&self) -> bool {
        self.mode & (libc::S_IXUSR | libc::S_IXGRP | libc::S_IXOTH) != 0
    }
}

/// What a call does if the kernel has to read from the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfCold {
    /// It waits for the disk.
    Wait,
    /// It fails with EAGAIN; with ENOSYS, EINVAL or EPERM where the kernel cannot tell (before Linux 5.12, or in a sandbox).
    Fail,
}

/// Opens for reading, closed on exec; never waits for the other end of a FIFO. One system call.
pub fn open(path: &[u8], cold: IfCold) -> io::Result<OwnedFd> {
    open_at(libc::AT_FDCWD, path, libc::O_RDONLY, cold)
}

/// Opens a component relative to `directory`; a symbolic link is refused with `ELOOP`.
pub fn open_beneath(directory: BorrowedFd<'_>, name: &[u8], cold: IfCold) -> io::Result<OwnedFd> {
    let flags = libc::O_RDONLY | libc::O_NOFOLLOW;
    open_at(directory.as_raw_fd(), name, flags, cold)
}

/// Opens a component relative to `directory`, following a symbolic link.
pub fn open_within(directory: BorrowedFd<'_>, name: &[u8], cold: IfCold) -> io::Result<OwnedFd> {
    open_at(directory.as_raw_fd(), name, libc::O_RDONLY, cold)
}

/// Opens for examination only (`O_PATH`), links included.
pub fn open_path(
    directory: Option<BorrowedFd<'_>>,
    name: &[u8],
    follow: bool,
    cold: IfCold,
) -> io::Result<OwnedFd> {
    let directory = directory.map_or(libc::AT_FDCWD, |directory| directory.as_raw_fd());
    let flags = libc::O_PATH | if follow { 0 } else { libc::O_NOFOLLOW };
    open_at(directory, name, flags, cold)
}

/// Examines what `path` leads to.
pub fn status(path: &[u8]) -> io::Result<Status> {
    let path = c_string(path)?;
    let mut raw = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the path is NUL-terminated and the pointer is to a local large enough for a stat.
    let result = unsafe { libc::stat(path.as_ptr(), raw.as_mut_ptr()) };
    finish(result, raw)
}

/// Examines an open file.
pub fn status_of(file: BorrowedFd<'_>) -> io::Result<Status> {
    let mut raw = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the pointer is to a local large enough for a stat.
    let result = unsafe { libc::fstat(file.as_raw_fd(), raw.as_mut_ptr()) };
    finish(result, raw)
}

/// Reads at `offset`; 0 at the end.
pub fn read_at(file: BorrowedFd<'_>, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let offset = offset_of(offset)?;
    // SAFETY: pointer and length describe `buffer`, which is ours through the call.
    let count = unsafe {
        libc::pread(
            file.as_raw_fd(),
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            offset,
        )
    };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// Opens a file without a name in `directory` for reading and writing; only its owner may open it. EOPNOTSUPP, EISDIR or
/// EINVAL where there are no such files.
pub fn create_unnamed(directory: &[u8]) -> io::Result<OwnedFd> {
    let path = c_string(directory)?;
    let flags = libc::O_TMPFILE | libc::O_RDWR | libc::O_EXCL | libc::O_CLOEXEC;
    // SAFETY: the path is NUL-terminated and lives through the call.
    let descriptor = unsafe { libc::open(path.as_ptr(), flags, 0o600) };
    check(descriptor)?;
    // SAFETY: the descriptor was just opened and belongs to nothing else.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Writes at `offset`; returns how many bytes.
pub fn write_at(file: BorrowedFd<'_>, offset: u64, bytes: &[u8]) -> io::Result<usize> {
    let offset = offset_of(offset)?;
    // SAFETY: pointer and length describe `bytes`, which live through the call.
    let count =
        unsafe { libc::pwrite(file.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), offset) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

fn offset_of(offset: u64) -> io::Result<i64> {
    i64::try_from(offset).map_err(|_| io::Error::from_raw_os_error(libc::EOVERFLOW))
}

fn open_at(directory: RawFd, path: &[u8], flags: i32, cold: IfCold) -> io::Result<OwnedFd> {
    let path = c_string(path)?;
    let flags = flags | libc::O_NONBLOCK | libc::O_CLOEXEC | libc::O_NOCTTY;
    if cold == IfCold::Fail {
        return openat2::open_cached(directory, &path, flags);
    }
    // SAFETY: the path is NUL-terminated and lives through the call.
    let descriptor = unsafe { libc::openat(directory, path.as_ptr(), flags) };
    check(descriptor)?;
    // SAFETY: the kernel just gave us this descriptor, nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn finish(result: i32, raw: MaybeUninit<libc::stat>) -> io::Result<Status> {
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so the kernel has filled it in.
    let raw = unsafe { raw.assume_init() };
    Ok(Status {
        mode: raw.st_mode,
        len: u64::try_from(raw.st_size).unwrap_or(0),
        modified_s: raw.st_mtime,
        modified_ns: u32::try_from(raw.st_mtime_nsec).unwrap_or(0),
        inode: raw.st_ino,
        device: raw.st_dev,
        owner: raw.st_uid,
    })
}

fn c_string(path: &[u8]) -> io::Result<CString> {
    CString::new(path).map_err(|_| io::Error::from_raw_os_error(libc::ENOENT))
}
