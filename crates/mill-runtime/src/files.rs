//! The file system as the server needs it.

use crate::scheduler::Scheduler;
use crate::time::UnixTime;
use alloc::rc::Rc;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::Future;
use core::ops::Range;

/// Files to serve, and temporary ones. Paths are bytes without NUL, absolute. Reading may have to wait for a disk, so
/// each call that reads is a future: other tasks run meanwhile. It is resolved at its first poll where nothing has to be
/// waited for. Dropping it cancels the call. Calls that write return at once: the system writes to the disk later.
pub trait Files: 'static {
    /// An open file; clones refer to the same opening, the last one closes it.
    type File: Clone + 'static;

    /// The scheduler of the worker whose tasks call: calls that take time wake them. Called once, before the first
    /// other call.
    fn set_scheduler(&self, scheduler: &Rc<Scheduler>);

    /// How many calls may wait for disks. Calls that wait already are not affected.
    fn set_pool_limits(&self, limits: PoolLimits);

    /// Opens a file or directory for reading and returns its metadata. Never waits for the other end of a FIFO.
    fn open(
        &self,
        path: &[u8],
        symlinks: Symlinks,
    ) -> impl Future<Output = Result<(Self::File, Metadata), FileError>>;

    /// The metadata of `path`, without opening it.
    fn metadata(
        &self,
        path: &[u8],
        symlinks: Symlinks,
    ) -> impl Future<Output = Result<Metadata, FileError>>;

    /// Reads at `offset` into `buffer`; returns how many bytes, 0 at the end of the file.
    fn read_at(
        &self,
        file: &Self::File,
        offset: u64,
        buffer: &mut [u8],
    ) -> impl Future<Output = Result<usize, FileError>>;

    /// Has bytes in memory that are about to be written as [`Payload::File`](crate::payload::Payload::File), so that the
    /// engine does not wait for a disk when it sends them. Returns how many of `len` bytes from `offset` on they are; 0 if
    /// the file's bytes are not kept in memory, and have to be read to be sent.
    fn load(
        &self,
        file: &Self::File,
        offset: u64,
        len: u64,
    ) -> impl Future<Output = Result<u64, FileError>>;

    /// The entries of a directory without `.` and `..`, in no particular order.
    fn list(&self, path: &[u8]) -> impl Future<Output = Result<Vec<DirectoryEntry>, FileError>>;

    /// The path with all symbolic links resolved. Unlike the other calls it returns at once, so that a variable can
    /// be evaluated where nothing waits; like realpath(3) it takes a system call for each component.
    fn real_path(&self, path: &[u8]) -> Result<Vec<u8>, FileError>;

    /// Makes a file for reading and writing where none is, and the directory that it is in, if its parent exists or can be
    /// made in the same way, for at most `levels` directories. Only the user of the process may use them.
    fn create(
        &self,
        path: &[u8],
        levels: usize,
        visibility: Visibility,
    ) -> Result<Self::File, FileError>;

    /// Writes all of `bytes` at `offset`, to memory: it waits for a disk only if the system has to make room first.
    fn write_at(&self, file: &Self::File, offset: u64, bytes: &[u8]) -> Result<(), FileError>;

    /// Gives a file another path in the same file system, in the place of what is there.
    fn rename(&self, from: &[u8], to: &[u8]) -> Result<(), FileError>;

    /// Gives a written file its permissions, its date and another path, in the place of what is there. Directories above
    /// that path are made. In another file system it is a copy, which is whole before it has that path.
    fn publish(
        &self,
        file: &Self::File,
        from: &[u8],
        to: &[u8],
        publication: &Publication,
    ) -> impl Future<Output = Result<(), FileError>>;

    /// Takes a file out of its directory.
    fn remove(&self, path: &[u8]) -> Result<(), FileError>;

    /// Makes a file of `pieces` under its temporary path, and gives it its own one, in the place of what is there, once it
    /// is whole: what is at `stored.path` is whole at any time, as long as the system does not crash. One call for all of
    /// it, so that where there are helper threads one of them does it, and no task waits until the system has room for what
    /// is written.
    ///
    /// # Errors
    /// If a call fails; the temporary file is gone then, if it can be removed.
    fn store(
        &self,
        stored: &StoredPath<'_>,
        pieces: Vec<FilePiece>,
    ) -> impl Future<Output = Result<(), FileError>>;

    /// As [`remove`](Self::remove), where the task can wait.
    fn discard(&self, path: &[u8]) -> impl Future<Output = Result<(), FileError>>;

    /// Bytes of the file system of `path` that the server may still take.
    fn free_bytes(&self, path: &[u8]) -> impl Future<Output = Result<u64, FileError>>;
}

/// Where [`Files::store`] puts a file: both paths in one file system.
#[derive(Clone, Copy, Debug)]
pub struct StoredPath<'a> {
    /// Its path while it is written, which no other file has.
    pub temporary: &'a [u8],
    /// Its path once it is whole.
    pub path: &'a [u8],
    /// How many of the lowest directories above each are made if they are missing. Only the user of the process may use
    /// them, and the file.
    pub levels: usize,
}

/// A part of bytes that threads may share.
pub type FilePiece = (Arc<[u8]>, Range<usize>);

/// What a file is like once it is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publication {
    /// Its permissions; directories that are made may be searched where the file may be read.
    pub mode: u32,
    /// `None`: when it was written.
    pub modified: Option<UnixTime>,
}

/// Whether a new file has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// It has none, and vanishes when it is closed, however the process ends. Its path says only in which directory its
    /// bytes are.
    Unnamed,
    Named,
}

/// The limits of a worker's helper threads, in the words and with the defaults of nginx's `thread_pool`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// Threads; each is started when it is needed first.
    pub threads_max: usize,
    /// Calls that may wait for a thread; one that comes while so many do is refused.
    pub queue_max: usize,
}

impl Default for PoolLimits {
    fn default() -> Self {
        Self {
            threads_max: 32,
            queue_max: 65_536,
        }
    }
}

/// What to do about symbolic links on the way (`disable_symlinks`). `from` is the length of the path's
/// leading part that is trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Symlinks {
    #[default]
    Follow,
    /// Refuse every link after the first `from` bytes.
    Refuse { from: usize },
    /// Refuse a link whose owner is not the owner of what it points to.
    RefuseUnlessSameOwner { from: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    pub kind: FileKind,
    /// Bytes.
    pub len: u64,
    pub modified: UnixTime,
    /// Identifies the file together with `device`.
    pub inode: u64,
    pub device: u64,
    /// At least one class of users may execute it.
    pub executable: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    Regular,
    Directory,
    /// FIFOs, sockets, devices: never served.
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryEntry {
    pub name: Vec<u8>,
    /// `None` when the entry vanished or could not be examined.
    pub metadata: Option<Metadata>,
}

/// Why a file could not be used, and which call failed, as the error log names both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileError {
    pub kind: FileErrorKind,
    /// `open()`, `stat()`, …
    pub call: &'static str,
    /// The operating system's error number.
    pub code: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileErrorKind {
    NotFound,
    /// A component of the path is not a directory.
    NotDirectory,
    NameTooLong,
    PermissionDenied,
    /// A symbolic link that was refused, or a loop of links.
    Symlink,
    /// No more descriptors.
    Exhausted,
    /// Too many calls wait for disks already.
    Overloaded,
    Other,
}
