//! Files through the kernel. What its caches hold is answered at once; what waits for a disk is done by a helper thread,
//! while the worker serves others.
//!
//! The first try of each call is one that does not wait: a path is opened only if all its names are in the kernel's memory
//! (`RESOLVE_CACHED`), a file is read as far as it is in the page cache (`RWF_NOWAIT`). It costs no system call more than
//! one that waits, but for `Files::metadata`, which takes three instead of one. A directory is always listed by a
//! helper thread: no call lists only what is in memory. `Files::real_path` waits.
//!
//! Temporary files are made and written by the worker: writes go to the page cache. They wait for the disk where the
//! kernel has too many unwritten pages already, as with nginx without `aio_write`. What is done with a written one
//! (`Files::publish`) is done by a helper thread: it may be copied to another file system. So is what is written and removed
//! as a whole (`Files::store`, `Files::discard`).
//!
//! Where the kernel cannot tell whether a path or a file is in memory (before Linux 5.12, in some sandboxes, on overlayfs),
//! the worker waits, as nginx's does. A file system that is neither in memory nor able to tell (FUSE, for one)
//! is read by helper threads alone.

/// What is asked of the system.
mod calls;
/// What a failed system call means.
mod error;
/// Mappings of files that are sent.
mod mappings;
/// Helper threads.
mod pool;
/// A written file gets its path.
mod publishing;
/// How the files of each file system are read.
mod reading;
/// A file that is written, named and removed as a whole.
mod storing;
/// From a path to an open file.
mod walk;

use error::{failed, is_cold};
use mappings::{FileKey, Mappings};
use mill_bypass::FileBytes;
use mill_runtime::files::{
    DirectoryEntry, FileError, FileErrorKind, FilePiece, Files, Metadata, PoolLimits, Publication,
    StoredPath, Symlinks, Visibility,
};
use mill_runtime::scheduler::Scheduler;
use mill_runtime::tasks::TaskId;
use mill_stack::link::ExternalBytes;
use mill_sys::epoll::{Epoll, Interest};
use mill_sys::file::{self, FileMapping, IfCold};
use pool::Pool;
use reading::{FileSystems, Reading};
use std::cell::{Cell, OnceCell};
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// The file system of the process, as one worker sees it. Without a scheduler, or made by `default`, all calls wait where
/// they are made.
#[derive(Debug, Default)]
pub struct KernelFiles {
    limits: Cell<PoolLimits>,
    /// Where the pool reports what is done, and as what.
    report_to: Option<(Rc<Epoll>, u64)>,
    scheduler: OnceCell<Rc<Scheduler>>,
    /// Made at the first call that would wait and finds what it needs, descriptors for one.
    pool: OnceCell<Pool>,
    /// Whether the kernel can say that a path is not in its memory, once that is known.
    looks_up: Cell<Option<bool>>,
    file_systems: FileSystems,
    mappings: Rc<Mappings>,
}

/// An open file or directory.
#[derive(Clone, Debug)]
pub struct KernelFile(Rc<Opened>);

#[derive(Debug)]
struct Opened {
    /// Shared with helper threads: the task that reads may be gone before they are done.
    descriptor: Arc<OwnedFd>,
    device: u64,
    reading: Cell<Reading>,
    /// As it was when it was opened.
    key: FileKey,
    /// Once it is asked for: the whole file, if it is worth it and can be.
    mapping: OnceCell<Option<Rc<FileMapping>>>,
    mappings: Rc<Mappings>,
}

impl KernelFile {
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.descriptor.as_fd()
    }
}

/// What a stack of our own reads of a file to send it. It waits for the disk.
impl FileBytes for KernelFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize, FileError> {
        file::read_at(self.as_fd(), offset, into).map_err(failed("pread()"))
    }

    fn mapped(&self, offset: u64, len: u64) -> Option<ExternalBytes<'_>> {
        let map = || self.0.mappings.get(self.0.key, self.as_fd());
        let mapping = self.0.mapping.get_or_init(map).as_deref()?;
        let len = usize::try_from(len).ok()?;
        let address = mapping.address(offset, len)?;
        Some(ExternalBytes::of_mapping(mapping, address, len))
    }
}

impl KernelFiles {
    /// What helper threads have done is reported by `epoll` as `token`: then [`Self::collect`].
    pub(crate) fn new(epoll: Rc<Epoll>, token: u64) -> Self {
        Self {
            report_to: Some((epoll, token)),
            ..Self::default()
        }
    }

    /// Appends the tasks whose files are ready to `tasks`.
    pub(crate) fn collect(&self, tasks: &mut Vec<TaskId>) {
        if let Some(pool) = self.pool.get() {
            pool.collect(tasks);
        }
    }

    /// Has `call`, which waits for a disk, done by a helper thread.
    async fn perform<T: Send + 'static>(
        &self,
        call: impl FnOnce() -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, FileError> {
        let (Some(scheduler), Some(pool)) = (self.scheduler.get(), self.pool()) else {
            return call();
        };
        match pool.submit(scheduler, call) {
            Ok(answer) => answer.await,
            Err(pool::Full) => Err(POOL_FULL),
        }
    }

    fn pool(&self) -> Option<&Pool> {
        if let Some(pool) = self.pool.get() {
            return Some(pool);
        }
        let (epoll, token) = self.report_to.as_ref()?;
        let pool = Pool::new(self.limits.get()).ok()?;
        epoll.add(pool.signal(), EACH_SIGNAL, *token).ok()?;
        Some(self.pool.get_or_init(|| pool))
    }

    /// What the first try of opening a path does where it would have to wait.
    fn first_try(&self) -> IfCold {
        if self.looks_up.get().is_none() {
            self.looks_up.set(calls::can_look_up_cached());
        }
        match self.looks_up.get() {
            Some(true) => IfCold::Fail,
            Some(false) | None => IfCold::Wait,
        }
    }

    fn opened(&self, (descriptor, metadata): (OwnedFd, Metadata)) -> (KernelFile, Metadata) {
        let device = metadata.device;
        let reading = Cell::new(self.file_systems.reading(device));
        let opened = Opened {
            descriptor: Arc::new(descriptor),
            device,
            reading,
            key: FileKey::of(&metadata),
            mapping: OnceCell::new(),
            mappings: Rc::clone(&self.mappings),
        };
        (KernelFile(Rc::new(opened)), metadata)
    }

    /// Reads what is in memory; `None` if the worker would have to wait.
    fn read_cached_at(
        &self,
        file: &KernelFile,
        offset: u64,
        buffer: &mut [u8],
    ) -> Option<Result<usize, FileError>> {
        if file.0.reading.get() == Reading::Asked {
            let read = file::read_cached_at(file.as_fd(), offset, buffer);
            match read.map_err(failed("pread()")) {
                Err(error) if is_cold(&error) => return None,
                Err(error) if error::is_unsupported(error.code) => {
                    file.0.reading.set(Reading::Unknown);
                }
                read => return Some(read),
            }
        }
        match file.0.reading.get() {
            Reading::InWorker => Some(FileBytes::read_at(file, offset, buffer)),
            Reading::Asked | Reading::Unknown | Reading::ByHelper => None,
        }
    }
}

impl KernelFiles {
    /// The answer to [`Files::load`] where it is known at once: `None` if a disk has to be waited for. The first and the
    /// last byte stand for the whole range: pages come into memory in the order of a file and leave it in that order.
    fn loaded(&self, file: &KernelFile, offset: u64, len: u64) -> Option<Result<u64, FileError>> {
        for byte in [offset, offset + len.saturating_sub(1)] {
            let read = match file.0.reading.get() {
                Reading::Asked => self.read_cached_at(file, byte, &mut [0]),
                Reading::InWorker => return Some(Ok(len)),
                Reading::Unknown | Reading::ByHelper => return Some(Ok(0)),
            };
            match read {
                Some(Err(error)) => return Some(Err(error)),
                Some(Ok(_)) => {}
                None if file.0.reading.get() == Reading::Asked => return None,
                None => return Some(Ok(0)),
            }
        }
        Some(Ok(len))
    }
}

impl Files for KernelFiles {
    type File = KernelFile;

    fn set_scheduler(&self, scheduler: &Rc<Scheduler>) {
        // An engine has one worker.
        let _ = self.scheduler.set(Rc::clone(scheduler));
        self.mappings.set_scheduler(scheduler);
    }

    fn set_pool_limits(&self, limits: PoolLimits) {
        self.limits.set(limits);
        if let Some(pool) = self.pool.get() {
            pool.set_limits(limits);
        }
    }

    async fn open(
        &self,
        path: &[u8],
        symlinks: Symlinks,
    ) -> Result<(KernelFile, Metadata), FileError> {
        match calls::open(path, symlinks, self.first_try()) {
            Err(error) if is_cold(&error) => {}
            found => return found.map(|found| self.opened(found)),
        }
        let path = path.to_vec();
        let call = move || calls::open(&path, symlinks, IfCold::Wait);
        self.perform(call).await.map(|found| self.opened(found))
    }

    async fn metadata(&self, path: &[u8], symlinks: Symlinks) -> Result<Metadata, FileError> {
        match calls::examine(path, symlinks, self.first_try()) {
            Err(error) if is_cold(&error) => {}
            found => return found,
        }
        let path = path.to_vec();
        self.perform(move || calls::examine(&path, symlinks, IfCold::Wait))
            .await
    }

    async fn read_at(
        &self,
        file: &KernelFile,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<usize, FileError> {
        if let Some(read) = self.read_cached_at(file, offset, buffer) {
            return read;
        }
        let own = Arc::clone(&file.0.descriptor);
        let (len, is_unknown) = (buffer.len(), file.0.reading.get() == Reading::Unknown);
        let call = move || {
            let kind = is_unknown.then(|| reading::kind_of(own.as_fd()));
            Ok((calls::read(own.as_fd(), offset, len)?, kind))
        };
        let (bytes, kind) = self.perform(call).await?;
        if let Some(kind) = kind {
            let learnt = self.file_systems.learn(file.0.device, kind);
            file.0.reading.set(learnt);
        }
        if let Some(filled) = buffer.get_mut(..bytes.len()) {
            filled.copy_from_slice(&bytes);
        }
        Ok(bytes.len())
    }

    async fn load(&self, file: &KernelFile, offset: u64, len: u64) -> Result<u64, FileError> {
        if let Some(loaded) = self.loaded(file, offset, len) {
            return loaded;
        }
        let own = Arc::clone(&file.0.descriptor);
        self.perform(move || calls::load(own.as_fd(), offset, len))
            .await
    }

    async fn list(&self, path: &[u8]) -> Result<Vec<DirectoryEntry>, FileError> {
        let path = path.to_vec();
        self.perform(move || calls::list(&path)).await
    }

    fn real_path(&self, path: &[u8]) -> Result<Vec<u8>, FileError> {
        let path = Path::new(OsStr::from_bytes(path));
        let real = std::fs::canonicalize(path).map_err(failed("realpath()"))?;
        Ok(real.into_os_string().into_vec())
    }

    fn create(
        &self,
        path: &[u8],
        levels: usize,
        visibility: Visibility,
    ) -> Result<KernelFile, FileError> {
        let created = calls::create(path, levels, visibility)?;
        Ok(self.opened(created).0)
    }

    fn write_at(&self, file: &KernelFile, offset: u64, bytes: &[u8]) -> Result<(), FileError> {
        calls::write(file.as_fd(), offset, bytes)
    }

    fn rename(&self, from: &[u8], to: &[u8]) -> Result<(), FileError> {
        let renamed = std::fs::rename(OsStr::from_bytes(from), OsStr::from_bytes(to));
        renamed.map_err(failed("rename()"))
    }

    async fn publish(
        &self,
        file: &KernelFile,
        from: &[u8],
        to: &[u8],
        publication: &Publication,
    ) -> Result<(), FileError> {
        let own = Arc::clone(&file.0.descriptor);
        let (from, to, publication) = (from.to_vec(), to.to_vec(), *publication);
        self.perform(move || publishing::publish(own.as_fd(), &from, &to, &publication))
            .await
    }

    fn remove(&self, path: &[u8]) -> Result<(), FileError> {
        std::fs::remove_file(OsStr::from_bytes(path)).map_err(failed("unlink()"))
    }

    async fn store(
        &self,
        stored: &StoredPath<'_>,
        pieces: Vec<FilePiece>,
    ) -> Result<(), FileError> {
        let (temporary, path) = (stored.temporary.to_vec(), stored.path.to_vec());
        let levels = stored.levels;
        let call = move || {
            let stored = StoredPath {
                temporary: &temporary,
                path: &path,
                levels,
            };
            storing::store(&stored, &pieces)
        };
        self.perform(call).await
    }

    async fn discard(&self, path: &[u8]) -> Result<(), FileError> {
        let path = path.to_vec();
        self.perform(move || storing::discard(&path)).await
    }

    async fn free_bytes(&self, path: &[u8]) -> Result<u64, FileError> {
        let path = path.to_vec();
        let call = move || file::free_bytes(&path).map_err(failed("statvfs()"));
        self.perform(call).await
    }
}

/// As many calls wait for a helper thread as may.
const POOL_FULL: FileError = FileError {
    kind: FileErrorKind::Overloaded,
    call: "thread pool",
    code: EAGAIN,
};

/// The pool's signal is never read.
const EACH_SIGNAL: Interest = Interest {
    readable: true,
    writable: false,
    edge: true,
    exclusive: false,
};

/// Linux's error number (asm-generic/errno.h).
const EAGAIN: i32 = 11;
