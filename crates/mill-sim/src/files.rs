//! Files in memory, changed by the test while the server runs.

/// Files that a server writes.
mod temporary;
/// Directories, files, links, and how a path leads to them.
mod tree;

use crate::agenda::Event;
use crate::network::Net;
use mill_bypass::FileBytes;
use mill_runtime::files::{
    DirectoryEntry, FileError, FileErrorKind, FilePiece, Files, Metadata, PoolLimits, Publication,
    StoredPath, Symlinks, Visibility,
};
use mill_runtime::scheduler::Scheduler;
use mill_runtime::stream::StreamError;
use mill_runtime::time::{Duration, UnixTime};
use mill_stack::link::ExternalBytes;
use std::cell::{Cell, OnceCell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use temporary::Disk;
use tree::{Content, Node, Tree};

/// The file system of a world, for the server through [`Files`] and for the test through the methods here.
/// Clones are the same file system. The test's methods take absolute paths, make missing directories on the
/// way, and panic when a path leads to nothing where something must be.
#[derive(Clone, Debug)]
pub struct SimFiles {
    net: Net,
    tree: Rc<RefCell<Tree>>,
    state: Rc<State>,
}

#[derive(Debug)]
struct State {
    latency: Cell<Duration>,
    waiting_max: Cell<usize>,
    waiting: Cell<usize>,
    open_max: Cell<usize>,
    open: Rc<Cell<usize>>,
    calls: Cell<FileCalls>,
    disk: Rc<Disk>,
}

/// How often each call was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileCalls {
    pub open: usize,
    pub metadata: usize,
    pub read_at: usize,
    pub load: usize,
    pub list: usize,
    pub real_path: usize,
    pub create: usize,
    pub write_at: usize,
    pub remove: usize,
    pub store: usize,
}

/// An open file: whatever becomes of its path, it is this file.
#[derive(Clone, Debug)]
pub struct SimFile(Rc<Opening>);

#[derive(Debug)]
struct Opening {
    node: Rc<Node>,
    open: Rc<Cell<usize>>,
    /// Of a file without a name, whose bytes are free once it is closed.
    disk: Option<Rc<Disk>>,
    /// What a link sends from where it is mapped.
    mapped: OnceCell<Vec<u8>>,
}

/// What the test does to the files.
impl SimFiles {
    pub(crate) fn new(net: Net) -> Self {
        Self {
            net,
            tree: Rc::new(RefCell::new(Tree::new())),
            state: Rc::new(State {
                latency: Cell::new(Duration::ZERO),
                waiting_max: Cell::new(usize::MAX),
                waiting: Cell::new(0),
                open_max: Cell::new(usize::MAX),
                open: Rc::new(Cell::new(0)),
                calls: Cell::new(FileCalls::default()),
                disk: Rc::default(),
            }),
        }
    }

    /// Makes a file, or changes the content of the one that is there, which stays the same file.
    pub fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref().to_vec();
        let now = self.now();
        let mut tree = self.tree.borrow_mut();
        match tree.existing(path) {
            Some(node) => node.set_bytes(bytes, now),
            None => {
                tree.put(path, Content::Regular(RefCell::new(bytes)), now);
            }
        }
    }

    /// Puts a new file in the place of what is there, as `rename` does.
    pub fn replace(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let content = Content::Regular(RefCell::new(bytes.as_ref().to_vec()));
        let now = self.now();
        self.tree.borrow_mut().put(path, content, now);
    }

    pub fn append(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let node = self.node(path);
        let mut all = node.bytes();
        all.extend_from_slice(bytes.as_ref());
        node.set_bytes(all, self.now());
    }

    /// Makes a file longer, with zeros, or shorter.
    pub fn set_len(&self, path: &str, len: usize) {
        let node = self.node(path);
        let mut bytes = node.bytes();
        bytes.resize(len, 0);
        node.set_bytes(bytes, self.now());
    }

    /// Takes the entry out of its directory; what has the file open keeps it.
    pub fn remove(&self, path: &str) {
        self.tree.borrow_mut().remove(path);
    }

    /// Makes an empty directory, in the place of what is there.
    pub fn create_directory(&self, path: &str) {
        let now = self.now();
        let content = Content::Directory(RefCell::default());
        self.tree.borrow_mut().put(path, content, now);
    }

    /// Makes a FIFO or a device.
    pub fn create_other(&self, path: &str) {
        let now = self.now();
        self.tree.borrow_mut().put(path, Content::Other, now);
    }

    /// Makes a symbolic link.
    pub fn link(&self, path: &str, target: &str) {
        let now = self.now();
        let content = Content::Link(target.as_bytes().to_vec());
        self.tree.borrow_mut().put(path, content, now);
    }

    /// Whether the server may read the file, or search and list the directory.
    pub fn set_readable(&self, path: &str, readable: bool) {
        self.node(path).readable.set(readable);
    }

    pub fn set_executable(&self, path: &str, executable: bool) {
        self.node(path).executable.set(executable);
    }

    pub fn modified(&self, path: &str) -> UnixTime {
        self.node(path).modified.get()
    }

    pub fn set_modified(&self, path: &str, modified: UnixTime) {
        self.node(path).modified.set(modified);
    }

    /// The owner of what is at `path`; of a link itself, not of its target.
    pub fn set_owner(&self, path: &str, owner: u32) {
        self.node(path).owner.set(owner);
    }

    /// How long each call takes from now on.
    pub fn set_latency(&self, latency: Duration) {
        self.state.latency.set(latency);
    }

    /// How many files may be open at once before `open` fails with EMFILE.
    pub fn set_open_max(&self, open_max: usize) {
        self.state.open_max.set(open_max);
    }

    /// How many files are open.
    pub fn open_files(&self) -> usize {
        self.state.open.get()
    }

    pub fn calls(&self) -> FileCalls {
        self.state.calls.get()
    }

    fn node(&self, path: &str) -> Rc<Node> {
        self.tree
            .borrow()
            .existing(path)
            .unwrap_or_else(|| panic!("{path} exists"))
    }

    fn now(&self) -> UnixTime {
        self.net.borrow().wall_clock()
    }
}

/// What the calls have in common.
impl SimFiles {
    fn opened(&self, node: Rc<Node>, disk: Option<Rc<Disk>>) -> SimFile {
        self.state.open.set(self.state.open.get() + 1);
        let open = Rc::clone(&self.state.open);
        SimFile(Rc::new(Opening {
            node,
            open,
            disk,
            mapped: OnceCell::new(),
        }))
    }

    fn count(&self, count: impl FnOnce(&mut FileCalls)) {
        let mut calls = self.state.calls.get();
        count(&mut calls);
        self.state.calls.set(calls);
    }

    /// Takes the time that a call takes.
    async fn wait(&self) -> Result<(), FileError> {
        let latency = self.state.latency.get();
        if latency == Duration::ZERO {
            return Ok(());
        }
        if self.state.waiting.get() >= self.state.waiting_max.get() {
            return Err(OVERLOADED);
        }
        let _waiting = Waiting::begin(&self.state);
        let done_at = {
            let mut net = self.net.borrow_mut();
            let done_at = net.now + latency;
            net.agenda.enter(done_at, Event::FileReady);
            done_at
        };
        poll_fn(|_| {
            if self.net.borrow().now < done_at {
                return Poll::Pending;
            }
            Poll::Ready(Ok(()))
        })
        .await
    }
}

/// One call that takes time, until it is done or given up.
struct Waiting<'a>(&'a State);

impl<'a> Waiting<'a> {
    fn begin(state: &'a State) -> Self {
        state.waiting.set(state.waiting.get() + 1);
        Self(state)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.set(self.0.waiting.get() - 1);
    }
}

impl Files for SimFiles {
    type File = SimFile;

    /// The world wakes the tasks.
    fn set_scheduler(&self, _: &Rc<Scheduler>) {}

    /// As many calls may take time at once as there are threads and places to wait for one.
    fn set_pool_limits(&self, limits: PoolLimits) {
        let waiting_max = limits.threads_max.saturating_add(limits.queue_max);
        self.state.waiting_max.set(waiting_max);
    }

    async fn open(
        &self,
        path: &[u8],
        symlinks: Symlinks,
    ) -> Result<(SimFile, Metadata), FileError> {
        self.count(|calls| calls.open += 1);
        self.wait().await?;
        let call = if symlinks == Symlinks::Follow {
            "open()"
        } else {
            "openat()"
        };
        let node = self.tree.borrow().resolve(path, symlinks, call)?.node;
        if !node.readable.get() {
            return Err(error(call, EACCES));
        }
        if self.state.open.get() >= self.state.open_max.get() {
            return Err(error(call, EMFILE));
        }
        let metadata = node.metadata();
        Ok((self.opened(node, None), metadata))
    }

    async fn metadata(&self, path: &[u8], symlinks: Symlinks) -> Result<Metadata, FileError> {
        self.count(|calls| calls.metadata += 1);
        self.wait().await?;
        let found = self.tree.borrow().resolve(path, symlinks, "stat()")?;
        Ok(found.node.metadata())
    }

    async fn read_at(
        &self,
        file: &SimFile,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<usize, FileError> {
        self.count(|calls| calls.read_at += 1);
        self.wait().await?;
        FileBytes::read_at(file, offset, buffer)
    }

    async fn load(&self, _: &SimFile, _: u64, len: u64) -> Result<u64, FileError> {
        self.count(|calls| calls.load += 1);
        self.wait().await?;
        Ok(len)
    }

    async fn list(&self, path: &[u8]) -> Result<Vec<DirectoryEntry>, FileError> {
        self.count(|calls| calls.list += 1);
        self.wait().await?;
        let tree = self.tree.borrow();
        let found = tree.resolve(path, Symlinks::Follow, "opendir()")?;
        let Content::Directory(entries) = &found.node.content else {
            return Err(error("opendir()", ENOTDIR));
        };
        if !found.node.readable.get() {
            return Err(error("opendir()", EACCES));
        }
        let examine = |name: &Vec<u8>| {
            let path = [&found.path, b"/".as_slice(), name].concat();
            let entry = tree.resolve(&path, Symlinks::Follow, "stat()");
            DirectoryEntry {
                name: name.clone(),
                metadata: entry.ok().map(|found| found.node.metadata()),
            }
        };
        Ok(entries.borrow().keys().map(examine).collect())
    }

    fn real_path(&self, path: &[u8]) -> Result<Vec<u8>, FileError> {
        self.count(|calls| calls.real_path += 1);
        let found = self
            .tree
            .borrow()
            .resolve(path, Symlinks::Follow, "realpath()")?;
        Ok(if found.path.is_empty() {
            b"/".to_vec()
        } else {
            found.path
        })
    }

    fn create(
        &self,
        path: &[u8],
        levels: usize,
        visibility: Visibility,
    ) -> Result<SimFile, FileError> {
        self.count(|calls| calls.create += 1);
        self.create_file(path, levels, visibility)
    }

    fn write_at(&self, file: &SimFile, offset: u64, bytes: &[u8]) -> Result<(), FileError> {
        self.count(|calls| calls.write_at += 1);
        self.write_file(file, offset, bytes)
    }

    fn rename(&self, from: &[u8], to: &[u8]) -> Result<(), FileError> {
        self.rename_file(from, to)
    }

    async fn publish(
        &self,
        _: &SimFile,
        from: &[u8],
        to: &[u8],
        publication: &Publication,
    ) -> Result<(), FileError> {
        self.rename_file(from, to)?;
        if let Some(modified) = publication.modified {
            self.set_modified(&String::from_utf8_lossy(to), modified);
        }
        Ok(())
    }

    fn remove(&self, path: &[u8]) -> Result<(), FileError> {
        self.count(|calls| calls.remove += 1);
        self.remove_file(path)
    }

    async fn store(
        &self,
        stored: &StoredPath<'_>,
        pieces: Vec<FilePiece>,
    ) -> Result<(), FileError> {
        self.count(|calls| calls.store += 1);
        self.wait().await?;
        self.store_file(stored, &pieces)
    }

    async fn discard(&self, path: &[u8]) -> Result<(), FileError> {
        self.count(|calls| calls.remove += 1);
        self.wait().await?;
        self.remove_file(path)
    }

    async fn free_bytes(&self, path: &[u8]) -> Result<u64, FileError> {
        self.wait().await?;
        self.tree
            .borrow()
            .resolve(path, Symlinks::Follow, "statvfs()")?;
        Ok(self.state.disk.left())
    }
}

impl SimFile {
    /// Appends a part of the file as it is now; fails if it ends before `len` bytes, or if it is no regular file.
    pub(crate) fn append_to(
        &self,
        offset: u64,
        len: u64,
        target: &mut Vec<u8>,
    ) -> Result<(), StreamError> {
        let Content::Regular(bytes) = &self.0.node.content else {
            return Err(StreamError::Other(EINVAL));
        };
        let (start, len) = (usize::try_from(offset), usize::try_from(len));
        let (start, len) = (start.unwrap_or(usize::MAX), len.unwrap_or(usize::MAX));
        let bytes = bytes.borrow();
        let range = bytes.get(start..start.saturating_add(len));
        target.extend_from_slice(range.ok_or(StreamError::Truncated)?);
        Ok(())
    }
}

/// Reading takes no time here: a stack that makes segments of a file does not wait for its bytes.
impl FileBytes for SimFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize, FileError> {
        match &self.0.node.content {
            Content::Regular(bytes) => {
                let bytes = bytes.borrow();
                let start = usize::try_from(offset)
                    .unwrap_or(usize::MAX)
                    .min(bytes.len());
                let len = into.len().min(bytes.len() - start);
                into[..len].copy_from_slice(&bytes[start..start + len]);
                Ok(len)
            }
            Content::Directory(_) => Err(error("pread()", EISDIR)),
            Content::Link(_) | Content::Other => Err(error("pread()", EINVAL)),
        }
    }

    /// As it was when it was first asked for; a file that has become shorter since has to be read.
    fn mapped(&self, offset: u64, len: u64) -> Option<ExternalBytes<'_>> {
        let Content::Regular(bytes) = &self.0.node.content else {
            return None;
        };
        let mapped = self.0.mapped.get_or_init(|| bytes.borrow().clone());
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(usize::try_from(len).ok()?)?;
        let is_there = end <= bytes.borrow().len();
        let bytes = mapped.get(start..end).filter(|_| is_there)?;
        Some(ExternalBytes::of_memory(bytes))
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.open.set(self.open.get() - 1);
        if let Some(disk) = &self.disk {
            disk.free(self.node.bytes().len());
        }
    }
}

/// So many calls take time already.
const OVERLOADED: FileError = FileError {
    kind: FileErrorKind::Overloaded,
    call: "thread pool",
    code: 11,
};

/// An error with Linux's number for it.
fn error(call: &'static str, code: i32) -> FileError {
    let kind = match code {
        ENOENT => FileErrorKind::NotFound,
        ENOTDIR => FileErrorKind::NotDirectory,
        ENAMETOOLONG => FileErrorKind::NameTooLong,
        EACCES => FileErrorKind::PermissionDenied,
        ELOOP => FileErrorKind::Symlink,
        EMFILE => FileErrorKind::Exhausted,
        _ => FileErrorKind::Other,
    };
    FileError { kind, call, code }
}

/// Linux's error numbers (include/uapi/asm-generic/errno-base.h and errno.h).
const ENOENT: i32 = 2;
const EBADF: i32 = 9;
const EACCES: i32 = 13;
const EEXIST: i32 = 17;
const ENOTDIR: i32 = 20;
const EISDIR: i32 = 21;
const EINVAL: i32 = 22;
const EMFILE: i32 = 24;
const ENOSPC: i32 = 28;
const ENAMETOOLONG: i32 = 36;
const ELOOP: i32 = 40;
